"""Losses of regression: the squared error, and those that grow like the distance beyond a knee."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import cast, common, result_type
from flambeau._tensor.tensor import Tensor
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.layers.activation import wide
from flambeau.ops.losses.loss_reduction import check_reduction, reduced
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
    return _both(F, g, F.sub(input, target), 2 * _share(input, reduction), needs)


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
    return _mse_loss.run(*_alike("mse_loss", input, target, reduction), reduction)


def _alike(where: str, input: Tensor, target: Tensor, reduction: str) -> list[Tensor]:
    """Both in one dtype and one shape."""
    check_reduction(reduction)
    x, t = need_tensor(input, where, "input"), need_tensor(target, where, "target")
    dtype = result_type(x, t)
    if not dtype.fp:
        raise NotImplementedError(f"{where}(): not implemented for {dtype}; cast to floats first")
    pair = common(where, (x, t), dtype)
    if x.shape != t.shape:
        pair = list(broadcast_tensors(*pair))
    return pair


def _bent(input: Tensor, target: Tensor, knee: float) -> Tensor:
    """d² / 2 of the distance d up to the knee, and the tangent beyond it."""
    distance = (wide(input) - wide(target)).abs()
    near = distance.clamp(max=knee)
    return near * (distance - 0.5 * near)


@composite
def _smooth_l1_loss(input: Tensor, target: Tensor, reduction: str, beta: float) -> Tensor:
    """d² / 2β of the distance d below β, d - β / 2 from there; its mean or its sum."""
    return cast(reduced(_bent(input, target, beta) / beta, reduction), input.dtype)


@_smooth_l1_loss.gradient
def _(F, g, input, target, reduction, beta, needs):
    bent = F.hardtanh(F.div(F.sub(input, target), F.scalar(beta, g)), -1.0, 1.0)
    return _both(F, g, bent, _share(input, reduction), needs)


@composite
def _huber_loss(input: Tensor, target: Tensor, reduction: str, delta: float) -> Tensor:
    """d² / 2 of the distance d below δ, δ (d - δ / 2) from there; its mean or its sum."""
    return cast(reduced(_bent(input, target, delta), reduction), input.dtype)


@_huber_loss.gradient
def _(F, g, input, target, reduction, delta, needs):
    bent = F.hardtanh(F.sub(input, target), -delta, delta)
    return _both(F, g, bent, _share(input, reduction), needs)


def _both(F: Any, g: Any, change: Any, share: float, needs: Sequence[bool]) -> tuple[Any, Any]:
    """The gradients of two operands whose difference the loss is of."""
    slope = F.mul(F.mul(g, F.scalar(share, g)), change)
    return slope, F.neg(slope) if needs[1] else None


def _share(input: Any, reduction: str) -> float:
    """How much of the loss's gradient each element has."""
    return 1 / max(math.prod(input.shape), 1) if reduction == "mean" else 1.0


@public(method=False)
def smooth_l1_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0
) -> Tensor:
    """d² / (2·`beta`) where d = abs(x - t) < `beta`, else d - `beta` / 2 (Girshick, 2015).

    The operands are broadcast and promoted; the result is the losses, their mean or their sum.

    Raises:
        ValueError: an unknown `reduction`.
        RuntimeError: `beta` is negative.
        NotImplementedError: the common dtype is not floating.

    >>> import flambeau as fb
    >>> fb.smooth_l1_loss(fb.tensor([0.5, 3.0]), fb.zeros(2), "none")
    tensor([0.1250, 2.5000])
    """
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss does not support negative values for beta, got {beta}")
    x, t = _alike("smooth_l1_loss", input, target, reduction)
    if beta == 0:
        return reduced((x - t).abs(), reduction)
    return _smooth_l1_loss.run(x, t, reduction, float(beta))


@public(method=False)
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0
) -> Tensor:
    """d² / 2 where d = abs(x - t) < `delta`, else `delta`·(d - `delta` / 2) (Huber, 1964).

    The operands are broadcast and promoted; the result is the losses, their mean or their sum.

    Raises:
        ValueError: an unknown `reduction`.
        RuntimeError: `delta` is not positive.
        NotImplementedError: the common dtype is not floating.

    >>> import flambeau as fb
    >>> fb.huber_loss(fb.tensor([0.5, 3.0]), fb.zeros(2), "none")
    tensor([0.1250, 2.5000])
    """
    if delta <= 0:
        raise RuntimeError(
            f"huber_loss does not support non-positive values for delta, got {delta}"
        )
    x, t = _alike("huber_loss", input, target, reduction)
    return _huber_loss.run(x, t, reduction, float(delta))
