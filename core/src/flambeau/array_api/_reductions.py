"""Functions that make one element of many."""

from __future__ import annotations

import builtins
from functools import partial
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import Tensor
from flambeau._dispatch.annotated import all_take_as_annotated
from flambeau.array_api._dtypes import COMPLEX, REAL, SIGNED, UNSIGNED
from flambeau.array_api._shapes import axes

if TYPE_CHECKING:
    from collections.abc import Callable

    from flambeau._types.dtype import dtype as DType


__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]


def _accumulated(dtype: fb.dtype) -> fb.dtype:
    if dtype in UNSIGNED:
        return fb.uint64
    return fb.int64 if dtype in SIGNED else dtype


def _one_by_one(
    function: Callable[..., Any], x: Tensor, axis: object, keepdims: builtins.bool
) -> Tensor:
    """Dimension by dimension, from the last."""
    for d in sorted(axes(x, axis), reverse=True):
        x = function(x, d, keepdims)
    return x


def all(x: Tensor, /, *, axis: object = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether all elements are true."""
    return _one_by_one(fb.all, x.to(fb.bool), axis, keepdims)


def any(x: Tensor, /, *, axis: object = None, keepdims: builtins.bool = False) -> Tensor:
    """Whether an element is true."""
    return _one_by_one(fb.any, x.to(fb.bool), axis, keepdims)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The index of the first greatest element."""
    return fb.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Tensor:
    """The index of the first least element."""
    return fb.argmin(x, axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: object = None, keepdims: builtins.bool = False) -> Tensor:
    """How many elements are not zero."""
    return sum((x != 0).to(fb.int64), axis=axis, keepdims=keepdims)


def cumulative_prod(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DType | None = None,
    include_initial: builtins.bool = False,
) -> Tensor:
    """The products up to each element."""
    return _cumulative(fb.cumprod, fb.ones, x, axis, dtype, include_initial)


def cumulative_sum(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DType | None = None,
    include_initial: builtins.bool = False,
) -> Tensor:
    """The sums up to each element."""
    return _cumulative(fb.cumsum, fb.zeros, x, axis, dtype, include_initial)


def _cumulative(
    function: Callable[..., Any],
    initial: Any,
    x: Tensor,
    axis: int | None,
    dtype: object | None,
    starts: builtins.bool,
) -> Tensor:
    if axis is None:
        if x.ndim > 1:
            raise ValueError("of more than one dimension `axis` has to be given")
        axis, x = 0, x.reshape(-1)
    dtype = dtype or _accumulated(x.dtype)
    out = function(x.to(dtype), axis, dtype=dtype)
    if starts:
        shape = list(out.shape)
        shape[axis] = 1
        out = fb.cat([initial(shape, dtype=out.dtype, device=out.device), out], axis)
    return out


def diff(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """The differences between neighbours, `n` times."""
    return fb.diff(x, n, axis, prepend, append)


def max(x: Tensor, /, *, axis: object = None, keepdims: builtins.bool = False) -> Tensor:
    """The greatest element."""
    return fb.amax(x, axes(x, axis), keepdims) if axes(x, axis) else x


def min(x: Tensor, /, *, axis: object = None, keepdims: builtins.bool = False) -> Tensor:
    """The least element."""
    return fb.amin(x, axes(x, axis), keepdims) if axes(x, axis) else x


def mean(x: Tensor, /, *, axis: object = None, keepdims: builtins.bool = False) -> Tensor:
    """The mean of the elements."""
    return fb.mean(x, axes(x, axis), keepdims) if axes(x, axis) else x.clone()


def prod(
    x: Tensor,
    /,
    *,
    axis: object = None,
    dtype: DType | None = None,
    keepdims: builtins.bool = False,
) -> Tensor:
    """The product of the elements."""
    dtype = dtype or _accumulated(x.dtype)
    product = partial(fb.prod, dtype=dtype)
    return _one_by_one(product, x.to(dtype), axis, keepdims)


def sum(
    x: Tensor,
    /,
    *,
    axis: object = None,
    dtype: DType | None = None,
    keepdims: builtins.bool = False,
) -> Tensor:
    """The sum of the elements."""
    dtype = dtype or _accumulated(x.dtype)
    if not axes(x, axis):
        return x.to(dtype, copy=True)
    return fb.sum(x.to(dtype), axes(x, axis), keepdims, dtype=dtype)


def std(
    x: Tensor, /, *, axis: object = None, correction: float = 0.0, keepdims: builtins.bool = False
) -> Tensor:
    """The standard deviation of the elements."""
    return fb.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def var(
    x: Tensor, /, *, axis: object = None, correction: float = 0.0, keepdims: builtins.bool = False
) -> Tensor:
    """The variance of the elements: squares of deviations over their number less `correction`."""
    if x.dtype not in REAL + COMPLEX:
        raise TypeError(f"var(): needs floating elements, not {x.dtype}")
    dims = axes(x, axis)
    if not dims:
        return fb.abs(x - x)  # nan stays
    return fb.var(x, dims, correction=correction, keepdim=keepdims)


all_take_as_annotated(globals())
