"""Functions of one or two Python floats or ints with IEEE 754 results instead of exceptions.

`math` raises where C99 (annex F) returns NaN or an infinity; these return what C99 does.
"""

from __future__ import annotations

import math
from collections.abc import Callable

INF = math.inf
NAN = math.nan


def or_nan(function: Callable[[float], float]) -> Callable[[float], float]:
    """`function`, with NaN outside its domain."""

    def total(x: float) -> float:
        try:
            return function(x)
        except ValueError:
            return NAN

    return total


def exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return INF


def expm1(x: float) -> float:
    try:
        return math.expm1(x)
    except OverflowError:
        return INF


def sinh(x: float) -> float:
    try:
        return math.sinh(x)
    except OverflowError:
        return math.copysign(INF, x)


def cosh(x: float) -> float:
    try:
        return math.cosh(x)
    except OverflowError:
        return INF


def _logarithm(function: Callable[[float], float], pole: float) -> Callable[[float], float]:
    def total(x: float) -> float:
        return function(x) if x > pole else -INF if x == pole else NAN

    return total


log = _logarithm(math.log, 0.0)
log1p = _logarithm(math.log1p, -1.0)

sin = or_nan(math.sin)
cos = or_nan(math.cos)
tan = or_nan(math.tan)
asin = or_nan(math.asin)
acos = or_nan(math.acos)
sqrt = or_nan(math.sqrt)


def rsqrt(x: float) -> float:
    return divide(1.0, sqrt(x))


def reciprocal(x: float) -> float:
    return divide(1.0, x)


def sign(x: float) -> float:
    """-1, 0 or 1; 0 for NaN, too."""
    return float((x > 0) - (x < 0))


def _rounding(function: Callable[[float], int]) -> Callable[[float], float]:
    """`function` as a float; non-finite values stay, a zero has the sign of its argument."""

    def total(x: float) -> float:
        return math.copysign(function(x), x) if math.isfinite(x) else x

    return total


floor = _rounding(math.floor)
ceil = _rounding(math.ceil)
trunc = _rounding(math.trunc)
round_half_even = _rounding(round)


def divide(x: float, y: float) -> float:
    """IEEE quotient: x/0 is an infinity, 0/0 is NaN."""
    if y == 0:
        return NAN if x == 0 or x != x else math.copysign(INF, x) * math.copysign(1.0, y)
    return x / y


def power(x: float, y: float) -> float:
    """C99 pow: zero to a negative power is infinite, a negative to a fraction is NaN."""
    try:
        return math.pow(x, y)
    except OverflowError:
        return -INF if x < 0 and _is_odd(y) else INF
    except ValueError:
        if x == 0:
            return math.copysign(INF, x) if _is_odd(y) else INF
        return NAN


def _is_odd(y: float) -> bool:
    return math.fmod(y, 2.0) in (1.0, -1.0)


def fmod(x: float, y: float) -> float:
    """Remainder with the dividend's sign; NaN for a zero divisor or an infinite dividend."""
    try:
        return math.fmod(x, y)
    except ValueError:
        return NAN


def remainder(x: float, y: float) -> float:
    """Remainder with the divisor's sign; an exact zero keeps the dividend's."""
    rest = fmod(x, y)
    return rest + y if rest != 0 and (rest < 0) != (y < 0) else rest


def floor_divide(x: float, y: float) -> float:
    """Floor of the exact quotient, by way of the exact remainder; x/0 as in `divide`."""
    if y == 0:
        return divide(x, y)
    rest = fmod(x, y)
    quotient = (x - rest) / y
    if rest != 0 and (rest < 0) != (y < 0):
        quotient -= 1
    if quotient == 0:
        return math.copysign(0.0, x) * math.copysign(1.0, y)
    return float(round(quotient)) if math.isfinite(quotient) else quotient


def maximum(x: float, y: float) -> float:
    """The larger, the first if equal; NaN if either is NaN."""
    return x if x != x or x >= y else y


def minimum(x: float, y: float) -> float:
    """The smaller, the first if equal; NaN if either is NaN."""
    return x if x != x or x <= y else y


def int_power(x: int, y: int, bits: int) -> int:
    """x**y modulo 2**bits; a negative power of an integer truncates towards zero (0 gives 0)."""
    if y < 0:
        return 0 if abs(x) != 1 else 1 if x == 1 or y % 2 == 0 else -1
    return pow(x, y, 1 << bits)


def int_fmod(x: int, y: int) -> int:
    """Remainder with the dividend's sign.

    Raises:
        ZeroDivisionError: the divisor is zero.
    """
    rest = abs(x) % abs(y)
    return -rest if x < 0 else rest
