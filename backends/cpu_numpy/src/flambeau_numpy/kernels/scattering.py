"""Kernels that write by index with a reduction."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau_numpy.casts import wide
from flambeau_numpy.kernels.indexing import own

Array = np.ndarray[Any, Any]


def scatter_extremum(a: Array, dim: int, index: Array, src: Array, largest: bool) -> Array:
    """The maximum or minimum of each element and the entries of `src` whose index names it."""
    out = np.array(wide(a))
    places: list[Any] = list(np.ogrid[tuple(slice(0, n) for n in index.shape)])
    places[dim] = own(index)
    (np.maximum if largest else np.minimum).at(out, tuple(places), wide(src))
    return np.asarray(out, a.dtype)


KERNELS = {"scatter_extremum": scatter_extremum}
