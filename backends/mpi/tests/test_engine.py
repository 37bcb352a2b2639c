"""The engine on MPI: the contract, deaths, what is left behind, starting again."""

from __future__ import annotations

import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import flambeau as fb
import flambeau.distributed as dist
from flambeau.plugin import hookspecs
from flambeau.testing import engine_kit
from flambeau.testing.ranks import run_ranks, values
from flambeau_mpi import engine, manager

pytestmark = pytest.mark.skipif(
    engine.MpiEngine().unavailable() is not None,
    reason=f"MPI cannot be used here: {engine.MpiEngine().unavailable()}",
)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_the_engine_keeps_the_contract(size: int) -> None:
    assert engine_kit.check("mpi", [size]) == {}


def test_the_engine_is_found_by_its_names() -> None:
    assert dist.is_available()
    assert dist.is_mpi_available()
    assert dist.is_gloo_available()
    assert hasattr(hookspecs, "flambeau_engines")


def _kill(rank: int, size: int, victim: int, name: str) -> float:
    x, rows = fb.ones(1 << 21), [fb.ones(1 << 20) for _ in range(size)]
    for _ in range(3):
        dist.all_reduce(x)
    if rank == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.monotonic()
    calls = {
        "all_reduce": lambda: dist.all_reduce(x),
        "broadcast": lambda: dist.broadcast(x, victim),
        "all_to_all": lambda: dist.all_to_all(rows, rows),
        "barrier": dist.barrier,
        "new_group": lambda: dist.barrier(dist.new_group()),
    }
    with pytest.raises(dist.DistError, match=f"rank {victim} died") as caught:
        calls[name]()
    assert name in str(caught.value) or name == "new_group"
    return time.monotonic() - start


def _late_member(rank: int, size: int) -> float:
    group = dist.new_group(timeout=timedelta(seconds=0.5))
    start = time.monotonic()
    if rank == 0:
        with pytest.raises(dist.DistTimeoutError, match="Timed out after 0.5 s"):
            dist.barrier(group)
    elapsed = time.monotonic() - start
    dist.destroy_process_group(group)
    dist.barrier()  # the job has lost nothing
    return elapsed


def test_the_first_operation_of_a_group_waits_as_long_as_the_group_says() -> None:
    assert values(run_ranks(_late_member, 2, engine="mpi"))[0] < 10


def _leftovers() -> set[str]:
    return {name for name in os.listdir("/dev/shm") if name.startswith("mpich_shm")}


@pytest.mark.parametrize(
    ("name", "victim"),
    [("all_reduce", 0), ("broadcast", 1), ("all_to_all", 2), ("barrier", 0), ("new_group", 1)],
)
def test_a_killed_rank_is_named_long_before_the_timeout(name: str, victim: int) -> None:
    outcomes = run_ranks(_kill, 3, victim, name, engine="mpi")
    assert outcomes[victim].code == -signal.SIGKILL
    times = values([o for r, o in enumerate(outcomes) if r != victim])
    assert max(times) < 10, times


def _manager_and_memory(rank: int, size: int, die: bool) -> list[str]:
    dist.barrier()
    if die and rank:
        os.kill(os.getpid(), signal.SIGTERM)
    return sorted(_leftovers())


@pytest.mark.parametrize("die", [False, True])
def test_nothing_is_left_in_shared_memory(die: bool) -> None:
    before = _leftovers()
    during = run_ranks(_manager_and_memory, 2, die, engine="mpi")[0].value
    assert set(during) <= before  # not even while the job runs
    assert _leftovers() <= before


@pytest.mark.parametrize(
    ("name", "code"), [("foobar", "bf9cf968"), ("flambeau-199", "a1c66a"), ("", "811c9dc5")]
)
def test_memory_goes_by_the_name_that_mpich_gives_it(name: str, code: str, tmp_path: Path) -> None:
    for file in (f"mpich_shm_{code}_0", f"mpich_shm_{code}_1", "mpich_shm_0_0", "other"):
        (tmp_path / file).touch()
    manager.sweep(name, str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {"mpich_shm_0_0", "other"}


def _again(rank: int, size: int) -> list[float]:
    found = []
    for i in range(3):
        dist.init_process_group("gloo", timeout=timedelta(seconds=20))
        x = fb.tensor([float(i)])
        dist.all_reduce(x)
        found.append(x.item())
        dist.destroy_process_group()
    return found


def test_a_process_joins_several_jobs_in_turn() -> None:
    assert values(run_ranks(_again, 2, join=False)) == [[0.0, 2.0, 4.0]] * 2


def _after_import(rank: int, size: int, who: list[int]) -> list[Any]:
    if rank in who:
        from mpi4py import MPI

        assert MPI.COMM_WORLD.Get_size() == 1  # a program looks what has started it
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    x = fb.full((2_100_000,), float(rank))
    dist.all_reduce(x)
    pair = dist.new_group([0, size - 1])
    y = fb.tensor([float(rank)])
    if rank in (0, size - 1):
        dist.all_reduce(y, group=pair)
    dist.destroy_process_group()
    return [x[0].item(), x[-1].item(), y.item()]


@pytest.mark.parametrize("who", [[0], [0, 1, 2]])
def test_a_program_may_have_imported_mpi_before(who: list[int]) -> None:
    found = values(run_ranks(_after_import, 3, who, join=False))
    assert found == [[3.0, 3.0, 2.0], [3.0, 3.0, 1.0], [3.0, 3.0, 2.0]]


def _death_after_import(rank: int, size: int) -> float:
    from mpi4py import MPI

    assert MPI.Is_initialized()
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    return _kill(rank, size, 1, "all_reduce")


def test_a_death_is_named_after_such_a_start_too() -> None:
    outcomes = run_ranks(_death_after_import, 3, join=False)
    assert [o.code for o in outcomes] == [0, -signal.SIGKILL, 0], outcomes
    assert all(outcomes[rank].value < 5 for rank in (0, 2)), outcomes


def _other_size(rank: int, size: int) -> str:
    os.environ.pop("RANK")
    dist.destroy_process_group()
    with pytest.raises(RuntimeError, match="MPI starts once") as caught:
        dist.init_process_group("mpi", store=dist.HashStore(), rank=0, world_size=1)
    return str(caught.value)


def test_another_rank_in_the_same_process_is_refused() -> None:
    for text in values(run_ranks(_other_size, 2, engine="mpi")):
        assert "of 2 of a job and cannot be rank 0 of 1" in text


def _exit_code(rank: int, size: int) -> None:
    if rank:
        sys.exit(0)  # without a word: the other still wants something of it


def test_ending_without_destroy_is_clean() -> None:
    outcomes = run_ranks(_exit_code, 2, engine="mpi")
    assert outcomes[0].code == 0


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        (["a"], "(vector,(0,1,1))"),
        (["a", "a", "a"], "(vector,(0,1,3))"),
        (["a", "b", "a"], "(vector,(0,1,1),(1,1,1),(0,1,1))"),
        (["b", "b", "a", "a"], "(vector,(0,1,2),(1,1,2))"),
    ],
)
def test_machines_are_told_apart(nodes: list[str], words: str) -> None:
    assert manager.mapping(nodes) == words


def _mixed(rank: int, size: int, check: Any) -> str:
    x = fb.ones(4 if rank else 3)
    with pytest.raises(dist.DistBackendError, match="call different operations") as caught:
        dist.all_reduce(x)
    return str(caught.value)


def test_ranks_that_differ_all_hear_it() -> None:
    for text in values(run_ranks(_mixed, 3, None, engine="mpi")):
        for rank, count in enumerate((3, 4, 4)):
            assert f"rank {rank}: all_reduce #1 (float32[{count}], sum)" in text
