"""Uniform and normal streams in plain Python, rounded step by step as PyTorch's CPU kernels round.

PyTorch compiles these kernels with fused multiply-add, so the places where one rounding happens
instead of two are part of the stream.  float32 numbers are Python floats that a float32 can hold.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

from flambeau._types import dtype as D

if TYPE_CHECKING:
    from flambeau._random.generator import Generator
    from flambeau._types.dtype import dtype as DType

# Normals are made 16 at a time: 8 radii from the first 8 uniforms, 8 angles from the last 8.
BLOCK = 16
_HALF = BLOCK // 2

_MASK24, _MASK53 = (1 << 24) - 1, (1 << 53) - 1
_FLOAT32 = struct.Struct("<f")
_FLOAT64, _BITS64 = struct.Struct("<d"), struct.Struct("<Q")


def words32(generator: Generator, n: int) -> list[int]:
    """`n` numbers of 32 random bits."""
    return generator.engine.random_bits(n).tolist()


def words64(generator: Generator, n: int) -> list[int]:
    """`n` numbers of 64 random bits: two draws each, the first on top."""
    words = words32(generator, 2 * n)
    return [(high << 32) | low for high, low in zip(words[::2], words[1::2], strict=True)]


def uniforms32(generator: Generator, n: int) -> list[float]:
    """`n` float32 numbers in [0, 1): the low 24 bits of a word, times 2⁻²⁴."""
    return [(word & _MASK24) * 2.0**-24 for word in words32(generator, n)]


def uniforms64(generator: Generator, n: int) -> list[float]:
    """`n` float64 numbers in [0, 1): the low 53 bits of two words, times 2⁻⁵³."""
    return [(word & _MASK53) * 2.0**-53 for word in words64(generator, n)]


class Units:
    """float64 uniforms as `uniforms64` gives them, one at each call.

    They are drawn `block` at a time, and `give_back` returns what is left of a block; the
    generator's lock is to be held in between.
    """

    __slots__ = ("_before", "_block", "_generator", "_size", "_taken")

    def __init__(self, generator: Generator, block: int) -> None:
        self._generator, self._size = generator, block
        self._block: list[float] = []
        self._taken = 0
        self._before: tuple[list[int], int] | int | None = None

    def __call__(self) -> float:
        if self._taken == len(self._block):
            if self._size > 1:
                self._before = self._generator.place()
            self._block, self._taken = uniforms64(self._generator, self._size), 0
        self._taken += 1
        return self._block[self._taken - 1]

    def give_back(self) -> None:
        """Leave the generator as if only the uniforms that were used had been drawn."""
        if self._before is not None and self._taken < len(self._block):
            self._generator.return_to(self._before)
            self._generator.engine.random_bits(2 * self._taken)
        self._block, self._taken = [], 0


def round32(value: float) -> float:
    """`value` in the precision of float32."""
    try:
        return _FLOAT32.unpack(_FLOAT32.pack(value))[0]
    except OverflowError:  # struct refuses what rounds to infinity
        return math.copysign(math.inf, value)


def rounded(value: float, dtype: DType) -> float:
    """A float64 result in the precision of `dtype`; float32 is a stop on the way to halves."""
    if dtype is D.float64:
        return value
    single = round32(value)
    return single if dtype is D.float32 else D.unpack(D.pack([single], dtype), dtype)[0]


def sticky(number: int) -> int:
    """An integer that rounds to float32 as `number` does, also by way of float64.

    40 bits are kept, and the last of them tells whether there were more.
    """
    size = abs(number)
    drop = max(size.bit_length() - 40, 0)
    kept = ((size >> drop) | (size & ((1 << drop) - 1) != 0)) << drop
    return -kept if number < 0 else kept


def fma64(a: float, b: float, c: float) -> float:
    """a·b + c with one rounding."""
    if c == 0 or not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return a * b + c
    from fractions import Fraction  # with decimal and numbers: 4 ms that few programs need

    return float(Fraction(a) * Fraction(b) + Fraction(c))


def fma32(a: float, b: float, c: float) -> float:
    """a·b + c of float32 numbers with one rounding to float32."""
    product = a * b  # exact: 24 + 24 bits fit into 53
    total = product + c
    (bits,) = _BITS64.unpack(_FLOAT64.pack(total))
    if bits & 0x1FFFFFFF == 0x10000000:
        # Halfway between two float32 numbers; what the sum lost decides where it goes.
        from fractions import Fraction

        lost = Fraction(product) + Fraction(c) - Fraction(total)
        if lost:
            total = math.nextafter(total, math.inf if lost > 0 else -math.inf)
    return round32(total)


def standard_normals(generator: Generator, n: int) -> list[float]:
    """`n` float64 normals made in pairs, one after the other: r·cos θ, then r·sin θ.

    r = √(-2·log1p(-u₂)) and θ = 2π·u₁.  The second of a pair waits in the generator, so that a
    stream does not depend on how it is cut into calls.
    """
    with generator.lock:
        made: list[float] = []
        if n and generator.next_normal is not None:
            made.append(generator.next_normal)
            generator.next_normal = None
        missing = n - len(made)
        uniforms = uniforms64(generator, missing + missing % 2)
        for u1, u2 in zip(uniforms[::2], uniforms[1::2], strict=True):
            radius, theta = math.sqrt(-2.0 * math.log1p(-u2)), 2.0 * math.pi * u1
            made += (radius * math.cos(theta), radius * math.sin(theta))
        if len(made) > n:
            generator.keep(made.pop())
    return made


def normal_blocks64(generator: Generator, n: int, mean: float, std: float) -> list[float]:
    """`n` ≥ 16 float64 normals in blocks of 16; a ragged end is covered by a block of its own."""
    with generator.lock:
        values = uniforms64(generator, n)
        for start in range(0, n - BLOCK + 1, BLOCK):
            values[start : start + BLOCK] = _block64(values[start : start + BLOCK], mean, std)
        if n % BLOCK:
            values[-BLOCK:] = _block64(uniforms64(generator, BLOCK), mean, std)
    return values


def _block64(uniforms: list[float], mean: float, std: float) -> list[float]:
    cosines, sines = [], []
    for u1, u2 in zip(uniforms[:_HALF], uniforms[_HALF:], strict=True):
        radius, theta = math.sqrt(-2.0 * math.log(1.0 - u1)), 2.0 * math.pi * u2
        cosines.append(fma64(radius * math.cos(theta), std, mean))
        sines.append(fma64(radius * math.sin(theta), std, mean))
    return cosines + sines


def normal_blocks32(
    generator: Generator, n: int, mean: float, std: float, *, draw_tail_first: bool
) -> list[float]:
    """`n` ≥ 16 float32 normals in blocks of 16; a ragged end is covered by a block of its own.

    float32 tensors draw uniforms for all `n` places before the last block (`draw_tail_first`), the
    half precisions only for the full blocks.
    """
    mean, std = round32(mean), round32(std)
    full = n - n % BLOCK
    with generator.lock:
        uniforms = uniforms32(generator, n if draw_tail_first else full)
        values: list[float] = []
        for start in range(0, full, BLOCK):
            values += _block32(uniforms[start : start + BLOCK], mean, std)
        if full < n:
            values = values[: n - BLOCK] + _block32(uniforms32(generator, BLOCK), mean, std)
    return values


def _block32(uniforms: list[float], mean: float, std: float) -> list[float]:
    cosines, sines = [], []
    for u1, u2 in zip(uniforms[:_HALF], uniforms[_HALF:], strict=True):
        radius = round32(math.sqrt(round32(-2.0 * _log32(1.0 - u1))))
        sine, cosine = _sincos32(round32(_TWO_PI * u2))
        cosines.append(fma32(round32(radius * cosine), std, mean))
        sines.append(fma32(round32(radius * sine), std, mean))
    return cosines + sines


# float32 logarithm, sine and cosine of the Cephes library (S. L. Moshier), with the polynomials in
# Horner's form and fused steps.  Literals are rounded to float32 where they are used.
_TWO_PI = round32(2.0 * math.pi)
_FOUR_OVER_PI = round32(1.27323954473516)
_SQRT_HALF = round32(0.707106781186547524)
_LOG = tuple(
    map(
        round32,
        (
            7.0376836292e-2,
            -1.1514610310e-1,
            1.1676998740e-1,
            -1.2420140846e-1,
            1.4249322787e-1,
            -1.6668057665e-1,
            2.0000714765e-1,
            -2.4999993993e-1,
            3.3333331174e-1,
        ),
    )
)
_LN2_LOW, _LN2_HIGH = round32(-2.12194440e-4), 0.693359375
_QUARTER_PI = (0.78515625, 2.4187564849853515625e-4, round32(3.77489497744594108e-8))
_SIN = tuple(map(round32, (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)))
_COS = tuple(map(round32, (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)))


def _log32(x: float) -> float:
    mantissa, exponent = math.frexp(x)
    if mantissa < _SQRT_HALF:
        mantissa, exponent = 2.0 * mantissa, exponent - 1
    x = mantissa - 1.0
    square = round32(x * x)
    y = _LOG[0]
    for coefficient in _LOG[1:]:
        y = fma32(y, x, coefficient)
    y = fma32(round32(y * x), square, round32(exponent * _LN2_LOW))
    y = fma32(-0.5, square, y)
    return fma32(exponent, _LN2_HIGH, round32(x + y))


def _sincos32(x: float) -> tuple[float, float]:
    octant = (int(round32(x * _FOUR_OVER_PI)) + 1) & ~1
    for part in _QUARTER_PI:
        x = fma32(-octant, part, x)
    square = round32(x * x)
    cosine = fma32(fma32(_COS[0], square, _COS[1]), square, _COS[2])
    cosine = fma32(round32(cosine * square), square, -0.5 * square)
    cosine = round32(cosine + 1.0)
    sine = fma32(fma32(_SIN[0], square, _SIN[1]), square, _SIN[2])
    sine = fma32(round32(sine * square), x, x)
    if octant & 2:
        sine, cosine = cosine, sine
    return (-sine if octant & 4 else sine), (-cosine if (octant + 2) & 4 else cosine)
