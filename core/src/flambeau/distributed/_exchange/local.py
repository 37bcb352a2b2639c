"""Tensors of one process that take part together."""

from __future__ import annotations

from collections.abc import Sequence

import flambeau as fb
from flambeau import Tensor
from flambeau.distributed._reduce_op import ReduceOp

_LOCAL = {
    ReduceOp.SUM: fb.Tensor.add_,
    ReduceOp.AVG: fb.Tensor.add_,
    ReduceOp.PRODUCT: fb.Tensor.mul_,
    ReduceOp.BAND: fb.Tensor.bitwise_and_,
    ReduceOp.BOR: fb.Tensor.bitwise_or_,
    ReduceOp.BXOR: fb.Tensor.bitwise_xor_,
}


def combined(tensors: Sequence[Tensor], op: ReduceOp) -> Tensor:
    """The combination of the tensors of this process, on the device of the first."""
    total = tensors[0].detach().clone()
    for tensor in tensors[1:]:
        other = tensor.detach().to(total.device)
        if op is ReduceOp.MIN:
            total = fb.minimum(total, other)
        elif op is ReduceOp.MAX:
            total = fb.maximum(total, other)
        else:
            _LOCAL[op](total, other)
    return total


def spread(result: Tensor, tensors: Sequence[Tensor]) -> None:
    """Put a result into all of them."""
    with fb.no_grad():
        for tensor in tensors:
            tensor.copy_(result)
