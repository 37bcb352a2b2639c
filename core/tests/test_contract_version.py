"""The contract with backends changes only with its version, and its page lists all of it."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest

from flambeau import plugin
from flambeau._tools.contract import complaint, main, surface
from flambeau.plugin import hookspecs

RECORD = Path(__file__).parent / "contract.json"
PAGE = Path(__file__).resolve().parents[2] / "docs/backends/stability.md"

OLD = {"Backend.item": "(array)", "primitive add": "self, other"}


def test_the_surface_is_the_recorded_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(RECORD, write=False) == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    ("new", "version", "says"),
    [
        (OLD, "1.3", ""),
        ({**OLD, "primitive erf": "self"}, "1.3", "raise API_VERSION from 1.3 to at least 1.4"),
        ({**OLD, "primitive erf": "self"}, "1.4", ""),
        ({"primitive add": "self, other"}, "1.4", "removed or changed: Backend.item; raise"),
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


def test_the_page_lists_every_public_name() -> None:
    page = PAGE.read_text()
    rows = re.findall(r"^\| (`.+?`) \|", page, re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    members = {
        *inspect.get_annotations(plugin.Backend),
        *(n for n, m in vars(plugin.Backend).items() if callable(m) and n[0] != "_"),
    }
    hooks = {name for name in vars(hookspecs) if name.startswith("flambeau_")}
    assert listed == {*plugin.__all__, *members, *hooks}
    assert f"**{plugin.API_VERSION}**" in page
