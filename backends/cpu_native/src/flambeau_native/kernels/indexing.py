"""Reading and adding by index, and sorting."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from flambeau_native.extension import native
from flambeau_native.kernels._common import (
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    Array,
    Kernel,
    alike,
    compiled,
    made,
    made_like,
    otherwise,
    zeros,
)
from flambeau_numpy.extending import THRESHOLD, empty

Indices = Sequence[Array | None]
_index, _gather, _sort = otherwise("index"), otherwise("gather"), otherwise("sort")
_topk, _embedding_backward = otherwise("topk"), otherwise("embedding_backward")
_index_put_, _scatter_add_ = otherwise("index_put_"), otherwise("scatter_add_")
_clone, _contiguous = otherwise("clone"), otherwise("contiguous")

_WORDS = {4: native.gather_w4, 8: native.gather_w8} if native else {}
_SORTS = {
    dtype: getattr(native, f"sort_{suffix}", None)
    for dtype, suffix in ((FLOAT32, "f32"), (FLOAT64, "f64"), (INT32, "i32"), (INT64, "i64"))
}
_TOPKS = {
    dtype: getattr(native, f"topk_{suffix}", None)
    for dtype, suffix in ((FLOAT32, "f32"), (FLOAT64, "f64"), (INT32, "i32"), (INT64, "i64"))
}
_FEW = 128  # entries that the compiled selection keeps in order
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


def take(a: Array, rows: Array, _empty: Any = np.empty, _limit: int = THRESHOLD) -> Array:
    """The entries of `a` along its first dimension that `rows` names."""
    shape, size = a.shape, a.nbytes
    if not _flat(a, rows) or not size:
        return a.take(rows, 0)
    count, width = rows.size, size // shape[0]
    make = _empty if count * width < _limit else empty
    out = make((*rows.shape, *shape[1:]), a.dtype)
    words = _WORDS.get(width)
    if words is not None:
        words(out, a, rows, 1, shape[0], count, 1)
    else:
        native.take(out, a, rows, count, width, shape[0])
    return out


def index(a: Array, indices: Indices) -> Array:
    rows = indices[0]
    if len(indices) == 1 and rows is not None and rows.ndim and a.flags.c_contiguous:
        return take(a, rows)
    return _index(a, indices)


def embedding(weight: Array, indices: Array, padding_idx: int, scale_grad_by_freq: bool) -> Array:
    return take(weight, indices)


def gather(
    a: Array, dim: int, index: Array, _empty: Any = np.empty, _limit: int = THRESHOLD
) -> Array:
    words = _WORDS.get(a.itemsize)
    shape, wanted, count = a.shape, index.shape, index.size
    if words is None or not count or not wanted or not _flat(a, index):
        return _gather(a, dim, index)
    last = dim + 1
    if shape[:dim] != wanted[:dim] or shape[last:] != wanted[last:]:
        return _gather(a, dim, index)
    rows, inner = wanted[dim], prod(shape[last:]) if last < len(shape) else 1
    out = (_empty if count * a.itemsize < _limit else empty)(wanted, a.dtype)
    words(out, a, index, count // (rows * inner), shape[dim], rows, inner)
    return out


_add_rows, _scatter_add = compiled("add_rows"), compiled("scatter_add")


def index_put_(a: Array, indices: Indices, values: Array, accumulate: bool) -> None:
    if accumulate and len(indices) == 1 and (rows := indices[0]) is not None:
        run = _add_rows.get(a.dtype)
        shape = (*rows.shape, *a.shape[1:])
        if run is not None and _flat(a, rows) and values.dtype == a.dtype and a.size:
            if values.shape != shape or not values.flags.c_contiguous:
                values = np.ascontiguousarray(np.broadcast_to(values, shape))
            run(a, rows, values, rows.size, prod(a.shape[1:]), a.shape[0])
            return
    _index_put_(a, indices, values, accumulate)


def embedding_backward(grad: Array, indices: Array, rows: int) -> Array:
    run = _add_rows.get(grad.dtype)
    if run is None:
        return _embedding_backward(grad, indices, rows)
    grad, indices = np.ascontiguousarray(grad), np.ascontiguousarray(indices)
    out = zeros((rows, grad.shape[-1]), grad.dtype)
    run(out, indices, grad, indices.size, grad.shape[-1], rows)
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


def scatter_add_(a: Array, dim: int, index: Array, src: Array) -> None:
    run = _scatter_add.get(a.dtype)
    shape, given = a.shape, index.shape
    if run is not None and index.size < a.size:
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


def scatter_add(a: Array, dim: int, index: Array, src: Array) -> Array:
    out = _contiguous(a)
    scatter_add_(out, dim, index, src)
    return out


def sort(a: Array, dim: int, descending: bool, stable: bool) -> tuple[Array, Array]:
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


def topk(a: Array, k: int, dim: int, largest: bool) -> tuple[Array, Array]:
    run = _TOPKS.get(a.dtype)
    last = a.ndim > 0 and a.ndim - 1 == dim and a.flags.c_contiguous and a.size
    if run is None or not last:
        return _topk(a, k, dim, largest)
    if not 0 < k <= _FEW:
        values, places = sort(a, dim, largest, True)
        return values[..., :k].copy(), places[..., :k].copy()
    shape = (*a.shape[:-1], k)
    values, places = made(shape, a.dtype), made(shape, INT64)
    n = a.shape[-1]
    run(values, places, a, a.size // n, n, k, largest)
    return values, places


KERNELS: dict[str, Kernel] = {
    "index": index,
    "embedding": embedding,
    "embedding_backward": embedding_backward,
    "embedding_bag": embedding_bag,
    "gather": gather,
    "index_put": index_put,
    "index_put_": index_put_,
    "scatter_add": scatter_add,
    "scatter_add_": scatter_add_,
    "sort": sort,
    "topk": topk,
}
