"""Floating-point numbers of eight bits: their values, and rounding to them as PyTorch rounds.

``e4m3`` has four bits of exponent and three of mantissa, ``e5m2`` five and two.  ``fn`` has no
infinities; ``fnuz`` neither infinities nor a negative zero, whose bits are its only NaN.

Source: P. Micikevicius et al., FP8 formats for deep learning, 2022; OCP 8-bit floating point
specification, revision 1.0, 2023; the forms ``fnuz``: B. Noune et al., 8-bit numerical formats for
deep neural networks, 2022.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import cache
from math import copysign, inf, isnan, nan
from typing import NamedTuple


class Format(NamedTuple):
    """One kind of such numbers.

    Attributes:
        mantissa: bits of the mantissa.
        bias: what is subtracted from the bits of the exponent.
        largest: the bits of the largest finite number.
        beyond: the bits of what is too large for it.
        infinite: the bits of infinity, or of what stands for it.
    """

    mantissa: int
    bias: int
    largest: int
    beyond: int
    infinite: int


FORMATS = {
    # What is too large for it becomes the largest.
    "float8_e4m3fn": Format(3, 7, 0x7E, 0x7E, 0x7E),
    "float8_e5m2": Format(2, 15, 0x7B, 0x7C, 0x7C),
    "float8_e4m3fnuz": Format(3, 8, 0x7F, 0x80, 0x80),
    "float8_e5m2fnuz": Format(2, 16, 0x7F, 0x80, 0x80),
}


@cache
def values(name: str) -> tuple[float, ...]:
    """The numbers of all 256 patterns of bits."""
    form = FORMATS[name]
    positive = []
    for bits in range(128):
        exponent, rest = divmod(bits, 1 << form.mantissa)
        if bits > form.largest:
            positive.append(inf if bits == form.infinite else nan)
        elif exponent:
            part = 1 + rest / (1 << form.mantissa)
            positive.append(part * 2.0 ** (exponent - form.bias))
        else:
            positive.append(rest * 2.0 ** (1 - form.bias - form.mantissa))
    negative = [-v for v in positive]
    if name.endswith("uz"):
        negative[0] = nan
    return (*positive, *negative)


@cache
def _finite(name: str) -> tuple[float, ...]:
    """The finite numbers from 0 on, whose places are their bits, and the one that would follow."""
    form = FORMATS[name]
    numbers = values(name)[: form.largest + 1]
    return (*numbers, 2 * numbers[-1] - numbers[-2])


def _bits(value: float, name: str) -> int:
    form = FORMATS[name]
    if isnan(value):
        # The bits of a float's sign are kept, but for the one NaN of `fnuz`.
        sign = 0x80 if copysign(1.0, value) < 0 else 0
        return 0x80 if name.endswith("uz") else 0x7F | sign
    numbers = _finite(name)
    size = abs(value)
    if size == inf:
        bits = form.infinite
    else:
        bits = min(bisect_right(numbers, size), len(numbers) - 1) - 1
        middle = (numbers[bits] + numbers[bits + 1]) / 2
        if size > middle or (size == middle and bits & 1):  # half to even
            bits += 1
        if bits > form.largest:
            bits = form.beyond
    if name.endswith("uz"):
        return bits if copysign(1.0, value) > 0 or bits in (0, 0x80) else bits | 0x80
    return bits if copysign(1.0, value) > 0 else bits | 0x80


def encoded(numbers: Iterable[float], name: str) -> bytes:
    """The bits of numbers that float32 holds, each rounded to the nearest, half to even."""
    return bytes([_bits(v, name) for v in numbers])


def decoded(data: bytes | memoryview, name: str) -> list[float]:
    """The numbers of bits."""
    found = values(name)
    return [found[b] for b in memoryview(data).cast("B")]
