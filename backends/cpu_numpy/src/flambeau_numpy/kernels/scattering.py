"""Kernels that write by index with a reduction."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau_numpy.casts import is_half, narrow, wide
from flambeau_numpy.kernels.elementwise import contiguous
from flambeau_numpy.kernels.indexing import flat_places
from flambeau_numpy.silence import quiet

Array = np.ndarray[Any, Any]


@quiet
def scatter_extremum_(a: Array, dim: int, index: Array, src: Array, largest: bool) -> None:
    """The maximum or minimum of each element and the entries of `src` whose index names it."""
    if is_half(a.dtype):
        total = wide(a)
        scatter_extremum_(total, dim, index, wide(src), largest)
        a[...] = narrow(total, a.dtype)
        return
    whole = a if a.flags.c_contiguous else contiguous(a)
    target = whole.reshape(-1)
    places = flat_places(whole.shape, dim, index) if a.ndim and index.ndim else index
    (np.maximum if largest else np.minimum).at(target, places.reshape(-1), src.reshape(-1))
    if whole is not a:
        a[...] = whole


def scatter_extremum(a: Array, dim: int, index: Array, src: Array, largest: bool) -> Array:
    """A copy of `a` after `scatter_extremum_`."""
    out = contiguous(a)
    scatter_extremum_(out, dim, index, src, largest)
    return out


KERNELS = {"scatter_extremum": scatter_extremum, "scatter_extremum_": scatter_extremum_}
