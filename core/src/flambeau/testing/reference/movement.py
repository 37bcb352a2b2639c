"""Movement kernels: joining, reversing, and views, which here are fresh arrays like all others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from flambeau.testing.reference.array import (
    RefArray,
    broadcast_strides,
    check_dim,
    region,
    row_major,
    same_dtype,
)


def cat(arrays: Sequence[RefArray], dim: int) -> RefArray:
    """The arrays one after another along `dim`; all other lengths agree.

    Raises:
        ValueError: none given, or ranks or other lengths differ.
    """
    if not arrays:
        raise ValueError("cat: at least one array expected")
    dtype = same_dtype("cat", *arrays)
    first = arrays[0].shape
    check_dim(dim, len(first))
    around = {(a.shape[:dim], a.shape[dim + 1 :]) for a in arrays}
    if not first or len(around) > 1:
        raise ValueError(f"cat: shapes {[a.shape for a in arrays]} do not join along {dim}")
    data: list[Any] = []
    for row in range(math.prod(first[:dim])):
        for a in arrays:
            size = math.prod(a.shape[dim:])
            data += a.data[row * size : (row + 1) * size]
    joined = sum(a.shape[dim] for a in arrays)
    return RefArray((*first[:dim], joined, *first[dim + 1 :]), dtype, tuple(data))


def flip(a: RefArray, dims: tuple[int, ...]) -> RefArray:
    """The elements in reverse order along `dims`."""
    strides = list(row_major(a.shape))
    start = 0
    for dim in dims if a.shape else ():
        check_dim(dim, len(a.shape))
        start += strides[dim] * (a.shape[dim] - 1)
        strides[dim] = -strides[dim]
    return region(a, a.shape, strides, start)


Item = int | slice | None


def take_slice(a: RefArray, items: tuple[Item, ...]) -> RefArray:
    """Basic indexing: an int drops a dimension, a slice keeps part of it, None adds a length of 1.

    Raises:
        ValueError: there are more items than dimensions, or a step is not positive.
        IndexError: an int is outside its dimension.
    """
    named = sum(item is not None for item in items)
    if named > len(a.shape):
        raise ValueError(f"slice: {items} has more items than shape {a.shape} has dimensions")
    items = (*items, *(slice(0, n, 1) for n in a.shape[named:]))
    sources = zip(a.shape, row_major(a.shape), strict=True)
    shape, strides, start = [], [], 0
    for item in items:
        if item is None:
            shape.append(1)
            strides.append(0)
            continue
        length, stride = next(sources)
        if isinstance(item, slice):
            if item.step is not None and item.step < 1:
                raise ValueError(f"slice: a positive step expected, got {item.step}")
            positions = range(length)[item]
            start += positions.start * stride
            shape.append(len(positions))
            strides.append(positions.step * stride)
        else:
            if not 0 <= item < length:
                raise IndexError(f"slice: index {item} is outside a dimension of length {length}")
            start += item * stride
    return region(a, shape, strides, start)


def permute(a: RefArray, dims: tuple[int, ...]) -> RefArray:
    """Dimension i of the result is dimension ``dims[i]`` of `a`."""
    if sorted(dims) != list(range(len(a.shape))):
        raise ValueError(f"permute: {dims} is no order of the dimensions of shape {a.shape}")
    strides = row_major(a.shape)
    return region(a, [a.shape[d] for d in dims], [strides[d] for d in dims])


def view(a: RefArray, shape: tuple[int, ...]) -> RefArray:
    """The same elements, in row-major order, under another shape."""
    return RefArray(tuple(shape), a.dtype, a.data)


def expand(a: RefArray, shape: tuple[int, ...]) -> RefArray:
    """`a` repeated along dimensions of length 1 and new leading dimensions."""
    shape = tuple(shape)
    return region(a, shape, broadcast_strides(a.shape, shape))


def diagonal(a: RefArray, offset: int, dim1: int, dim2: int) -> RefArray:
    """Elements with index i in `dim1` and i + offset in `dim2`, along a new last dimension."""
    rank = len(a.shape)
    check_dim(dim1, rank)
    check_dim(dim2, rank)
    if dim1 == dim2 or rank < 2:
        raise ValueError(f"diagonal: two dimensions expected, got {dim1}, {dim2} of {a.shape}")
    strides = row_major(a.shape)
    down, right = max(-offset, 0), max(offset, 0)
    length = max(min(a.shape[dim1] - down, a.shape[dim2] - right), 0)
    kept = [d for d in range(rank) if d not in (dim1, dim2)]
    return region(
        a,
        [*[a.shape[d] for d in kept], length],
        [*[strides[d] for d in kept], strides[dim1] + strides[dim2]],
        down * strides[dim1] + right * strides[dim2],
    )


KERNELS: dict[str, Callable[..., RefArray]] = {
    "cat": cat,
    "flip": flip,
    "slice": take_slice,
    "permute": permute,
    "view": view,
    "expand": expand,
    "diagonal": diagonal,
}
