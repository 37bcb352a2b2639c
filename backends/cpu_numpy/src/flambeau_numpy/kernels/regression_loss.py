"""Losses of regression: the squared error, and those that grow like the distance beyond a knee."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from flambeau_numpy.casts import wide
from flambeau_numpy.kernels.reduction import sum_over
from flambeau_numpy.pointwise import Array, blockwise
from flambeau_numpy.silence import quiet


@quiet
def mse_loss(a: Array, b: Array, reduction: str) -> Any:
    """(a - b)², its mean or its sum."""
    d = np.asarray(np.subtract(wide(a), wide(b)))
    np.multiply(d, d, d)
    return _reduced(d, reduction, a.dtype)


@quiet
def smooth_l1_loss(a: Array, b: Array, reduction: str, beta: float) -> Any:
    """d² / 2β of the distance d below β, d - β / 2 from there; its mean or its sum."""
    return _reduced(_bent(beta, beta)(wide(a), wide(b)), reduction, a.dtype)


@quiet
def huber_loss(a: Array, b: Array, reduction: str, delta: float) -> Any:
    """d² / 2 of the distance d below δ, δ (d - δ / 2) from there; its mean or its sum."""
    return _reduced(_bent(delta, 1.0)(wide(a), wide(b)), reduction, a.dtype)


@lru_cache(maxsize=64)  # programs have one knee, or a few
def _bent(knee: float, divisor: float) -> Callable[[Array, Array], Array]:
    def block(out: Array, a: Array, b: Array, near: Array, half: Array) -> None:
        np.subtract(a, b, out)
        np.abs(out, out)
        np.minimum(out, knee, out=near)
        np.multiply(near, 0.5, half)
        out -= half
        out *= near
        if divisor != 1:
            out /= divisor

    return blockwise(block, scratch=2)


def _reduced(losses: Array, reduction: str, dtype: np.dtype) -> Any:
    if reduction == "none":
        return losses.astype(dtype, copy=False)
    total = sum_over(losses, tuple(range(losses.ndim)), False)
    if reduction == "mean":
        total = total / np.asarray(losses.size, losses.dtype)
    return np.asarray(total, dtype)


KERNELS = {"mse_loss": mse_loss, "smooth_l1_loss": smooth_l1_loss, "huber_loss": huber_loss}
