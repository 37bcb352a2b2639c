"""Losses of classification that ask the right classes to win by a margin."""

from __future__ import annotations

import numpy as np

from flambeau_numpy.pointwise import Array
from flambeau_numpy.silence import quiet


def _reduced(loss: Array, reduction: str, rows: int, classes: int) -> Array:
    loss = loss / classes
    if reduction == "none":
        return loss
    return np.divide(loss.sum(), rows if reduction == "mean" else 1, dtype=loss.dtype)


@quiet
def multi_margin_loss(
    x: Array, target: Array, weight: Array | None, margin: float, reduction: str
) -> tuple[Array, Array]:
    """Excesses of all classes over the right one of each row, less the margin; and counts."""
    rows = np.arange(len(x))
    excess = x + (x.dtype.type(margin) - x[rows, target])[:, None]
    excess[~(excess > 0)] = 0
    excess[rows, target] = 0
    counts = (excess > 0).astype(np.int32)
    counts[rows, target] = -counts.sum(1)
    loss = excess.sum(1) if weight is None else excess.sum(1) * weight[target]
    return _reduced(loss, reduction, *x.shape), counts


@quiet
def multilabel_margin_loss(x: Array, target: Array, reduction: str) -> tuple[Array, Array]:
    """The same of several right classes in a row, those before the first -1."""
    loss, counts = np.zeros(len(x), x.dtype), np.zeros(x.shape, np.int32)
    for i, (row, labels) in enumerate(zip(x, target, strict=True)):
        ends = (labels < 0).nonzero()[0]
        right = labels[: ends[0]] if ends.size else labels
        excess = row + (1 - row[right])[:, None]
        excess[:, right] = 0
        excess[~(excess > 0)] = 0
        loss[i] = excess.sum()
        counts[i] = (excess > 0).sum(0)
        np.subtract.at(counts[i], right, (excess > 0).sum(1))
    return _reduced(loss, reduction, *x.shape), counts


KERNELS = {
    "multi_margin_loss": multi_margin_loss,
    "multilabel_margin_loss": multilabel_margin_loss,
}
