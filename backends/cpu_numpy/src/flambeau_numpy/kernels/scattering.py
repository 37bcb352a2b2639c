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
    _combine(np.maximum if largest else np.minimum, a, dim, index, src)


def _combine(ufunc: np.ufunc, a: Array, dim: int, index: Array, src: Array) -> None:
    whole = a if a.flags.c_contiguous else contiguous(a)
    target = whole.reshape(-1)
    places = flat_places(whole.shape, dim, index) if a.ndim and index.ndim else index
    ufunc.at(target, places.reshape(-1), src.reshape(-1))
    if whole is not a:
        a[...] = whole


@quiet
def scatter_product_(a: Array, dim: int, index: Array, src: Array) -> None:
    """Each element times the entries of `src` whose index names it, in their order."""
    _combine(np.multiply, a, dim, index, src)


def masked_scatter_(a: Array, mask: Array, src: Array) -> None:
    """The elements where `mask` holds become those of `src`, of which there are enough."""
    a[mask] = src.reshape(-1)[: np.count_nonzero(mask)]


def scatter_extremum(a: Array, dim: int, index: Array, src: Array, largest: bool) -> Array:
    """A copy of `a` after `scatter_extremum_`."""
    out = contiguous(a)
    scatter_extremum_(out, dim, index, src, largest)
    return out


KERNELS = {
    "scatter_extremum": scatter_extremum,
    "scatter_extremum_": scatter_extremum_,
    "scatter_product_": scatter_product_,
    "masked_scatter_": masked_scatter_,
}
