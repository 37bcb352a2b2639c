"""Cumulative sums and products, and the places of cumulative extrema."""

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


@quiet
def logcumsumexp(a: Array, dim: int) -> Array:
    """The running sum of exponentials, in float64."""
    if not a.ndim:
        return a.copy()
    sums = np.logaddexp.accumulate(a.astype(np.float64), dim)
    return row_major(sums.astype(a.dtype, copy=False))


@quiet
def running_place(a: Array, dim: int, largest: bool) -> Array:
    """Where the extreme element so far is: the last of equal ones, the last NaN after one."""
    a = wide(a)
    extreme = (np.maximum if largest else np.minimum).accumulate(a, dim)
    line = [1] * a.ndim
    line[dim] = -1
    here = np.where((a == extreme) | (a != a), np.arange(a.shape[dim]).reshape(line), 0)
    return row_major(np.maximum.accumulate(here, dim))


KERNELS = {
    "cumsum": _scan(np.add),
    "cumprod": _scan(np.multiply),
    "logcumsumexp": logcumsumexp,
    "running_place": running_place,
}
