"""Cumulative sums and products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flambeau_numpy.casts import is_half, narrow, wide
from flambeau_numpy.pointwise import Array, row_major
from flambeau_numpy.silence import quiet


def _scan(ufunc: np.ufunc) -> Callable[[Array, int], Array]:
    @quiet
    def kernel(a: Array, dim: int) -> Array:
        if not a.ndim:
            return a.copy()
        if a.dtype.itemsize == 2 and is_half(a.dtype):
            return narrow(row_major(ufunc.accumulate(wide(a), dim)), a.dtype)
        return row_major(ufunc.accumulate(a, dim, a.dtype))

    return kernel


KERNELS = {"cumsum": _scan(np.add), "cumprod": _scan(np.multiply)}
