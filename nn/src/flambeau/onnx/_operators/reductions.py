"""Reductions over axes, which new versions take as an input and old ones as an attribute."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.onnx._operators.table import OPERATORS, Context, axis_of, integers, late

Reduce = Callable[[Tensor, tuple[int, ...], bool], Tensor]


def _reduction(
    function: Reduce, of_one: Callable[[Tensor], Tensor] = lambda x: x
) -> Callable[..., Any]:
    """An operator for a reduction; `of_one` is what it makes of single elements."""

    def run(
        c: Context,
        x: Tensor,
        over: Tensor | None = None,
        axes: list[int] | None = None,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Tensor:
        dims = tuple(axis_of(a, x.dim()) for a in integers(over if axes is None else axes))
        if not dims:
            if noop_with_empty_axes:
                return of_one(x)
            dims = tuple(range(x.dim()))
        return (function(x, dims, bool(keepdims)) if dims else of_one(x)).to(x.dtype)

    return run


def _sum(x: Tensor, dims: tuple[int, ...], keep: bool) -> Tensor:
    return x.sum(dims, keepdim=keep)


def _prod(x: Tensor, dims: tuple[int, ...], keep: bool) -> Tensor:
    for dim in sorted(dims, reverse=True):
        x = x.prod(dim, keepdim=keep)
    return x


def _extreme(largest: bool) -> Reduce:
    def reduce(x: Tensor, dims: tuple[int, ...], keep: bool) -> Tensor:
        if x.dtype is fb.bool:
            found = reduce(x.to(fb.uint8), dims, keep)
            return found.to(fb.bool)
        if any(x.shape[d] == 0 for d in dims):
            sizes = [1 if d in dims else n for d, n in enumerate(x.shape) if keep or d not in dims]
            return fb.full(sizes, _bound(x.dtype, not largest), dtype=x.dtype, device=x.device)
        return x.amax(dims, keep) if largest else x.amin(dims, keep)

    return reduce


def _bound(dtype: fb.dtype, largest: bool) -> float:
    """The neutral number of a minimum (of a maximum, for not `largest`)."""
    if dtype.is_floating_point:
        return math.inf if largest else -math.inf
    info = fb.iinfo(dtype)
    return info.max if largest else info.min


def _logsumexp(x: Tensor, dims: tuple[int, ...], keep: bool) -> Tensor:
    return (x if x.dtype.is_floating_point else x.double()).logsumexp(dims, keepdim=keep)


def _float(x: Tensor) -> Tensor:
    return x if x.dtype.is_floating_point else x.double()


for _name, _entry in {
    "ReduceL1": (lambda x, d, k: _sum(x.abs(), d, k), late(fb.abs)),
    "ReduceL2": (lambda x, d, k: _sum(_float(x) * _float(x), d, k).sqrt(), late(fb.abs)),
    "ReduceLogSum": (lambda x, d, k: _sum(_float(x), d, k).log(), late(fb.log)),
    "ReduceLogSumExp": (_logsumexp,),
    "ReduceMax": (_extreme(True),),
    "ReduceMean": (lambda x, d, k: _float(x).mean(d, keepdim=k),),
    "ReduceMin": (_extreme(False),),
    "ReduceProd": (_prod,),
    "ReduceSum": (_sum,),
    "ReduceSumSquare": (lambda x, d, k: _sum(x * x, d, k), lambda x: x * x),
}.items():
    OPERATORS["", _name] = _reduction(*_entry)


def _arg(function: Callable[..., Tensor]) -> Callable[..., Any]:
    def run(
        c: Context, x: Tensor, axis: int = 0, keepdims: int = 1, select_last_index: int = 0
    ) -> Tensor:
        if not select_last_index:
            return function(x, axis, bool(keepdims))
        return x.shape[axis] - 1 - function(x.flip(axis), axis, bool(keepdims))

    return run


OPERATORS["", "ArgMax"] = _arg(late(fb.argmax))
OPERATORS["", "ArgMin"] = _arg(late(fb.argmin))
