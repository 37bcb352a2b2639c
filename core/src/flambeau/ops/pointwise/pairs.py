"""Elementwise functions of two tensors, and of the parts of a floating number."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._dispatch.promotion import result_type
from flambeau._tensor.printing import named_tuple
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._writes.out import deliver, deliver_all
from flambeau.ops.declaration.public import public
from flambeau.ops.pointwise.elementwise import (
    exp,
    floor,
    isinf,
    isnan,
    log1p,
    log2,
    pow,
    remainder,
    trunc,
    where,
)
from flambeau.ops.shapes.movement import broadcast_tensors
from flambeau.ops.special_functions.special import exp2, signbit


class frexp_return(NamedTuple):  # noqa: N801
    """What `frexp` returns."""

    mantissa: Tensor
    exponent: Tensor
    __repr__ = named_tuple


def _two(name: str, input: Any, other: Any, *, to_float: bool = False) -> tuple[Tensor, Tensor]:
    x = need_tensor(input, name, "input")
    y = need_tensor(other, name, "other")
    dtype = result_type(x, y)
    if to_float and not dtype.fp:
        dtype = D.get_default_dtype()
    return cast(x, dtype), cast(y, dtype)


@public
def logaddexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log(eˣ + eʸ), without overflow on the way.

    >>> import flambeau as fb
    >>> fb.logaddexp(fb.tensor([1000.0]), fb.tensor([1000.0]))
    tensor([1000.6932])
    """
    high, gap = _high_and_gap(*_two("logaddexp", input, other))
    return deliver(high + log1p(exp(gap)), out, input, other)


@public
def logaddexp2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log₂(2ˣ + 2ʸ), without overflow on the way.

    >>> import flambeau as fb
    >>> fb.logaddexp2(fb.tensor([3.0]), fb.tensor([3.0]))
    tensor([4.])
    """
    high, gap = _high_and_gap(*_two("logaddexp2", input, other))
    return deliver(high + log1p(exp2(gap)) * (1 / math.log(2)), out, input, other)


def _high_and_gap(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The larger element, and the smaller one minus it; nan if one is.

    Chosen by `where`: `maximum` and `abs` have no second derivatives at equal elements.
    """
    swap = (y > x) | (y != y)
    high, low = where(swap, y, x), where(swap, x, y)
    return high, where(isinf(high) & (high == low), 0.0, low - high)


@public
def fmax(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The larger of two elements; nan only where both are.

    >>> import flambeau as fb
    >>> fb.fmax(fb.tensor([1.0, fb.nan]), fb.tensor([2.0, 2.0]))
    tensor([2., 2.])
    """
    x, y = _two("fmax", input, other)
    return deliver(where((x >= y) | (y != y), x, y), out, input, other)


@public
def fmin(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smaller of two elements; nan only where both are.

    >>> import flambeau as fb
    >>> fb.fmin(fb.tensor([1.0, fb.nan]), fb.tensor([2.0, 2.0]))
    tensor([1., 2.])
    """
    x, y = _two("fmin", input, other)
    return deliver(where((x <= y) | (y != y), x, y), out, input, other)


@public(inplace="method")
def copysign(input: Tensor, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The size of `input` with the sign of `other`, a tensor or a number; zeros have signs too.

    >>> import flambeau as fb
    >>> fb.copysign(fb.tensor([1.0, -2.0]), fb.tensor([-0.0, 3.0]))
    tensor([-1.,  2.])
    """
    if not isinstance(other, Tensor):
        other = need_tensor(input, "copysign", "input").new_full((), other, dtype=D.float64)
        if input.dtype.fp:
            other = cast(other, input.dtype)
    x, y = _two("copysign", input, other, to_float=True)
    size = x.abs()
    return deliver(where(signbit(y), -size, size), out, input, other)


@public(inplace="method")
def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = None) -> Tensor:
    """0 below zero, 1 above, and `values` at zero.  Not differentiable.

    Raises:
        RuntimeError: dtypes differ.

    >>> import flambeau as fb
    >>> fb.heaviside(fb.tensor([-1.5, 0.0, 2.0]), fb.tensor(0.5))
    tensor([0.0000, 0.5000, 1.0000])
    """
    x, y = need_tensor(input, "heaviside", "input"), need_tensor(values, "heaviside", "values")
    if x.dtype is not y.dtype:
        raise RuntimeError(
            "heaviside is not yet implemented for tensors with different dtypes: "
            f"{x.dtype} and {y.dtype}"
        )
    x, y = x.detach(), y.detach()
    return deliver(where(x == 0, y, cast(x > 0, x.dtype)), out, input, values, exact=True)


@public(inplace="both")
def ldexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """input · 2^other.

    >>> import flambeau as fb
    >>> fb.ldexp(fb.tensor([1.5]), fb.tensor([3]))
    tensor([12.])
    """
    x, y = need_tensor(input, "ldexp", "input"), need_tensor(other, "ldexp", "other")
    return deliver(x * exp2(y), out, input, other)


@public
def frexp(input: Tensor, *, out: Any = None) -> Any:
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
    size = cast(x.detach(), D.float64).abs()
    plain = (size != 0) & size.isfinite()
    size = where(plain, size, 0.5)
    exponent = floor(log2(size)) + 1
    # The logarithm may round up to a whole number, or down from one.
    part = _scaled(size, -exponent)
    exponent = exponent + cast(part >= 1, D.float64) - cast(part < 0.5, D.float64)
    exponent = where(plain, exponent, 0.0)
    mantissa = cast(_scaled(cast(x, D.float64), -exponent), x.dtype)
    found = (mantissa, cast(exponent, D.int32))
    return frexp_return(*deliver_all(found, out, input, exact=True))


def _scaled(x: Tensor, exponent: Tensor) -> Tensor:
    # In two steps: 2^1074 is no number.
    half = trunc(exponent * 0.5)
    return x * exp2(half) * exp2(exponent - half)


@public(inplace="method")
def float_power(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """input ^ exponent in float64 (complex128 for complex numbers).

    >>> import flambeau as fb
    >>> fb.float_power(fb.tensor([2]), 0.5)
    tensor([1.4142], dtype=torch.float64)
    """
    if not isinstance(exponent, Tensor):
        need_tensor(input, "float_power", "input")
    wide = D.complex128 if result_type(input, exponent).is_complex else D.float64
    x, y = (cast(v, wide) if isinstance(v, Tensor) else v for v in (input, exponent))
    if not isinstance(y, Tensor):
        y = x.new_full((), y)
    return deliver(pow(x, y), out, input, exponent, exact=True)


def _integers(name: str, input: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    x, y = _two(name, input, other)
    if x.dtype.category != 1 or x.dtype is D.bool_:
        raise NotImplementedError(f'"{name}" is not implemented for {x.dtype}: use integers')
    return x.abs(), y.abs()


@public(inplace="both")
def gcd(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The greatest common divisor of integers, not negative; gcd(0, 0) is 0.

    Raises:
        NotImplementedError: the dtype is not an integer one.

    >>> import flambeau as fb
    >>> fb.gcd(fb.tensor([12, 0]), fb.tensor([-18, 5]))
    tensor([6, 5])
    """
    x, y = _integers("gcd", input, other)
    x, y = broadcast_tensors(x, y)
    if not x.is_meta:
        while bool((y != 0).any()):
            more = y != 0
            rest = remainder(x, where(more, y, 1))
            x, y = where(more, y, x), where(more, rest, 0)
    return deliver(x, out, input, other)


@public(inplace="both")
def lcm(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The least common multiple of integers, not negative; 0 if one of them is 0.

    Raises:
        NotImplementedError: the dtype is not an integer one.

    >>> import flambeau as fb
    >>> fb.lcm(fb.tensor([4, 0]), fb.tensor([6, 5]))
    tensor([12,  0])
    """
    x, y = _integers("lcm", input, other)
    common = gcd(x, y)
    return deliver(x // where(common == 0, 1, common) * y, out, input, other)


@public(inplace="method")
def nextafter(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The next floating number after `input` in the direction of `other`.  Not differentiable.

    Raises:
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.nextafter(fb.tensor([1.0]), fb.tensor([2.0])) - 1 == fb.finfo(fb.float32).eps
    tensor([True])
    """
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
