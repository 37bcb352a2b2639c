"""The runner of other people's programs compares what it runs, and says what it could not."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
sys.path.insert(0, str(PROGRAMS))

import judging  # noqa: E402  the folder is no package: its files are found once it is on the path
import running  # noqa: E402
from table import Program  # noqa: E402

SUITE = """
import unittest
import torch
from beside import three

class Tests(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(torch.ones(3).sum().item(), three)

    def test_wrong(self):
        self.assertEqual(torch.ones(3).sum().item(), 4)
"""


def source_of(tmp_path: Path, files: dict[str, str]) -> tuple[running.Place, str]:
    """A place whose sources are one repository of these files; and the repository at its commit."""
    clone = tmp_path / "sources" / "someone+something"
    for name, text in files.items():
        path = clone / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git = ["git", "-C", str(clone), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "All"]):
        subprocess.run([*git, *command], check=True)
    told = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    place = running.Place(tmp_path / "build", sys.executable, tmp_path / "sources")
    return place, f"github:someone/something@{told.stdout.strip()}"


def test_pytorch_s_own_source_does_not_hide_the_pytorch_that_is_installed(tmp_path: Path) -> None:
    files = {
        "torch/__init__.py": "raise ImportError('not compiled')",
        "test/beside.py": "three = 3",
        "test/test_sums.py": SUITE,
    }
    place, source = source_of(tmp_path, files)
    suite = Program("a/b", source, "test/test_sums.py", check="suite", arguments=("60",))
    torch, flambeau = (place.run(suite, each, again=True) for each in ("torch", "flambeau"))
    assert judging.passed(torch.output) == {"test_sums.Tests.test_sum"}
    verdict = judging.judge(suite, torch, flambeau)
    assert verdict == judging.Verdict("runs", "1 of 2 tests, 1 on PyTorch 2.13")


def test_a_program_that_uses_up_its_processor_time_is_stopped(tmp_path: Path) -> None:
    place, source = source_of(tmp_path, {"loop.py": "print(1, flush=True)\nwhile True: pass\n"})
    loop = Program("a/b", source, "loop.py", limit=1)
    outcome = place.run(loop, "flambeau", again=True)
    assert outcome.status == 124
    assert "no end in" in judging.last_line(outcome)


def test_programs_find_stand_ins_for_older_packages_and_libraries_do_not(tmp_path: Path) -> None:
    old = Program("a/b", "github:a/b@1", "main.py")
    new = Program("a/c", "github:a/c@1", "main.py", era="2")
    library = Program("a/d", "pypi:d==1", "drivers/d.py", era="2")
    stand_ins = PROGRAMS / "stand_ins"
    assert running.import_paths(old, tmp_path) == [tmp_path, stand_ins]
    assert running.import_paths(new, tmp_path) == [tmp_path, stand_ins]
    assert running.import_paths(library, tmp_path) == [tmp_path]
    modern = Program("a/e", "github:a/e@1", "main.py", era="2", stand_ins=False)
    assert running.import_paths(modern, tmp_path) == [tmp_path]


def test_drivers_on_libraries_draw_nothing_before_they_set_a_seed() -> None:
    drivers = sorted((PROGRAMS / "drivers" / "libraries").glob("*.py"))
    # At the top level: what a function draws, it draws when it is called.
    draws = re.compile(
        r"^\w[^#\n]*\.rand|^(?!from|import|class|def)\w[^#\n]*(seed|set_determinism)", re.M
    )
    first = {path.stem: draws.search(path.read_text("utf-8")) for path in drivers}
    assert len(first) > 30
    assert [name for name, drawn in first.items() if drawn and ".rand" in drawn[0]] == []
