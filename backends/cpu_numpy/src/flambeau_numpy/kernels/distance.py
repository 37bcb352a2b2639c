"""Distances of every row of one matrix from every row of another; the op explains them."""

from __future__ import annotations

import numpy as np

from flambeau_numpy.pointwise import Array
from flambeau_numpy.silence import quiet

_MANY = 1 << 22  # differences that are there together


def _blocks(x1: Array, x2: Array) -> list[slice]:
    """Runs of rows of `x1` that have no more differences."""
    each = max(1, x1.size // max(x1.shape[-2], 1) * x2.shape[-2])
    step = max(1, _MANY // each)
    return [slice(start, start + step) for start in range(0, x1.shape[-2], step)]


@quiet
def cdist(x1: Array, x2: Array, p: float) -> Array:
    """The norm, of order 1, 2 or infinity, of each difference."""
    out = np.empty((*x1.shape[:-1], x2.shape[-2]), x1.dtype)
    for rows in _blocks(x1, x2):
        difference = x1[..., rows, None, :] - x2[..., None, :, :]
        if p == 2:
            found = np.sqrt(np.square(difference).sum(-1))
        else:
            found = np.abs(difference)
            found = found.sum(-1) if p == 1 else found.max(-1, initial=0)
        out[..., rows, :] = found
    return out


@quiet
def cdist_backward(grad: Array, x1: Array, x2: Array, result: Array, p: float) -> Array:
    """The gradient of the distances in `x1`."""
    out = np.empty(x1.shape, x1.dtype)
    for rows in _blocks(x1, x2):
        difference = x1[..., rows, None, :] - x2[..., None, :, :]
        share = grad[..., rows, :]
        if p == 2:
            length = result[..., rows, :]
            share, slope = np.where(length == 0, 0, share / length), difference
        else:
            slope = np.sign(np.where(np.isnan(difference), 0, difference))
            if p != 1:
                slope[np.abs(difference) != result[..., rows, :, None]] = 0
        out[..., rows, :] = (share[..., None] * slope).sum(-2)
    return out


KERNELS = {"cdist": cdist, "cdist_backward": cdist_backward}
