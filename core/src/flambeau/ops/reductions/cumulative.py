"""Cumulative sums, products and extrema, and logarithms of sums of exponentials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from flambeau._dispatch.arguments import dim_of, need_input, need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._dispatch.halves import is_half
from flambeau._tensor.printing import named_tuple
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.dtype import dtype as DType
from flambeau._writes.out import deliver, deliver_all
from flambeau.ops.creation.ranges import arange
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite, primitive
from flambeau.ops.pointwise.binary import logaddexp
from flambeau.ops.pointwise.elementwise import where
from flambeau.ops.reductions.reduction import _part, accumulated
from flambeau.ops.shapes.movement import cat


@named_tuple
class _Running(NamedTuple):
    values: Tensor
    indices: Tensor


class cummax_return(_Running):  # noqa: N801
    """What `cummax` returns."""


class cummin_return(_Running):  # noqa: N801
    """What `cummin` returns."""


@primitive
def _cumsum(self: Tensor, dim: int) -> Tensor:
    return self


@_cumsum.gradient
def _(F, g, dim):
    if not g.shape:
        return g
    return F.flip(F.cumsum(F.flip(g, (dim,)), dim), (dim,))


@primitive
def _cumprod(self: Tensor, dim: int) -> Tensor:
    return self


@_cumprod.gradient
def _(F, g, self, dim):
    # For each element j the products without it, so that zeros are exact.
    if not self.shape or 0 in self.shape:
        return g
    n = self.shape[dim]
    line = tuple(1 if d == dim else m for d, m in enumerate(self.shape))
    one = F.add(F.zeros(line, g), F.scalar(1, g))
    parts = []
    for j in range(n):
        before = F.prod(_part(F, self, dim, 0, j), (dim,), True)
        after = F.cumprod(F.cat([one, _part(F, self, dim, j + 1, n)], dim), dim)
        weighted = F.sum(F.mul(_part(F, g, dim, j, n), after), (dim,), True)
        parts.append(F.mul(before, weighted))
    return F.cat(parts, dim)


@public(inplace="method", same_dtype=True)
def cumsum(
    input: Tensor, dim: int, *, dtype: DType | None = None, out: Tensor | None = None
) -> Tensor:
    """Running sums along `dim`.

    >>> import flambeau as fb
    >>> fb.cumsum(fb.tensor([1, 2, 3]), 0)
    tensor([1, 3, 6])
    """
    x = accumulated(need_input(input, "cumsum", "input"), dtype, out)
    rank = len(x._a.shape)
    d = dim_of(dim, rank)
    result = _cumsum.run(x, d) if rank else x.clone()
    return result if out is None else deliver(result, out, input, exact=True)


@public(inplace="method", same_dtype=True)
def cumprod(
    input: Tensor, dim: int, *, dtype: DType | None = None, out: Tensor | None = None
) -> Tensor:
    """Running products along `dim`.

    >>> import flambeau as fb
    >>> fb.cumprod(fb.tensor([1, 2, 3]), 0)
    tensor([1, 2, 6])
    """
    x = accumulated(need_input(input, "cumprod", "input"), dtype, out)
    rank = len(x._a.shape)
    d = dim_of(dim, rank)
    result = _cumprod.run(x, d) if rank else x.clone()
    return result if out is None else deliver(result, out, input, exact=True)


@public
def cummax(input: Tensor, dim: int, *, out: Sequence[Tensor] | None = None) -> cummax_return:
    """The largest element so far along a dimension, and where it is: the last of equal ones.

    From a nan on the result is nan.

    >>> import flambeau as fb
    >>> fb.cummax(fb.tensor([1, 3, 2, 3]), 0).indices
    tensor([0, 1, 1, 3])
    """
    found = _extrema(need_tensor(input, "cummax", "input"), dim, True)
    return cummax_return(*deliver_all(found, out, input, exact=True, share="anything"))


@public
def cummin(input: Tensor, dim: int, *, out: Sequence[Tensor] | None = None) -> cummin_return:
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
    if x.dtype.is_complex and x.numel():
        name = "cummax" if largest else "cummin"
        raise NotImplementedError(f'"{name}_cpu" not implemented for {x.dtype}')
    place = _running_place(x, d, largest)
    return x.gather(d, place), place


@composite(differentiable=False, out=D.int64)
def _running_place(self: Tensor, dim: int, largest: bool) -> Tensor:
    """Where along `dim` the extreme element so far is; windows that touch are joined by twos."""
    n = self.shape[dim]
    line = [1] * self.dim()
    line[dim] = n
    best = self
    place = arange(n, device=self.device).reshape(line).expand(tuple(self.shape)).contiguous()
    step = 1
    while step < n:
        early, late = best.narrow(dim, 0, n - step), best.narrow(dim, step, n - step)
        better = (late >= early if largest else late <= early) | (late != late)
        better = better & ((early == early) | (late != late))
        best = cat([best.narrow(dim, 0, step), where(better, late, early)], dim)
        there = place.narrow(dim, step, n - step)
        chosen = where(better, there, place.narrow(dim, 0, n - step))
        place = cat([place.narrow(dim, 0, step), chosen], dim)
        step *= 2
    return place


@_running_place.samples(D.float32, D.float64, D.int64, D.int32, D.bool_)
def _(S):
    return [
        S.Sample((S.Arr((7,)), 0, True), "of a vector"),
        S.Sample((S.Arr((7,)), 0, False), "the least"),
        S.Sample((S.Arr((3, 5)), 1, True), "of rows"),
        S.Sample((S.Arr((3, 5)), 0, False), "of columns"),
        S.Sample((S.Arr((2, 4, 3)), 1, True), "in the middle"),
        S.Sample((S.Arr((2, 0)), 1, True), "of nothing"),
        S.Sample((S.Arr((0, 2)), 1, True), "of no rows"),
    ]


@composite
def _logcumsumexp(self: Tensor, dim: int) -> Tensor:
    if not self.dim():
        return self.clone()
    x = cast(self, D.float32) if is_half(self.dtype) else self
    n, step = x.shape[dim], 1
    while step < n:
        joined = logaddexp(x.narrow(dim, step, n - step), x.narrow(dim, 0, n - step))
        x = cat([x.narrow(dim, 0, step), joined], dim)
        step *= 2
    return self.clone() if x is self else cast(x, self.dtype)


@_logcumsumexp.gradient
def _(F, g, self, result, dim):
    if not g.shape:
        return g
    # exp(element - sum) times g, of each sum that contains the element, joined by twos: sums rise,
    # so that exponents are not above 0 but for rounding, and two infinities are as far as one.
    # What is linear in g has a forward derivative.
    zero = F.scalar(0, g)
    n, step = g.shape[dim], 1
    whole = [slice(0, length, 1) for length in g.shape[:dim]]
    while step < n:
        head, tail = (*whole, slice(0, n - step, 1)), (*whole, slice(step, n, 1))
        early, late = F.slice(result, head), F.slice(result, tail)
        share = F.exp(F.where(F.le(late, early), zero, F.sub(early, late)))
        joined = F.add(F.slice(g, head), F.mul(share, F.slice(g, tail)))
        g = F.cat((joined, F.slice(g, (*whole, slice(n - step, n, 1)))), dim)
        step *= 2
    # A sum that is -inf passes nothing on.
    sums = F.where(F.eq(result, F.scalar(-math.inf, g)), zero, result)
    return F.mul(g, F.exp(F.sub(self, sums)))


@_logcumsumexp.samples
def _(S):
    return [
        S.Sample((S.Arr((7,)), 0), "of a vector", True),
        S.Sample((S.Arr((3, 5)), 1), "of rows", True),
        S.Sample((S.Arr((3, 5)), 0), "of columns", True),
        S.Sample((S.Arr((2, 4, 3)), 1), "in the middle", True),
        S.Sample((S.Arr(()), 0), "of a number", True),
        S.Sample((S.Arr((2, 0)), 1), "of nothing"),
        S.Sample((S.Arr((0, 2)), 1), "of no rows"),
    ]


@public
def logcumsumexp(input: Tensor, dim: int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the running sum of exponentials along a dimension.

    Raises:
        NotImplementedError: the dtype is not a real floating one.

    >>> import flambeau as fb
    >>> fb.logcumsumexp(fb.zeros(3), 0)
    tensor([0.0000, 0.6931, 1.0986])
    """
    x = need_tensor(input, "logcumsumexp", "input")
    d = dim_of(dim, x.dim())
    if not x.dtype.is_floating_point:
        raise NotImplementedError(f'"logcumsumexp" is not implemented for {x.dtype}: use floats')
    return deliver(_logcumsumexp.run(x, d), out, input, exact=True)
