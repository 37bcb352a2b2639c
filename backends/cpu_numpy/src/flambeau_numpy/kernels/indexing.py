"""Reading and writing by index, and sorting.  Indices arrive checked, non-negative and int64.

Another thread may write to an index all the while.  `take` compares each entry as it reads it; what
checks first and reads again without the interpreter's lock, as advanced indexing does, or does not
check at all, as SciPy, is given a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array

from flambeau_numpy.casts import copy_order, is_half, wide
from flambeau_numpy.dtypes import BFLOAT16
from flambeau_numpy.kernels.elementwise import clone, contiguous
from flambeau_numpy.silence import quiet

Array = np.ndarray[Any, Any]
Indices = Sequence[Array | None]
_ALL = slice(None)
SPARSE = 1024  # elements from which a sparse matrix accumulates faster than np.add.at
_LOCKED = 500  # elements up to which NumPy keeps the interpreter's lock


def index(a: Array, indices: Indices) -> Array:
    """NumPy's advanced indexing; None stands for a full slice."""
    if len(indices) == 1 and (rows := indices[0]) is not None and rows.ndim:
        r = a.take(rows, 0)
    else:
        r = a[_key(indices)]
        if type(r) is not np.ndarray:
            return np.asarray(r)
    if r.ndim > 1 and not a.flags.c_contiguous:
        return _as_read(r, a, indices)
    return r if r.base is None else r.copy()


def own(index: Array) -> Array:
    """`index`, or where NumPy gives up its lock a copy of it."""
    return index if index.size <= _LOCKED else index.copy()


def _key(indices: Indices) -> tuple[Any, ...]:
    """What advanced indexing takes: arrays that nobody writes to."""
    given = [_ALL if i is None else i for i in indices]
    if prod(i.size for i in indices if i is not None) > _LOCKED:
        given = [i if i is _ALL else i.copy() for i in given]  # type: ignore[union-attr]
    return tuple(given)


def sparse_rows(values: Array, columns: Array, ends: Array, shape: tuple[int, int]) -> csr_array:
    """A sparse matrix, whose `columns` are compared with its width.

    Raises:
        ValueError: one is outside.
    """
    found = csr_array((values, columns.copy(), ends), shape=shape)
    found.check_format(full_check=True)
    return found


def _as_read(r: Array, a: Array, indices: Indices) -> Array:
    """`r`, the elements of `a` at `indices`, in the order in memory in which they are read.

    The dimensions of `a` that are left keep their order; those of the indices stand where they are.
    """
    given = [d for d, i in enumerate(indices) if i is not None]
    places = np.broadcast_arrays(*(indices[d] for d in given))  # type: ignore[arg-type]
    first = given[0] if given == list(range(given[0], given[-1] + 1)) else 0
    rest = [s for d, s in enumerate(a.strides) if d not in given]
    after = (1,) * (len(rest) - first)
    read = [(*rest[:first], *(0,) * places[0].ndim, *rest[first:])]
    for p in places:
        p = p.reshape((1,) * first + p.shape + after)
        moves = [s if m == n else 0 for s, m, n in zip(p.strides, p.shape, r.shape, strict=True)]
        read.append(tuple(moves))
    order = _outermost_first(r.shape, *read)
    if order == list(range(r.ndim)):
        return r if r.base is None and r.flags.c_contiguous else r.copy("C")
    turned = np.ascontiguousarray(r.transpose(order))
    return turned.transpose(np.argsort(order))


def _outermost_first(shape: tuple[int, ...], *strides: tuple[int, ...]) -> list[int]:
    """The dimensions from slow to fast: the first operand that moves along two of them decides."""

    def before(i: int, j: int) -> int:
        """1 if j is to be outside of i, -1 if i outside of j, 0 if no operand says."""
        for own in strides:
            if own[i] and own[j]:
                if own[i] != own[j]:
                    return 1 if own[i] < own[j] else -1
                if shape[i] < shape[j]:
                    return 1
        return 0

    order = list(range(len(shape)))
    for k in range(len(order) - 2, -1, -1):
        place = k
        for other in range(k + 1, len(order)):
            decided = before(order[place], order[other])
            if decided > 0:
                order[place], order[other] = order[other], order[place]
                place = other
            elif decided < 0:
                break
    return order


@quiet
def index_put_(a: Array, indices: Indices, values: Array, accumulate: bool) -> None:
    """Write `values` into the places of `a` that `indices` name, or add them there."""
    key = _key(indices)
    if not accumulate:
        a[key] = values
    elif a.dtype.itemsize == 2 and is_half(a.dtype):
        total = wide(a)
        index_put_(total, indices, wide(values), True)
        a[...] = total
    elif not _add_rows(a, indices, values):
        np.add.at(a, key, values)


def _add_rows(a: Array, indices: Indices, values: Array) -> bool:
    """Add `values` to rows of `a`; whether this was the case at hand.

    The matrix with a one at (index, position) times the values sums the rows of each index, without
    sorting and in order of position.
    """
    lead = len(indices)
    if any(i is None for i in indices) or a.dtype.kind not in "fc" or not a.flags.c_contiguous:
        return False
    places = np.broadcast_arrays(*indices)  # type: ignore[arg-type]
    count, tail = places[0].size, a.shape[lead:]
    if count * prod(tail) < SPARSE:
        return False
    rows = np.ravel_multi_index([p.ravel() for p in places], a.shape[:lead])
    width = prod(tail)
    added = np.broadcast_to(values, (*places[0].shape, *tail)).reshape(count, width)
    add_rows(a.reshape(prod(a.shape[:lead]), width), rows, added)
    return True


def add_rows(a: Array, rows: Array, values: Array) -> None:
    """a[rows[i]] += values[i] for every i, of matrices."""
    count, width = values.shape
    if width == 1:
        a[:, 0] += _histogram(rows, values[:, 0], a.shape[0])
        return
    ones = np.ones(count, a.dtype)
    if count < a.shape[0] // 2:
        # Few rows of many: sum equal ones in a small matrix, and leave the other rows alone.
        found, rows = np.unique(rows, return_inverse=True)
        places = csc_array((ones, rows, np.arange(count + 1)), shape=(found.size, count))
        a[found] += places @ values
    else:
        places = csc_array((ones, rows, np.arange(count + 1)), shape=(a.shape[0], count))
        a += places @ values


def _histogram(places: Array, values: Array, length: int) -> Array:
    found = sparse_rows(values, places, np.array([0, places.size]), (1, length))
    return found.toarray()[0]


@quiet
def index_put(a: Array, indices: Indices, values: Array, accumulate: bool) -> Array:
    """A copy of `a` after `index_put_`; the order of dimensions in memory is kept."""
    out = clone(a)
    index_put_(out, indices, values, accumulate)
    return out


def flat_places(shape: tuple[int, ...], dim: int, index: Array) -> Array:
    """Positions in a C-contiguous array of `shape` of what `index` names along `dim`."""
    rank, step, steps = len(shape), 1, []
    for n in reversed(shape):
        steps.append(step)
        step *= max(n, 1)
    steps.reverse()
    places = index if steps[dim] == 1 else index * steps[dim]
    for d, n in enumerate(index.shape):
        if d != dim and n > 1:
            line = np.arange(0, n * steps[d], steps[d])
            places = places + line.reshape((n,) + (1,) * (rank - 1 - d))
    return own(index) if places is index else places


def _corner(a: Array, shape: tuple[int, ...]) -> Array:
    return a if a.shape == shape else a[tuple(slice(n) for n in shape)]


def gather(a: Array, dim: int, index: Array) -> Array:
    """out[i][j][k] = a[index[i][j][k]][j][k] for dim 0, and so on."""
    if not a.ndim:
        return np.broadcast_to(a, index.shape).copy()
    places = flat_places(a.shape, dim, np.atleast_1d(index)).reshape(index.shape)
    return np.asarray(np.ascontiguousarray(a).take(places))


@quiet
def scatter_(a: Array, dim: int, index: Array, src: Array) -> None:
    """a[index[i][j][k]][j][k] = src[i][j][k] for dim 0, and so on; of equal places the last."""
    if not a.ndim or not index.ndim:
        if index.size:
            a[...] = src.reshape(-1)[-1].reshape(a.shape)
        return
    values = _corner(src, index.shape) if src.ndim else src
    if a.flags.c_contiguous:
        a.reshape(-1)[flat_places(a.shape, dim, index)] = values
    else:
        whole = a.copy()
        whole.reshape(-1)[flat_places(a.shape, dim, index)] = values
        a[...] = whole


def scatter(a: Array, dim: int, index: Array, src: Array) -> Array:
    """A copy of `a` after `scatter_`."""
    out = contiguous(a)
    scatter_(out, dim, index, src)
    return out


@quiet
def scatter_add_(a: Array, dim: int, index: Array, src: Array) -> None:
    """a[index[i][j][k]][j][k] += src[i][j][k] for dim 0, and so on."""
    if a.dtype.itemsize == 2 and is_half(a.dtype):
        total = wide(a)
        scatter_add_(total, dim, index, wide(src))
        a[...] = total
        return
    src = _corner(src, index.shape)
    if not a.ndim or not index.ndim:
        a += src.sum(dtype=a.dtype).reshape(a.shape)
    else:
        whole = a if a.flags.c_contiguous else a.copy()
        target = whole.reshape(-1)
        places, values = flat_places(a.shape, dim, index).reshape(-1), src.reshape(-1)
        if index.size >= SPARSE and a.dtype.kind in "fc":
            target += _histogram(places, values, target.size)
        else:
            np.add.at(target, places, values)
        if whole is not a:
            a[...] = whole


def scatter_add(a: Array, dim: int, index: Array, src: Array) -> Array:
    """A copy of `a` after `scatter_add_`."""
    out = contiguous(a)
    scatter_add_(out, dim, index, src)
    return out


def nonzero(a: Array) -> Array:
    """The indices of non-zero elements, one row each, in row-major order; its columns are dense."""
    if not a.ndim:
        return np.zeros((1 if a else 0, 0), np.int64)
    found = (a if a.dtype.kind == "b" else a != 0).ravel().nonzero()[0]
    return np.array(np.unravel_index(found, a.shape) if a.ndim > 1 else [found]).T


def sort(a: Array, dim: int, descending: bool, stable: bool) -> tuple[Array, Array]:
    """Values in order and their indices; NaN is the largest; equal elements keep their order."""
    if not a.ndim:
        return a.copy(), np.zeros((), np.int64)
    if a.ndim > 1 and not a.flags.c_contiguous:  # the results keep the order of `a` in memory
        axes = sorted(range(a.ndim), key=lambda d: -abs(a.strides[d]))
        if axes != list(range(a.ndim)) and copy_order(a) == "K":
            back = np.argsort(axes)
            found = sort(a.transpose(axes), axes.index(dim), descending, stable)
            return found[0].transpose(back), found[1].transpose(back)
    order = _order(a, dim, descending)
    if a.ndim == 1 and not descending:
        return a[order], order
    order = np.ascontiguousarray(order)
    return gather(a, dim, order), order


def topk(a: Array, k: int, dim: int, largest: bool) -> tuple[Array, Array]:
    """The first `k` of `sort`."""
    order = _order(a, dim, largest)
    order = np.ascontiguousarray(order[(*(_ALL,) * dim, slice(k))])
    return gather(a, dim, order), order


def _taken(a: Array, dim: int, keepdim: bool, places: Array) -> tuple[Array, Array]:
    """The elements at `places`, which keep `dim` as 1, and these."""
    places = np.ascontiguousarray(places)
    values = gather(a, dim, places)
    if keepdim:
        return values, places
    left = a.shape[:dim] + a.shape[dim + 1 :]
    return values.reshape(left), places.reshape(left)


def kthvalue(a: Array, dim: int, keepdim: bool, k: int) -> tuple[Array, Array]:
    """The k-th elements of `sort`, from 1, and their places."""
    return _taken(a, dim, keepdim, _order(a, dim, False).take([k - 1], dim))


def median_along(a: Array, dim: int, keepdim: bool, ignore_nan: bool) -> tuple[Array, Array]:
    """The lower medians and their places, or those of the first NaN, unless these are ignored."""
    order, n = _order(a, dim, False), a.shape[dim]
    missing = np.isnan(a).sum(dim, keepdims=True) if a.dtype.kind in "fV" else np.zeros((), int)
    if not missing.any():
        return _taken(a, dim, keepdim, order.take([(n - 1) // 2], dim))
    first = np.maximum((n - missing - 1) // 2, 0)
    if not ignore_nan:
        first = np.where(missing > 0, n - missing, first)
    return _taken(a, dim, keepdim, np.take_along_axis(order, first, dim))


def mode(a: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    """The most frequent elements, of several of these the smallest, and their last places."""
    shape, n = a.shape, a.shape[dim]
    order = np.moveaxis(_order(a, dim, False), dim, -1).reshape(-1, n)
    ordered = np.take_along_axis(np.moveaxis(a, dim, -1).reshape(-1, n), order, 1)
    starts = np.ones(ordered.shape, np.bool_)
    np.not_equal(ordered[:, 1:], ordered[:, :-1], starts[:, 1:])
    first = starts.ravel().nonzero()[0]
    lengths = np.diff(first, append=starts.size)
    rows = first // n
    # Of each row the first of its longest runs: they are in order of length, rows, and place.
    best = np.lexsort((-lengths, rows))[np.searchsorted(rows, np.arange(len(ordered)))]
    found = order.ravel()[first[best] + lengths[best] - 1]
    found = found.reshape((*shape[:dim], *shape[dim + 1 :], 1))
    return _taken(a, dim, keepdim, np.moveaxis(found, -1, dim))


def _order(a: Array, dim: int, descending: bool) -> Array:
    keys = wide(a) if a.dtype == BFLOAT16 else a
    if not descending:
        return keys.argsort(dim, "stable")
    # Sorted backwards and read backwards: equal elements keep their order.
    turn = tuple(slice(None, None, -1) if d == dim else _ALL for d in range(a.ndim))
    return a.shape[dim] - 1 - keys[turn].argsort(dim, "stable")[turn]


KERNELS = {
    "tril": np.tril,
    "triu": np.triu,
    "index": index,
    "index_put": index_put,
    "index_put_": index_put_,
    "gather": gather,
    "scatter": scatter,
    "scatter_": scatter_,
    "scatter_add": scatter_add,
    "scatter_add_": scatter_add_,
    "nonzero": nonzero,
    "sort": sort,
    "kthvalue": kthvalue,
    "median_along": median_along,
    "mode": mode,
    "topk": topk,
}
