"""Padding with entries of the array itself."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from flambeau_numpy.allocator import zeros
from flambeau_numpy.casts import is_half, narrow, wide
from flambeau_numpy.pointwise import Array
from flambeau_numpy.silence import quiet

Pairs = tuple[tuple[int, int], ...]


@lru_cache(maxsize=256)
def boundary_places(mode: str, size: int, before: int, after: int) -> Array:
    """Which entry of `size` stands at each place of the padded dimension."""
    wanted, last = np.arange(-before, size + after, dtype=np.int64), size - 1
    if mode == "reflect":
        return np.where(wanted < size, np.abs(wanted), 2 * last - wanted)
    if mode == "replicate":
        return np.clip(wanted, 0, last)
    start = max(-before, 0)
    left = max(size - start - max(-after, 0), 1)
    return start + (wanted - start) % left


def boundary_middle(size: int, before: int, after: int) -> tuple[int, int, int]:
    """From which place on how many entries stand in their order, and from which entry on.

    The place, the entry and the number; a dimension that is cropped to nothing has none, after all
    its places.
    """
    start = max(-before, 0)
    length = size - start - max(-after, 0)
    return (max(before, 0), start, length) if length > 0 else (size + before + after, 0, 0)


def boundary_pad_nd(a: Array, pad: Pairs, mode: str) -> Array:
    """More entries before and after each dimension, of `a` itself; negative numbers crop."""
    result = a
    for dim, pair in enumerate(pad):
        if any(pair):
            result = np.take(result, boundary_places(mode, a.shape[dim], *pair), dim)
    return result.copy() if result is a else result


@quiet
def boundary_pad_nd_backward(grad: Array, pad: Pairs, mode: str) -> Array:
    """The adjoint of `boundary_pad_nd`."""
    if is_half(grad.dtype):
        return narrow(boundary_pad_nd_backward(wide(grad), pad, mode), grad.dtype)
    result = grad
    for dim, (before, after) in enumerate(pad):
        if not (before or after):
            continue
        lines, size = np.moveaxis(result, dim, 0), grad.shape[dim] - before - after
        head, start, length = boundary_middle(size, before, after)
        read = boundary_places(mode, size, before, after)
        total = zeros((size, *lines.shape[1:]), grad.dtype)
        total[start : start + length] = lines[head : head + length]
        for i in (*range(head), *range(head + length, len(lines))):
            total[read[i]] += lines[i]
        result = np.moveaxis(total, 0, dim)
    return result.copy() if result is grad else np.ascontiguousarray(result)


KERNELS = {
    "boundary_pad_nd": boundary_pad_nd,
    "boundary_pad_nd_backward": boundary_pad_nd_backward,
}
