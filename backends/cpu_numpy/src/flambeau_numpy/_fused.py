"""a·x + b in one rounding, which NumPy does not have: the fused multiply-add of random streams."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_LOW, _TIE = np.int64((1 << 29) - 1), np.int64(1 << 28)
_SPLITTER = float((1 << 27) + 1)
_SAFE = range(-900, 900)  # binary exponents at which splitting neither overflows nor underflows

Doubles = NDArray[np.float64]


def fma32(x: NDArray[np.float32], scale: float, shift: float) -> None:
    """x ← scale·x + shift in place, rounded once; scale and shift are float32 numbers."""
    if shift == 0 or scale == 1:
        if scale != 1:
            x *= np.float32(scale)
        x += np.float32(shift)  # adding zero, too: it takes the sign off negative zeros
        return
    product = x.astype(np.float64)
    product *= scale  # exact: 24 + 24 bits fit into 53
    total = product + shift
    halfway = np.flatnonzero((total.view(np.int64) & _LOW) == _TIE)
    if halfway.size:  # between two float32 numbers; what the sum has lost decides
        sums, lost = _sum(product[halfway], np.array(shift))
        beyond = np.nextafter(sums, np.copysign(np.inf, lost))
        total[halfway] = np.where(lost != 0, beyond, sums)
    np.copyto(x, total, casting="same_kind")


def fma64(x: Doubles, scale: float, shift: float) -> Doubles:
    """scale·x + shift, rounded once.

    Source: S.  Boldo and G.  Melquiond, "Emulation of FMA and correctly rounded sums: proved
    algorithms using rounding to odd", IEEE Trans.  Computers 57 (2008), algorithm 5.
    """
    mantissa, exponent = math.frexp(scale)
    exact = abs(mantissa) == 0.5  # a power of two
    if shift == 0 or exact or not math.isfinite(shift) or exponent not in _SAFE:
        return x * scale + shift
    high, low = _product(x, scale)
    small_high, small_low = _sum(np.array(shift), low)
    high, middle = _sum(high, small_high)
    return high + _odd_sum(small_low, middle)


def _product(x: Doubles, factor: float) -> tuple[Doubles, Doubles]:
    """x·factor and its rounding error (T. J. Dekker 1971)."""
    rounded = x * factor
    x_high, x_low = _split(x)
    f_high, f_low = _split(np.array(factor))
    error = x_high * f_high - rounded
    error += x_high * f_low
    error += x_low * f_high
    error += x_low * f_low
    return rounded, error


def _split(x: Doubles) -> tuple[Doubles, Doubles]:
    scaled = x * _SPLITTER
    high = scaled - (scaled - x)
    return high, x - high


def _sum(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    """a + b and its rounding error (D. E. Knuth, TAOCP 2, 4.2.2)."""
    total = a + b
    b_part = total - a
    return total, (a - (total - b_part)) + (b - b_part)


def _odd_sum(a: Doubles, b: Doubles) -> Doubles:
    """a + b; an inexact sum goes to the neighbour whose last bit is one."""
    total, error = _sum(a, b)
    even = (total.view(np.int64) & 1) == 0
    towards = np.copysign(np.inf, error)
    return np.where(even & (error != 0), np.nextafter(total, towards), total)
