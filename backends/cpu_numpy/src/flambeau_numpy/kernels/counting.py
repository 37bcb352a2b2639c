"""Places in ascending sequences, and places repeated."""

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


@quiet
def histogram(a: Array, bins: int, low: float, high: float) -> Array:
    """How many elements of a vector fall into each of `bins` equal parts of [low, high]."""
    inside = a[(a >= low) & (a <= high)]
    place = ((inside - low) / (high - low) * bins).astype(np.int64).clip(0, bins - 1)
    return np.bincount(place, minlength=bins).astype(a.dtype)


def repeat_places(counts: Array, total: int) -> Array:
    """Each place i as often as counts[i] says, `total` in all.

    Raises:
        ValueError: that is not what the counts add up to.
    """
    counts = counts.copy()  # for another thread may write to it while NumPy reads it twice
    if int(counts.sum()) != total:
        raise ValueError(f"counts that add up to {int(counts.sum())} make no {total} places")
    return np.arange(counts.size).repeat(counts)


def bincount(a: Array, size: int) -> Array:
    """How often each of `size` numbers occurs in a vector."""
    return np.bincount(a, minlength=size)


def one_hot(a: Array, classes: int) -> Array:
    """A one at the place of each number along a new last dimension."""
    out = np.zeros((*a.shape, classes), np.int64)
    np.put_along_axis(out, a[..., None], 1, -1)
    return out


KERNELS = {
    "searchsorted": searchsorted,
    "repeat_places": repeat_places,
    "histogram": histogram,
    "bincount": bincount,
    "one_hot": one_hot,
}
