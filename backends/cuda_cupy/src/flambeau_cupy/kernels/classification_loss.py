"""Losses over classes.  Targets are in range or `ignore_index`."""

from __future__ import annotations

import numpy as np

from flambeau_cupy.device.array_module import Array, Kernel
from flambeau_cupy.device.launch import blocks_for
from flambeau_cupy.kernels._operands import demand
from flambeau_cupy.kernels.activation import log_softmax
from flambeau_cupy.layer import Layer


def nll_loss(
    layer: Layer,
    log_probs: Array,
    target: Array,
    weight: Array | None,
    reduction: str,
    ignore_index: int,
) -> tuple[Array, Array]:
    xp = layer.xp
    kind, classes = log_probs.dtype, log_probs.shape[-1]
    if target.size * classes != log_probs.size:
        demand("nll_loss", "target", target, log_probs.shape[:-1])
    demand("nll_loss", "weight", weight, (classes,))
    table, target = layer.dense(log_probs), layer.dense(target)
    factors = None if weight is None else layer.dense(weight.astype(kind, copy=False))
    given = table, target, factors, np.int64(ignore_index)
    sizes = np.int64(target.size), np.int64(classes)
    if reduction == "none":
        loss = xp.empty(target.shape, kind)
        if target.size:
            layer.launched(kind, "nll_rows", *blocks_for(target.size, 1), loss, *given, *sizes)
        return loss, xp.zeros((), kind)
    loss, total = xp.empty((), kind), xp.empty((), kind)
    mean = np.int32(reduction == "mean")
    layer.launched(kind, "nll_total", 1, 1024, loss, total, *given, mean, *sizes)
    return loss, total


def nll_loss_backward(
    layer: Layer,
    grad: Array,
    shape: tuple[int, ...],
    target: Array,
    weight: Array | None,
    reduction: str,
    ignore_index: int,
    total_weight: Array,
) -> Array:
    kind = grad.dtype
    out = layer.xp.empty(shape, kind)
    if out.size:
        factors = None if weight is None else layer.dense(weight.astype(kind, copy=False))
        divisor = total_weight.astype(kind, copy=False) if reduction == "mean" else None
        layer.launched(
            *(kind, "nll_backward", *blocks_for(out.size), out, layer.dense(grad)),
            *(np.int64(reduction == "none"), divisor, layer.dense(target), factors),
            *(np.int64(ignore_index), np.int64(target.size), np.int64(shape[-1])),
        )
    return out


def cross_entropy(
    layer: Layer, x: Array, target: Array, ignore_index: int
) -> tuple[Array, Array, Array]:
    log_probs = log_softmax(layer, x, x.ndim - 1)
    loss, count = nll_loss(layer, log_probs, target, None, "mean", ignore_index)
    return loss, log_probs, count


def cross_entropy_backward(
    layer: Layer, grad: Array, log_probs: Array, target: Array, ignore_index: int, count: Array
) -> Array:
    kind = log_probs.dtype
    out = layer.xp.empty(log_probs.shape, kind)
    if out.size:
        scalars = (a.astype(kind, copy=False) for a in (grad, count))
        layer.launched(
            *(kind, "cross_entropy_backward", *blocks_for(out.size), out, *scalars),
            *(layer.dense(log_probs), layer.dense(target), np.int64(ignore_index)),
            *(np.int64(target.size), np.int64(log_probs.shape[-1])),
        )
    return out


KERNELS: dict[str, Kernel] = {
    "nll_loss": nll_loss,
    "nll_loss_backward": nll_loss_backward,
    "cross_entropy": cross_entropy,
    "cross_entropy_backward": cross_entropy_backward,
}
"""Functions of a layer and what the op of their name is given."""
