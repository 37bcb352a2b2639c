"""The contract with backends changes only with its version, and its page lists all of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from flambeau import plugin
from flambeau._tools.contract import complaint, main, provisional, surface

RECORD = Path(__file__).parent / "contract.json"
PAGE = Path(__file__).resolve().parents[2] / "docs/backends/stability.md"

OLD = {
    "Backend.item": "(array)",
    "Accelerator.wait": "(stream)",
    "primitive add": "self, other",
    "composite relu": "self",
}


def test_the_surface_is_the_recorded_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(RECORD, write=False) == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    ("new", "version", "says"),
    [
        (OLD, "1.3", ""),
        ({**OLD, "primitive erf": "self"}, "1.3", "raise API_VERSION from 1.3 to at least 1.4"),
        ({**OLD, "primitive erf": "self"}, "1.4", ""),
        (
            {n: v for n, v in OLD.items() if n != "Backend.item"},
            "1.4",
            "removed or changed: Backend.item; raise API_VERSION from 1.3 to at least 2.0",
        ),
        ({**OLD, "primitive add": "self, other, alpha"}, "1.4", "to at least 2.0"),
        ({**OLD, "composite relu": "self, slope"}, "1.4", "to at least 2.0"),
        ({**OLD, "composite gelu": "self"}, "1.3", ""),
        ({**OLD, "Accelerator.wait": "(stream, event)"}, "1.3", "to at least 1.4"),
        ({**OLD, "Accelerator.wait": "(stream, event)"}, "1.4", ""),
        ({**OLD, "Backend.item": "(array, index)"}, "1.4", "to at least 2.0"),
        ({**OLD, "Backend.item": "(array, index)"}, "2.0", ""),
    ],
)
def test_a_change_needs_the_version_that_says_so(new, version, says) -> None:
    found = complaint(OLD, "1.3", new, version)
    assert says in found
    assert bool(found) == bool(says)


def test_a_change_that_its_version_does_not_announce_is_not_recorded(tmp_path, capsys) -> None:
    record = tmp_path / "contract.json"
    past = {"version": plugin.API_VERSION, "surface": {**surface(), "Backend.gone": "()"}}
    record.write_text(json.dumps(past))
    assert main(record, write=True) == 1
    assert "Backend.gone" in capsys.readouterr().err
    assert json.loads(record.read_text()) == past


def test_an_announced_change_is_recorded(tmp_path) -> None:
    record = tmp_path / "contract.json"
    without = dict(surface())
    del without["Backend.compile"]
    record.write_text(json.dumps({"version": "1.0", "surface": without}))
    assert main(record, write=False) == 1
    assert main(record, write=True) == 0
    assert main(record, write=False) == 0


def rows() -> list[tuple[str, list[str], str]]:
    """The heading, the names in code style and the stability of each row of the page's tables."""
    found = []
    heading = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ")
        elif line.startswith("| `"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            names = re.findall(r"`([^`]+)`", cells[0])
            if "other classes" in heading:
                names = [f"{names[0]}.{member}" for member in re.findall(r"`(\w+)`", cells[1])]
            elif heading.startswith("Members"):
                names = [f"{heading.split('`')[1]}.{name}" for name in names]
            stated = next((cell for cell in cells if cell in ("stable", "provisional")), "")
            found.append((heading, names, stated))
    return found


def test_the_page_lists_every_public_name() -> None:
    listed = [name for _, names, _ in rows() for name in names]
    known = {
        name.rpartition(" ")[2]
        for name in surface()
        if name.partition(" ")[0] not in ("primitive", "composite", "strided")
    }
    assert sorted(listed) == sorted(known)
    assert f"**{plugin.API_VERSION}**" in PAGE.read_text()


def test_the_page_promises_what_the_record_is_compared_by() -> None:
    for heading, names, stated in rows():
        for name in names:
            promised = stated or ("provisional" if "Accelerator" in heading else "")
            assert promised == ("provisional" if provisional(name) else "stable"), name
    assert set(plugin.__all__) == {
        name.removeprefix("name ") for name in surface() if name.startswith("name ")
    }


def test_the_page_says_what_came_with_each_version() -> None:
    page = PAGE.read_text()
    listed = re.findall(r"^\| (1\.\d+) \| \S", page, re.MULTILINE)
    newest = int(plugin.API_VERSION.partition(".")[2])
    assert listed == [f"1.{minor}" for minor in range(newest, 0, -1)]
    since = set(re.findall(r"\| (1\.\d+) \|$", page, re.MULTILINE))
    assert since == {f"1.{minor}" for minor in range(newest + 1)}
