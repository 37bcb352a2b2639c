"""Groups as objects: their operations as methods, groups made of a store, sparse sums, meetings."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import flambeau as fb
import flambeau.distributed as dist
from flambeau.distributed import _init, _rendezvous
from flambeau.testing.ranks import run_ranks, values


class Standalone(dist.ProcessGroupGloo):
    """On the engine that every Python has."""

    engine = "reference"


@pytest.fixture
def alone() -> Iterator[Any]:
    group = Standalone(dist.HashStore(), 0, 1)
    yield group
    dist.destroy_process_group(group)


def _methods(rank: int, size: int) -> dict[str, Any]:
    group = dist.group.WORLD
    assert group is not None

    def one(value: float) -> fb.Tensor:
        return fb.tensor([float(value)])

    found: dict[str, Any] = {}
    pair = [one(2.0 * rank), one(2.0 * rank + 1)]
    group.allreduce(pair, dist.AllreduceOptions(reduceOp=dist.ReduceOp.MAX)).wait()
    found["max of all"] = [tensor.item() for tensor in pair]
    pair = [one(2.0 * rank), one(2.0 * rank + 1)]
    group.allreduce(pair, op=dist.ReduceOp.AVG).wait()
    found["mean of all"] = [tensor.item() for tensor in pair]
    pair = [one(2.0 * rank), one(2.0 * rank + 1)]
    group.broadcast(pair, dist.BroadcastOptions(rootRank=1, rootTensor=1)).wait()
    found["of one"] = [tensor.item() for tensor in pair]
    x = one(rank)
    group.broadcast(x, root=1).wait()
    found["root"] = x.item()
    x = one(rank + 1.0)
    group.reduce([x], dist.ReduceOptions(rootRank=size - 1, reduceOp=dist.ReduceOp.PRODUCT)).wait()
    found["product"] = x.item()
    rows = [[one(-1.0) for _ in range(2 * size)] for _ in range(2)]
    group.allgather(rows, [one(2.0 * rank), one(2.0 * rank + 1)]).wait()
    found["gathered"] = [[tensor.item() for tensor in row] for row in rows]
    row = [one(-1.0) for _ in range(size)]
    group.gather([row] if rank == 1 else [], [one(rank)], dist.GatherOptions(rootRank=1)).wait()
    found["gathered in one"] = [tensor.item() for tensor in row]
    x = one(-1.0)
    given = [[one(10.0 + i) for i in range(size)]] if rank == 0 else []
    group.scatter([x], given, dist.ScatterOptions(rootRank=0)).wait()
    found["scattered"] = x.item()
    group.reduce_scatter([x], [[one(float(i)) for i in range(size)]]).wait()
    found["reduced and scattered"] = x.item()
    others = [one(-1.0) for _ in range(size)]
    group.alltoall(others, [one(10.0 * rank + i) for i in range(size)]).wait()
    found["exchanged"] = [tensor.item() for tensor in others]
    if rank == 0:
        group.send([one(5.0)], 1, 3).wait()
    elif rank == 1:
        work = group.recv_anysource([x], 3)
        work.wait()
        found["message"] = (x.item(), work.source_rank())
    return found


def test_methods_of_a_group_do_what_the_functions_do() -> None:
    size = 3
    for rank, found in enumerate(values(run_ranks(_methods, size))):
        assert found.pop("message", (5.0, 0)) == (5.0, 0)
        assert found == {
            "max of all": [2 * size - 1] * 2,
            "mean of all": [size - 0.5] * 2,
            "of one": [3.0, 3.0],
            "root": 1.0,
            "product": 6.0 if rank == size - 1 else rank + 1.0,
            "gathered": [[float(i) for i in range(2 * size)]] * 2,
            "gathered in one": [0.0, 1.0, 2.0] if rank == 1 else [-1.0] * size,
            "scattered": 10.0 + rank,
            "reduced and scattered": float(size * rank),
            "exchanged": [10.0 * other + rank for other in range(size)],
        }


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda g, x: g.allreduce([]), "non-empty tensor list"),
        (lambda g, x: g.allreduce([x, x.double()]), "invalid tensor type"),
        (lambda g, x: g.allreduce([x, fb.zeros(2)]), "invalid tensor size"),
        (lambda g, x: g.allreduce([x, x.to_sparse()]), "invalid tensor layout"),
        (lambda g, x: g.broadcast(x, root=1), "invalid root rank: 1 of 1"),
        (lambda g, x: g.broadcast([x], dist.BroadcastOptions(rootTensor=1)), "root tensor: 1 of 1"),
        (lambda g, x: g.broadcast([], dist.BroadcastOptions()), "root tensor: 0 of 0"),
        (lambda g, x: g.reduce([x, x]), "single-element tensor list"),
        (lambda g, x: g.reduce([x], dist.ReduceOptions(rootTensor=1)), "invalid root tensor"),
        (lambda g, x: g.allgather([], []), "non-empty input tensor list"),
        (lambda g, x: g.allgather([[x], [x]], [x]), "same length"),
        (lambda g, x: g.allgather([[x, x]], [x]), "invalid output tensor list at index 0"),
        (lambda g, x: g.gather([], [x]), "single-element output list"),
        (lambda g, x: g.gather([[x, x]], [x]), "single-element output list"),
        (lambda g, x: g.gather([[x]], [x, x]), "single-element input tensor list"),
        (lambda g, x: g.scatter([x], []), "single-element input list"),
        (lambda g, x: g.scatter([x], [[x.double()]]), "invalid tensor type"),
        (lambda g, x: g.scatter([x], [[x]], dist.ScatterOptions(rootRank=-1)), "invalid root rank"),
    ],
)
def test_methods_refuse_what_does_not_fit(alone: Any, call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call(alone, fb.zeros(1))


def _standalone(rank: int, size: int, path: str) -> list[Any]:
    store = dist.FileStore(path, size)
    options = dist.ProcessGroupGloo.Options(timeout=20.0)
    options.devices = [dist.ProcessGroupGloo.create_tcp_device(interface="lo")]
    first = Standalone(store, rank, size, options)
    second = Standalone(store, rank, size, timedelta(seconds=20))
    x = fb.tensor([float(rank)])
    works = [first.allreduce(x), second.allreduce(fb.zeros(3))]
    first.barrier().wait()
    assert works[0].is_success()
    dist.destroy_process_group(first)
    with pytest.raises(ValueError, match="was destroyed"):
        first.allreduce(x)
    second.allreduce(x).wait()
    assert not dist.is_initialized()
    return [x.item(), first.timeout.total_seconds()]


def test_groups_are_made_of_a_store_without_a_job(tmp_path: Path) -> None:
    found = values(run_ranks(_standalone, 2, str(tmp_path / "store"), join=False))
    assert found == [[2.0, 20.0]] * 2


def test_a_standalone_group_leaves_the_job_of_the_process_alone(alone: Any) -> None:
    dist.init_process_group("reference", store=dist.HashStore(), rank=0, world_size=1)
    other = Standalone(dist.HashStore(), 0, 1)
    dist.destroy_process_group(other)
    assert dist.is_initialized()
    dist.destroy_process_group()
    alone.allreduce(fb.ones(1)).wait()


def test_a_rank_that_is_none_of_the_group_is_refused() -> None:
    with pytest.raises(ValueError, match="rank 2 is not one of 2"):
        Standalone(dist.HashStore(), 2, 2)


def _sparse(rank: int, size: int, dense_dims: int, dtype: fb.dtype, op: Any) -> Any:
    fb.manual_seed(rank)
    count = 4 * rank  # none in the first, several at one place in the others
    shape = (3, 2, *[2] * dense_dims)
    where = fb.stack([fb.randint(0, n, (count,)) for n in shape[:2]])
    what = fb.randint(-5, 5, (count, *shape[2:])).to(dtype)
    mine = fb.sparse_coo_tensor(where, what, shape, dtype=dtype)
    dense = mine.to_dense()
    work = dist.all_reduce(mine, op, async_op=True)
    assert work is not None
    work.wait()
    assert work.result()[0] is mine
    assert mine.is_coalesced()
    dist.all_reduce(dense, op)
    fb.testing.assert_close(mine.to_dense(), dense)
    return mine.values().tolist()


@pytest.mark.parametrize(
    ("dense_dims", "dtype", "op"),
    [
        (0, fb.float32, dist.ReduceOp.SUM),
        (1, fb.float64, dist.ReduceOp.AVG),
        (2, fb.int64, dist.ReduceOp.SUM),
    ],
)
def test_sparse_tensors_add_up_as_dense_ones_do(dense_dims: int, dtype: Any, op: Any) -> None:
    first, *others = values(run_ranks(_sparse, 3, dense_dims, dtype, op))
    assert all(other == first for other in others)


def test_sparse_tensors_can_only_be_added_up(alone: Any) -> None:
    with pytest.raises(ValueError, match="unsupported reduction operation MAX"):
        alone.allreduce(fb.eye(2).to_sparse(), dist.ReduceOp.MAX)
    with pytest.raises(RuntimeError, match="dense"):
        alone.broadcast(fb.eye(2).to_sparse(), 0)


def _shapes(rank: int, size: int) -> None:
    dist.all_reduce(fb.sparse_coo_tensor([[0]], [1.0], (2 + rank,)))


def test_sparse_tensors_of_different_shapes_are_named_in_all_processes() -> None:
    for outcome in run_ranks(_shapes, 2):
        assert "rank 0" in outcome.error and "sparse [1, 2]" in outcome.error
        assert "sparse [1, 3]" in outcome.error


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("file://?rank=0&world_size=1", "path missing"),
        ("file:///nowhere?world_size=1", "rank parameter missing"),
        ("file:///nowhere?rank=0", "world size parameter missing"),
        ("tcp://127.0.0.1?rank=0&world_size=1", "port number missing"),
        ("tcp://127.0.0.1:23456?world_size=1", "rank parameter missing"),
        ("tcp://127.0.0.1:23456?rank=0", "world size parameter missing"),
    ],
)
def test_a_meeting_says_what_is_missing(url: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        next(dist.rendezvous(url))


def test_a_meeting_happens_once(tmp_path: Path) -> None:
    meetings = dist.rendezvous(f"file://{tmp_path / 'met'}?rank=0&world_size=1")
    store, rank, size = next(meetings)
    store.set("a", "b")
    assert (rank, size, store.get("a")) == (0, 1, b"b")
    assert store.timeout == timedelta(minutes=30)
    with pytest.raises(RuntimeError, match="meet once"):
        next(meetings)


def test_unknown_schemes_are_refused_at_once() -> None:
    with pytest.raises(RuntimeError, match="^No rendezvous handler for invalid://"):
        dist.rendezvous("invalid://")


def test_the_store_of_a_job_waits_as_long_as_the_job(tmp_path: Path) -> None:
    url, limit = f"file://{tmp_path / 'met'}", timedelta(seconds=77)
    dist.init_process_group("reference", url, limit, 1, 0)
    store = _init._get_default_store()
    dist.destroy_process_group()
    assert store.timeout == limit


def test_programs_bring_meetings_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def handler(url: str, **kwargs: Any) -> Iterator[tuple[dist.Store, int, int]]:
        asked.append(url)
        yield dist.HashStore(), 0, 1

    monkeypatch.setattr(_rendezvous, "_handlers", {})
    dist.register_rendezvous_handler("ours", handler)
    dist.init_process_group("reference", "ours://somewhere", rank=0, world_size=1)
    dist.destroy_process_group()
    assert asked == ["ours://somewhere?rank=0&world_size=1"]
    for taken in ("ours", "tcp"):
        with pytest.raises(RuntimeError, match="already registered"):
            dist.register_rendezvous_handler(taken, handler)


def _other_sizes(rank: int, size: int) -> str:
    told = size + 1 if rank == 1 else size
    with pytest.raises(RuntimeError, match="give all the same world_size") as caught:
        dist.init_process_group("reference", None, timedelta(seconds=4), told, rank)
    return str(caught.value)


def test_ranks_that_were_told_different_sizes_say_so() -> None:
    first, second, third = values(run_ranks(_other_sizes, 3, join=False))
    assert "rank 0 was started as one of 3 processes, rank 1 as one of 4" in first
    assert "rank 1 was started as one of 4 processes, rank 0 as one of 3" in second
    assert "rank 2 was started as one of 3 processes, rank 1 as one of 4" in third
