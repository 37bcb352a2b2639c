"""Places in ascending sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau_numpy.silence import quiet

Array = np.ndarray[Any, Any]


@quiet
def searchsorted(edges: Array, x: Array, right: bool) -> Array:
    """The number of edges that stand before each value, by bisection; a nan stands last."""
    n = edges.shape[-1]
    low = np.zeros(x.shape, np.int64)
    high = low + n
    for _ in range(n.bit_length()):
        middle = (low + high) // 2
        place = np.minimum(middle, n - 1)
        at = edges[place] if edges.ndim == 1 else np.take_along_axis(edges, place, -1)
        before = ~(at > x) if right else ~(at >= x)
        before &= low < high
        low, high = np.where(before, middle + 1, low), np.where(before, high, middle)
    return low


KERNELS = {"searchsorted": searchsorted}
