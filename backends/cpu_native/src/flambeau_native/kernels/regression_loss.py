"""The squared error in one pass, and losses that grow like the distance beyond a knee."""

from __future__ import annotations

import numpy as np

from flambeau_native.kernels import reduction as _reduction
from flambeau_native.kernels._common import (
    FLOAT32,
    FLOAT64,
    Array,
    Kernel,
    alike,
    compiled,
    dense,
    made_like,
    otherwise,
)


def _make_mse_loss() -> Kernel:
    general, find = otherwise("mse_loss"), compiled("distance").get

    def mse_loss(a: Array, b: Array, reduction: str) -> np.ndarray:
        run = find(a.dtype)
        if run is None or not a.size or reduction == "none" or a.shape != b.shape:
            return general(a, b, reduction)
        if not alike(a, b):
            if b.dtype != a.dtype:
                return general(a, b, reduction)
            a, b = dense(a), dense(b)
        out = np.empty((), a.dtype)
        run(out, a, b, a.size, a.size if reduction == "mean" else 1)
        return out

    return mse_loss


def _make_bent(name: str, divides: bool) -> Kernel:
    """Of 16-bit floats the losses are added before they are rounded: not by these functions."""
    general, find = otherwise(name), compiled("bent").get

    def loss(a: Array, b: Array, reduction: str, knee: float) -> np.ndarray:
        run = find(a.dtype) if a.dtype in (FLOAT32, FLOAT64) else None
        if run is None or not a.size or a.shape != b.shape or not alike(a, b):
            return general(a, b, reduction, knee)
        out = made_like(a)
        run(out, a, b, a.size, knee, knee if divides else 1.0)
        if reduction == "none":
            return out
        return _reduction.KERNELS[reduction](out, tuple(range(a.ndim)), False)

    return loss


KERNELS: dict[str, Kernel] = {
    "mse_loss": _make_mse_loss(),
    "smooth_l1_loss": _make_bent("smooth_l1_loss", divides=True),
    "huber_loss": _make_bent("huber_loss", divides=False),
}
