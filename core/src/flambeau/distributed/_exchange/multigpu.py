"""Collectives over several devices in each process.  PyTorch 1 documents them; 2 has none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau._dispatch.annotated import all_take_as_annotated
from flambeau.distributed._exchange import collectives
from flambeau.distributed._exchange.local import combined, spread
from flambeau.distributed._group import ProcessGroup
from flambeau.distributed._init import in_group, need_group
from flambeau.distributed._reduce_op import ReduceOp
from flambeau.distributed._work import Work


def _check(name: str, tensors: Sequence[Tensor]) -> None:
    for each in tensors:
        if not isinstance(each, Tensor):
            raise TypeError(f"{name}: a list of tensors is needed, got a {type(each).__name__}")
    if not tensors or any(t.shape != tensors[0].shape for t in tensors):
        raise RuntimeError(f"{name}: tensors of one shape are needed, at least one")


def _finished(work: Work | None, async_op: bool) -> Work | None:
    return work if async_op else None


def broadcast_multigpu(
    tensor_list: Sequence[Tensor],
    src: int,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    src_tensor: int = 0,
) -> Work | None:
    """Tensor `src_tensor` of rank `src` in all tensors of all processes.

    Raises:
        RuntimeError: the tensors have different shapes.
    """
    _check("broadcast_multigpu", tensor_list)
    if not in_group(group):
        return None
    first = tensor_list[src_tensor if need_group(group).world.rank == src else 0]
    work = collectives.broadcast(first, src, group, async_op=True)
    assert work is not None
    work.wait()
    spread(first, [tensor for tensor in tensor_list if tensor is not first])
    return _finished(work, async_op)


def all_reduce_multigpu(
    tensor_list: Sequence[Tensor],
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """The combination of all tensors of all processes, in all of them.

    Raises:
        RuntimeError: the tensors have different shapes.
    """
    _check("all_reduce_multigpu", tensor_list)
    if not in_group(group):
        return None
    total = combined(tensor_list, op)
    work = collectives.all_reduce(total, op, group, async_op=True)
    assert work is not None
    work.wait()
    if op is ReduceOp.AVG:
        total /= len(tensor_list)
    spread(total, tensor_list)
    return _finished(work, async_op)


def reduce_multigpu(
    tensor_list: Sequence[Tensor],
    dst: int,
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    dst_tensor: int = 0,
) -> Work | None:
    """The combination of all tensors of all processes, in tensor `dst_tensor` of rank `dst`.

    Raises:
        RuntimeError: the tensors have different shapes.
    """
    _check("reduce_multigpu", tensor_list)
    if not in_group(group):
        return None
    total = combined(tensor_list, op)
    work = collectives.reduce(total, dst, op, group, async_op=True)
    assert work is not None
    work.wait()
    if need_group(group).world.rank == dst:
        if op is ReduceOp.AVG:
            total /= len(tensor_list)
        spread(total, [tensor_list[dst_tensor]])
    return _finished(work, async_op)


def all_gather_multigpu(
    output_tensor_lists: Sequence[Sequence[Tensor]],
    input_tensor_list: Sequence[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """All tensors of all processes, in each list: first those of rank 0, in their order.

    Raises:
        RuntimeError: the tensors have different shapes, or a list another length.
    """
    _check("all_gather_multigpu", input_tensor_list)
    if not in_group(group):
        return None
    found, count = need_group(group), len(input_tensor_list)
    if any(len(row) != count * found.size() for row in output_tensor_lists):
        raise RuntimeError(
            f"all_gather_multigpu: output lists need {count * found.size()} tensors each"
        )
    place = input_tensor_list[0].device
    mine = fb.stack([tensor.detach().to(place) for tensor in input_tensor_list])
    everything = fb.empty((found.size(), *mine.shape), dtype=mine.dtype, device=place)
    work = collectives.all_gather_into_tensor(everything, mine, group, async_op=True)
    assert work is not None
    work.wait()
    rows = everything.flatten(0, 1)
    with fb.no_grad():
        for outputs in output_tensor_lists:
            for output, row in zip(outputs, rows, strict=True):
                output.copy_(row)
    return _finished(work, async_op)


all_take_as_annotated(globals())
