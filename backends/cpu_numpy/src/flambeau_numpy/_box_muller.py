"""float32 normals in blocks of 16, rounded step by step as PyTorch's CPU kernel rounds them.

Of each block of 16 uniforms the first 8 give radii √(-2·ln(1 - u)) and the last 8 give angles
2π·u; the cosines fill the first half of the block and the sines the second.  The logarithm, sine
and cosine are the float32 polynomials of the Cephes library (S.  L.  Moshier) with fused
multiply-add.

NumPy has no fused multiply-add: here a step is done in float64, where the product of two float32
numbers is exact, and rounded to 24 bits of mantissa.  The second rounding is harmless: the results
were compared with PyTorch's for every one of the 2²⁴ radii and angles.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

BLOCK = 16

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


# Constants are 0-d arrays: ufuncs take them faster than scalars.
def _single(value: float) -> Floats:
    return np.array(value, np.float32)


def _double(value: float) -> Doubles:
    """The float32 nearest to `value`, as float64."""
    return np.array(np.float32(value), np.float64)


def _int(value: int) -> NDArray[np.int32]:
    return np.array(value, np.int32)


_EIGHT = np.dtype("V32")  # half a block, moved as one element

_HALF_STEP, _KEEP = np.array(1 << 28, np.int64), np.array(-(1 << 29), np.int64)
_MASK24, _UNIT, _SIGN = _int(0xFFFFFF), _int(1 << 24), _int(-(1 << 31))
_MASK23, _SQRT_HALF = _int(0x7FFFFF), _int(0x3F3504F3)  # √½ by its bits
_SQRT_HALF_SCALED = _int(0x3F3504F3 + (24 << 23))  # 2²⁴√½
_ONE_INT, _EVEN, _TWO_OCTANTS = _int(1), _int(-2), _int(1 << 30)
_BY_23, _BY_29, _BY_30, _BY_31 = _int(23), _int(29), _int(30), _int(31)
_HALF, _ONE, _MINUS_TWO = _single(0.5), _single(1), _single(-2)
_LOG = [
    _double(coefficient)
    for coefficient in (
        7.0376836292e-2,
        -1.1514610310e-1,
        1.1676998740e-1,
        -1.2420140846e-1,
        1.4249322787e-1,
        -1.6668057665e-1,
        2.0000714765e-1,
        -2.4999993993e-1,
        3.3333331174e-1,
    )
]
_LN2_LOW, _LN2_HIGH = _single(-2.12194440e-4), _single(0.693359375)
_STEP = _single(float(np.float32(2 * math.pi)) * 2.0**-24)
_FOUR_OVER_PI = _single(1.27323954473516)
# The first two parts of π/4 have so few bits that multiplying by an octant is exact.
_QUARTER_PI = [_single(part) for part in (0.78515625, 2.4187564849853515625e-4)]
_QUARTER_PI_LOW = _double(3.77489497744594108e-8)
_SIN = [_double(c) for c in (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)]
_COS = [_double(c) for c in (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)]


class BoxMuller32:
    """The transform of blocks of words, with the scratch memory that it needs.

    Args:
        pairs: the largest number of pairs of words that one call gets.
    """

    def __init__(self, pairs: int) -> None:
        self._floats = [np.empty(pairs, np.float32) for _ in range(5)]
        self._doubles = [np.empty(pairs, np.float64) for _ in range(3)]

    def fill(self, words: NDArray[np.uint32], out: NDArray[np.float32]) -> None:
        """Standard normals from as many words, a multiple of 16; a zero may have either sign."""
        n = words.size // 2
        radius, cosine, y, z, sine = (a[:n] for a in self._floats)
        x8, y8, z8 = (a[:n] for a in self._doubles)
        halves = words.view(_EIGHT)
        radius.view(_EIGHT)[:] = halves[::2]
        _radii(radius, y, z, sine, x8, y8)
        cosine.view(_EIGHT)[:] = halves[1::2]
        _angles(cosine, y, z, sine, x8, y8, z8)
        cosine *= radius
        sine *= radius
        halves = out.view(_EIGHT)
        halves[::2] = cosine.view(_EIGHT)
        halves[1::2] = sine.view(_EIGHT)


def _radii(x: Floats, y: Floats, z: Floats, exponent: Floats, x8: Doubles, y8: Doubles) -> None:
    """√(-2·ln(1 - u)) in place of the words in `x`; the rest is scratch."""
    k, e = x.view(np.int32), z.view(np.int32)
    k &= _MASK24
    np.subtract(_UNIT, k, out=k)
    np.copyto(x, k, casting="unsafe")  # 2²⁴(1 - u), exact
    # An exponent, and a mantissa between √½ and √2.
    k -= _SQRT_HALF_SCALED
    np.right_shift(k, _BY_23, out=e)
    np.copyto(exponent, e, casting="unsafe")
    k &= _MASK23
    k += _SQRT_HALF
    x -= _ONE
    np.copyto(x8, x)
    _polynomial(y8, x8, _LOG)
    y8 *= x8
    np.copyto(z, y8, casting="same_kind")  # not `_round`: one radius has a tie here
    np.copyto(y8, z)
    np.multiply(x, x, out=z)
    y8 *= z
    np.multiply(exponent, _LN2_LOW, out=y)
    y8 += y
    np.copyto(y, y8, casting="same_kind")
    z *= _HALF
    y -= z
    x += y
    exponent *= _LN2_HIGH
    x += exponent
    x *= _MINUS_TWO
    np.sqrt(x, out=x)


def _angles(
    x: Floats, y: Floats, z: Floats, sine: Floats, x8: Doubles, y8: Doubles, z8: Doubles
) -> None:
    """cos 2πu in place of the words in `x`, and sin 2πu in `sine`; the rest is scratch."""
    cosine, octant, other = x, y.view(np.int32), z.view(np.int32)
    bits, sine_bits = x.view(np.int32), sine.view(np.int32)
    bits &= _MASK24
    np.copyto(x, bits, casting="unsafe")
    x *= _STEP
    np.multiply(x, _FOUR_OVER_PI, out=z)
    np.copyto(octant, z, casting="unsafe")
    octant += _ONE_INT
    octant &= _EVEN
    np.copyto(z, octant, casting="unsafe")
    np.copyto(z8, z)
    for part in _QUARTER_PI:
        np.multiply(z, part, out=sine)
        x -= sine
    z8 *= _QUARTER_PI_LOW
    np.subtract(x, z8, out=x8)
    np.copyto(x, x8, casting="same_kind")
    np.copyto(x8, x)
    np.multiply(x, x, out=z)
    np.copyto(z8, z)

    _polynomial(y8, z8, _SIN)
    y8 *= z8
    _round(y8)
    y8 *= x8
    y8 += x8
    np.copyto(sine, y8, casting="same_kind")

    _polynomial(y8, z8, _COS)
    y8 *= z8
    _round(y8)
    y8 *= z8
    z *= _HALF
    y8 -= z
    np.copyto(cosine, y8, casting="same_kind")
    cosine += _ONE

    # Every other octant swaps the two; signs follow the quadrant.
    np.left_shift(octant, _BY_30, out=other)
    other >>= _BY_31
    exchanged = sine_bits ^ bits
    exchanged &= other
    bits ^= exchanged
    exchanged ^= sine_bits
    octant <<= _BY_29
    np.bitwise_and(octant, _SIGN, out=other)
    np.bitwise_xor(exchanged, other, out=sine_bits)
    octant += _TWO_OCTANTS
    octant &= _SIGN
    bits ^= octant


def _polynomial(y: Doubles, x: Doubles, coefficients: list[Doubles]) -> None:
    np.multiply(x, coefficients[0], out=y)
    y += coefficients[1]
    _round(y)
    for coefficient in coefficients[2:]:
        y *= x
        y += coefficient
        _round(y)


def _round(y: Doubles) -> None:
    """Round to 24 bits of mantissa in place, ties away from zero."""
    bits = y.view(np.int64)
    bits += _HALF_STEP
    bits &= _KEEP
