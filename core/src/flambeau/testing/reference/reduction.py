"""Reduction kernels: each gathers the elements that meet in one result and folds them.

Floats are summed and multiplied in double precision and rounded to the dtype once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from itertools import accumulate
from operator import add, mul
from typing import Any

from flambeau._types.dtype import bool_, int64
from flambeau._types.dtype import dtype as DType
from flambeau.testing.reference.array import (
    RefArray,
    build,
    check_dim,
    offsets,
    row_major,
    zero,
)
from flambeau.testing.reference.complexes import multiply


def _grouped(
    a: RefArray, dims: tuple[int, ...], keepdim: bool
) -> tuple[tuple[int, ...], list[list[Any]]]:
    """The result's shape, and for each of its elements the elements of `a` that it reduces."""
    rank = len(a.shape)
    for dim in dims:
        check_dim(dim, rank)
    if len(set(dims)) != len(dims):
        raise ValueError(f"dims {dims} name a dimension twice")
    strides = row_major(a.shape)
    kept = [d for d in range(rank) if d not in dims]
    gone = [d for d in range(rank) if d in dims]
    starts = offsets([a.shape[d] for d in kept], [strides[d] for d in kept])
    steps = offsets([a.shape[d] for d in gone], [strides[d] for d in gone])
    if keepdim:
        shape = tuple([1 if d in dims else n for d, n in enumerate(a.shape)])
    else:
        shape = tuple([a.shape[d] for d in kept])
    return shape, [[a.data[s + t] for t in steps] for s in starts]


def total(values: Iterable[Any], dtype: DType) -> Any:
    """The sum of numbers of the category of `dtype`, not yet rounded; 0 for none."""
    return sum(values, zero(dtype))


def product(values: Iterable[Any], dtype: DType) -> complex:
    """The product of numbers of the category of `dtype`, not yet rounded; 1 for none."""
    return reduce(multiply if dtype.is_complex else mul, values, zero(dtype) + 1)


def _extremum(values: list[Any], pick: Callable[[list[Any]], Any]) -> Any:
    """`pick` (max or min) of the values, or NaN if one is NaN."""
    position = _first_nan(values)
    return pick(values) if position is None else values[position]


def _folded(function: Callable[[list[Any], DType], Any]) -> Callable[..., RefArray]:
    def kernel(a: RefArray, dims: tuple[int, ...], keepdim: bool) -> RefArray:
        shape, groups = _grouped(a, dims, keepdim)
        return build(shape, a.dtype, [function(group, a.dtype) for group in groups])

    return kernel


def _extreme(name: str, pick: Callable[[list[Any]], Any]) -> Callable[..., RefArray]:
    def kernel(a: RefArray, dims: tuple[int, ...], keepdim: bool) -> RefArray:
        _refuse_complex(name, a)
        shape, groups = _grouped(a, dims, keepdim)
        if groups and not groups[0]:
            raise ValueError(f"{name}: no elements to reduce in dims {dims} of shape {a.shape}")
        return RefArray(shape, a.dtype, tuple([_extremum(group, pick) for group in groups]))

    return kernel


def _logical(function: Callable[[list[Any]], bool]) -> Callable[..., RefArray]:
    def kernel(a: RefArray, dims: tuple[int, ...], keepdim: bool) -> RefArray:
        shape, groups = _grouped(a, dims, keepdim)
        return RefArray(shape, bool_, tuple(map(function, groups)))

    return kernel


def _arg_extreme(name: str, pick: Callable[[list[Any]], Any]) -> Callable[..., RefArray]:
    """The first index of the extremum; the first NaN, if there is one."""

    def kernel(a: RefArray, dim: int, keepdim: bool) -> RefArray:
        _refuse_complex(name, a)
        check_dim(dim, len(a.shape))
        shape, groups = _grouped(a, (dim,) if a.shape else (), keepdim)
        if groups and not groups[0]:
            raise ValueError(f"{name}: dimension {dim} of shape {a.shape} is empty")
        return RefArray(shape, int64, tuple([_position(group, pick) for group in groups]))

    return kernel


def _position(values: list[Any], pick: Callable[[list[Any]], Any]) -> int:
    position = _first_nan(values)
    return values.index(pick(values)) if position is None else position


def _first_nan(values: list[Any]) -> int | None:
    return next((i for i, v in enumerate(values) if v != v), None)


def _refuse_complex(name: str, a: RefArray) -> None:
    if a.dtype.is_complex:
        raise TypeError(f"{name}: complex numbers have no order")


def _running(fold: Callable[[list[Any], DType], list[Any]]) -> Callable[..., RefArray]:
    def kernel(a: RefArray, dim: int) -> RefArray:
        starts, stride, length = lanes(a, dim)
        values: list[Any] = list(a.data)
        for start in starts:
            lane = slice(start, start + stride * length, stride)
            values[lane] = fold(values[lane], a.dtype)
        return build(a.shape, a.dtype, values)

    return kernel


def _running_sums(values: list[Any], dtype: DType) -> list[Any]:
    # From zero, not from the first value: the sum of negative zeros is a positive zero.
    return list(accumulate(values, add, initial=zero(dtype)))[1:]


def _running_products(values: list[Any], dtype: DType) -> list[Any]:
    return list(accumulate(values, multiply if dtype.is_complex else mul))


def lanes(a: RefArray, dim: int) -> tuple[list[int], int, int]:
    """Start of every line of elements along `dim`, with the lines' common stride and length.

    Raises:
        IndexError: `a` has no dimension `dim` (a scalar counts as one line of one element).
    """
    check_dim(dim, len(a.shape))
    if not a.shape:
        return [0], 1, 1
    strides = row_major(a.shape)
    around = [n if d != dim else 1 for d, n in enumerate(a.shape)]
    return offsets(around, strides), strides[dim], a.shape[dim]


KERNELS: dict[str, Callable[..., RefArray]] = {
    "sum": _folded(total),
    "prod": _folded(product),
    "amax": _extreme("amax", max),
    "amin": _extreme("amin", min),
    "all": _logical(all),
    "any": _logical(any),
    "argmax": _arg_extreme("argmax", max),
    "argmin": _arg_extreme("argmin", min),
    "cumsum": _running(_running_sums),
    "cumprod": _running(_running_products),
}
