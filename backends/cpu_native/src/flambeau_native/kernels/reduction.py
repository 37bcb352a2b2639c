"""Sums, means, products, extrema and variances of row-major arrays.

Sums of short runs are taken in the dtype and added up in float64.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flambeau_native.extension import native
from flambeau_native.kernels._common import (
    BOOL,
    INT32,
    INT64,
    Array,
    Kernel,
    compiled,
    form,
    halves_by,
    otherwise,
    prepared,
)

Dims = tuple[int, ...]


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


def reduction(
    name: str, function: str = "", mean: bool = False, further: dict[np.dtype, Any] | None = None
) -> Kernel:
    """The kernel of a reduction: the compiled `function` where it applies, else that of NumPy."""
    elsewhere = halves_by(lambda: kernel, otherwise(name))
    find = {**compiled(function or name), **(further or {})}.get
    divides = (function or name) == "sum"

    def prepare(a: Array, dims: Dims, keepdim: bool) -> object:
        run, folded = find(a.dtype), _folded(a.shape, dims, keepdim)
        if run is None or not a.size or folded is None:
            return None
        left, *sizes = folded
        if divides and a.dtype != INT64:
            sizes.append(folded[2] if mean else 1)
        return run, (form(left, a.dtype),), tuple(sizes)

    def general(a: Array, dims: Dims, keepdim: bool) -> Any:
        if find(a.dtype) is not None and a.size:
            rank = a.ndim
            if not a.flags.c_contiguous:
                # In the order of memory: W.t() over its rows has the bits of W over its columns.
                order = sorted(range(rank), key=a.strides.__getitem__, reverse=True)
                moved = a.transpose(order)
                if not moved.flags.c_contiguous:
                    return elsewhere(a, dims, keepdim)
                places = tuple([i for i, d in enumerate(order) if d in dims])
                back = [order.index(d) for d in range(rank)]
                found = np.asarray(kernel(moved, places, True).transpose(back), order="C")
                left = [n for d, n in enumerate(a.shape) if d not in dims]
                return found if keepdim else found.reshape(left)
            of_channels = divides and not mean and rank > 2 and _is_of_channels(dims, rank)
            if of_channels:
                of_images = kernel(a, (0,), False)
                found = kernel(of_images, tuple(range(1, rank - 1)), False)
                return found.reshape([1, -1, *[1] * (rank - 2)]) if keepdim else found
        return elsewhere(a, dims, keepdim)

    kernel = prepared(name, "ass", prepare, general)
    return kernel


def _make_var() -> Kernel:
    general, find = halves_by(lambda: var, otherwise("var")), compiled("var").get

    def prepare(a: Array, dims: Dims, correction: float, keepdim: bool) -> object:
        run, kept = find(a.dtype), a.ndim - len(dims)
        if run is None or not a.size or min(dims, default=0) < kept:
            return None
        left = a.shape[:kept]
        count, rows = prod(a.shape[kept:]), prod(left)
        out = (*left, *[1] * len(dims)) if keepdim else left
        return run, (form(out, a.dtype),), (rows, count, float(max(0, count - correction)))

    var = prepared("var", "asss", prepare, general)
    return var


def _make_extreme(name: str) -> Kernel:
    find = compiled(name, INT32, INT64, BOOL).get

    def prepare(a: Array, dims: Dims, keepdim: bool) -> object:
        run, folded = find(a.dtype), _folded(a.shape, dims, keepdim)
        if run is None or not a.size or folded is None:
            return None
        left, *sizes = folded
        return run, (form(left, a.dtype),), tuple(sizes)

    def general(a: Array, dims: Dims, keepdim: bool) -> Any:
        last = max(dims, default=0)
        if not 0 < len(dims) < last + 1 <= a.ndim or find(a.dtype) is None or not a.size:
            return elsewhere(a, dims, keepdim)
        if not a.flags.c_contiguous:
            return elsewhere(a, dims, keepdim)
        first = last  # of the last neighbours, which are reduced before the others
        while first - 1 in dims:
            first -= 1
        if last + 1 - first == len(dims):
            return elsewhere(a, dims, keepdim)
        found = kernel(a, tuple(range(first, last + 1)), keepdim)
        return kernel(found, tuple([d for d in dims if d < first]), keepdim)

    elsewhere = otherwise(name)
    kernel = prepared(name, "ass", prepare, general)
    return kernel


def _ends(run: Any, a: Array, dim: int, keepdim: bool) -> tuple[Any, ...] | None:
    """What a kernel makes that tells the extrema along a dimension and their places."""
    folded = _folded(a.shape, (dim,), keepdim) if a.ndim else None
    if run is None or not a.size or folded is None or folded[2] >= 1 << 31:
        return None
    left, *sizes = folded
    return run, (form(left, a.dtype), form(left, INT64)), tuple(sizes)


def _make_extremum() -> Kernel:
    greatest, least = (compiled(f"{name}_at", INT32, INT64, BOOL) for name in ("amax", "amin"))

    def prepare(a: Array, dim: int, keepdim: bool, largest: bool) -> object:
        return _ends((greatest if largest else least).get(a.dtype), a, dim, keepdim)

    return prepared("extremum", "asss", prepare, otherwise("extremum"))


def _make_place(name: str) -> Kernel:
    find = compiled(f"a{name}_at", INT32, INT64, BOOL).get

    def prepare(a: Array, dim: int, keepdim: bool) -> object:
        both = _ends(find(a.dtype), a, dim, keepdim)
        return both and (*both, (1,))

    return prepared(f"arg{name}", "ass", prepare, otherwise(f"arg{name}"))


def _make_count() -> Kernel:
    find = compiled("count_nonzero", INT32, INT64, BOOL).get

    def prepare(a: Array, dims: Dims, keepdim: bool) -> object:
        run, folded = find(a.dtype), _folded(a.shape, dims, keepdim)
        if run is None or not a.size or folded is None:
            return None
        left, *sizes = folded
        return run, (form(left, INT64),), tuple(sizes)

    return prepared("count_nonzero", "ass", prepare, otherwise("count_nonzero"))


def _make_prod_of_others() -> Kernel:
    find = compiled("prod_of_others").get

    def prepare(a: Array, dims: Dims) -> object:
        run, folded = find(a.dtype), _folded(a.shape, dims, True)
        if run is None or not a.size or folded is None:
            return None
        return run, (form(a.shape, a.dtype),), folded[1:]

    return prepared("prod_of_others", "as", prepare, otherwise("prod_of_others"))


def _make_equal() -> Kernel:
    floats, of_bytes = compiled("equal"), getattr(native, "equal_b8", None)

    def prepare(a: Array, b: Array) -> object:
        if a.dtype != b.dtype or a.shape != b.shape or not a.size:
            return None
        run = floats.get(a.dtype)
        if run is None and of_bytes is not None and a.dtype.kind in "iu":
            return of_bytes, (form((), BOOL),), (a.nbytes,)
        return run and (run, (form((), BOOL),), (a.size,))

    return prepared("equal", "aa", prepare, otherwise("equal"))


def _make_truth(name: str) -> Kernel:
    find = compiled(name, BOOL).get

    def prepare(a: Array, dims: Dims, keepdim: bool) -> object:
        run, folded = find(a.dtype), _folded(a.shape, dims, keepdim)
        if run is None or not a.size or folded is None:
            return None
        left, *sizes = folded
        return run, (form(left, BOOL),), tuple(sizes)

    return prepared(name, "ass", prepare, otherwise(name))


KERNELS: dict[str, Kernel] = {
    "amin": _make_extreme("amin"),
    "amax": _make_extreme("amax"),
    "extremum": _make_extremum(),
    "argmax": _make_place("max"),
    "argmin": _make_place("min"),
    "all": _make_truth("all"),
    "any": _make_truth("any"),
    "sum": reduction("sum", further={INT64: native.sum_i64} if native else None),
    "nansum": reduction("nansum"),
    "count_nonzero": _make_count(),
    "equal": _make_equal(),
    "mean": reduction("mean", "sum", mean=True),
    "prod": reduction("prod", further={INT64: native.prod_i64} if native else None),
    "prod_of_others": _make_prod_of_others(),
    "var": _make_var(),
}
