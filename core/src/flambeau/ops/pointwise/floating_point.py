"""Floating numbers as such: their parts, signs, neighbours, infinities and nan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.printing import named_tuple
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.finfo import finfo
from flambeau._types.hints import Number
from flambeau._writes.in_one import in_one
from flambeau._writes.inplace import put_into
from flambeau._writes.out import deliver, deliver_all
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import OPS, composite
from flambeau.ops.pointwise.binary import _two
from flambeau.ops.pointwise.elementwise import floor, isinf, isnan, log2, replaced, trunc, where
from flambeau.ops.shapes.broadcasting import broadcast_tensors
from flambeau.ops.special_functions.special import exp2


@named_tuple
class frexp_return(NamedTuple):  # noqa: N801
    """What `frexp` returns."""

    mantissa: Tensor
    exponent: Tensor


@public(inplace="method")
def copysign(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The size of `input` with the sign of `other`, a tensor or a number; zeros have signs too.

    >>> import flambeau as fb
    >>> fb.copysign(fb.tensor([1.0, -2.0]), fb.tensor([-0.0, 3.0]))
    tensor([-1.,  2.])
    """
    if (found := in_one("copysign", input, other)) is not None:
        return deliver(found, out, input, other)
    if not isinstance(other, Tensor):
        other = need_tensor(input, "copysign", "input").new_full((), other, dtype=D.float64)
        other = cast(other, input.dtype if input.dtype.fp else D.get_default_dtype())
    x, y = _two("copysign", input, other, to_float=True)
    size = x.abs()
    return deliver(where(signbit(y), -size, size), out, input, other)


@public(inplace="both")
def ldexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """input · 2^other.

    >>> import flambeau as fb
    >>> fb.ldexp(fb.tensor([1.5]), fb.tensor([3]))
    tensor([12.])
    """
    x, y = need_tensor(input, "ldexp", "input"), need_tensor(other, "ldexp", "other")
    return deliver(x * exp2(y), out, input, other)


@composite(results=2)
def _frexp(self: Tensor) -> tuple[Tensor, Tensor]:
    size = cast(self, D.float64).abs()
    plain = (size != 0) & size.isfinite()
    size = where(plain, size, 0.5)
    exponent = floor(log2(size)) + 1
    # The logarithm may round up to a whole number, or down from one.
    part = _scaled(size, -exponent)
    exponent = exponent + cast(part >= 1, D.float64) - cast(part < 0.5, D.float64)
    exponent = where(plain, exponent, 0.0)
    mantissa = cast(_scaled(cast(self, D.float64), -exponent), self.dtype)
    return mantissa, cast(exponent, D.int32)


@_frexp.gradient
def _(F, g, result1):
    scale = g[0]
    # In two steps: the least numbers' factor is none.
    half = F.floor_divide(result1, F.scalar(-2, result1))
    two = F.scalar(2, scale)
    rest = F.sub(F.neg(result1), half)
    scale = F.mul(scale, F.pow(two, F.cast_like(half, scale)))
    return F.mul(scale, F.pow(two, F.cast_like(rest, scale)))


@_frexp.samples
def _(S):
    between = S.pointwise(S.Arr((2, 3), low=2.1, high=3.9))  # jumps, at powers of two
    return [*between, S.Sample((S.Arr((4, 5)),), "of any size")]


@public
def frexp(input: Tensor, *, out: Sequence[Tensor] | None = None) -> frexp_return:
    """(mantissa, exponent) with input = mantissa · 2^exponent and 1/2 ≤ abs(mantissa) < 1.

    Exponents are int32; zeros, infinities and nan have exponent 0.

    Raises:
        RuntimeError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.frexp(fb.tensor([6.0])).mantissa, fb.frexp(fb.tensor([6.0])).exponent
    (tensor([0.7500]), tensor([3], dtype=torch.int32))
    """
    x = need_tensor(input, "frexp", "input")
    if not x.dtype.is_floating_point:
        raise RuntimeError(f"torch.frexp() only supports floating-point dtypes, got {x.dtype}")
    return frexp_return(*deliver_all(_frexp.run(x), out, input, exact=True))


def _scaled(x: Tensor, exponent: Tensor) -> Tensor:
    # In two steps: 2^1074 is no number.
    half = trunc(exponent * 0.5)
    return x * exp2(half) * exp2(exponent - half)


@public(inplace="method")
def nextafter(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The next floating number after `input` in the direction of `other`.  Not differentiable.

    Raises:
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.nextafter(fb.tensor([1.0]), fb.tensor([2.0])) - 1 == fb.finfo(fb.float32).eps
    tensor([True])
    """
    if (found := in_one("nextafter", input, other)) is not None:
        return deliver(found, out, input, other)
    need_tensor(input, "nextafter", "input")
    need_tensor(other, "nextafter", "other")
    x, y = _two("nextafter", input.detach(), other.detach())
    if not x.dtype.is_floating_point:
        raise NotImplementedError(f'"nextafter" is not implemented for {x.dtype}: use floats')
    x, y = broadcast_tensors(x, y)
    kind = {2: D.int16, 4: D.int32, 8: D.int64}[x.dtype.itemsize]
    bits = x.view(kind)
    # Numbers of one sign are ordered as their bits are.
    away = cast((y > x) == (x > 0), kind)
    stepped = (bits + (away * 2 - 1)).view(x.dtype)
    least = (bits * 0 + 1).view(x.dtype)
    stepped = where(x == 0, where(y > 0, least, -least), stepped)
    return deliver(
        where(x == y, y, where(isnan(x) | isnan(y), math.nan, stepped)), out, input, other
    )


@public
def isposinf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether each element is +inf.

    >>> import flambeau as fb
    >>> fb.isposinf(fb.tensor([fb.inf, -fb.inf]))
    tensor([ True, False])
    """
    x = need_tensor(input, "isposinf", "input")
    return deliver(isinf(x) & (x > 0), out, input, exact=True)


@public
def isneginf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether each element is -inf.

    >>> import flambeau as fb
    >>> fb.isneginf(fb.tensor([fb.inf, -fb.inf]))
    tensor([False,  True])
    """
    x = need_tensor(input, "isneginf", "input")
    return deliver(isinf(x) & (x < 0), out, input, exact=True)


@public(inplace="both")
def frac(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """What follows the decimal point, with the sign of the number.

    Raises:
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.frac(fb.tensor([1.5, -2.25]))
    tensor([ 0.5000, -0.2500])
    """
    if (found := in_one("frac", input)) is not None:
        return deliver(found, out, input, exact=True)
    x = need_tensor(input, "frac", "input")
    if not x.dtype.is_floating_point:
        raise NotImplementedError(f'"frac_cpu" not implemented for {x.dtype}: it has no fractions')
    return deliver(x - trunc(x), out, input, exact=True)


@public(inplace="both")
def nan_to_num(
    input: Tensor,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """nan replaced by `nan` or 0, infinities by `posinf`, `neginf` or the extremes of the dtype.

    >>> import flambeau as fb
    >>> fb.nan_to_num(fb.tensor([float("nan"), float("inf")]), posinf=9.0)
    tensor([0., 9.])
    """
    if (found := in_one("nan_to_num", input, nan, posinf, neginf)) is not None:
        return deliver(found, out, input, exact=True)
    x = need_tensor(input, "nan_to_num", "input")
    if not x.dtype.is_floating_point:
        return deliver(x.clone(), out, input, exact=True)
    limits = finfo(x.dtype)
    bounded = posinf is None and neginf is None and x.dtype.itemsize > 1
    if bounded:
        x = put_into(OPS["clamp"], x, limits.min, limits.max)  # which keeps nan
    found = replaced(x, isnan(x), nan or 0.0)
    if not bounded:  # by what was there: what takes its place may be infinite
        found = replaced(found, x == math.inf, limits.max if posinf is None else posinf)
        found = replaced(found, x == -math.inf, limits.min if neginf is None else neginf)
    return deliver(found, out, input, exact=True)


_INTEGERS = {1: D.int8, 2: D.int16, 4: D.int32, 8: D.int64}  # by their bytes


@public
def signbit(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether the sign of the number is minus: -0.0 and nan have signs too.

    >>> import flambeau as fb
    >>> fb.signbit(fb.tensor([-0.0, 0.0, -1.0, float("nan")]))
    tensor([ True, False,  True, False])
    """
    x = need_tensor(input, "signbit", "input")
    if x.dtype.is_floating_point:
        x = x.detach().view(_INTEGERS[x.dtype.itemsize])
    return deliver(x < 0, out, input, exact=True)
