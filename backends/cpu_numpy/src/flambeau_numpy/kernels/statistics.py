"""Order-statistics kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau_numpy.casts import wide

Array = np.ndarray[Any, Any]


def median(a: Array, ignore_nan: bool) -> Array:
    """The lower median of a vector by partition: linear time, where sorting is not."""
    x = wide(a)
    if x.dtype.kind == "f" and (missing := np.isnan(x)).any():
        x = x[~missing] if ignore_nan else x[:0]
        if not x.size:
            return np.asarray(np.nan, a.dtype)
    place = (x.size - 1) // 2
    return np.asarray(np.partition(x, place)[place], a.dtype)


KERNELS = {"median": median}
