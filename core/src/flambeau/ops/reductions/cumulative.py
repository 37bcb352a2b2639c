"""Cumulative extrema and sums of exponentials."""

from __future__ import annotations

from typing import Any, NamedTuple

from flambeau._dispatch.arguments import dim_of, need_tensor
from flambeau._tensor.printing import named_tuple
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._writes.out import deliver, deliver_all
from flambeau.ops.creation.creation import arange
from flambeau.ops.declaration.public import public
from flambeau.ops.pointwise.binary import logaddexp
from flambeau.ops.pointwise.elementwise import where
from flambeau.ops.shapes.movement import cat


class _Running(NamedTuple):
    values: Tensor
    indices: Tensor
    __repr__ = named_tuple


class cummax_return(_Running):  # noqa: N801
    """What `cummax` returns."""


class cummin_return(_Running):  # noqa: N801
    """What `cummin` returns."""


@public
def cummax(input: Tensor, dim: int, *, out: Any = None) -> Any:
    """The largest element so far along a dimension, and where it is: the last of equal ones.

    From a nan on the result is nan.

    >>> import flambeau as fb
    >>> fb.cummax(fb.tensor([1, 3, 2, 3]), 0).indices
    tensor([0, 1, 1, 3])
    """
    found = _extrema(need_tensor(input, "cummax", "input"), dim, True)
    return cummax_return(*deliver_all(found, out, input, exact=True, share="anything"))


@public
def cummin(input: Tensor, dim: int, *, out: Any = None) -> Any:
    """The smallest element so far along a dimension, and where it is: the last of equal ones.

    From a nan on the result is nan.

    >>> import flambeau as fb
    >>> fb.cummin(fb.tensor([2, 3, 1]), 0).values
    tensor([2, 2, 1])
    """
    found = _extrema(need_tensor(input, "cummin", "input"), dim, False)
    return cummin_return(*deliver_all(found, out, input, exact=True, share="anything"))


def _extrema(x: Tensor, dim: int, largest: bool) -> tuple[Tensor, Tensor]:
    d = dim_of(dim, x.dim())
    if not x.dim():
        return x.clone(), x.new_zeros((), dtype=D.int64)
    n = x.shape[d]
    best = x.detach()
    line = [1] * x.dim()
    line[d] = n
    place = arange(n, device=x.device).reshape(line).expand(tuple(x.shape)).contiguous()
    # Windows that double in length: each step joins two that touch.
    step = 1
    while step < n:
        early, late = best.narrow(d, 0, n - step), best.narrow(d, step, n - step)
        better = (late >= early if largest else late <= early) | (late != late)
        better = better & ((early == early) | (late != late))
        best = cat([best.narrow(d, 0, step), where(better, late, early)], d)
        there = place.narrow(d, step, n - step)
        chosen = where(better, there, place.narrow(d, 0, n - step))
        place = cat([place.narrow(d, 0, step), chosen], d)
        step *= 2
    return x.gather(d, place), place


@public
def logcumsumexp(input: Tensor, dim: int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the running sum of exponentials along a dimension.

    >>> import flambeau as fb
    >>> fb.logcumsumexp(fb.zeros(3), 0)
    tensor([0.0000, 0.6931, 1.0986])
    """
    x = need_tensor(input, "logcumsumexp", "input")
    d = dim_of(dim, x.dim())
    if x.dim():
        n, step = x.shape[d], 1
        while step < n:
            joined = logaddexp(x.narrow(d, step, n - step), x.narrow(d, 0, n - step))
            x = cat([x.narrow(d, 0, step), joined], d)
            step *= 2
    return deliver(x.clone() if x is input else x, out, input, exact=True)
