"""Losses of regression: the squared error."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau_numpy.casts import wide
from flambeau_numpy.kernels.reduction import sum_over
from flambeau_numpy.pointwise import Array
from flambeau_numpy.silence import quiet


@quiet
def mse_loss(a: Array, b: Array, reduction: str) -> Any:
    """(a - b)², its mean or its sum."""
    d = np.asarray(np.subtract(wide(a), wide(b)))
    np.multiply(d, d, d)
    if reduction == "none":
        return d.astype(a.dtype, copy=False)
    dims = tuple(range(d.ndim))
    total = sum_over(d, dims, False)
    if reduction == "mean":
        total = total / np.asarray(d.size, d.dtype)
    return np.asarray(total, a.dtype)


KERNELS = {"mse_loss": mse_loss}
