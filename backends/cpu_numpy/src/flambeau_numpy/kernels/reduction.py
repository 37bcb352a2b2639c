"""Reductions over dimensions.

Sums of float16 and bfloat16 are accumulated in float32. Large float32 and float64 sums over
trailing dimensions are products with a vector of ones, which BLAS vectorises and NumPy's pairwise
sum does not; rows are cut into short pieces first, so that rounding errors grow as in a pairwise
sum.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any

import numpy as np

from flambeau_numpy.allocator import empty
from flambeau_numpy.casts import FLOAT32, HALVES, is_half, narrow, wide
from flambeau_numpy.pointwise import row_major
from flambeau_numpy.silence import quiet, silent

Array = np.ndarray[Any, Any]

SMALL = 4096  # elements, below which one ufunc call is fastest
PIECE = 512  # longest run that is summed without pairwise grouping
sum_along: Any = np.add.reduce  # typed loosely: NumPy's stubs do not know keepdims by position
maximum_over: Any = np.maximum.reduce


@cache
def ones(count: int, dtype: np.dtype) -> Array:
    """A shared, read-only vector of ones."""
    made = np.ones(count, dtype)
    made.flags.writeable = False
    return made


def sum_rows(a: Array) -> Array:
    """Sums of the rows of a C-contiguous float32, float64 or complex matrix."""
    rows, columns = a.shape
    if columns <= PIECE:
        return a @ ones(columns, a.dtype)
    whole = columns - columns % PIECE
    parts = a[:, :whole].reshape(rows, -1, PIECE) if whole == columns else None
    if parts is None:
        if rows > 1:
            return sum_rows(np.ascontiguousarray(a[:, :whole])) + sum_along(a[:, whole:], 1)
        parts = a[0, :whole].reshape(1, -1, PIECE)
    sums = (parts.reshape(-1, PIECE) @ ones(PIECE, a.dtype)).reshape(rows, -1)
    total = sum_along(sums, 1)
    return total if whole == columns else total + sum_along(a[:, whole:], 1)


def sum_columns(a: Array) -> Array:
    """Sums of the columns of a matrix, long columns in pieces."""
    rows, columns = a.shape
    piece = 64
    if rows <= 2 * piece or a.dtype.kind not in "fc":
        return sum_along(a, 0)
    whole = rows - rows % piece
    sums = sum_columns(sum_along(a[:whole].reshape(-1, piece, columns), 1))
    return sums if whole == rows else sums + sum_along(a[whole:], 0)


def sum_over(a: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
    """Sum of `a` over `dims`, in its dtype."""
    keepdim = bool(keepdim)  # any number, where NumPy takes a C int
    if a.dtype.itemsize == 2 and is_half(a.dtype):
        return narrow(sum_along(wide(a), dims, FLOAT32, None, keepdim), a.dtype)
    if a.size < SMALL or a.dtype.kind not in "fc":
        return sum_along(a, dims, a.dtype, None, keepdim)
    if not a.flags.c_contiguous:
        return _sum_permuted(a, dims, keepdim)
    shape, rank = a.shape, a.ndim
    left = set(dims)
    first = rank
    while first and first - 1 in left:
        first -= 1
    rows, result = prod(shape[:first]), a
    if first < rank and prod(shape[first:]) > 1:
        columns = a.size // rows
        if columns < 16 or (columns > PIECE and columns % PIECE and rows > 1):
            return sum_along(a, dims, a.dtype, None, keepdim)
        result = sum_rows(a.reshape(rows, columns)).reshape(shape[:first])
    elif first < rank:
        result = a.reshape(shape[:first])
    lead = 0
    while lead < first and lead in left:
        lead += 1
    rest = tuple(d for d in range(lead, first) if d in left)
    if rest:
        result = sum_along(result, (*range(lead), *rest))
    elif lead:
        tail = result.shape[lead:]
        result = sum_columns(result.reshape(prod(shape[:lead]), -1)).reshape(tail)
    if keepdim:
        return result.reshape([1 if d in left else n for d, n in enumerate(shape)])
    return result if result is not a else a.copy()


def _sum_permuted(a: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
    # Dense memory in another order of dimensions is summed in the order of memory.
    order = sorted(range(a.ndim), key=lambda d: -a.strides[d])
    moved = a.transpose(order)
    if not moved.flags.c_contiguous:
        return sum_along(a, dims, a.dtype, None, keepdim)
    total = sum_over(moved, tuple(i for i, d in enumerate(order) if d in dims), True)
    back = [0] * a.ndim
    for place, d in enumerate(order):
        back[d] = place
    total = row_major(total.transpose(back))
    return total if keepdim else total.reshape([n for d, n in enumerate(a.shape) if d not in dims])


@quiet
def sum_kernel(a: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
    """`sum_over` in row-major memory."""
    return row_major(sum_over(a, dims, keepdim))


def _small_first(large: Callable[..., Any], reduce: Callable[..., Any]) -> Callable[..., Any]:
    # The common small float arrays skip the errstate of the general way.
    def kernel(a: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
        dtype = a.dtype
        if dtype.itemsize == 2 or a.size >= limit:
            return large(a, dims, keepdim)
        try:
            r = reduce(a, dims, dtype, None, bool(keepdim))  # any number, no C long
            return r if r.ndim < 2 or r.flags.c_contiguous else r.copy()
        except FloatingPointError:
            return large(a, dims, keepdim)

    limit = SMALL
    return silent(kernel)


def _accumulated(reduce: Callable[..., Any]) -> Callable[..., Any]:
    @quiet
    def kernel(a: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
        if a.dtype.itemsize == 2 and is_half(a.dtype):
            return narrow(row_major(reduce(wide(a), dims, FLOAT32, None, bool(keepdim))), a.dtype)
        return row_major(reduce(a, dims, a.dtype, None, bool(keepdim)))

    return kernel


def _reduced(reduce: Callable[..., Any]) -> Callable[..., Any]:
    def kernel(a: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
        if a.itemsize == 2 and a.dtype in halves:  # whose numbers NumPy compares one by one
            found = kernel(wider(a), dims, keepdim)
            return narrower(found, a.dtype) if found.dtype == single else found
        r = reduce(a, dims, None, None, bool(keepdim))
        return r if r.ndim < 2 or r.flags.c_contiguous else r.copy()

    halves, single, wider, narrower = HALVES, FLOAT32, wide, narrow
    return silent(kernel)


def _position(find: Callable[..., Any]) -> Callable[[Array, int, bool], Any]:
    def kernel(a: Array, dim: int, keepdim: bool) -> Any:
        if not a.ndim:
            return np.zeros((), np.int64)
        return find(wide(a), dim, keepdims=keepdim)

    return kernel


@quiet
def extremum(a: Array, dim: int, keepdim: bool, largest: bool) -> tuple[Any, Any]:
    """The extrema along `dim` and the places of the first of equals; NaN counts as the extremum."""
    reduce: Any = (np.maximum if largest else np.minimum).reduce
    x = wide(a)
    find = x.argmax if largest else x.argmin
    values, places = reduce(x, dim, None, None, bool(keepdim)), find(dim, keepdims=keepdim)
    return narrow(row_major(values), a.dtype), row_major(places)


def _count(a: Array, dims: tuple[int, ...]) -> int:
    return prod(a.shape[d] for d in dims)


@quiet
def mean(a: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
    """Sum over `dims` divided by the number of its terms (NaN if there is none)."""
    total = row_major(sum_over(wide(a), dims, keepdim))
    return np.asarray(np.true_divide(total, np.asarray(_count(a, dims), total.dtype)), a.dtype)


@quiet
def var(a: Array, dims: tuple[int, ...], correction: float, keepdim: bool) -> Any:
    """Σ|a - mean|² / max(0, count - correction): two passes, so large means cost no digits."""
    x = wide(a)
    count = _count(a, dims)
    real = x.real.dtype
    if not a.size:
        empty_sum = sum_along(x.real, dims, real, None, bool(keepdim))
        return np.full(empty_sum.shape, np.nan, real if a.dtype.kind == "c" else a.dtype)
    if a.size < SMALL and real == a.dtype:
        mean_of = np.true_divide(sum_along(x, dims, None, None, True), real.type(count))
        centred = np.asarray(x - mean_of)  # a number, if `x` is 0-d
        np.multiply(centred, centred, centred)
        total = sum_along(centred, dims, None, None, bool(keepdim))
        return row_major(np.true_divide(total, real.type(max(0.0, count - correction))))
    last = tuple(range(a.ndim - len(dims), a.ndim))
    if tuple(sorted(dims)) != last:
        order = (*(d for d in range(a.ndim) if d not in dims), *sorted(dims))
        x = np.ascontiguousarray(x.transpose(order))
    kept = x.shape[: a.ndim - len(dims)]
    total = _squares_about_mean(np.ascontiguousarray(x).reshape(prod(kept), count))
    divisor = max(0.0, count - correction)
    result = np.divide(total, np.asarray(divisor, total.dtype)).reshape(kept)
    if keepdim:
        result = result.reshape([1 if d in dims else n for d, n in enumerate(a.shape)])
    return result.astype(a.dtype) if a.dtype.kind != "c" and a.dtype != real else result


def _squares_about_mean(x: Array) -> Array:
    rows, columns = x.shape
    means = (sum_over(x, (1,), True) / x.dtype.type(columns)).astype(x.dtype)
    out = np.empty(rows, x.real.dtype)
    step = max(1, 65536 // columns)
    buffer = np.empty((min(step, rows), columns), x.dtype)
    for start in range(0, rows, step):
        piece = slice(start, start + step)
        d: Any = np.subtract(x[piece], means[piece], buffer[: min(step, rows - start)])
        if d.dtype.kind == "c":
            out[piece] = sum_along(d.real * d.real + d.imag * d.imag, 1)
        elif columns > 8 * PIECE:
            np.multiply(d, d, d)
            out[piece] = sum_over(d, (1,), False)
        else:
            np.einsum("ij,ij->i", d, d, out=out[piece])
    return out


@quiet
def nansum(a: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
    """Sum over `dims` of what is no NaN."""
    missing = np.isnan(a)
    return sum_kernel(np.where(missing, a.dtype.type(0), a) if missing.any() else a, dims, keepdim)


def count_nonzero(a: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
    """How many elements of `dims` are not zero."""
    if len(dims) == a.ndim and not keepdim:
        return np.asarray(np.count_nonzero(a), np.int64)
    some = a if a.dtype.kind == "b" else a != 0
    return row_major(sum_along(some, dims, np.int64, None, bool(keepdim)))


def equal(a: Array, b: Array) -> Array:
    """Whether all elements of two arrays of one shape are equal."""
    return np.asarray((a == b).all())


@quiet
def logsumexp(a: Array, dims: tuple[int, ...], keepdim: bool) -> np.ndarray:
    """log Σ exp(a), shifted by the maximum; in half precision each step is rounded."""
    if is_half(a.dtype) and a.size:
        return _logsumexp_of_halves(a, dims, keepdim)
    x = wide(a)
    if not a.size:
        total = sum_along(x, dims, x.dtype, None, bool(keepdim))
        return np.log(total).astype(a.dtype)
    top = maximum_over(x.real, dims, None, None, True)
    shift = np.where(np.isfinite(top), top, top.dtype.type(0))
    e = np.subtract(x, shift, empty(x.shape, x.dtype) if x.flags.c_contiguous else None)
    e = np.asarray(e)
    np.exp(e, e)
    result = row_major(np.log(sum_over(e, dims, True)) + shift)
    if not keepdim:
        result = result.reshape([n for d, n in enumerate(a.shape) if d not in dims])
    return result


def _logsumexp_of_halves(a: Array, dims: tuple[int, ...], keepdim: bool) -> np.ndarray:
    def rounded(x: Any) -> Any:
        return np.asarray(x).astype(a.dtype).astype(FLOAT32)

    x = wide(a)
    top = maximum_over(x, dims, None, None, True)
    shift = np.where(np.isinf(top), FLOAT32.type(0), top)
    e = rounded(np.exp(rounded(x - shift)))
    result = rounded(np.log(rounded(sum_over(e, dims, True)))) + shift
    if not keepdim:
        result = result.reshape([n for d, n in enumerate(a.shape) if d not in dims])
    return row_major(result).astype(a.dtype)


@quiet
def prod_of_others(a: Array, dims: tuple[int, ...]) -> Array:
    """The products of what is before each element, times those of what is after it."""
    order = [*[d for d in range(a.ndim) if d not in dims], *dims]
    turned = wide(a).transpose(order)
    rows = turned.reshape(*turned.shape[: a.ndim - len(dims)], prod(a.shape[d] for d in dims))
    before, after = np.ones_like(rows, order="C"), np.ones_like(rows, order="C")
    np.multiply.accumulate(rows[..., :-1], -1, out=before[..., 1:])
    np.multiply.accumulate(rows[..., :0:-1], -1, out=after[..., -2::-1])
    found = (before * after).reshape(turned.shape).transpose(np.argsort(order))
    return narrow(row_major(found), a.dtype)


KERNELS = {
    "sum": _small_first(sum_kernel, np.add.reduce),
    "prod": _accumulated(np.multiply.reduce),
    "prod_of_others": prod_of_others,
    "amax": _reduced(np.maximum.reduce),
    "amin": _reduced(np.minimum.reduce),
    "all": _reduced(np.logical_and.reduce),
    "any": _reduced(np.logical_or.reduce),
    "argmax": _position(np.ndarray.argmax),
    "argmin": _position(np.ndarray.argmin),
    "extremum": extremum,
    "mean": mean,
    "nansum": nansum,
    "count_nonzero": count_nonzero,
    "equal": equal,
    "var": var,
    "logsumexp": logsumexp,
}
