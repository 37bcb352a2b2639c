"""Jobs of several processes on the reference engine: rendezvous, groups, faults, refusals."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from typing import Any

import pytest

import flambeau as fb
import flambeau.distributed as dist
from flambeau.plugin import Communicator, Done
from flambeau.testing import engine_kit
from flambeau.testing.ranks import Outcome, free_port, run_ranks, values


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_reference_engine_keeps_the_contract(size: int) -> None:
    assert engine_kit.check("reference", [size]) == {}


@pytest.fixture
def alone() -> Iterator[None]:
    dist.init_process_group("reference", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def _address(rank: int, size: int, url: str) -> tuple[int, int, list[Any]]:
    dist.init_process_group("reference", init_method=url, rank=rank, world_size=size)
    found: list[Any] = [None] * size
    dist.all_gather_object(found, rank)
    return dist.get_rank(), dist.get_world_size(), found


@pytest.mark.parametrize("kind", ["tcp", "file"])
def test_processes_find_each_other_by_address_and_by_file(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "found"
    url = f"tcp://127.0.0.1:{free_port()}" if kind == "tcp" else f"file://{path}"
    assert values(run_ranks(_address, 2, url, join=False)) == [(r, 2, [0, 1]) for r in range(2)]
    assert not path.exists()


def _again(rank: int, size: int) -> list[float]:
    found = []
    for i in range(3):
        dist.init_process_group("reference", timeout=timedelta(seconds=20))
        x = fb.tensor([float(i)])
        dist.all_reduce(x)
        found.append(x.item())
        dist.destroy_process_group()
    return found


def test_a_job_can_follow_another_at_the_same_address() -> None:
    assert values(run_ranks(_again, 2, join=False)) == [[0.0, 2.0, 4.0]] * 2


def _store(rank: int, size: int, path: str) -> float:
    store = dist.FileStore(path, size)
    dist.init_process_group("reference", store=store, rank=rank, world_size=size)
    x = fb.ones(1)
    dist.all_reduce(x)
    return x.item()


def test_a_store_of_the_program_serves(tmp_path: Path) -> None:
    assert values(run_ranks(_store, 2, str(tmp_path / "store"), join=False)) == [2.0, 2.0]


def _failing(outcomes: list[Outcome], *but: int) -> list[str]:
    return [outcome.error for rank, outcome in enumerate(outcomes) if rank not in but]


def _kill(rank: int, size: int, victim: int, name: str) -> float:
    for _ in range(3):
        dist.barrier()
    if rank == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.monotonic()
    x, rows = fb.ones(50_000), [fb.ones(50_000) for _ in range(size)]
    calls = {
        "all_reduce": lambda: dist.all_reduce(x),
        "broadcast": lambda: dist.broadcast(x, victim),
        "all_gather": lambda: dist.all_gather(rows, x),
        "recv": lambda: dist.recv(x, victim),
        "barrier": dist.barrier,
        "monitored_barrier": dist.monitored_barrier,
    }
    with pytest.raises(dist.DistError, match=f"rank {victim} died") as caught:
        calls[name]()
    took = time.monotonic() - start
    assert name.partition("_")[0] in str(caught.value) or "monitored" in name
    return took


@pytest.mark.parametrize(
    ("name", "victim"),
    [
        ("all_reduce", 0),
        ("all_reduce", 2),
        ("broadcast", 1),
        ("all_gather", 1),
        ("recv", 1),
        ("barrier", 2),
        ("monitored_barrier", 1),
    ],
)
def test_a_killed_rank_is_named_long_before_the_timeout(name: str, victim: int) -> None:
    outcomes = run_ranks(_kill, 3, victim, name)
    assert outcomes[victim].code == -signal.SIGKILL
    times = values([o for r, o in enumerate(outcomes) if r != victim])
    assert max(times) < 10, times


def _late(rank: int, size: int, others: Barrier) -> None:
    if rank != 1:
        others.wait()  # processes of a busy machine start seconds apart
        dist.init_process_group("reference", timeout=timedelta(seconds=2))


def test_a_rank_that_never_comes_is_named() -> None:
    outcomes = run_ranks(_late, 3, multiprocessing.get_context("fork").Barrier(2), join=False)
    for error in _failing(outcomes, 1):
        assert "init_process_group: rank(s) 1 did not come within 2 s" in error


def _comes_after_all(rank: int, size: int, url: str, over: Event) -> str:
    if rank:
        over.wait(60)
    try:
        with pytest.raises(dist.DistTimeoutError) as caught:
            dist.init_process_group(
                *("reference", url), timedelta(seconds=1), rank=rank, world_size=size
            )
    finally:
        over.set()
    return str(caught.value)


def test_a_rank_that_comes_when_the_others_have_left_waits_no_longer_than_it_was_told(
    tmp_path: Path,
) -> None:
    over = multiprocessing.get_context("fork").Event()
    # The file knows everybody, but who would have served them has gone.
    found = run_ranks(_comes_after_all, 2, f"file://{tmp_path / 'found'}", over, join=False)
    first, second = values(found)
    assert "rank(s) 1 did not come within 1 s" in first
    assert "rank(s) 0 did not come within 1 s" in second


def _differ(rank: int, size: int, how: str) -> None:
    x = fb.ones(4)
    if how == "size" and rank:
        x = fb.ones(3)
    if how == "dtype" and rank:
        x = fb.ones(4, dtype=fb.float64)
    if how == "order" and rank:
        dist.broadcast(x, 0)
    elif how == "operation" and rank:
        dist.all_reduce(x, dist.ReduceOp.MAX)
    else:
        dist.all_reduce(x)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("size", ["rank 0: all_reduce #1 (float32[4], sum)", "rank 1: all_reduce #1 (float32[3]"]),
        ("dtype", ["rank 0: all_reduce #1 (float32[4]", "rank 1: all_reduce #1 (float64[4]"]),
        ("order", ["rank 0: all_reduce #1", "rank 1: broadcast #1 (float32[4], src=0)"]),
        ("operation", ["rank 0: all_reduce #1 (float32[4], sum)", "float32[4], max)"]),
    ],
)
def test_ranks_that_call_different_things_all_hear_what_each_called(
    how: str, words: list[str]
) -> None:
    for error in _failing(run_ranks(_differ, 2, how)):
        assert all(word in error for word in words), error


def _absent(rank: int, size: int, over: Event) -> str:
    dist.barrier()
    if rank:
        over.wait(60)  # on a busy machine nobody knows how long that is
        os._exit(0)
    try:
        with pytest.raises(dist.DistTimeoutError) as caught:
            dist.all_reduce(fb.ones(2))
    finally:
        over.set()
    with pytest.raises(dist.DistBackendError, match="cannot be used any more"):
        dist.barrier()
    return str(caught.value)


def test_a_rank_that_hangs_is_named_with_the_time() -> None:
    over = multiprocessing.get_context("fork").Event()
    said = run_ranks(_absent, 2, over, timeout=2)[0]
    assert "all_reduce #2 (float32[2], sum): Timed out after 2 s" in said.value, said
    assert "rank 1 waits in no collective" in said.value


def _hear_what_is_broken() -> None:
    """Wait for the news: a barrier that is called before them finds everybody's messages there."""
    world, end = dist.group.WORLD.world, time.monotonic() + 60
    while not world.watch.broken:
        assert time.monotonic() < end, "nobody has told that a group is broken"
        time.sleep(0.01)


def _comes_late(rank: int, size: int, over: Event) -> str:
    dist.barrier()
    other = dist.new_group([0, 1])
    dist.barrier(other)
    if rank == 0:
        over.wait(60)
        _hear_what_is_broken()
        with pytest.raises(dist.DistBackendError) as caught:
            dist.barrier()
    else:
        work = dist.barrier(async_op=True)
        assert work is not None
        with pytest.raises(dist.DistTimeoutError) as caught:
            work.wait(timedelta(seconds=0.2))
        over.set()
    dist.barrier(other)  # another group is as good as before
    return str(caught.value)


def test_a_rank_that_comes_when_others_have_given_up_hears_so() -> None:
    over = multiprocessing.get_context("fork").Event()
    late, early = values(run_ranks(_comes_late, 2, over))
    assert "barrier #2 (): Timed out after 0.2 s; rank 0 waits in no collective" in early
    assert "the group 'world' cannot be used any more: rank 1 gave up barrier #2" in late, late
    assert "Timed out after 0.2 s" in late


def _waits_longer(rank: int, size: int, over: Event) -> str:
    dist.barrier()
    if rank == 2:
        over.wait(60)
        os._exit(0)
    work = dist.all_reduce(fb.ones(2), async_op=True)
    assert work is not None
    try:
        with pytest.raises(dist.DistTimeoutError) as caught:
            work.wait(timedelta(seconds=50 if rank else 0.5))
    finally:
        if rank:
            over.set()
    return str(caught.value)


def test_ranks_that_wait_on_hear_that_another_has_given_up() -> None:
    over = multiprocessing.get_context("fork").Event()
    outcomes = run_ranks(_waits_longer, 3, over)
    first, second = (str(outcome.value) for outcome in outcomes[:2])
    assert "all_reduce #2 (float32[2], sum): Timed out after 0.5 s" in first, outcomes
    assert "all_reduce #2 (float32[2], sum): rank 0 gave up all_reduce #2" in second, outcomes
    assert "rank 2 waits in no collective" in second


def _early_end(rank: int, size: int) -> str:
    dist.barrier()
    if rank == 0:
        sys.exit(0)
    with pytest.raises(dist.DistBackendError) as caught:
        dist.all_reduce(fb.ones(2))
    return str(caught.value)


def test_a_rank_that_ends_too_early_is_named() -> None:
    assert "rank 0" in values(run_ranks(_early_end, 2)[1:])[0]


def _monitored(rank: int, size: int, over: Event) -> str:
    if rank == 0:
        over.wait(60)
    else:
        with pytest.raises(dist.DistTimeoutError, match=r"Rank\(s\) 0 failed to pass") as caught:
            dist.monitored_barrier(timeout=timedelta(seconds=0.2), wait_all_ranks=True)
        del caught
        over.set()
    x = fb.ones(1)
    dist.all_reduce(x)  # the group is as good as before
    return x.item()


def test_a_monitored_barrier_names_who_is_missing_and_leaves_the_group_usable() -> None:
    over = multiprocessing.get_context("fork").Event()
    assert values(run_ranks(_monitored, 2, over)) == [2.0, 2.0]


def test_functions_without_a_job_say_so() -> None:
    for call in (dist.get_rank, dist.get_world_size, dist.barrier, dist.destroy_process_group):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            call()
    assert not dist.is_initialized()
    assert dist.group.WORLD is None


def test_a_job_is_joined_once(alone: None) -> None:
    assert dist.is_initialized()
    assert dist.group.WORLD is not None
    with pytest.raises(ValueError, match="twice"):
        dist.init_process_group("reference", store=dist.HashStore(), rank=0, world_size=1)


@pytest.mark.parametrize("name", ["RANK", "WORLD_SIZE", "MASTER_PORT"])
def test_what_is_missing_in_the_environment_is_named(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    for key, value in values.items():
        monkeypatch.setenv(key, value)
    monkeypatch.delenv(name)
    with pytest.raises(ValueError, match=f"environment variable {name} expected, but not set"):
        dist.init_process_group("reference")


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("tcp://127.0.0.1:1", ValueError),
        ("udp://127.0.0.1:1", RuntimeError),
        ("file://", ValueError),
    ],
)
def test_urls_that_say_too_little_are_refused(url: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        dist.init_process_group("reference", init_method=url)


def test_unknown_engines_are_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="Unknown c10d backend type 'pigeon'"):
        dist.init_process_group("pigeon", store=dist.HashStore(), rank=0, world_size=1)


def test_without_an_engine_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from flambeau.distributed import _engines

    monkeypatch.setattr(_engines, "_found", {})
    assert not dist.is_available()
    for backend in (None, "gloo", "mpi"):
        with pytest.raises(RuntimeError, match="flambeau-mpi brings .*: pip install"):
            dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)


def test_operations_that_a_dtype_has_not_are_refused(alone: None) -> None:
    with pytest.raises(RuntimeError, match="Cannot use ReduceOp.BAND with torch.float32"):
        dist.all_reduce(fb.ones(2), dist.ReduceOp.BAND)
    with pytest.raises(RuntimeError, match="Cannot use ReduceOp.AVG with torch.int64"):
        dist.all_reduce(fb.ones(2).long(), dist.ReduceOp.AVG)
    with pytest.raises(RuntimeError, match="MAX with torch.complex64"):
        dist.all_reduce(fb.ones(2, dtype=fb.complex64), dist.ReduceOp.MAX)


def test_lists_that_do_not_fit_are_refused(alone: None) -> None:
    x = fb.ones(2)
    with pytest.raises(ValueError, match="tensor_list"):
        dist.all_gather([], x)
    with pytest.raises(ValueError, match="2 elements"):
        dist.all_gather([fb.ones(3)], x)
    with pytest.raises(ValueError, match="different dtypes"):
        dist.all_gather([x.double()], x)
    with pytest.raises(ValueError, match="must be specified on destination rank"):
        dist.gather(x)
    with pytest.raises(ValueError, match="world_size"):
        dist.all_gather_into_tensor(fb.ones(3), x)
    with pytest.raises(TypeError, match="Expected parameter `tensor`"):
        dist.all_reduce([1.0])
    with pytest.raises(ValueError, match="destination rank should not be the same"):
        dist.isend(x, 0)
    with pytest.raises(RuntimeError, match="No backend type associated with device type ref"):
        dist.all_reduce(x.to("ref"))


def test_groups_know_their_members(alone: None) -> None:
    group = dist.new_group([0])
    assert dist.get_process_group_ranks(group) == [0]
    assert dist.get_group_rank(group, 0) == dist.get_global_rank(group, 0) == 0
    assert dist.get_backend(group) == "reference"
    dist.destroy_process_group(dist.GroupMember.NON_GROUP_MEMBER)
    mine, every = dist.new_subgroups(1)
    assert every == [mine]
    with pytest.raises(ValueError, match="world_size 1"):
        dist.new_group([1])
    with pytest.raises(ValueError, match="not part of group"):
        dist.get_group_rank(group, 5)
    dist.destroy_process_group(group)
    with pytest.raises(dist.DistBackendError, match="destroyed"):
        dist.barrier(group)


@pytest.mark.parametrize(
    ("asked", "told"),
    [("GLOO", "gloo"), ("cpu:gloo,cuda:nccl", "gloo"), ("cuda:nccl", "nccl"), (None, "reference")],
)
def test_the_backend_has_the_name_that_was_asked_for(
    asked: str | None, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flambeau.distributed import _engines

    engines = {"cpu": _engines.named("reference")}
    monkeypatch.setattr(_engines, "chosen", lambda name: engines)
    dist.init_process_group(asked, store=dist.HashStore(), rank=0, world_size=1)
    try:
        assert dist.get_backend() == dist.get_backend(dist.new_group([0])) == told
        assert dist.get_backend(dist.new_group([0], backend="mpi")) == "mpi"
    finally:
        dist.destroy_process_group()


def _outside(rank: int, size: int) -> list[Any]:
    group = dist.new_group([1])
    x = fb.tensor([1.0])
    if rank == 0:
        assert group is dist.GroupMember.NON_GROUP_MEMBER
        assert dist.all_reduce(x, group=group) is None
        return [dist.get_rank(group), dist.get_world_size(group)]
    return [dist.get_rank(group), dist.get_world_size(group)]


def test_who_is_not_in_a_group_calls_nothing() -> None:
    assert values(run_ranks(_outside, 2)) == [[-1, -1], [0, 1]]


def _several(rank: int, size: int) -> list[list[float]]:
    mine = [fb.tensor([rank + 1.0]), fb.tensor([rank + 10.0])]
    dist.all_reduce_multigpu(mine)
    reduced = [fb.tensor([1.0]), fb.tensor([2.0])]
    dist.reduce_multigpu(reduced, 1, dst_tensor=1)
    sent = [fb.tensor([rank + 5.0]), fb.tensor([rank + 6.0])]
    dist.broadcast_multigpu(sent, 1, src_tensor=1)
    rows = [[fb.empty(1) for _ in range(4)] for _ in range(2)]
    dist.all_gather_multigpu(rows, [fb.tensor([rank * 2.0]), fb.tensor([rank * 2.0 + 1])])
    assert [row.item() for row in rows[0]] == [row.item() for row in rows[1]] == [0, 1, 2, 3]
    return [[x.item() for x in xs] for xs in (mine, reduced, sent)]


def test_several_tensors_of_a_process_take_part() -> None:
    assert values(run_ranks(_several, 2)) == [
        [[24.0, 24.0], [1.0, 2.0], [7.0, 7.0]],
        [[24.0, 24.0], [1.0, 6.0], [7.0, 7.0]],
    ]


def _sampler(rank: int, size: int) -> list[int]:
    return list(fb.utils.data.DistributedSampler(range(6), shuffle=False))


def test_the_sampler_asks_the_job() -> None:
    assert values(run_ranks(_sampler, 2)) == [[0, 2, 4], [1, 3, 5]]


def _break(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """Give the base class of communicators a fault; forked ranks have it too."""
    sound = {name: getattr(Communicator, name) for name in vars(Communicator) if name != "rank"}

    def twice(self: Any, array: Any, op: str) -> Any:
        self.arithmetic.combine(op, array, array)
        return sound["all_reduce"](self, array, op)

    def backwards(self: Any, outputs: Any, array: Any) -> Any:
        return sound["all_gather"](self, list(outputs)[::-1], array)

    def from_first(self: Any, array: Any, root: int) -> Any:
        return sound["broadcast"](self, array, 0)

    def everywhere(self: Any, array: Any, root: int, op: str) -> Any:
        return sound["all_reduce"](self, array, op)

    def neglectful(self: Any, output: Any, arrays: Any, op: str) -> Any:
        self.arithmetic.assign(output, arrays[self.rank])
        return Done()

    faults = {
        "adds twice": ("all_reduce", twice),
        "gathers backwards": ("all_gather", backwards),
        "broadcasts from rank 0": ("broadcast", from_first),
        "reduces everywhere": ("reduce", everywhere),
        "does not add": ("reduce_scatter", neglectful),
    }
    name, replacement = faults[fault]
    monkeypatch.setattr(Communicator, name, replacement)


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("adds twice", "all reduce adds in every dtype and size"),
        ("gathers backwards", "all gather keeps the order of ranks"),
        ("broadcasts from rank 0", "broadcast comes from every root"),
        ("reduces everywhere", "reduce leaves the others as they are"),
        ("does not add", "reduce scatter gives each rank its part"),
    ],
)
def test_the_kit_finds_faults(fault: str, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _break(monkeypatch, fault)
    failures = engine_kit.check("reference", [2], [found])
    assert f"'{found}' failed" in failures[2]
