"""No file kills, hangs or bloats the process that loads it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from children import GIB, Child
from files_hostile import FILES
from files_mutations import KINDS, mutated
from files_run import outcomes

pytest.importorskip("flambeau_numpy", reason="needs the CPU backend")

CHILD = Path(__file__).parent / "fuzz/files_child.py"
SECONDS = 60.0  # what takes longer hangs; a second is what they take at most, on an idle machine
MEMORY = 200 << 20  # beside 256 times the file, the limit of docs/reliability.md


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    with Child([str(CHILD)], seconds=SECONDS, memory=4 * GIB) as child:
        yield child


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_is_loaded_or_refused_within_the_budget(
    name: str, child: Child, tmp_path: Path
) -> None:
    data = FILES[name]()
    path = tmp_path / hashlib.sha256(name.encode()).hexdigest()[:8]
    path.write_bytes(data)
    found = child.ask([str(path), None, "archive"])
    assert found.kind == "answer", found
    assert found.value[0] in ("loaded", "refused"), found.value
    assert found.peak < MEMORY + 256 * len(data), found


@pytest.mark.parametrize("count", [350, pytest.param(20_000, marks=pytest.mark.slow)])
def test_files_that_are_changed_by_structure_are_loaded_or_refused(count: int) -> None:
    bad = [o for o in outcomes(range(count), SECONDS) if o.verdict not in ("loaded", "refused")]
    assert bad == []


def test_changed_files_are_of_every_kind_and_some_are_still_whole() -> None:
    found = {seed: mutated(seed) for seed in range(70)}
    assert {kind.partition(",")[0] for kind, _ in found.values()} == {k.__name__ for k in KINDS}
    assert mutated(8) == found[8]
    assert len({data for _, data in found.values()}) > 60
