"""Losses of regression: the squared error."""

from __future__ import annotations

import math

from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import cast, common, result_type
from flambeau._tensor.tensor import Tensor
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.layers.activation import wide
from flambeau.ops.losses.loss_reduction import check_reduction
from flambeau.ops.shapes.broadcasting import broadcast_tensors


@composite
def _mse_loss(input: Tensor, target: Tensor, reduction: str) -> Tensor:
    """(x - t)², its mean or its sum."""
    d = wide(input) - wide(target)
    loss = d * d
    if reduction != "none":
        loss = loss.sum() if reduction == "sum" else loss.mean()
    return cast(loss, input.dtype)


@_mse_loss.gradient
def _(F, g, input, target, reduction, needs):
    count = math.prod(input.shape) if reduction == "mean" else 1
    slope = F.mul(F.mul(g, F.scalar(2 / max(count, 1), g)), F.sub(input, target))
    return slope, F.neg(slope) if needs[1] else None


@public(method=False)
def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """(x - t)², its mean or its sum; the operands are broadcast and promoted.

    Raises:
        ValueError: an unknown `reduction`.
        NotImplementedError: the common dtype is neither floating nor complex.

    >>> import flambeau as fb
    >>> fb.mse_loss(fb.tensor([1.0, 2.0]), fb.tensor([0.0, 0.0]))
    tensor(2.5000)
    """
    check_reduction(reduction)
    x, t = need_tensor(input, "mse_loss", "input"), need_tensor(target, "mse_loss", "target")
    dtype = result_type(x, t)
    if not dtype.fp:
        raise NotImplementedError(f"mse_loss(): not implemented for {dtype}; cast to floats first")
    x, t = common("mse_loss", (x, t), dtype)
    if x.shape != t.shape:
        x, t = broadcast_tensors(x, t)
    return _mse_loss.run(x, t, reduction)
