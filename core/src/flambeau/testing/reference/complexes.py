"""Functions of complex numbers that return where `cmath` raises.

Finite arguments give the value on the principal branch of C99 (annex G), with infinities where the
result overflows.  Where C99 calls the operation invalid, the result is NaN in both parts.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable

from flambeau.testing.reference import scalars

INF = math.inf
NAN = complex(math.nan, math.nan)
_BIG = 700.0  # exp(700) is finite and exp(1400) is not

Function = Callable[[complex], complex]


def or_nan(function: Function) -> Function:
    """`function`, with NaN where `cmath` finds the argument invalid."""

    def total(z: complex) -> complex:
        try:
            return function(z)
        except ValueError:
            return NAN

    return total


def multiply(a: complex, b: complex) -> complex:
    """The schoolbook product, without the recovery of infinities that C99 suggests."""
    return complex(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)


def divide(a: complex, b: complex) -> complex:
    """The quotient; by zero, each part is divided by the zero."""
    if b == 0:
        return complex(scalars.divide(a.real, b.real), scalars.divide(a.imag, b.real))
    return a / b


def power(a: complex, b: complex) -> complex:
    """exp(b log a); a zero to a power with positive real part is 0, 0**0 is 1, else NaN."""
    if b == 0:
        return 1 + 0j
    if a == 0:
        return 0j if b.real > 0 else NAN
    return exp(multiply(b, log(a)))


def absolute(z: complex) -> float:
    return math.hypot(z.real, z.imag)


def sign(z: complex) -> complex:
    """z/|z|, and 0 for 0."""
    size = absolute(z)
    return z if size == 0 else complex(z.real / size, z.imag / size)


def _scaled_exp(x: float, y: float) -> complex:
    """exp(x + iy) where the plain function overflows: infinite parts, each with its sign."""
    direction = cmath.exp(complex(min(x, 2 * _BIG) - _BIG, y))
    scale = math.exp(_BIG)
    return complex(direction.real * scale, direction.imag * scale)


@or_nan
def exp(z: complex) -> complex:
    try:
        return cmath.exp(z)
    except OverflowError:
        return _scaled_exp(z.real, z.imag)


@or_nan
def sinh(z: complex) -> complex:
    try:
        return cmath.sinh(z)
    except OverflowError:
        grown = _scaled_exp(abs(z.real) - math.log(2), z.imag)
        return complex(math.copysign(1, z.real) * grown.real, grown.imag)


@or_nan
def cosh(z: complex) -> complex:
    try:
        return cmath.cosh(z)
    except OverflowError:
        grown = _scaled_exp(abs(z.real) - math.log(2), z.imag)
        return complex(grown.real, math.copysign(1, z.real) * grown.imag)


def sin(z: complex) -> complex:
    """-i sinh(iz)."""
    turned = sinh(complex(-z.imag, z.real))
    return complex(turned.imag, -turned.real)


def cos(z: complex) -> complex:
    """cosh(iz)."""
    return cosh(complex(-z.imag, z.real))


@or_nan
def log(z: complex) -> complex:
    return complex(-INF, cmath.phase(z)) if z == 0 else cmath.log(z)


def log1p(z: complex) -> complex:
    """log(1 + z), keeping the digits of a small z."""
    if not absolute(z) < 0.5:
        return log(complex(1 + z.real, z.imag))
    size = scalars.log1p(z.real * (2 + z.real) + z.imag * z.imag) / 2
    return complex(size, math.atan2(z.imag, 1 + z.real))


def expm1(z: complex) -> complex:
    """exp(z) - 1, keeping the digits of a small z."""
    if not absolute(z) < 0.5:
        grown = exp(z)
        return complex(grown.real - 1, grown.imag)
    x, y = z.real, z.imag
    real = math.expm1(x) * math.cos(y) - 2 * math.sin(y / 2) ** 2
    return complex(real, math.exp(x) * math.sin(y))


tan = or_nan(cmath.tan)
tanh = or_nan(cmath.tanh)
asin = or_nan(cmath.asin)
acos = or_nan(cmath.acos)
sqrt = or_nan(cmath.sqrt)


@or_nan
def atan(z: complex) -> complex:
    if z.real == 0 and abs(z.imag) == 1:
        return complex(z.real, math.copysign(INF, z.imag))
    return cmath.atan(z)


def reciprocal(z: complex) -> complex:
    return divide(1 + 0j, z)


def rsqrt(z: complex) -> complex:
    return reciprocal(sqrt(z))
