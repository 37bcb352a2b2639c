"""Inverse hyperbolic functions, and angles in degrees.

Source of the formulas: Abramowitz & Stegun, Handbook of Mathematical Functions, chapter 4.6.
"""

from __future__ import annotations

import math

from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._writes.out import deliver
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.pointwise.complexes import complex as complex_of
from flambeau.ops.pointwise.elementwise import acos, asin, atan, log, log1p, sin, sqrt, where
from flambeau.ops.pointwise.floating_point import copysign


# Products with i would lose the signs of zeros, and make nan of infinities.
def _turned(z: Tensor) -> Tensor:
    """i·z."""
    return complex_of(-z.imag, z.real)


def _turned_back(z: Tensor) -> Tensor:
    """-i·z."""
    return complex_of(z.imag, -z.real)


_LARGE = 1e8  # from here on x² + 1 is x² in float64


@composite(promotes="float")
def _asinh(self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        return _turned_back(asin(_turned(self)))
    size = cast(self, D.float64).abs()
    near = where(size < _LARGE, size, 1.0)
    squared = near * near
    small = log1p(near + squared / (1 + sqrt(squared + 1)))
    found = where(size < _LARGE, small, log(size) + math.log(2))
    return cast(where(self < 0, -found, found), self.dtype)


@_asinh.gradient
def _(F, g, self):
    return F.mul(g, F.rsqrt(F.add(F.mul(self, self), F.scalar(1, self))))


@_asinh.samples
def _(S):
    return S.pointwise(S.Arr((2, 3)))


@composite(promotes="float")
def _acosh(self: Tensor) -> Tensor:
    if self.dtype.is_complex:  # ±i·acos(z), on the side where the real part is not negative
        angle = acos(self)
        return complex_of(angle.imag.abs(), copysign(angle.real, self.imag))
    x = cast(self, D.float64)
    near = where(x < _LARGE, x, 1.0)
    small = log1p((near - 1) + sqrt((near - 1) * (near + 1)))
    found = where(x < _LARGE, small, log(x) + math.log(2))
    return cast(where(x < 1, math.nan, found), self.dtype)


@_acosh.gradient
def _(F, g, self):
    one = F.scalar(1, self)
    if F.is_complex(self):  # the root of a product is not the product of roots there
        return F.mul(g, F.mul(F.rsqrt(F.add(self, one)), F.rsqrt(F.sub(self, one))))
    return F.mul(g, F.rsqrt(F.sub(F.mul(self, self), one)))


@_acosh.samples
def _(S):
    return S.pointwise(S.Arr((2, 3), low=1.25, high=3.5))


@composite(promotes="float")
def _atanh(self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        return _turned_back(atan(_turned(self)))
    x = cast(self, D.float64)
    return cast((log1p(x) - log1p(-x)) * 0.5, self.dtype)


@_atanh.gradient
def _(F, g, self):
    return F.div(g, F.sub(F.scalar(1, self), F.mul(self, self)))


@_atanh.samples
def _(S):
    return S.pointwise(S.Arr((2, 3), low=-0.9375, high=0.9375))


@public(inplace="both")
def asinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of sinh.

    >>> import flambeau as fb
    >>> fb.asinh(fb.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8814])
    """
    return deliver(need_tensor(input, "asinh", "input").asinh(), out, input)


@public(inplace="both")
def acosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of cosh, not negative; nan below 1.

    >>> import flambeau as fb
    >>> fb.acosh(fb.tensor([1.0, 2.0]))
    tensor([0.0000, 1.3170])
    """
    return deliver(need_tensor(input, "acosh", "input").acosh(), out, input)


@public(inplace="both")
def atanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of tanh; infinite at -1 and 1, nan outside.

    >>> import flambeau as fb
    >>> fb.atanh(fb.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5493])
    """
    return deliver(need_tensor(input, "atanh", "input").atanh(), out, input)


arcsinh, arccosh, arctanh = asinh, acosh, atanh


def _float(name: str, input: Tensor) -> Tensor:
    x = need_tensor(input, name, "input")
    return x if x.dtype.fp else cast(x, D.get_default_dtype())


@public(inplace="both")
def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """sin(πx) / (πx), 1 at 0.

    >>> import flambeau as fb
    >>> fb.sinc(fb.tensor([0.0, 0.5]))
    tensor([1.0000, 0.6366])
    """
    x = _float("sinc", input)
    turned = where(x == 0, 1.0, x) * math.pi
    return deliver(where(x == 0, 1.0, sin(turned) / turned), out, input)


@public(inplace="both")
def deg2rad(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Angles in degrees as radians.

    >>> import flambeau as fb
    >>> fb.deg2rad(fb.tensor([180.0]))
    tensor([3.1416])
    """
    return deliver(_float("deg2rad", input) * (math.pi / 180), out, input)


@public(inplace="both")
def rad2deg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Angles in radians as degrees.

    >>> import flambeau as fb
    >>> fb.rad2deg(fb.tensor([1.0]))
    tensor([57.2958])
    """
    return deliver(_float("rad2deg", input) * (180 / math.pi), out, input)
