"""Indexing kernels: reading and writing at computed positions, and ordering."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from flambeau._types.dtype import int64
from flambeau.testing.reference.array import (
    RefArray,
    broadcast_shapes,
    build,
    check_dim,
    expanded,
    need_room,
    offsets,
    row_major,
    same_dtype,
)
from flambeau.testing.reference.reduction import lanes

Indices = tuple[RefArray | None, ...]


def _check_index(index: RefArray, length: int) -> None:
    if index.dtype is not int64:
        raise TypeError(f"indices of dtype int64 expected, got {index.dtype}")
    if index.data and not 0 <= min(index.data) <= max(index.data) < length:
        bad = next(i for i in index.data if not 0 <= i < length)
        raise IndexError(f"index {bad} is outside a dimension of length {length}")


def _selected(a: RefArray, indices: Indices) -> tuple[tuple[int, ...], list[int]]:
    """Shape and flat positions of ``a[indices]``, where None selects a whole dimension.

    The broadcast dimensions of the index arrays stand where these were if they are neighbours, and
    in front otherwise.
    """
    rank = len(a.shape)
    if len(indices) > rank:
        raise IndexError(f"{len(indices)} indices for an array of shape {a.shape}")
    strides = row_major(a.shape)
    arrays = {d: index for d, index in enumerate(indices) if index is not None}
    if not arrays:
        return a.shape, offsets(a.shape, strides)
    shape = broadcast_shapes(*[index.shape for index in arrays.values()])
    for dim, index in arrays.items():
        _check_index(index, a.shape[dim])
    chosen = [0] * math.prod(shape)
    for dim, index in arrays.items():
        chosen = [p + i * strides[dim] for p, i in zip(chosen, expanded(index, shape), strict=True)]
    first, last = min(arrays), max(arrays)
    adjacent = last - first + 1 == len(arrays)
    before = list(range(first)) if adjacent else []
    after = [d for d in range(rank) if d not in arrays and d not in before]
    heads = offsets([a.shape[d] for d in before], [strides[d] for d in before])
    tails = offsets([a.shape[d] for d in after], [strides[d] for d in after])
    result = (*[a.shape[d] for d in before], *shape, *[a.shape[d] for d in after])
    need_room(math.prod(result))
    return result, [h + c + t for h in heads for c in chosen for t in tails]


def index(a: RefArray, indices: Indices) -> RefArray:
    """``a[indices]`` by NumPy's rules for integer arrays; None stands for a full slice.

    Raises:
        IndexError: an index is outside its dimension, or there are more than dimensions.
        ValueError: the index arrays do not broadcast together.
    """
    shape, positions = _selected(a, indices)
    return RefArray(shape, a.dtype, tuple([a.data[p] for p in positions]))


def index_put(a: RefArray, indices: Indices, values: RefArray, accumulate: bool) -> RefArray:
    """A copy of `a` with `values` written, or added, at ``[indices]``.

    Where a position occurs more than once, the last value stands, or all are added.
    """
    same_dtype("index_put", a, values)
    shape, positions = _selected(a, indices)
    return _written(a, positions, expanded(values, shape), accumulate)


def _written(
    a: RefArray, positions: list[int], values: tuple[Any, ...], accumulate: bool
) -> RefArray:
    data: list[Any] = list(a.data)
    for position, value in zip(positions, values, strict=True):
        data[position] = data[position] + value if accumulate else value
    return build(a.shape, a.dtype, data)


def _along(a: RefArray, dim: int, index: RefArray) -> list[int]:
    """Flat position in `a` for each element of `index`, which replaces the coordinate `dim`."""
    check_dim(dim, len(a.shape))
    if len(index.shape) != len(a.shape):
        raise ValueError(
            f"index of shape {index.shape} for an array of shape {a.shape}: ranks differ"
        )
    if any(i > n for d, (i, n) in enumerate(zip(index.shape, a.shape, strict=True)) if d != dim):
        raise ValueError(
            f"index of shape {index.shape} exceeds an array of shape {a.shape} outside dim {dim}"
        )
    _check_index(index, a.shape[dim] if a.shape else 1)
    strides = list(row_major(a.shape))
    step = strides[dim] if a.shape else 0
    strides[dim : dim + 1] = [0] if a.shape else []
    starts = offsets(index.shape, strides)
    return [s + i * step for s, i in zip(starts, index.data, strict=True)]


def gather(a: RefArray, dim: int, index: RefArray) -> RefArray:
    """Element of `a` at each position of `index`, its coordinate `dim` replaced by the index."""
    return RefArray(index.shape, a.dtype, tuple([a.data[p] for p in _along(a, dim, index)]))


def _scattered(a: RefArray, dim: int, index: RefArray, src: RefArray, accumulate: bool) -> RefArray:
    same_dtype("scatter", a, src)
    if len(src.shape) != len(index.shape) or any(
        i > n for i, n in zip(index.shape, src.shape, strict=True)
    ):
        raise ValueError(f"scatter: index of shape {index.shape} exceeds source {src.shape}")
    values = tuple([src.data[p] for p in offsets(index.shape, row_major(src.shape))])
    return _written(a, _along(a, dim, index), values, accumulate)


def scatter(a: RefArray, dim: int, index: RefArray, src: RefArray) -> RefArray:
    """A copy of `a` with elements of `src` at the positions that `gather` would read.

    Where a position occurs more than once, the last element in row-major order stands (PyTorch
    leaves that open).
    """
    return _scattered(a, dim, index, src, False)


def scatter_add(a: RefArray, dim: int, index: RefArray, src: RefArray) -> RefArray:
    """A copy of `a` with elements of `src` added at the positions that `gather` would read."""
    return _scattered(a, dim, index, src, True)


def nonzero(a: RefArray) -> RefArray:
    """Coordinates of the elements that are not zero, one row each, in row-major order."""
    strides = row_major(a.shape)
    rows = [
        (p // stride) % length
        for p, value in enumerate(a.data)
        if value != 0
        for stride, length in zip(strides, a.shape, strict=True)
    ]
    count = sum(value != 0 for value in a.data)
    return RefArray((count, len(a.shape)), int64, tuple(rows))


def sort(a: RefArray, dim: int, descending: bool, stable: bool) -> tuple[RefArray, RefArray]:
    """Values in order along `dim`, and where each came from; NaN is the largest.

    Equal elements keep their order in both directions, whatever `stable` says.
    """
    if a.dtype.is_complex:
        raise TypeError("sort: complex numbers have no order")
    starts, stride, length = lanes(a, dim)
    values: list[Any] = list(a.data)
    sources = [0] * len(values)
    for start in starts:
        lane = slice(start, start + stride * length, stride)
        line = values[lane]
        keys = [(v != v, 0 if v != v else v) for v in line]
        # With `reverse`, Python's sort still keeps the order of equal elements.
        order = sorted(range(length), key=keys.__getitem__, reverse=descending)
        values[lane] = [line[i] for i in order]
        sources[lane] = order
    return RefArray(a.shape, a.dtype, tuple(values)), RefArray(a.shape, int64, tuple(sources))


KERNELS: dict[str, Callable[..., Any]] = {
    "index": index,
    "index_put": index_put,
    "gather": gather,
    "scatter": scatter,
    "scatter_add": scatter_add,
    "nonzero": nonzero,
    "sort": sort,
}
