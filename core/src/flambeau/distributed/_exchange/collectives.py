"""Operations that all processes of a group call, each with its part of the data."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau._dispatch.annotated import all_take_as_annotated
from flambeau.distributed._errors import DistTimeoutError
from flambeau.distributed._exchange.flat import all_gather_flat, facts_of, pieces
from flambeau.distributed._exchange.sparse import all_reduce_sparse
from flambeau.distributed._exchange.vectors import need, same_dtype, target, vector
from flambeau.distributed._group import ProcessGroup
from flambeau.distributed._init import in_group, need_group
from flambeau.distributed._reduce_op import ReduceOp
from flambeau.distributed._work import Work, rank_of
from flambeau.plugin import Request

_INTEGERS_ONLY = frozenset({ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR})
_NO_COMPLEX = frozenset({ReduceOp.MIN, ReduceOp.MAX, *_INTEGERS_ONLY})


def _ended(work: Work, async_op: bool) -> Work | None:
    if async_op:
        return work
    work.wait()
    return None


def _op(op: object, tensor: Tensor) -> ReduceOp:
    if not isinstance(op, ReduceOp):
        raise TypeError(f"op has to be a ReduceOp, not {type(op).__name__}")
    floating = tensor.is_floating_point() or tensor.is_complex()
    if (
        (op in _INTEGERS_ONLY and floating)
        or (op in _NO_COMPLEX and tensor.is_complex())
        or (op is ReduceOp.AVG and not floating)
    ):
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with {tensor.dtype}")
    return op


def _combining(op: ReduceOp) -> str:
    return "sum" if op is ReduceOp.AVG else op.value


def _averaged(op: ReduceOp, tensor: Tensor, group: ProcessGroup) -> None:
    if op is ReduceOp.AVG:
        with fb.no_grad():
            tensor.div_(group.size())


def _root(group: ProcessGroup, rank: int | None, of_group: int | None, name: str) -> int:
    """The number in the group of a rank that is given as one of the job, or of the group."""
    if rank is not None and of_group is not None:
        raise ValueError(f"Can't specify both group_{name} and {name}")
    if of_group is not None:
        if not 0 <= of_group < group.size():
            raise ValueError(f"Group rank {of_group} is not part of group {group}")
        return of_group
    if rank is None:
        raise ValueError(f"Must specify {name} or group_{name}")
    return group.rank_of(rank)


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """The tensor of rank `src` in the tensors of all: ``tensor = tensor of src``.

    Args:
        tensor: of as many elements and one dtype everywhere.
        src: a rank of the job.
        group: whose members call it; that of all processes if not given.
        async_op: return a `Work` at once.
        group_src: `src` as a rank of the group.

    Raises:
        DistBackendError: a process died, or processes called different operations.
        DistTimeoutError: somebody did not come.

    >>> import flambeau as fb
    >>> dist = fb.distributed
    >>> dist.init_process_group("reference", store=dist.HashStore(), rank=0, world_size=1)
    >>> tensor = fb.arange(3)
    >>> dist.broadcast(tensor, src=0)
    >>> tensor
    tensor([0, 1, 2])
    >>> dist.destroy_process_group()
    """
    need("tensor", tensor)
    if not in_group(group):
        return None
    found = need_group(group)
    root = _root(found, src, group_src, "src")
    array, finish = target(tensor)
    facts = facts_of(tensor, f"src={found.ranks[root]}")
    return _ended(
        found.collective("broadcast", tensor, facts, lambda c: c.broadcast(array, root), finish),
        async_op,
    )


def all_reduce(
    tensor: Tensor,
    op: object = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """The combination of the tensors of all, in all of them: ``tensor = Σ tensors`` for SUM.

    All processes have the same bits afterwards.

    Args:
        tensor: of as many elements and one dtype everywhere.  Sparse ones (`sparse_coo`) can be
            added up; each process has its own elements in them.
        op: how; MIN, MAX and AVG as `ReduceOp` says.
        group: whose members call it; that of all processes if not given.
        async_op: return a `Work` at once.

    Raises:
        RuntimeError: the dtype has no such operation.
        DistBackendError: a process died, or processes called different operations.
        DistTimeoutError: somebody did not come.

    >>> import flambeau as fb
    >>> dist = fb.distributed
    >>> dist.init_process_group("reference", store=dist.HashStore(), rank=0, world_size=1)
    >>> tensor = fb.ones(2)
    >>> dist.all_reduce(tensor)
    >>> tensor
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    sparse = isinstance(tensor, Tensor) and tensor.is_sparse
    need("tensor", *([] if sparse else [tensor]))
    if not in_group(group):
        return None
    found, how = need_group(group), _op(op, tensor)
    if sparse:
        return _ended(all_reduce_sparse(tensor, how, found), async_op)
    array, write_back = target(tensor)

    def finish() -> None:
        write_back()
        _averaged(how, tensor, found)

    facts = facts_of(tensor, how.value)
    name = _combining(how)
    work = found.collective(
        "all_reduce", tensor, facts, lambda c: c.all_reduce(array, name), finish
    )
    work.results.append(tensor)
    return _ended(work, async_op)


def all_reduce_coalesced(
    tensors: Sequence[Tensor],
    op: object = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """`all_reduce` of several tensors of one dtype and device, as one operation.

    Raises:
        TypeError: they have different dtypes.
    """
    need("tensors", *tensors)
    same_dtype(tensors)
    if not in_group(group):
        return None
    found, how = need_group(group), _op(op, tensors[0])
    flat = fb.cat([tensor.detach().reshape(-1) for tensor in tensors])
    array = vector(flat)

    def finish() -> None:
        _averaged(how, flat, found)
        parts = flat.split([tensor.numel() for tensor in tensors])
        with fb.no_grad():
            for tensor, part in zip(tensors, parts, strict=True):
                tensor.copy_(part.view(tensor.shape))

    name = _combining(how)
    facts = facts_of(flat, how.value)
    return _ended(
        found.collective("all_reduce", flat, facts, lambda c: c.all_reduce(array, name), finish),
        async_op,
    )


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: object = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """The combination of the tensors of all, in that of rank `dst`; the others stay as they are.

    Arguments and errors as those of `all_reduce`.
    """
    need("tensor", tensor)
    if not in_group(group):
        return None
    found, how = need_group(group), _op(op, tensor)
    root = _root(found, dst, group_dst, "dst")
    if found.rank() == root:
        array, write_back = target(tensor)
    else:
        array, write_back = vector(tensor), None

    def finish() -> None:
        if write_back is not None:
            write_back()
            _averaged(how, tensor, found)

    facts, name = facts_of(tensor, how.value, f"dst={found.ranks[root]}"), _combining(how)
    return _ended(
        found.collective("reduce", tensor, facts, lambda c: c.reduce(array, root, name), finish),
        async_op,
    )


def _outputs(
    tensors: Sequence[Tensor], like: Tensor, count: int, name: str
) -> tuple[list[Any], Callable[[], None]]:
    need(name, *tensors)
    if len(tensors) != count:
        raise ValueError(
            f"{name}: {count} tensors are needed, one for each process, got {len(tensors)}"
        )
    same_dtype([like, *tensors])
    if any(tensor.numel() != like.numel() for tensor in tensors):
        raise ValueError(f"{name}: every tensor needs {like.numel()} elements")
    pairs = [target(tensor) for tensor in tensors]

    def finish() -> None:
        for _, write_back in pairs:
            write_back()

    return [array for array, _ in pairs], finish


def _inputs(tensors: Sequence[Tensor], like: Tensor, count: int, name: str) -> list[Any]:
    need(name, *tensors)
    if len(tensors) != count:
        raise ValueError(
            f"{name}: {count} tensors are needed, one for each process, got {len(tensors)}"
        )
    same_dtype([like, *tensors])
    if any(tensor.numel() != like.numel() for tensor in tensors):
        raise ValueError(f"{name}: every tensor needs {like.numel()} elements")
    return [vector(tensor) for tensor in tensors]


def all_gather(
    tensor_list: Sequence[Tensor],
    tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """The tensors of all, in the order of their ranks: ``tensor_list[i] = tensor of rank i``.

    Args:
        tensor_list: as many tensors as there are processes, of as many elements as `tensor`.
        tensor: of as many elements and one dtype everywhere.
        group: whose members call it; that of all processes if not given.
        async_op: return a `Work` at once.

    Raises:
        ValueError: `tensor_list` has another length, or a tensor of another size.
        TypeError: the dtypes differ.
        DistBackendError: a process died, or processes called different operations.
        DistTimeoutError: somebody did not come.
    """
    need("tensor", tensor)
    if not in_group(group):
        return None
    found = need_group(group)
    arrays, finish = _outputs(tensor_list, tensor, found.size(), "tensor_list")
    mine = vector(tensor)
    return _ended(
        found.collective(
            "all_gather", tensor, facts_of(tensor), lambda c: c.all_gather(arrays, mine), finish
        ),
        async_op,
    )


def all_gather_into_tensor(
    output_tensor: Tensor,
    input_tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """The tensors of all, one after the other or stacked, in `output_tensor`.

    Raises:
        ValueError: `output_tensor` has not as many times the elements as there are processes.
    """
    need("output_tensor", output_tensor)
    need("input_tensor", input_tensor)
    same_dtype([output_tensor, input_tensor])
    if not in_group(group):
        return None
    return _ended(all_gather_flat(output_tensor, input_tensor, need_group(group)), async_op)


def gather(
    tensor: Tensor,
    gather_list: Sequence[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """The tensors of all in rank `dst`, which alone gives a `gather_list`; `dst` is 0 by default.

    Raises:
        ValueError: `dst` gives no list, or another rank does, or its length is another one.
        TypeError: the dtypes differ.
    """
    need("tensor", tensor)
    if not in_group(group):
        return None
    found = need_group(group)
    root = _root(found, 0 if dst is None and group_dst is None else dst, group_dst, "dst")
    arrays: list[Any] = []
    finish = None
    if found.rank() == root:
        if gather_list is None:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        arrays, finish = _outputs(gather_list, tensor, found.size(), "gather_list")
    elif gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    mine = vector(tensor)
    facts = facts_of(tensor, f"dst={found.ranks[root]}")
    return _ended(
        found.collective("gather", tensor, facts, lambda c: c.gather(arrays, mine, root), finish),
        async_op,
    )


def scatter(
    tensor: Tensor,
    scatter_list: Sequence[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """To each process its tensor of the `scatter_list` of rank `src`, which alone gives one.

    `src` is 0 by default.

    Raises:
        ValueError: `src` gives no list, or another rank does, or its length is another one.
        TypeError: the dtypes differ.
    """
    need("tensor", tensor)
    if not in_group(group):
        return None
    found = need_group(group)
    root = _root(found, 0 if src is None and group_src is None else src, group_src, "src")
    arrays: list[Any] = []
    if found.rank() == root:
        if scatter_list is None:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        arrays = _inputs(scatter_list, tensor, found.size(), "scatter_list")
    elif scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    array, finish = target(tensor)
    facts = facts_of(tensor, f"src={found.ranks[root]}")
    return _ended(
        found.collective(
            "scatter", tensor, facts, lambda c: c.scatter(array, arrays, root), finish
        ),
        async_op,
    )


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: object = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """To rank i the combination of the ``input_list[i]`` of all processes.

    Raises:
        ValueError: `input_list` has another length than there are processes.
        TypeError: the dtypes differ.
    """
    need("output", output)
    if not in_group(group):
        return None
    found, how = need_group(group), _op(op, output)
    arrays = _inputs(input_list, output, found.size(), "input_list")
    return _ended(_reduce_scatter(output, lambda c: arrays, how, found), async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: object = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """`reduce_scatter` of the equal parts of `input`, one for each process.

    Raises:
        ValueError: `input` has not as many times the elements of `output` as there are processes.
    """
    need("output", output)
    need("input", input)
    same_dtype([output, input])
    if not in_group(group):
        return None
    found, how = need_group(group), _op(op, output)
    bounds = pieces(input, output.numel(), found.size(), "input tensor")
    array = vector(input)

    def parts(c: Any) -> list[Any]:
        return [c.part(array, *piece) for piece in bounds]

    return _ended(_reduce_scatter(output, parts, how, found), async_op)


def _reduce_scatter(
    output: Tensor, parts: Callable[[Any], list[Any]], how: ReduceOp, group: ProcessGroup
) -> Work:
    array, write_back = target(output)

    def finish() -> None:
        write_back()
        _averaged(how, output, group)

    return group.collective(
        "reduce_scatter",
        output,
        facts_of(output, how.value),
        lambda c: c.reduce_scatter(array, parts(c), _combining(how)),
        finish,
    )


def all_to_all(
    output_tensor_list: Sequence[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """``output_tensor_list[i] = input_tensor_list[own rank] of rank i``; sizes may differ.

    Raises:
        ValueError: a list has another length than there are processes.
        TypeError: the dtypes differ.
    """
    if not in_group(group):
        return None
    found = need_group(group)
    for name, tensors in (("output", output_tensor_list), ("input", input_tensor_list)):
        need(f"{name}_tensor_list", *tensors)
        if len(tensors) != found.size():
            raise ValueError(f"{name}_tensor_list needs {found.size()} tensors, got {len(tensors)}")
    same_dtype([*output_tensor_list, *input_tensor_list])
    rank = found.rank()
    sizes = [tensors[rank].numel() for tensors in (output_tensor_list, input_tensor_list)]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"output_tensor_list[{rank}] has {sizes[0]} elements, but what this process gives "
            f"itself, input_tensor_list[{rank}], has {sizes[1]}"
        )
    pairs = [target(tensor) for tensor in output_tensor_list]
    arrays, mine = [array for array, _ in pairs], [vector(t) for t in input_tensor_list]

    def finish() -> None:
        for _, write_back in pairs:
            write_back()

    first = input_tensor_list[0]
    work = found.collective(
        "all_to_all", first, str(first.dtype), lambda c: c.all_to_all(arrays, mine), finish
    )
    return _ended(work, async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """`all_to_all` of the parts of `input` along its first dimension, equal unless sizes are given.

    Raises:
        ValueError: sizes do not add up to the first dimension, or it cannot be divided equally.
        TypeError: the dtypes differ.
    """
    need("output", output)
    need("input", input)
    same_dtype([output, input])
    if not in_group(group):
        return None
    found = need_group(group)
    into = _bounds(output, output_split_sizes, found.size(), "output")
    outof = _bounds(input, input_split_sizes, found.size(), "input")
    array, finish = target(output)
    mine = vector(input)

    def begin(c: Any) -> Request:
        return c.all_to_all([c.part(array, *b) for b in into], [c.part(mine, *b) for b in outof])

    work = found.collective("all_to_all", input, str(input.dtype), begin, finish)
    return _ended(work, async_op)


def _bounds(
    tensor: Tensor, sizes: Sequence[int] | None, count: int, name: str
) -> list[tuple[int, int]]:
    rows = tensor.shape[0] if tensor.dim() else 1
    if not sizes:
        if rows % count:
            raise ValueError(f"{name}: {rows} rows cannot be divided among {count} processes")
        sizes = [rows // count] * count
    if len(sizes) != count or sum(sizes) != rows or min(sizes) < 0:
        raise ValueError(f"{name}_split_sizes {list(sizes)} are no {count} parts of {rows} rows")
    width = tensor.numel() // rows if rows else 0
    ends = [sum(sizes[: i + 1]) * width for i in range(count)]
    return list(zip([0, *ends[:-1]], ends, strict=True))


def barrier(
    group: ProcessGroup | None = None,
    async_op: bool = False,
    device_ids: Iterable[int] | None = None,
    timeout: timedelta | None = None,
) -> Work | None:
    """Wait until all processes of a group have come here, with all that they had begun before.

    Raises:
        DistTimeoutError: somebody has not within `timeout`; the message says who.
    """
    if not in_group(group):
        return None
    found = need_group(group)
    earlier = [work for work in found.world.active if work.group is found]
    work = found.collective("barrier", None, "", lambda c: c.compare(0))
    work.follow(earlier)
    if async_op:
        return work
    work.wait(timeout)
    return None


def monitored_barrier(
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    wait_all_ranks: bool = False,
) -> None:
    """`barrier` by the store: it says which rank has not come, and leaves the group usable.

    Args:
        group: whose members call it.
        timeout: that of the group if not given.
        wait_all_ranks: name all that have not come, not only the first.

    Raises:
        DistTimeoutError: somebody has not come, in all ranks that have.
    """
    if not in_group(group):
        return
    found = need_group(group)
    found.check_usable()
    limit = found.timeout if timeout is None else timeout
    found.barriers += 1
    store, base = found.world.store, f"flambeau/{found.group_name}/barrier/{found.barriers}"
    keys = [f"{base}/{place}" for place in range(found.size())]
    store.set(keys[found.rank()], "1")
    deadline, pause = time.monotonic() + limit.total_seconds(), 0.0005
    while not store.check(keys):
        died = [rank for rank in map(rank_of, found.world.watch.dead) if rank in found.ranks]
        if died or time.monotonic() > deadline:
            missing = [
                r for r, key in zip(found.ranks, keys, strict=True) if not store.check([key])
            ]
            if not missing:
                return
            named = missing if wait_all_ranks else missing[:1]
            why = f"; {found.world.obituary(died[0])}" if died else ""
            raise DistTimeoutError(
                f"[rank {found.world.rank} of {found.world.size}] Rank(s) "
                f"{', '.join(map(str, named))} failed to pass monitoredBarrier in "
                f"{limit.total_seconds() * 1000:.0f} ms{why}"
            )
        time.sleep(pause)
        pause = min(0.01, pause * 1.5)


all_take_as_annotated(globals())
