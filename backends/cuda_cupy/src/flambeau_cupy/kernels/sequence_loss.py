"""Connectionist temporal classification; halves are computed in float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau_cupy.device.array_module import Array, Kernel
from flambeau_cupy.device.launch import rows_for
from flambeau_cupy.dtypes import accumulator
from flambeau_cupy.kernels._operands import demand
from flambeau_cupy.layer import Layer

Lengths = tuple[int, ...]


def run(
    layer: Layer, log_probs: Array, targets: Array, inputs: Lengths, labels: Lengths, blank: int
) -> tuple[Array, Array, Array, tuple[Any, ...], tuple[Any, ...]]:
    """Losses, as they are and as computed, α, and what both kernels are given."""
    xp = layer.xp
    kind = log_probs.dtype
    steps, count, classes = log_probs.shape
    width = targets.shape[1]
    demand("ctc_loss", "targets", targets, (count, width))
    for what, some, most in (("input", inputs, steps), ("target", labels, width)):
        if len(some) != count or not all(0 <= n <= most for n in some):
            raise RuntimeError(
                f"ctc_loss: expected {count} {what}_lengths in [0, {most}], got {list(some)}"
            )
    if not 0 <= blank < classes:
        raise RuntimeError(f"ctc_loss: blank must be in [0, {classes}), got {blank}")
    lengths = [layer.placed(np.array(some, np.int64)) for some in (inputs, labels)]
    losses, exact = xp.empty((count,), kind), xp.empty((count,), accumulator(kind))
    alphas = xp.empty((steps, count, 2 * width + 1), accumulator(kind))
    given = layer.dense(log_probs), layer.dense(targets), *lengths, np.int64(blank)
    sizes = np.int64(count), np.int64(classes), np.int64(width)
    if count:
        grid = rows_for(count, 8 * width)
        layer.launched(kind, "ctc_forward", *grid, losses, exact, alphas, *given, *sizes)
    return losses, exact, alphas, given, sizes


def ctc_loss(
    layer: Layer,
    log_probs: Array,
    targets: Array,
    inputs: Lengths,
    labels: Lengths,
    blank: int,
    zero_infinity: bool,
) -> Array:
    return run(layer, log_probs, targets, inputs, labels, blank)[0]


def ctc_loss_backward(
    layer: Layer,
    grad: Array,
    log_probs: Array,
    targets: Array,
    inputs: Lengths,
    labels: Lengths,
    blank: int,
    zero_infinity: bool,
) -> Array:
    kind = log_probs.dtype
    _, exact, alphas, given, sizes = run(layer, log_probs, targets, inputs, labels, blank)
    demand("ctc_loss_backward", "grad", grad, log_probs.shape[1:2])
    out = layer.xp.empty(log_probs.shape, kind)
    if out.size:
        betas, shares = (layer.xp.empty((n, *alphas.shape[1:]), alphas.dtype) for n in (2, 1))
        grads = layer.dense(grad.astype(kind, copy=False))
        how = np.int32(zero_infinity), np.int64(log_probs.shape[0])
        grid = rows_for(log_probs.shape[1], max(8 * targets.shape[1], log_probs.shape[2]))
        layer.launched(
            *(kind, "ctc_backward", *grid, out, grads, betas, shares, exact, alphas),
            *(*given, *how, *sizes),
        )
    return out


KERNELS: dict[str, Kernel] = {"ctc_loss": ctc_loss, "ctc_loss_backward": ctc_loss_backward}
"""Functions of a layer and what the op of their name is given."""
