"""Reading and adding by index, and sorting."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from flambeau_native import extension
from flambeau_native.extension import native
from flambeau_native.kernels._common import (
    BOOL,
    INT32,
    INT64,
    Array,
    Form,
    Kernel,
    alike,
    compiled,
    dense,
    form,
    made,
    made_like,
    otherwise,
    prepared,
    zeros,
)
from flambeau_native.kernels.reduction import KERNELS as REDUCTIONS
from flambeau_numpy.extending import THRESHOLD, empty

Indices = Sequence[Array | None]
_index, _gather, _sort = otherwise("index"), otherwise("gather"), otherwise("sort")
_nonzero, _mode = otherwise("nonzero"), otherwise("mode")
_topk, _embedding_backward = otherwise("topk"), otherwise("embedding_backward")
_index_put_, _scatter_add_ = otherwise("index_put_"), otherwise("scatter_add_")
_scatter_ = otherwise("scatter_")
_count_nonzero = REDUCTIONS["count_nonzero"]
_clone, _contiguous = otherwise("clone"), otherwise("contiguous")

_WORDS = {4: native.gather_w4, 8: native.gather_w8} if native else {}
_SCATTERS = {4: native.scatter_w4, 8: native.scatter_w8} if native else {}
_SORTS, _TOPKS = compiled("sort", INT32, INT64), compiled("topk", INT32, INT64)
_GREATEST, _LEAST = (compiled(f"{name}_at", INT32, INT64) for name in ("amax", "amin"))
_FEW = 128  # entries that the compiled selection keeps in order
_KTH, _MEDIAN, _MEDIAN_OF_NUMBERS = range(3)  # what `select` seeks
_SELECTIONS = compiled("select", INT32, INT64)
_MODES, _MODES_OF_FEW = compiled("mode", INT32, INT64), compiled("mode_few", INT32, INT64)
_SORTS_OF_FEW, _FEW_SORTED = compiled("sort_few", INT32, INT64), 32
_FEW_COUNTED = 32  # entries each of which is compared with all, rather than sorted
_NONZEROS = compiled("nonzero", INT64, BOOL)
_BYTE = np.dtype(np.uint8)
_RADIX_FROM = 1024  # elements of a row, below which counting digits costs more than comparing


def _flat(a: Array, index: Array) -> bool:
    """Whether compiled code reads both: bfloat16 arrays export no buffer."""
    return (
        type(index) is np.ndarray
        and index.dtype == INT64
        and index.flags.c_contiguous
        and a.flags.c_contiguous
        and a.dtype.kind != "V"
    )


def _prepare_take(a: Array, rows: Array, *settings: object) -> object:
    if rows.dtype != INT64 or not rows.ndim or not a.size or a.dtype.kind == "V":
        return None
    shape, width = (*rows.shape, *a.shape[1:]), a.nbytes // a.shape[0]
    words, forms = _WORDS.get(width), (form(shape, a.dtype),)
    if words is not None:
        return words, forms, (1, a.shape[0], rows.size, 1)
    return native.take, forms, (rows.size, width, a.shape[0])


def _rows(a: Array, rows: Array, *settings: object) -> Array:
    return a.take(rows, 0)


def _take(a: Array, rows: Array) -> Array:
    if rows.ndim and a.flags.c_contiguous:  # others are copied first
        return _rows(a, rows)
    return _index(a, (rows,))  # type: ignore[no-any-return]


take = prepared("take", "ta", _prepare_take, _take)
"""The entries of an array along its first dimension that an array of indices names."""

embedding = prepared("embedding", "tass", _prepare_take, _rows)


def _prepare_take_along(a: Array, dim: int, rows: Array) -> object:
    if rows.dtype != INT64 or rows.ndim != 1 or not a.size or a.dtype.kind == "V":
        return None
    lead, inner = a.shape[:dim], a.shape[dim + 1 :]
    sizes = prod(lead), a.shape[dim], rows.size, prod(inner) * a.itemsize
    return native.take_lines, (form((*lead, rows.size, *inner), a.dtype),), sizes


def _take_along(a: Array, dim: int, rows: Array) -> Array:
    return _index(a, (*[None] * dim, rows))  # type: ignore[no-any-return]


take_along = prepared("take_along", "tsa", _prepare_take_along, _take_along)
"""The entries of an array along a dimension that a vector of indices names."""


def _prepare_take_pairs(a: Array, rows: Array, columns: Array) -> object:
    if rows.dtype != INT64 or rows.shape != columns.shape or not a.size or a.dtype.kind == "V":
        return None
    height, width, *inner = a.shape
    sizes = rows.size, prod(inner) * a.itemsize, height, width
    return native.take_pairs, (form((*rows.shape, *inner), a.dtype),), sizes


def _take_pairs(a: Array, rows: Array, columns: Array) -> Array:
    if (one := _as_one(a, (rows, columns))) is None:
        return _index(a, (rows, columns))  # type: ignore[no-any-return]
    return index(*one)


take_pairs = prepared("take_pairs", "ttt", _prepare_take_pairs, _take_pairs)
"""The entries of an array along its first two dimensions that two arrays of indices name."""


def _rows_of(indices: Indices) -> Array | None:
    """The one array that indexes, the last; None if there are others."""
    return None if any(i is not None for i in indices[:-1]) else indices[-1]


def _as_one(a: Array, indices: Indices) -> tuple[Array, Indices] | None:
    """`a` and an index of its rows in place of the last ones, which stand beside each other.

    None where other dimensions than the last are addressed, memory has gaps, or there is nothing.
    What is made here is compared with the number of rows when it is read, whatever the indices are
    by then.
    """
    first = next((d for d, i in enumerate(indices) if i is not None), None)
    shape, end = a.shape, len(indices)
    if first is None or not a.size or not a.flags.c_contiguous or a.dtype.kind == "V":
        return None
    rows, count = indices[first], shape[first]
    for d in range(first + 1, end):
        if (more := indices[d]) is None:
            return None
        rows = rows * shape[d] + more
        count *= shape[d]
    if type(rows) is not np.ndarray or not rows.flags.c_contiguous:
        return None
    return a.reshape(*shape[:first], count, *shape[end:]), (*indices[:first], rows)


def index(a: Array, indices: Indices) -> Array:
    if len(indices) == 1:
        return take(a, indices[0])
    if (rows := _rows_of(indices)) is None:
        if len(indices) == 2 and indices[1] is not None:
            return take_pairs(a, *indices)
        if (one := _as_one(a, indices)) is None:
            return _index(a, indices)  # type: ignore[no-any-return]
        a, indices = one
        rows = indices[-1]
    return take(a, rows) if len(indices) == 1 else take_along(a, len(indices) - 1, rows)


def _prepare_gather(a: Array, dim: int, index: Array) -> object:
    words = _WORDS.get(a.itemsize)
    shape, wanted, last = a.shape, index.shape, dim + 1
    if words is None or not index.size or not wanted or not _flat(a, index):
        return None
    if shape[:dim] != wanted[:dim] or shape[last:] != wanted[last:]:
        return None
    rows, inner = wanted[dim], prod(shape[last:])
    return words, (form(wanted, a.dtype),), (prod(wanted[:dim]), shape[dim], rows, inner)


def _gathered(a: Array, dim: int, index: Array) -> Array:
    if a.itemsize in _WORDS and index.dtype == INT64 and not index.flags.c_contiguous:
        return gather(a, dim, dense(index))
    return _gather(a, dim, index)  # type: ignore[no-any-return]


gather = prepared("gather", "tsa", _prepare_gather, _gathered)


_add_rows, _scatter_add = compiled("add_rows"), compiled("scatter_add")
_add_pairs = compiled("add_pairs")


def _written(a: Array, indices: Indices, values: Array, accumulate: bool) -> bool:
    """Write or add entries of the first one or two dimensions, one for each; False for all else."""
    given = len(indices)
    rows, more = indices[0], indices[-1]
    if given > 2 or rows is None or more is None or rows.shape != more.shape or not a.size:
        return False
    if accumulate and a.dtype not in _add_pairs:
        return False
    shape = a.shape
    if not (_flat(a, rows) and _flat(a, more) and alike(a, values)):
        return False
    if values.shape != (*rows.shape, *shape[given:]):
        return False
    inner = prod(shape[given:])
    if accumulate:
        _add_pairs[a.dtype](a, rows, more, values, rows.size, inner, *shape[:2])
    elif given == 1:
        native.put_rows(a, rows, values, rows.size, inner * a.itemsize, shape[0])
    else:
        native.put_pairs(a, rows, more, values, rows.size, inner * a.itemsize, *shape[:2])
    return True


def index_put_(a: Array, indices: Indices, values: Array, accumulate: bool) -> None:
    if native is not None and not (accumulate and len(indices) == 1):
        if _written(a, indices, values, accumulate):
            return
    if accumulate and a.dtype in _add_rows:
        if _rows_of(indices) is None:
            a, indices = _as_one(a, indices) or (a, indices)
        if (rows := _rows_of(indices)) is not None:
            dim = len(indices) - 1
            lead, inner = a.shape[:dim], a.shape[dim + 1 :]
            shape = (*lead, *rows.shape, *inner)
            if _flat(a, rows) and values.dtype == a.dtype and a.size:
                if values.shape != shape or not values.flags.c_contiguous:
                    values = np.ascontiguousarray(np.broadcast_to(values, shape))
                run = _add_rows[a.dtype]
                run(a, rows, values, prod(lead), rows.size, prod(inner), a.shape[dim])
                return
    _index_put_(a, indices, values, accumulate)


def embedding_backward(grad: Array, indices: Array, rows: int) -> Array:
    run = _add_rows.get(grad.dtype)
    if run is None:
        return _embedding_backward(grad, indices, rows)
    grad, indices = np.ascontiguousarray(grad), np.ascontiguousarray(indices)
    out = zeros((rows, grad.shape[-1]), grad.dtype)
    run(out, indices, grad, 1, indices.size, grad.shape[-1], rows)
    return out


_bags, _embedding_bag = compiled("bags"), otherwise("embedding_bag")


def embedding_bag(
    weight: Array,
    indices: Array,
    starts: Array,
    factors: Array | None,
    mode: int,
    padding: int,
    scale_grad_by_freq: bool,
) -> tuple[Array, Array, Array, Array]:
    run = _bags.get(weight.dtype)
    if run is None or not alike(weight, factors) or not (alike(indices, starts) and starts.size):
        args = weight, indices, starts, factors, mode, padding, scale_grad_by_freq
        return _embedding_bag(*args)
    rows, width = weight.shape
    count, bags = indices.size, starts.size
    out, bag, sizes = made((bags, width), weight.dtype), made((count,), INT64), made((bags,), INT64)
    winners = made((bags, width) if mode == 2 else (0,), INT64)
    largest = winners if mode == 2 else None
    arrays = out, bag, sizes, largest, weight, indices, starts, factors
    run(*arrays, rows, count, bags, width, mode, padding)
    return out, bag, sizes, winners


def index_put(a: Array, indices: Indices, values: Array, accumulate: bool) -> Array:
    out = _clone(a)
    index_put_(out, indices, values, accumulate)
    return out


def _repeated(index: Array, dim: int) -> Array | None:
    """The vector that an index repeats along all dimensions but one; None if it is none."""
    if not index.size or any(
        step and n != 1 and d != dim
        for d, (n, step) in enumerate(zip(index.shape, index.strides, strict=True))
    ):
        return None
    return np.ascontiguousarray(index[(*(0,) * dim, slice(None), *(0,) * (index.ndim - dim - 1))])


def scatter_add_(a: Array, dim: int, index: Array, src: Array) -> None:
    run = _scatter_add.get(a.dtype)
    shape, given = a.shape, index.shape
    if run is not None and not (index.flags.c_contiguous and src.flags.c_contiguous):
        if (rows := _repeated(index, dim)) is not None and src.shape == given:
            if a.flags.c_contiguous and shape[:dim] == given[:dim]:
                if shape[dim + 1 :] == given[dim + 1 :] and a.size:
                    index_put_(a, (*(None,) * dim, rows), src, True)
                    return
        index, src = np.ascontiguousarray(index), np.ascontiguousarray(src)
    if (
        run is None
        or not index.size
        or not index.ndim
        or not _flat(a, index)
        or not src.flags.c_contiguous
        or src.shape != given
        or shape[:dim] != given[:dim]
        or shape[dim + 1 :] != given[dim + 1 :]
    ):
        _scatter_add_(a, dim, index, src)
        return
    run(a, index, src, prod(shape[:dim]), shape[dim], given[dim], prod(shape[dim + 1 :]))


def scatter_(a: Array, dim: int, index: Array, src: Array) -> None:
    run, shape, given = _SCATTERS.get(a.itemsize), a.shape, index.shape
    if (
        run is None
        or not index.size
        or not index.ndim
        or not _flat(a, index)
        or not alike(a, src)
        or src.shape != given
        or shape[:dim] != given[:dim]
        or shape[dim + 1 :] != given[dim + 1 :]
    ):
        _scatter_(a, dim, index, src)
        return
    run(a, index, src, prod(shape[:dim]), shape[dim], given[dim], prod(shape[dim + 1 :]))


def scatter(a: Array, dim: int, index: Array, src: Array) -> Array:
    out = _contiguous(a)
    scatter_(out, dim, index, src)
    return out


def scatter_add(a: Array, dim: int, index: Array, src: Array) -> Array:
    out = _contiguous(a)
    scatter_add_(out, dim, index, src)
    return out


def _prepare_sort(a: Array, dim: int, descending: bool, stable: bool) -> object:
    run = _SORTS_OF_FEW.get(a.dtype)
    if run is None or not a.size or not a.ndim or a.shape[dim] > _FEW_SORTED:
        return None
    sizes = prod(a.shape[:dim]), a.shape[dim], prod(a.shape[dim + 1 :])
    return run, (form(a.shape, a.dtype), form(a.shape, INT64)), (*sizes, descending)


def sort(a: Array, dim: int, descending: bool, stable: bool) -> tuple[Array, Array]:
    if a.flags.c_contiguous:  # results of others keep their order in memory
        return _sort_rows(a, dim, descending, stable)
    return _sort(a, dim, descending, stable)  # type: ignore[no-any-return]


def _sort_many(a: Array, dim: int, descending: bool, stable: bool) -> tuple[Array, Array]:
    n = a.shape[-1] if a.ndim else 0
    if not _RADIX_FROM <= n < 1 << 31:
        return _sort(a, dim, descending, stable)
    run = _SORTS.get(a.dtype)
    last = a.ndim - 1 == dim and a.flags.c_contiguous
    if run is None or not last or not a.size:
        return _sort(a, dim, descending, stable)
    values, places = made_like(a), made(a.shape, INT64)
    entry = 8 if a.itemsize == 4 else 16
    run(values, places, a, made((2 * n, entry), _BYTE), a.size // n, n, descending)
    return values, places


_sort_rows = prepared("sort", "asss", _prepare_sort, _sort_many)


def _prepare_topk(a: Array, k: int, dim: int, largest: bool) -> object:
    run, shape = _TOPKS.get(a.dtype), a.shape
    if run is None or not a.size or not 0 < k <= _FEW:
        return None
    if k == 1 and (largest or a.dtype.kind == "i") and shape[dim] < 1 << 31:
        forms, sizes = _sizes(a, dim, True)
        return (_GREATEST if largest else _LEAST)[a.dtype], forms, sizes
    if dim != len(shape) - 1:
        return None
    kept = (*shape[:-1], k)
    forms = form(kept, a.dtype), form(kept, INT64)
    return run, forms, (a.size // shape[-1], shape[-1], k, largest)


def _sizes(a: Array, dim: int, keepdim: bool) -> tuple[tuple[Form, Form], tuple[int, ...]]:
    """The forms of elements that are selected along a dimension and of their places, and sizes."""
    shape = a.shape
    left = (*shape[:dim], *[1] * keepdim, *shape[dim + 1 :])
    sizes = prod(shape[:dim]), shape[dim], prod(shape[dim + 1 :])
    return (form(left, a.dtype), form(left, INT64)), sizes


def _prepare_selection(a: Array, dim: int, keepdim: bool, k: int, kind: int) -> object:
    run = _SELECTIONS.get(a.dtype)
    if run is None or not a.size or not a.ndim:
        return None
    forms, sizes = _sizes(a, dim, keepdim)
    return run, (*forms, form(a.shape, a.dtype)), (*sizes, k, kind), (0, 1)


def _prepare_kth(a: Array, dim: int, keepdim: bool, k: int) -> object:
    return _prepare_selection(a, dim, keepdim, k - 1, _KTH)


def _prepare_median(a: Array, dim: int, keepdim: bool, ignore_nan: bool) -> object:
    kind = _MEDIAN_OF_NUMBERS if ignore_nan else _MEDIAN
    return _prepare_selection(a, dim, keepdim, 0, kind)


def _prepare_median_of_all(a: Array, ignore_nan: bool) -> object:
    run = _SELECTIONS.get(a.dtype)
    if run is None or not a.size:
        return None
    kind = _MEDIAN_OF_NUMBERS if ignore_nan else _MEDIAN
    forms = form((), a.dtype), form((), INT64), form(a.shape, a.dtype)
    return run, forms, (1, a.size, 1, 0, kind), (0,)


def _prepare_mode(a: Array, dim: int, keepdim: bool) -> object:
    run = _MODES_OF_FEW.get(a.dtype)
    if run is None or not a.size or not a.ndim or a.shape[dim] > _FEW_COUNTED:
        return None
    return run, *_sizes(a, dim, keepdim)


def _mode_of_many(a: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    run = _MODES.get(a.dtype)
    if run is None or not a.size:
        return _mode(a, dim, keepdim)  # type: ignore[no-any-return]
    a = np.ascontiguousarray(a)
    lines = a if dim == a.ndim - 1 else np.moveaxis(a, dim, -1)
    (values, places), sizes = _sizes(a, dim, keepdim)
    found = made(*values[1:]), made(*places[1:])
    run(*found, np.ascontiguousarray(np.sort(lines, -1)), a, *sizes)
    return found


def _nonzero_of_many_dimensions(a: Array) -> Array:
    run, shape = _NONZEROS.get(a.dtype), a.shape
    if run is None or not shape or not a.size:
        return _nonzero(a)  # type: ignore[no-any-return]
    rank = len(shape)
    a = np.ascontiguousarray(a)
    if rank == 1:
        count = int(_count_nonzero(a, (0,), False))
        out = made((count, 1), INT64)
        run(None, out, a, count, 1, shape[0])
        return out
    count = int(_count_nonzero(a, tuple(range(rank)), False))
    out = made((rank, count), INT64)
    run(out[-2], out[-1], a, count, a.size // shape[-1], shape[-1])
    if rank > 2:
        out[:-1] = np.unravel_index(out[-2].copy(), shape[:-1])
    return out.T


def _make_nonzero() -> Kernel:
    if native is None or not extension.READS_ARRAYS:
        return _nonzero if native is None else _nonzero_of_many_dimensions
    count = compiled("count_nonzero", INT32, INT64, BOOL)
    cases = tuple([(dtype, count[dtype], run) for dtype, run in _NONZEROS.items()])
    return native.finding(_nonzero_of_many_dimensions, cases, INT64, empty, THRESHOLD)


nonzero = _make_nonzero()


def _many(a: Array, k: int, dim: int, largest: bool) -> tuple[Array, Array]:
    if a.ndim - 1 > dim >= 0 and a.dtype in _TOPKS and a.size:
        found = topk(np.ascontiguousarray(a.swapaxes(dim, -1)), k, a.ndim - 1, largest)
        values, places = (np.ascontiguousarray(f.swapaxes(dim, -1)) for f in found)
        return values, places
    last = a.ndim > 0 and a.ndim - 1 == dim and a.flags.c_contiguous and a.size
    if a.dtype not in _TOPKS or not last:
        return _topk(a, k, dim, largest)
    values, places = sort(a, dim, largest, True)
    return values[..., :k].copy(), places[..., :k].copy()


topk = prepared("topk", "asss", _prepare_topk, _many)
kthvalue = prepared("kthvalue", "asss", _prepare_kth, otherwise("kthvalue"))
median_along = prepared("median_along", "asss", _prepare_median, otherwise("median_along"))
median = prepared("median", "as", _prepare_median_of_all, otherwise("median"))
mode = prepared("mode", "ass", _prepare_mode, _mode_of_many if native is not None else _mode)


KERNELS: dict[str, Kernel] = {
    "index": index,
    "embedding": embedding,
    "embedding_backward": embedding_backward,
    "embedding_bag": embedding_bag,
    "gather": gather,
    "index_put": index_put,
    "index_put_": index_put_,
    "scatter": scatter,
    "scatter_": scatter_,
    "scatter_add": scatter_add,
    "scatter_add_": scatter_add_,
    "sort": sort,
    "topk": topk,
    "kthvalue": kthvalue,
    "median_along": median_along,
    "median": median,
    "mode": mode,
    "nonzero": nonzero,
}
