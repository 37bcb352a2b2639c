"""Calls described without an array library: the same description gives the same numbers always.

Numbers are multiples of 1/64, so that those below 4 are exact in every floating dtype and a
comparison sees the op's error only; those of float32 and float64 are moved a little, so that they
need digits that narrower dtypes do not have.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from flambeau._types.dtype import bfloat16, float16, float32, float64, uint8
from flambeau._types.dtype import dtype as DType

_GRID = 64
_SPECIAL_COUNT = 16

# Largest finite, smallest normal and smallest positive value of each floating dtype.
_EXTREMES = {
    float16: (65504.0, 2.0**-14, 2.0**-24),
    bfloat16: (math.ldexp(255, 120), 2.0**-126, 2.0**-133),
    float32: (math.ldexp(2**24 - 1, 104), 2.0**-126, 2.0**-149),
    float64: (math.ldexp(2**53 - 1, 971), 2.0**-1022, 2.0**-1074),
}


_SMALL = (2.0**-10, 1e-3, 3e-4, 1e-4, 1e-6, 3e-8, 1e-12)
_NUMBERS: dict[str, tuple[float, ...]] = {
    "nan": (math.nan,),
    "wild": (
        *(math.nan, 1.25, -0.0, math.inf, -2.5, 0.0),
        *(-math.inf, 1 / 3, 3.0, -1.0, 30.0, -30.0),
    ),
    "fine": (
        *_SMALL,
        *[-n for n in _SMALL[:4]],
        *(9.0, -9.0, 20.0, -20.0, 88.5, -88.5, 100.0, 1000.0),
    ),
}
"""Numbers of some kinds of arrays, in floating dtypes."""


@dataclass(frozen=True)
class Arr:
    """A description of an array argument.

    Attributes:
        shape: its shape.
        dtype: its dtype; None for the dtype under test.
        low, high: smallest and largest value; a kind may read them otherwise.
        kind: ``"uniform"``: anywhere in the range.
            ``"distinct"``: no two values equal, evenly spaced over the range, shuffled.
            ``"nonzero"``: magnitudes in the range, with either sign where the dtype has signs.
            ``"special"``: NaN, infinities, signed zeros, extremes and ordinary numbers.
            ``"divisor"``: as special, without zeros for integers.
            ``"wild"``: NaN, infinities, signed zeros and ordinary numbers, which meet others
            than those of another `seed`; of other dtypes as special.
            ``"nan"``: nothing else; of other dtypes the numbers in `literal`, or as special.
            ``"fine"``: floats near zero and far from it; of other dtypes as special.
            ``"literal"``: the numbers in `literal`, over and over; in integer dtypes without their
            fraction, in unsigned ones without their sign.
        seed: separates arrays of the same description.
        literal: the numbers of kind ``"literal"``.
        equal_rows: every entry along the first dimension equals the first, as in expanded memory.
        fixed: no gradient is taken with respect to it.

    >>> import flambeau as fb
    >>> from flambeau.testing.samples import Arr
    >>> Arr((3,), low=0, high=2).values(fb.int64) == Arr((3,), low=0, high=2).values(fb.int64)
    True
    """

    shape: tuple[int, ...]
    dtype: DType | None = None
    low: float = -2.0
    high: float = 2.0
    kind: str = "uniform"
    seed: int = 0
    literal: tuple[Any, ...] = ()
    equal_rows: bool = False
    fixed: bool = False

    def values(self, dtype: DType) -> list[Any]:
        """The elements as Python numbers, in row-major order; `dtype` is the one under test."""
        dtype = self.dtype or dtype
        if self.equal_rows and self.shape:
            row = replace(self, shape=self.shape[1:], equal_rows=False)
            return row.values(dtype) * self.shape[0]
        count = math.prod(self.shape)
        if self.kind == "literal":
            numbers = self.literal
            if dtype.category < 2:
                whole = abs if dtype is uint8 else int
                numbers = tuple([int(whole(n)) for n in numbers])
        elif self.kind in _NUMBERS and dtype.fp and not dtype.is_complex:
            numbers = _NUMBERS[self.kind]
            if self.kind == "wild" and self.seed > 1:  # other pairs with those of another seed
                numbers = numbers[: len(numbers) - self.seed % 5]
                turned = 5 * self.seed % len(numbers)
                numbers = numbers[turned:] + numbers[:turned]
        elif self.kind == "nan" and self.literal:
            numbers = self.literal
        elif self.kind in ("special", "divisor", *_NUMBERS):
            numbers = special_values(dtype, zeros=self.kind == "special")
        else:
            numbers = list(_KINDS[self.kind](self, dtype, count, _random(self.seed, self.shape)))
        return [numbers[i % len(numbers)] for i in range(count)]


@dataclass(frozen=True)
class Marker:
    """Stands in a sample for a value that only the caller of `realise` has."""

    name: str


DTYPE = Marker("dtype under test")
GENERATOR = Marker("generator")


@dataclass(frozen=True, eq=False)
class Sample:
    """Canonical arguments of one call; a key by its identity, for arguments may be slices.

    Attributes:
        args: descriptions of arrays (`Arr`, also inside tuples and lists), markers, plain values.
        name: what is particular about it, unique within its op.
        grad: whether the op is smooth here, so that its gradient can be checked by differences in
            the arrays that have the dtype under test and are not fixed.
    """

    args: tuple[Any, ...]
    name: str = "basic"
    grad: bool = False


def pointwise(array: Arr, *arguments: object) -> list[Sample]:
    """Samples of an elementwise op: `array` itself, a scalar like it, and no elements."""
    return [
        Sample((array, *arguments), "matrix", True),
        Sample(
            (Arr((), low=array.low, high=array.high, kind=array.kind), *arguments), "scalar", True
        ),
        Sample((Arr((0, 3)), *arguments), "empty"),
    ]


def special_values(dtype: DType, *, zeros: bool = True) -> list[Any]:
    """Sixteen numbers at the corners of `dtype`; with `zeros` false, integers have no zero."""
    if dtype.category == 0:
        numbers: list[Any] = [True, False]
    elif dtype.category == 1:
        top = (1 << (8 * dtype.itemsize - (dtype is not uint8))) - 1
        numbers = [0, 1, 2, 3, 5, 7, top, top - 1, top // 2]
        if dtype is not uint8:
            numbers += [-1, -2, -3, -7, -top, -top - 1]
        numbers = [n for n in numbers if zeros or n]
    else:
        largest, normal, tiny = _EXTREMES[dtype.to_real()]
        # Rows of four: NaN is not the first of its row, and infinity comes before it.
        numbers = [1.0, math.inf, math.nan, -math.inf, 0.0, -0.0, largest, -largest]
        numbers += [normal, tiny, -tiny, -1.0, 0.5, -2.5, 3.0, -3.0]
        if dtype.is_complex:
            # No two libraries agree on complex numbers with infinite, NaN or minute parts.
            parts = [n for n in numbers if n == 0 or 0.25 < abs(n) < 8]
            numbers = [complex(n, m) for n, m in zip(parts, parts[3:] + parts[:3], strict=True)]
    return [numbers[i % len(numbers)] for i in range(_SPECIAL_COUNT)]


def _random(seed: int, shape: tuple[int, ...]) -> Iterator[float]:
    """Numbers in [0, 1): Knuth's 64-bit linear congruential generator, upper bits."""
    state = 1
    for part in (seed, len(shape), *shape):
        state = (state * 6364136223846793005 + part + 1442695040888963407) % (1 << 64)
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        yield (state >> 32) / (1 << 32)


def _bounds(low: float, high: float, dtype: DType) -> tuple[int, int, int]:
    """First and last step of the range, and how many steps make 1."""
    grid = 1 if dtype.category == 1 else _GRID
    first, last = math.ceil(low * grid), math.floor(high * grid)
    if dtype is uint8:
        first, last = max(first, 0), max(last, 2)
    if first > last:
        raise ValueError(f"no number of {dtype} lies in [{low}, {high}]")
    return first, last, grid


_DIGITS = {float32: 2.0**-14, float64: 2.0**-30}


def _number(step: int, bounds: tuple[int, int, int], dtype: DType) -> Any:
    """A step as a number, of wider dtypes a little nearer to the middle of the range."""
    if dtype.category == 1:
        return step
    first, last, grid = bounds
    number = (step + ((first + last) / 2 - step) * _DIGITS.get(dtype.to_real(), 0.0)) / grid
    single = dtype.to_real() is float32
    return struct.unpack("f", struct.pack("f", number))[0] if single else number


def _parts(count: int, dtype: DType, draw: Callable[[], Any]) -> Iterator[Any]:
    for _ in range(count):
        yield complex(draw(), draw()) if dtype.is_complex else draw()


def _uniform(array: Arr, dtype: DType, count: int, random: Iterator[float]) -> Iterator[Any]:
    if dtype.category == 0:
        return (next(random) < 0.5 for _ in range(count))
    first, last, _ = bounds = _bounds(array.low, array.high, dtype)
    return _parts(
        count,
        dtype,
        lambda: _number(first + int(next(random) * (last - first + 1)), bounds, dtype),
    )


def _nonzero(array: Arr, dtype: DType, count: int, random: Iterator[float]) -> Iterator[Any]:
    if dtype.category == 0:
        return (True for _ in range(count))
    # Integers need one in the range; for floats the range may end before a jump at 1.
    high = max(array.high, 1) if dtype.category == 1 else array.high
    first, last, grid = _bounds(array.low, high, dtype)
    first = max(first, 1)

    def draw() -> object:
        step = first + int(next(random) * (last - first + 1))
        magnitude = _number(step, (first, last, grid), dtype)
        return -magnitude if next(random) < 0.5 and dtype is not uint8 else magnitude

    return _parts(count, dtype, draw)


def _distinct(array: Arr, dtype: DType, count: int, random: Iterator[float]) -> Iterator[Any]:
    if dtype.category == 0:
        return _uniform(array, dtype, count, random)
    first, last, _ = bounds = _bounds(array.low, array.high, dtype)
    spacing = max((last - first) // max(count - 1, 1), 1)
    steps = [first + i * spacing for i in range(count)]
    order = sorted(range(count), key=[next(random) for _ in range(count)].__getitem__)
    numbers = [_number(steps[i], bounds, dtype) for i in order]
    return (complex(n, -n / 2) if dtype.is_complex else n for n in numbers)


_KINDS: dict[str, Callable[[Arr, DType, int, Iterator[float]], Iterator[Any]]] = {
    "uniform": _uniform,
    "nonzero": _nonzero,
    "distinct": _distinct,
}
