"""Collectives that gradients flow through, as functions.

They give tensors where those of `flambeau.distributed` write into tensors, and the backward pass
of each is a collective too: a sum over processes for what all have received, a broadcast for what
was summed.  So all processes of the group have to run the backward pass, with the same operations
in it; a process whose result does not take part in its loss adds it times 0.  Losses of all
processes count as one sum, as in PyTorch.

Each backward pass is made of these functions, so it can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import flambeau as fb
from flambeau import Tensor
from flambeau import distributed as dist
from flambeau._dispatch.annotated import all_take_as_annotated
from flambeau.autograd import Function
from flambeau.distributed._group import ProcessGroup
from flambeau.distributed._reduce_op import ReduceOp

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


class _Context(Protocol):
    """What the forward pass of a collective leaves to its backward pass."""

    group: ProcessGroup | None
    src: int
    dst: int
    op: ReduceOp
    shape: fb.Size
    shapes: list[fb.Size]
    sizes: tuple[Sequence[int] | None, Sequence[int] | None]


def broadcast(tensor: Tensor, src: int, group: ProcessGroup | None = None) -> Tensor:
    """The tensor of rank `src`, in all ranks.

    Its gradient is the sum of those of all ranks in rank `src`, and 0 in the others.

    Args:
        tensor: of one shape and dtype in all ranks.
        src: a rank of the job.
        group: all processes if it is not given.
    """
    return _Broadcast.apply(tensor, src, group)


def gather(tensor: Tensor, dst: int = 0, group: ProcessGroup | None = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks in rank `dst`, in the order of ranks; zeros in the others.

    Args:
        tensor: of one shape and dtype in all ranks.
        dst: a rank of the job.
        group: all processes if it is not given.
    """
    return _Gather.apply(tensor, dst, group)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: ProcessGroup | None = None) -> Tensor:
    """The tensor of each rank among those that rank `src` has.

    Args:
        tensors: one for each rank of the group; what other ranks than `src` give tells shape and
            dtype.
        src: a rank of the job.
        group: all processes if it is not given.
    """
    return _Scatter.apply(src, group, *tensors)


def reduce(
    tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None
) -> Tensor:
    """The tensors of all ranks combined in rank `dst`; the other ranks get their own tensor.

    The gradient of rank `dst` is that of all; those of the others' results count as 0.

    Args:
        tensor: of one shape and dtype in all ranks.
        dst: a rank of the job.
        op: how; gradients are those of sums and averages.
        group: all processes if it is not given.

    Raises:
        NotImplementedError: the backward pass comes to another `op` than a sum or an average.
    """
    return _Reduce.apply(tensor, dst, op, group)


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
) -> Tensor:
    """The tensors at the rank's place in the lists of all ranks, combined.

    Args:
        output: of the shape and dtype of the result, which is written into it.
        input_list: one for each rank of the group, of one shape and dtype.
        op: how; gradients are those of sums and averages.
        group: all processes if it is not given.

    Raises:
        NotImplementedError: the backward pass comes to another `op` than a sum or an average.
    """
    return _ReduceScatter.apply([output], op, group, *input_list)


def all_gather(tensor: Tensor, group: ProcessGroup | None = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks in all ranks, in the order of ranks.

    Its gradient is the sum over all ranks of what they have for this rank's tensor, which losses
    that compare the examples of all ranks need.

    Args:
        tensor: of one shape and dtype in all ranks.
        group: all processes if it is not given.
    """
    return _AllGather.apply(tensor, group)


def all_to_all(
    output_tensor_list: Sequence[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: ProcessGroup | None = None,
) -> tuple[Tensor, ...]:
    """Each rank's tensor for this rank, in the order of ranks.

    Args:
        output_tensor_list: of the shapes and dtype of the results, which are written into them.
        input_tensor_list: one for each rank of the group.
        group: all processes if it is not given.
    """
    return _AllToAll.apply(list(output_tensor_list), group, *input_tensor_list)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
) -> Tensor:
    """Parts of each rank's tensor along its first dimension, those for this rank one after another.

    Args:
        output: of the shape and dtype of the result, which is written into it.
        input: divided into one part for each rank of the group.
        output_split_sizes: the lengths of the parts of the result; equal ones if not given.
        input_split_sizes: the lengths of the parts of `input`; equal ones if not given.
        group: all processes if it is not given.
    """
    return _AllToAllSingle.apply([output], input, output_split_sizes, input_split_sizes, group)


def all_reduce(
    tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None
) -> Tensor:
    """The tensors of all ranks combined, in all ranks.

    Args:
        tensor: of one shape and dtype in all ranks.
        op: how; gradients are those of sums and averages.
        group: all processes if it is not given.

    Raises:
        NotImplementedError: the backward pass comes to another `op` than a sum or an average.
    """
    return _AllReduce.apply(tensor, op, group)


def _linear(op: ReduceOp) -> ReduceOp:
    if op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise NotImplementedError(
            f"there is no gradient of ReduceOp.{op.name} over processes, only of SUM and AVG"
        )
    return op


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: _Context, tensor: Tensor, src: int, group: ProcessGroup | None) -> Tensor:
        ctx.src, ctx.group = src, group
        result = tensor.clone(memory_format=fb.contiguous_format)
        dist.broadcast(result, src, group)
        return result

    @staticmethod
    def backward(ctx: _Context, *grads: Tensor) -> tuple[Tensor, None, None]:
        (grad,) = grads
        total = reduce(grad, ctx.src, ReduceOp.SUM, ctx.group)
        return total if dist.get_rank() == ctx.src else total * 0, None, None


class _Gather(Function):
    @staticmethod
    def forward(
        ctx: _Context, tensor: Tensor, dst: int, group: ProcessGroup | None
    ) -> tuple[Tensor, ...]:
        ctx.dst, ctx.group = dst, group
        found = [fb.zeros_like(tensor) for _ in range(dist.get_world_size(group))]
        here = dist.get_rank() == dst
        dist.gather(tensor.contiguous(), found if here else None, dst, group)
        return tuple(found)

    @staticmethod
    def backward(ctx: _Context, *grads: Tensor) -> tuple[Tensor, None, None]:
        return scatter(grads, ctx.dst, ctx.group), None, None


class _Scatter(Function):
    @staticmethod
    def forward(ctx: _Context, src: int, group: ProcessGroup | None, *tensors: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        here = dist.get_rank() == src
        result = fb.empty_like(tensors[0], memory_format=fb.contiguous_format)
        dist.scatter(result, [t.contiguous() for t in tensors] if here else None, src, group)
        return result

    @staticmethod
    def backward(ctx: _Context, *grads: Tensor) -> tuple[Any, ...]:
        (grad,) = grads
        return None, None, *gather(grad, ctx.src, ctx.group)


class _Reduce(Function):
    @staticmethod
    def forward(
        ctx: _Context, tensor: Tensor, dst: int, op: ReduceOp, group: ProcessGroup | None
    ) -> Tensor:
        ctx.dst, ctx.op, ctx.group = dst, op, group
        result = tensor.clone(memory_format=fb.contiguous_format)
        dist.reduce(result, dst, op, group)
        return result if dist.get_rank() == dst else tensor.clone()

    @staticmethod
    def backward(ctx: _Context, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        (grad,) = grads
        whole = broadcast(grad, ctx.dst, ctx.group)
        if _linear(ctx.op) is ReduceOp.AVG:
            whole = whole / dist.get_world_size(ctx.group)
        return whole, None, None, None


class _ReduceScatter(Function):
    @staticmethod
    def forward(
        ctx: _Context,
        output: list[Tensor],
        op: ReduceOp,
        group: ProcessGroup | None,
        *tensors: Tensor,
    ) -> Tensor:
        ctx.op, ctx.group = op, group
        dist.reduce_scatter(output[0], [t.contiguous() for t in tensors], op, group)
        return output[0]

    @staticmethod
    def backward(ctx: _Context, *grads: Tensor) -> tuple[Any, ...]:
        (grad,) = grads
        if _linear(ctx.op) is ReduceOp.AVG:
            grad = grad / dist.get_world_size(ctx.group)
        return None, None, None, *all_gather(grad, ctx.group)


class _AllGather(Function):
    @staticmethod
    def forward(ctx: _Context, tensor: Tensor, group: ProcessGroup | None) -> tuple[Tensor, ...]:
        ctx.group = group
        count = dist.get_world_size(group)
        like = fb.contiguous_format
        found = [fb.empty_like(tensor, memory_format=like) for _ in range(count)]
        dist.all_gather(found, tensor.contiguous(), group)
        return tuple(found)

    @staticmethod
    def backward(ctx: _Context, *grads: Tensor) -> tuple[Tensor, None]:
        output = fb.empty_like(grads[0], memory_format=fb.contiguous_format)
        return reduce_scatter(output, grads, ReduceOp.SUM, ctx.group), None


class _AllToAll(Function):
    @staticmethod
    def forward(
        ctx: _Context, outputs: list[Tensor], group: ProcessGroup | None, *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.group, ctx.shapes = group, [tensor.shape for tensor in tensors]
        dist.all_to_all(outputs, [tensor.contiguous() for tensor in tensors], group)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: _Context, *grads: Tensor) -> tuple[Any, ...]:
        outputs = [grads[0].new_empty(shape) for shape in ctx.shapes]
        return None, None, *all_to_all(outputs, grads, ctx.group)


class _AllToAllSingle(Function):
    @staticmethod
    def forward(
        ctx: _Context,
        output: list[Tensor],
        tensor: Tensor,
        output_sizes: Sequence[int] | None,
        input_sizes: Sequence[int] | None,
        group: ProcessGroup | None,
    ) -> Tensor:
        ctx.group, ctx.sizes, ctx.shape = group, (input_sizes, output_sizes), tensor.shape
        into = output[0]
        dist.all_to_all_single(into, tensor.contiguous(), output_sizes, input_sizes, group)
        return into

    @staticmethod
    def backward(ctx: _Context, *grads: Tensor) -> tuple[Any, ...]:
        (grad,) = grads
        into, (sent, got) = grad.new_empty(ctx.shape), ctx.sizes
        return None, all_to_all_single(into, grad, sent, got, ctx.group), None, None, None


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: _Context, tensor: Tensor, op: ReduceOp, group: ProcessGroup | None) -> Tensor:
        ctx.op, ctx.group = op, group
        result = tensor.clone(memory_format=fb.contiguous_format)
        dist.all_reduce(result, op, group)
        return result

    @staticmethod
    def backward(ctx: _Context, *grads: Tensor) -> tuple[Tensor, None, None]:
        (grad,) = grads
        return all_reduce(grad, _linear(ctx.op), ctx.group), None, None


all_take_as_annotated(globals())
