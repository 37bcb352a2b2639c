"""Every example on a page a user reads runs, in the order of the page.

Blocks marked ``python`` are programs, blocks marked ``pycon`` are sessions whose output is
compared; those of one page share their names.  Pages under docs/design show declarations and
sketches and are left out.
"""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```(python|pycon)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|mailto:|#)([^)#\s]+)")

PAGES = [
    path
    for pattern in ("*.md", "core/*.md", "nn/*.md", "backends/*/*.md", "docs/**/*.md")
    for path in sorted(ROOT.glob(pattern))
]
WITH_EXAMPLES = [
    page for page in PAGES if "design" not in page.parts and BLOCK.search(page.read_text())
]


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=name)
def test_examples_of_the_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    names: dict[str, object] = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(2))
        if block[1] == "python":
            exec(compile("\n" * line + block[2], str(page), "exec"), names)
            continue
        session = doctest.DocTestParser().get_doctest(block[2], names, name(page), str(page), line)
        report: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        runner.run(session, out=report.append, clear_globs=False)
        assert not report, "".join(report)
        names = session.globs


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_of_the_page_lead_to_files(page):
    targets = LINK.findall(page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []
