"""Padding with a constant."""

from __future__ import annotations

from flambeau_numpy.allocator import empty
from flambeau_numpy.pointwise import Array


def constant_pad_nd(a: Array, pad: tuple[tuple[int, int], ...], value: complex) -> Array:
    """`value` before and after each dimension, as often as `pad` says; negative numbers crop."""
    shape = tuple(n + before + after for n, (before, after) in zip(a.shape, pad, strict=True))
    out = empty(shape, a.dtype)
    if any(before > 0 or after > 0 for before, after in pad):
        out[...] = value
    inside = tuple(slice(max(p[0], 0), n - max(p[1], 0)) for n, p in zip(shape, pad, strict=True))
    kept = tuple(slice(max(-p[0], 0), n - max(-p[1], 0)) for n, p in zip(a.shape, pad, strict=True))
    out[inside] = a[kept]
    return out


KERNELS = {"constant_pad_nd": constant_pad_nd}
