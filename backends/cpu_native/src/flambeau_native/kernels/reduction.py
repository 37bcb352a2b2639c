"""Sums, means, products, extrema and variances of row-major arrays.

Sums of short runs are taken in the dtype and added up in float64.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from flambeau_native.extension import native
from flambeau_native.kernels._common import INT64, Array, Kernel, compiled, halves_by, otherwise

Dims = tuple[int, ...]


@lru_cache(maxsize=1024)  # the gradients of a network are summed over the same few
def _folded(shape: Dims, dims: Dims, keepdim: bool) -> tuple[Dims, int, int, int] | None:
    """The shape of a result, and the sizes before, of and after `dims`.

    None where they are no neighbours, where there are none, and where one is too many.
    """
    rank = len(shape)
    if rank and (not dims or max(dims) >= rank):
        return None
    if len(dims) >= rank:
        return (1,) * rank if keepdim else (), 1, prod(shape), 1
    first, end = min(dims), max(dims) + 1
    if end - first != len(dims):
        return None
    kept = (1,) * len(dims) if keepdim else ()
    left = (*shape[:first], *kept, *shape[end:])
    return left, prod(shape[:first]), prod(shape[first:end]), prod(shape[end:])


def _is_of_channels(dims: Dims, rank: int) -> bool:
    """Whether the second dimension alone is left of several images: that of a bias's gradient."""
    return sorted(dims) == [0, *range(2, rank)]


def reduction(name: str, function: str = "", mean: bool = False) -> Kernel:
    """The kernel of a reduction: the compiled `function` where it applies, else that of NumPy."""
    general = halves_by(lambda: kernel, otherwise(name))
    find = compiled(function or name).get
    made = np.empty
    smallest = 512 if name in ("sum", "prod") else 0  # elements, from which on a ufunc is slower

    def kernel(a: Array, dims: Dims, keepdim: bool) -> Any:
        size, shape = a.size, a.shape
        if size < smallest and len(dims) < len(shape):
            return general(a, dims, keepdim)
        dtype = a.dtype
        run = find(dtype)
        if run is None or not size or not a.flags.c_contiguous:
            if run is not None and size and a.flags.f_contiguous:
                # In the order of memory: W.t() over its rows has the bits of W over its columns.
                last = a.ndim - 1
                flipped = kernel(a.T, tuple(sorted(last - d for d in dims)), keepdim)
                return np.asarray(flipped.T, order="C")
            return general(a, dims, keepdim)
        folded = _folded(shape, dims, keepdim)
        if folded is None:
            if divides and not mean and _is_of_channels(dims, len(shape)):
                of_images = kernel(a, (0,), False)
                found = kernel(of_images, tuple(range(1, of_images.ndim)), False)
                return found.reshape([1, -1, *[1] * (len(shape) - 2)]) if keepdim else found
            return general(a, dims, keepdim)
        left, before, count, after = folded
        out = made(left, dtype)
        if divides:
            run(out, a, before, count, after, count if mean else 1.0)
        else:
            run(out, a, before, count, after)
        return out

    divides = (function or name) == "sum"
    return kernel


def _make_var() -> Kernel:
    general, find = halves_by(lambda: var, otherwise("var")), compiled("var").get

    def var(a: Array, dims: Dims, correction: float, keepdim: bool) -> object:
        run, rank = find(a.dtype), a.ndim
        kept = rank - len(dims)
        if run is None or not a.size or not a.flags.c_contiguous or min(dims, default=0) < kept:
            return general(a, dims, correction, keepdim)
        left = a.shape[:kept]
        count = a.size // prod(left)
        out = np.empty((*left, *[1] * len(dims)) if keepdim else left, a.dtype)
        if (divisor := count - correction) <= 0:
            return general(a, dims, correction, keepdim)
        run(out, a, out.size, count, divisor)
        return out

    return var


def _make_extreme(name: str) -> Kernel:
    """The least or greatest of a whole array of indices, whose range every op on them checks."""
    general, run = otherwise(name), getattr(native, f"{name}_i64", None)

    def extreme(a: Array, dims: Dims, keepdim: bool) -> object:
        if a.size < 1024 or run is None:
            return general(a, dims, keepdim)
        if a.dtype != INT64 or len(dims) != a.ndim or not a.flags.c_contiguous:
            return general(a, dims, keepdim)
        out = np.empty((1,) * a.ndim if keepdim else (), INT64)
        run(out, a, a.size)
        return out

    return extreme


KERNELS: dict[str, Kernel] = {
    "amin": _make_extreme("amin"),
    "amax": _make_extreme("amax"),
    "sum": reduction("sum"),
    "mean": reduction("mean", "sum", mean=True),
    "prod": reduction("prod"),
    "var": _make_var(),
}
