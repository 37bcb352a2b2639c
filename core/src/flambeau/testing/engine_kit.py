"""Does an engine keep the contract?  ``python -m flambeau.testing.engine_kit NAME``.

Each case is a function of rank and size that every rank of a job runs; it knows what has to come
out.  The names of cases say what an engine owes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import flambeau as fb
import flambeau.distributed as dist
from flambeau.distributed import ReduceOp
from flambeau.distributed._engines import named
from flambeau.testing.ranks import run_ranks

if TYPE_CHECKING:
    from flambeau._types.dtype import dtype as DType


Case = Callable[[int, int], None]
CASES: dict[str, Case] = {}
TAGGED: set[str] = set()
"""Cases of engines whose messages have tags (`flambeau.plugin.Engine.tags`)."""

# Below and above the size from which an all-reduce is divided, and sizes that no number divides.
SIZES = (0, 1, 7, 1023, 20011, 1_100_003)
DTYPES = (fb.float32, fb.float64, fb.int64, fb.int32, fb.uint8, fb.float16, fb.bfloat16)


def case(fn: Case) -> Case:
    """Make a function a case of the kit."""
    CASES[fn.__name__.replace("_", " ")] = fn
    return fn


def tagged(fn: Case) -> Case:
    """Make a function a case of the kit for engines whose messages have tags."""
    TAGGED.add(fn.__name__.replace("_", " "))
    return case(fn)


def pattern(rank: int, count: int, dtype: DType | None = fb.float32) -> fb.Tensor:
    """Small whole numbers that tell ranks and places apart, exact in every dtype."""
    return _plain(rank, count, dtype).to(fb.get_default_device())


def _plain(rank: int, count: int, dtype: DType | None = fb.float32) -> fb.Tensor:
    # What is expected does not depend on the kernels of the device.
    return ((fb.arange(count, device="cpu") * (rank + 1) + rank) % 5).to(dtype)


def equal(found: fb.Tensor, wanted: fb.Tensor) -> None:
    """Refuse a tensor that is not what it should be, to the last bit.

    Raises:
        AssertionError: it is not.
    """
    found, wanted = found.cpu(), wanted.cpu()
    if not fb.equal(found, wanted):
        wrong = (found != wanted).nonzero()
        raise AssertionError(f"{wrong.shape[0]} of {found.numel()} elements are wrong: {found}")


def _sum(size: int, count: int, dtype: DType) -> fb.Tensor:
    total = fb.zeros(count, dtype=fb.int64, device="cpu")
    for rank in range(size):
        total += _plain(rank, count, fb.int64)
    return total.to(dtype)


@case
def all_reduce_adds_in_every_dtype_and_size(rank: int, size: int) -> None:
    """Sums of all dtypes, small and large."""
    for dtype in DTYPES:
        for count in SIZES if dtype is fb.float32 else (3, 20011):
            found = pattern(rank, count, dtype)
            dist.all_reduce(found)
            equal(found, _sum(size, count, dtype))


@case
def all_reduce_combines_by_every_operation(rank: int, size: int) -> None:
    """Products, extremes, bits, averages, truth values."""
    for count in (5, 20011):
        every = fb.stack([_plain(r, count, fb.int64) for r in range(size)])
        bits = every[0].clone()
        either, exclusive = every[0].clone(), every[0].clone()
        for row in every[1:]:
            bits, either, exclusive = bits & row, either | row, exclusive ^ row
        wanted = {
            ReduceOp.SUM: every.sum(0),
            ReduceOp.PRODUCT: every.prod(0),
            ReduceOp.MIN: every.amin(0),
            ReduceOp.MAX: every.amax(0),
            ReduceOp.BAND: bits,
            ReduceOp.BOR: either,
            ReduceOp.BXOR: exclusive,
        }
        mine = pattern(rank, count, fb.int64)
        for op, result in wanted.items():
            found = mine.clone()
            dist.all_reduce(found, op)
            equal(found, result)
        found = mine.double()
        dist.all_reduce(found, ReduceOp.AVG)
        equal(found, every.sum(0).double() / size)
        flags = mine > 2
        dist.all_reduce(flags, ReduceOp.MAX)
        equal(flags, (every > 2).any(0))
        numbers = fb.complex(mine.double(), -mine.double())
        dist.all_reduce(numbers)
        equal(numbers, fb.complex(every.sum(0).double(), -every.sum(0).double()))


@case
def all_ranks_get_the_same_bits(rank: int, size: int) -> None:
    """Rounding does not depend on who asks."""
    for count in (100, 20011, 1_100_003):
        found = (fb.arange(count, device="cpu") * 0.7310585 + rank * 1.3).sin()
        found = found.to(fb.get_default_device())
        dist.all_reduce(found)
        first = found.clone()
        dist.broadcast(first, 0)
        equal(found, first)


@case
def tensors_that_are_not_contiguous_take_part(rank: int, size: int) -> None:
    """Columns are read and written where they are."""
    table = fb.zeros(6, 4)
    table[:, 1] = rank + 1.0
    dist.all_reduce(table[:, 1])
    wanted = fb.zeros(6, 4)
    wanted[:, 1] = float(sum(range(size + 1)))
    equal(table, wanted)


@case
def a_write_is_noticed_by_the_autograd_engine(rank: int, size: int) -> None:
    """A result that was saved for a gradient must not change silently."""
    x = fb.ones(3, requires_grad=True)
    y = x.exp()
    dist.all_reduce(y.detach())
    try:
        y.sum().backward()
    except RuntimeError:
        return
    raise AssertionError("backward used a tensor that all_reduce had overwritten")


@case
def reduce_leaves_the_others_as_they_are(rank: int, size: int) -> None:
    """Only the root gets the result."""
    for root in range(size):
        for count in (3, 20011):
            found = pattern(rank, count)
            dist.reduce(found, root)
            wanted = _sum(size, count, fb.float32) if rank == root else pattern(rank, count)
            equal(found, wanted)


@case
def broadcast_comes_from_every_root(rank: int, size: int) -> None:
    """Of any size."""
    for root in range(size):
        for count in SIZES:
            found = pattern(rank, count)
            dist.broadcast(found, root)
            equal(found, pattern(root, count))


@case
def gather_and_scatter_keep_the_order_of_ranks(rank: int, size: int) -> None:
    """To and from every root."""
    for root in range(size):
        rows = [fb.empty(9) for _ in range(size)] if rank == root else None
        dist.gather(pattern(rank, 9), rows, root)
        for r, row in enumerate(rows or []):
            equal(row, pattern(r, 9))
        found = fb.empty(9)
        given = [pattern(r + root, 9) for r in range(size)] if rank == root else None
        dist.scatter(found, given, root)
        equal(found, pattern(rank + root, 9))


@case
def all_gather_keeps_the_order_of_ranks(rank: int, size: int) -> None:
    """As a list and as one tensor."""
    for count in (0, 1, 20011):
        rows = [fb.empty(count) for _ in range(size)]
        dist.all_gather(rows, pattern(rank, count))
        whole = fb.empty(size * count)
        dist.all_gather_into_tensor(whole, pattern(rank, count))
        for r, row in enumerate(rows):
            equal(row, pattern(r, count))
            equal(whole[r * count : (r + 1) * count], row)


@case
def reduce_scatter_gives_each_rank_its_part(rank: int, size: int) -> None:
    """As a list and as one tensor."""
    for count in (1, 20011):
        found = fb.empty(count)
        dist.reduce_scatter(found, [pattern(rank, count) * (r + 1) for r in range(size)])
        equal(found, _sum(size, count, fb.float32) * (rank + 1))
        dist.reduce_scatter_tensor(found, pattern(rank, count).repeat(size), ReduceOp.MAX)
        equal(found, fb.stack([_plain(r, count) for r in range(size)]).amax(0))


@case
def all_to_all_exchanges_parts_of_any_size(rank: int, size: int) -> None:
    """Equal and unequal parts."""
    rows = [fb.empty(r + 1) for r in range(size)]
    dist.all_to_all(rows, [fb.full((rank + 1,), 10.0 * rank + r) for r in range(size)])
    for r, row in enumerate(rows):
        equal(row, fb.full((r + 1,), 10.0 * r + rank))
    found = fb.empty(size, 2)
    dist.all_to_all_single(found, fb.arange(size * 2.0).view(size, 2) + 100 * rank)
    wanted = [[100 * r + 2.0 * rank, 100 * r + 2.0 * rank + 1] for r in range(size)]
    equal(found, fb.tensor(wanted))


@case
def messages_arrive_in_their_order(rank: int, size: int) -> None:
    """Around the ring, from both neighbours at once; some are empty."""
    if size == 1:
        return
    for step in {1, size - 1}:
        to, source = (rank + step) % size, (rank - step) % size
        counts = (4, 0, 300_007, 1)
        rooms = [fb.empty(count) for count in counts]
        works = [dist.isend(pattern(rank + i, n), to) for i, n in enumerate(counts)]
        works += [dist.irecv(room, source) for room in rooms]
        for work in works:
            assert work is not None
            work.wait()
        for i, room in enumerate(rooms):
            equal(room, pattern(source + i, counts[i]))


@tagged
def messages_arrive_in_their_order_and_by_their_tags(rank: int, size: int) -> None:
    """Around the ring; tags pick messages, and one tag keeps their order."""
    to, source = (rank + 1) % size, (rank - 1) % size
    if size == 1:
        return
    works = [dist.isend(pattern(rank, n), to, tag=t) for n, t in ((4, 0), (4, 7), (4, 7))]
    rooms = [fb.empty(4) for _ in range(3)]
    big = pattern(rank, 300_007)
    works.append(dist.isend(big, to, tag=9))
    second = dist.irecv(rooms[1], source, tag=7)
    large = fb.empty(300_007)
    dist.recv(large, source, tag=9)
    equal(large, pattern(source, 300_007))
    dist.recv(rooms[0], source)
    dist.recv(rooms[2], source, tag=7)
    for work in (*works, second):
        assert work is not None
        work.wait()
        assert work.is_completed()
    for room in rooms:
        equal(room, pattern(source, 4))


@tagged
def a_receive_from_anybody_says_who_had_sent(rank: int, size: int) -> None:
    """Rank 0 hears from all."""
    if rank:
        dist.send(fb.tensor([float(rank)]), 0)
        return
    heard = set()
    for _ in range(size - 1):
        room = fb.empty(1)
        source = dist.recv(room)
        assert room.item() == source
        heard.add(source)
    assert heard == set(range(1, size)), heard


@case
def asynchronous_operations_end_in_any_order_of_waiting(rank: int, size: int) -> None:
    """Ranks may wait for them in different orders."""
    tensors = [pattern(rank, count) for count in (3, 50_021, 8, 20011)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    order = list(range(len(works)))
    for i in order if rank % 2 else reversed(order):
        work = works[i]
        assert work is not None
        work.wait()
    for tensor in tensors:
        equal(tensor, _sum(size, tensor.numel(), fb.float32))


@case
def groups_of_some_ranks_do_not_disturb_each_other(rank: int, size: int) -> None:
    """Even and odd ranks, the ends, and all in between."""
    even = dist.new_group(range(0, size, 2))
    odd = dist.new_group(range(1, size, 2)) if size > 1 else None
    mine = even if rank % 2 == 0 else odd
    members = list(range(rank % 2, size, 2))
    whole = pattern(rank, 11)
    pending = dist.all_reduce(whole, async_op=True)
    found = fb.tensor([float(rank)])
    dist.all_reduce(found, group=mine)
    assert found.item() == sum(members), found
    dist.broadcast(found, members[-1], group=mine)
    assert dist.get_rank(mine) == members.index(rank)
    assert dist.get_world_size(mine) == len(members)
    if len(members) > 1:
        if rank == members[0]:
            dist.send(fb.tensor([5.0]), members[-1], group=mine)
        elif rank == members[-1]:
            room = fb.empty(1)
            assert dist.recv(room, members[0], group=mine) == members[0]
            assert room.item() == 5
    assert pending is not None
    pending.wait()
    equal(whole, _sum(size, 11, fb.float32))


@case
def objects_travel(rank: int, size: int) -> None:
    """In all the forms of PyTorch."""
    found: list[Any] = [None] * size
    dist.all_gather_object(found, {"rank": rank, "text": "x" * rank})
    assert found == [{"rank": r, "text": "x" * r} for r in range(size)]
    for root in range(size):
        rows = [None] * size if rank == root else None
        dist.gather_object(("from", rank), rows, root)
        assert rows is None or rows == [("from", r) for r in range(size)]
        given = ["a", {"b": root}] if rank == root else [None, None]
        dist.broadcast_object_list(given, root)
        assert given == ["a", {"b": root}]
        out = [None]
        dist.scatter_object_list(
            out, [[r] * r for r in range(size)] if rank == root else None, root
        )
        assert out == [[rank] * rank]


@case
def many_small_operations_keep_their_order(rank: int, size: int) -> None:
    """More than there are tags."""
    for i in range(300):
        found = fb.tensor([float(i + rank)])
        dist.all_reduce(found)
        assert found.item() == i * size + sum(range(size))


@case
def barriers_wait_for_everybody(rank: int, size: int) -> None:
    """By the engine, and by the store."""
    for i in range(20):
        dist.barrier()
        if i % 10 == 0:
            dist.monitored_barrier()


def run_cases(rank: int, size: int, names: Sequence[str], device: str = "cpu") -> None:
    """Run cases in one process of a job, with tensors of one type of devices.

    Raises:
        AssertionError: a case failed; the message has its name.
    """
    if device != "cpu":
        fb.accelerator.set_device_index(rank % fb.accelerator.device_count())
    fb.set_default_device(device)
    for name in names:
        try:
            CASES[name](rank, size)
        except Exception as error:
            raise AssertionError(f"{name!r} failed") from error


def check(
    engine: str,
    sizes: Sequence[int] = (1, 2, 3, 4),
    names: Sequence[str] | None = None,
    method: str = "fork",
) -> dict[int, str]:
    """Run the kit on an engine; for each size of job that failed, why.

    Args:
        engine: its name.
        sizes: numbers of processes.
        names: of the cases, all if not given.
        method: how processes start; devices other than the CPU are seldom usable after a fork.
    """
    failures, found = {}, named(engine)
    device = "cpu" if "cpu" in found.devices else found.devices[0]
    cases = names or [name for name in CASES if found.tags or name not in TAGGED]
    for size in sizes:
        outcomes = run_ranks(run_cases, size, cases, device, engine=engine, method=method)
        errors = [o.error or f"exit code {o.code}" for o in outcomes if o.error or o.code]
        if errors:
            failures[size] = "\n".join(errors)
    return failures


def main() -> int:
    """Check the engines that the command line names; 1 if one fails."""
    failed = 0
    for engine in sys.argv[1:]:
        failures = check(engine, method="fork" if "cpu" in named(engine).devices else "spawn")
        for size, why in failures.items():
            print(f"{engine} with {size} processes:\n{why}")
        print(f"{engine}: {'FAILED' if failures else 'keeps the contract'}")
        failed |= bool(failures)
    return failed


if __name__ == "__main__":
    sys.exit(main())
