"""Losses over classes.  Targets are in range or `ignore_index`."""

from __future__ import annotations

import numpy as np

from flambeau_numpy.allocator import empty
from flambeau_numpy.casts import is_half, narrow, wide
from flambeau_numpy.kernels.activation import log_softmax
from flambeau_numpy.kernels.indexing import own
from flambeau_numpy.pointwise import Array
from flambeau_numpy.silence import quiet


def _pick(log_probs: Array, target: Array, ignore_index: int) -> tuple[Array, Array, Array]:
    """Rows that count, their classes, and the values at these places, negated."""
    if (target != ignore_index).all():
        rows, classes = np.arange(target.size), own(target)
    else:
        rows = np.flatnonzero(target != ignore_index)
        classes = target[rows]
    return rows, classes, -log_probs[rows, classes]


@quiet
def nll_loss(
    log_probs: Array, target: Array, weight: Array | None, reduction: str, ignore_index: int
) -> tuple[Array, Array]:
    """-weight[t]·log_probs[i, t] of each row i, or the weighted mean or sum; the sum of weights.

    Rows whose target is `ignore_index` give 0 and have no weight.
    """
    dtype = log_probs.dtype
    table, classes = wide(log_probs).reshape(-1, log_probs.shape[-1]), target.reshape(-1)
    rows, chosen, values = _pick(table, classes, ignore_index)
    if weight is None:
        total_weight = table.dtype.type(rows.size)
    else:
        factors = wide(weight)[chosen]
        values = values * factors
        total_weight = np.add.reduce(factors)
    if reduction == "none":
        loss = np.zeros(classes.size, table.dtype)
        loss[rows] = values
        loss = loss.reshape(target.shape)
        total_weight = table.dtype.type(0)
    else:
        loss = np.add.reduce(values)
        if reduction == "mean":
            loss = loss / total_weight
    return np.asarray(loss, dtype), np.asarray(total_weight, dtype)


@quiet
def nll_loss_backward(
    grad: Array,
    log_probs_shape: tuple[int, ...],
    target: Array,
    weight: Array | None,
    reduction: str,
    ignore_index: int,
    total_weight: Array,
) -> Array:
    """-grad·weight[t] at the place of each target, divided by `total_weight` for the mean."""
    result = np.zeros(log_probs_shape, grad.dtype)
    out = result.reshape(target.size, log_probs_shape[-1])
    classes = target.reshape(-1)
    rows = np.flatnonzero(classes != ignore_index)
    chosen = classes[rows]
    share = -wide(grad)
    if reduction == "none":
        share = share.reshape(-1)[rows]
    elif reduction == "mean":
        share = share / wide(total_weight)
    out[rows, chosen] = share if weight is None else share * wide(weight)[chosen]
    return result


@quiet
def cross_entropy(x: Array, target: Array, ignore_index: int) -> tuple[Array, Array, Array]:
    """Mean of -log softmax(x)[target] over targets that count; log-probabilities; their number."""
    log_probs = log_softmax(x, x.ndim - 1)
    loss, count = nll_loss(log_probs, target, None, "mean", ignore_index)
    return loss, log_probs, count


@quiet
def cross_entropy_backward(
    grad: Array, log_probs: Array, target: Array, ignore_index: int, count: Array
) -> Array:
    """grad / count · (softmax - one_hot(target)), 0 in ignored rows."""
    if is_half(log_probs.dtype):
        wider = cross_entropy_backward(
            wide(grad), wide(log_probs), target, ignore_index, wide(count)
        )
        return narrow(wider, log_probs.dtype)
    out = np.exp(log_probs, empty(log_probs.shape, log_probs.dtype))
    table, classes = out.reshape(-1, out.shape[-1]), own(target.reshape(-1))
    rows = np.arange(classes.size)
    kept = classes != ignore_index
    share = np.asarray(grad / count, out.dtype)
    if kept.all():
        table[rows, classes] -= 1
        out *= share
    else:
        table[rows[kept], classes[kept]] -= 1
        out *= share
        table[~kept] = 0
    return out


KERNELS = {
    "nll_loss": nll_loss,
    "nll_loss_backward": nll_loss_backward,
    "cross_entropy": cross_entropy,
    "cross_entropy_backward": cross_entropy_backward,
}
