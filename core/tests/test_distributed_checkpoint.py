"""Checkpoints that several processes write and read together."""

from __future__ import annotations

import os
import signal
from collections import deque
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import flambeau as fb
import flambeau.distributed.checkpoint as dcp
from flambeau.testing.ranks import run_ranks, values


def state(by: float = 0.0, rank: int = 0) -> dict[str, Any]:
    return {
        "model": {"weight": fb.arange(6.0).reshape(2, 3) + by, "bias": fb.ones(3) * by},
        "optimizer": {"state": {0: {"step": fb.tensor(by)}}, "groups": [{"lr": by}]},
        f"of rank {rank}": fb.full((4,), by + rank),
        "step": int(by),
    }


def plain(value: Any) -> Any:
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return value.tolist() if isinstance(value, fb.Tensor) else value


def parts(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.endswith(".distcp"))


def save(rank: int, size: int, folder: str, by: float) -> None:
    dcp.save(state(by, rank), checkpoint_id=folder)


def load(rank: int, size: int, folder: str) -> Any:
    found = state(0.0, rank)
    weight = found["model"]["weight"]
    dcp.load(found, checkpoint_id=folder)
    assert found["model"]["weight"] is weight
    return plain(found)


def test_what_two_processes_save_is_loaded_by_two_and_by_one(tmp_path: Path) -> None:
    values(run_ranks(save, 2, str(tmp_path), 5.0))
    assert len(parts(tmp_path)) == 2
    found = values(run_ranks(load, 2, str(tmp_path)))
    assert found == [plain(state(5.0, rank)) for rank in range(2)]
    for rank in range(2):  # and without a job, what each of them had
        alone = state(0.0, rank)
        dcp.load(alone, checkpoint_id=tmp_path)
        assert plain(alone) == plain(state(5.0, rank))


def test_what_one_process_saves_is_loaded_by_two(tmp_path: Path) -> None:
    dcp.save({**state(3.0, 0), **state(3.0, 1)}, checkpoint_id=tmp_path)
    found = values(run_ranks(load, 2, str(tmp_path)))
    assert found == [plain(state(3.0, rank)) for rank in range(2)]


def test_processes_share_the_writing_of_what_all_have(tmp_path: Path) -> None:
    values(run_ranks(save_large, 2, str(tmp_path)))
    sizes = [path.stat().st_size for path in tmp_path.glob("*.distcp")]
    assert len(sizes) == 2 and all(80_000 < size < 100_000 for size in sizes)


def save_large(rank: int, size: int, folder: str) -> None:
    dcp.save({str(i): fb.ones(5000) for i in range(8)}, checkpoint_id=folder)


def test_a_second_save_replaces_the_first_and_leaves_nothing_of_it(tmp_path: Path) -> None:
    dcp.save(state(1.0), checkpoint_id=tmp_path)
    first = parts(tmp_path)
    dcp.save(state(2.0), checkpoint_id=tmp_path)
    assert len(parts(tmp_path)) == 1 and parts(tmp_path) != first
    found = state()
    dcp.load(found, storage_reader=dcp.FileSystemReader(tmp_path))
    assert plain(found) == plain(state(2.0))


class Unwritable:
    def __reduce__(self) -> Any:
        raise OSError("no room left")


def save_or_fail(rank: int, size: int, folder: str) -> str:
    values = {"model": fb.ones(3), **({"bad": Unwritable()} if rank == 1 else {})}
    with pytest.raises(dcp.CheckpointException, match="no room left") as caught:
        dcp.save(values, checkpoint_id=folder)
    return str(sorted(caught.value.failures))


def test_a_failure_of_one_process_is_told_to_all_and_keeps_the_former(tmp_path: Path) -> None:
    dcp.save({"model": fb.zeros(3)}, checkpoint_id=tmp_path)
    assert values(run_ranks(save_or_fail, 2, str(tmp_path))) == ["[1]", "[1]"]
    found = {"model": fb.ones(3)}
    dcp.load(found, checkpoint_id=tmp_path)
    assert found["model"].tolist() == [0, 0, 0]


def die_writing(rank: int, size: int, folder: str, when: str) -> None:
    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    if when == "before its part" and rank == 1:
        dcp.FileSystemWriter.write_part = die  # type: ignore[method-assign]
    elif when == "before the table" and rank == 0:
        dcp.FileSystemWriter.finish = die  # type: ignore[method-assign]
    dcp.save(state(9.0, rank), checkpoint_id=folder)


@pytest.mark.parametrize("when", ["before its part", "before the table"])
def test_a_kill_before_the_table_is_there_leaves_the_old_checkpoint(
    when: str, tmp_path: Path
) -> None:
    values(run_ranks(save, 2, str(tmp_path), 1.0))
    outcomes = run_ranks(die_writing, 2, str(tmp_path), when)
    assert sorted(outcome.code == -signal.SIGKILL for outcome in outcomes) == [False, True]
    for rank in range(2):
        found = state(0.0, rank)
        dcp.load(found, checkpoint_id=tmp_path)
        assert plain(found) == plain(state(1.0, rank))
    values(run_ranks(save, 2, str(tmp_path), 2.0))  # and what was left over is removed
    assert len(parts(tmp_path)) == 2


def test_a_flipped_bit_is_found(tmp_path: Path) -> None:
    dcp.save({"x": fb.arange(1000.0)}, checkpoint_id=tmp_path)
    path = tmp_path / parts(tmp_path)[0]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(RuntimeError, match=r"(?i)crc|damaged|corrupt|checksum"):
        dcp.load({"x": fb.zeros(1000)}, checkpoint_id=tmp_path)


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    dcp.save({"a": {"x": fb.ones(2)}}, checkpoint_id=tmp_path)
    with pytest.raises(RuntimeError, match=r"Missing key in checkpoint state_dict: a\.y"):
        dcp.load({"a": {"y": fb.ones(2)}}, checkpoint_id=tmp_path)
    with pytest.raises(ValueError, match=r"saved \[2\] and current: \[3\] for a\.x"):
        dcp.load({"a": {"x": fb.ones(3)}}, checkpoint_id=tmp_path)
    with pytest.raises(FileNotFoundError, match="has no checkpoint"):
        dcp.load({"x": fb.ones(3)}, checkpoint_id=tmp_path / "other")
    with pytest.raises(ValueError, match="checkpoint_id"):
        dcp.save({})


def test_names_are_those_of_pytorch(tmp_path: Path) -> None:
    nested = {"l": [fb.ones(2), {"z": 1}], "n": {"plain": [1, 2], "none": {}, "empty": []}}
    assert sorted(dcp.save(nested, checkpoint_id=tmp_path).state_dict_metadata) == [
        *("l.0", "l.1.z", "n.empty", "n.plain")
    ]


def test_objects_with_a_state_are_saved_and_given_theirs(tmp_path: Path) -> None:
    class Counter:
        def __init__(self, n: int) -> None:
            self.n = n

        def state_dict(self) -> dict[str, int]:
            return {"n": self.n}

        def load_state_dict(self, state: dict[str, int]) -> None:
            self.n = state["n"]

    dcp.save({"counter": Counter(4)}, checkpoint_id=tmp_path)
    found = Counter(0)
    dcp.load({"counter": found}, checkpoint_id=tmp_path)
    assert found.n == 4


def save_differently(rank: int, size: int, folder: str) -> None:
    with pytest.raises(ValueError, match=r"'x' is not the same on all ranks .*rank 1"):
        dcp.save({"x": fb.ones(2 + rank)}, checkpoint_id=folder)


def test_one_name_for_different_tensors_is_refused_on_all_ranks(tmp_path: Path) -> None:
    values(run_ranks(save_differently, 2, str(tmp_path)))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "value", [datetime(2020, 1, 2), deque([1, 2]), (fb.ones(2), deque([3]))], ids=str
)
def test_what_could_not_be_loaded_is_refused_when_it_is_saved_and_keeps_the_former(
    tmp_path: Path, value: Any
) -> None:
    dcp.save({"x": 1}, checkpoint_id=tmp_path)
    before = parts(tmp_path)
    with pytest.raises(fb.serialization.WeightsOnlyError, match="'x.y'.*FileSystemWriter"):
        dcp.save({"x": {"y": value}}, checkpoint_id=tmp_path)
    found = {"x": 0}
    dcp.load(found, checkpoint_id=tmp_path)
    assert found == {"x": 1}
    assert parts(tmp_path) == before


def test_any_object_is_saved_and_loaded_where_both_sides_ask_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flambeau.serialization._load._said", True)  # it warns once per process
    wanted = {"at": datetime(2020, 1, 2), "last": deque([1, 2]), "x": fb.ones(2)}
    dcp.save(dict(wanted), storage_writer=dcp.FileSystemWriter(tmp_path, weights_only=False))
    found: dict[str, Any] = {"at": None, "last": None, "x": fb.zeros(2)}
    with pytest.raises(fb.serialization.WeightsOnlyError):
        dcp.load(found, checkpoint_id=tmp_path)
    dcp.load(found, storage_reader=dcp.FileSystemReader(tmp_path, weights_only=False))
    assert plain(found) == plain(wanted)


def test_containers_of_what_can_be_loaded_are_saved(tmp_path: Path) -> None:
    wanted = {"a": [1, "b", None, 2.5], "b": (1, {2}), "c": b"bytes", "d": 1 + 2j}
    dcp.save(dict(wanted), checkpoint_id=tmp_path)
    found: dict[str, Any] = dict.fromkeys(wanted)
    dcp.load(found, checkpoint_id=tmp_path)
    assert found == wanted
