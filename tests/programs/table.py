"""The programs, as ``programs.toml`` has them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Check = Literal["ends", "equal", "tests", "suite", "lines"]


@dataclass(frozen=True)
class Program:
    """A program, and how it is run.

    Attributes:
        name: unique; the part before the first slash is a heading of the table in the documents.
        source: ``github:OWNER/NAME@COMMIT``, ``pypi:NAME==VERSION`` for a library that a driver of
            ours uses, or ``sdist:NAME==VERSION`` for the tests in a source distribution.
        path: the script, from the root of the source, or the tests for the check ``tests``.
            ``drivers/…`` is one of ours.
        folder: where it is run, from the root of the source; its own folder if empty.
        arguments: what it is given.
        data: functions of `data`, which make what it reads, in the folder where it runs.
        edits: pairs of texts, each replaced everywhere in Python files of the source: numbers of
            rounds, and what today's PyTorch or NumPy no longer has.
        check: ``ends``, ``equal`` (the numbers that are printed are PyTorch's as well), or
            ``tests`` (those that pass on PyTorch pass), ``suite`` (as many as on PyTorch, of a
            file of its own tests, whose arguments are the seconds that one may take), or ``lines``
            (a driver prints ``PASSED`` before what is compared; `least` says how many are equal).
        numbers: how many of the printed numbers are compared; 0 for all.  Training is chaotic.
        tolerance: how far they may be apart, relative to 1 or to the larger.
        ignore: a pattern of what is left out of the comparison, such as times.
        limit: seconds of processor time.  A program without an end is stopped after as many on the
            clock, which is a success if `endless`.
        build: commands that compile what it needs, before it is run.  One that begins with a Python
            file is run by the library, in the folder of the file; others as they are, in the root.
        paths: folders of the source that modules are found in, besides the root.
        needs: the name of another program, which is built first, and whose modules are found too.
        era: ``"1"`` for programs of PyTorch 1 and before, ``"2"`` for today's.
        stand_ins: whether it finds those of older packages before what is installed.
        reason: why it cannot pass on flambeau, if that is known.
        least: how many tests must pass if PyTorch of today cannot import or build them, or how many
            lines must be PyTorch's.
    """

    name: str
    source: str
    path: str
    folder: str = ""
    arguments: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    edits: tuple[tuple[str, str], ...] = ()
    check: Check = "equal"
    numbers: int = 0
    tolerance: float = 2e-3
    ignore: str = ""
    limit: int = 60
    endless: bool = False
    build: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    needs: str = ""
    era: str = "1"
    stand_ins: bool = True
    version: str = ""
    reason: str = ""
    least: int = 0
    deselect: tuple[str, ...] = field(default=())


def programs() -> list[Program]:
    """All programs in the order of the file; what a group says holds for each of its programs."""
    path = Path(__file__).parent / "programs.toml"
    found = []
    for group in tomllib.loads(path.read_text("utf-8"))["group"]:
        rows = group.pop("programs")
        for row in rows:
            entry = {**group, **row}
            entry["edits"] = [*group.get("edits", []), *row.get("edits", [])]
            entry["name"] = f"{entry.pop('title')}/{entry['name']}"
            lists = {k: tuple(v) for k, v in entry.items() if isinstance(v, list)}
            lists["edits"] = tuple((old, new) for old, new in entry["edits"])
            found.append(Program(**{**entry, **lists}))
    names = [program.name for program in found]
    if len(set(names)) < len(names):
        raise ValueError(f"two programs have one name: {sorted(names)}")
    return found
