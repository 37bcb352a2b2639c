"""Streams of gamma, Dirichlet and binomial numbers, which are drawn by rejection.

How many random bits a number takes depends on the numbers before it, so all of these are drawn one
after the other, from float64 uniforms and normals; `ops.randomness.random` has the other streams.
With float32 arguments some steps round to float32, and the rounding belongs to the stream.

Sources: G. Marsaglia and W. W. Tsang, A simple method for generating gamma variables (2000);
W. Hörmann, The generation of binomial random variates (1993), algorithm BTRS; L. Devroye,
Non-uniform random variate generation (1986), section X.4.3, for small means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING

from flambeau._random import streams as S
from flambeau._types import dtype as D

if TYPE_CHECKING:
    from flambeau._random.generator import Generator
    from flambeau._types.dtype import dtype as DType

Draw = Callable[[], float]
Round = Callable[[float], float]

_LEAST = {D.float32: 2.0**-126, D.float64: 2.0**-1022}
_BELOW_ONE = {D.float32: 1 - 2.0**-24, D.float64: 1 - 2.0**-53}
_THIRD, _SQUEEZE = S.round32(1 / 3), S.round32(0.0331)

# What Stirling's formula leaves of log k! for k < 10, as PyTorch has it.
_STIRLING_ENDS = (
    *(0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509),
    *(0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720),
    *(0.00925546218271273, 0.00833056343336287),
)


def standard_gamma(alpha: Sequence[float], dtype: DType, generator: Generator) -> list[float]:
    """Gamma numbers of shape `alpha` and scale 1, none below the smallest normal number of `dtype`.

    `dtype` is that of `alpha`.  Equal to PyTorch, bit for bit.
    """
    least, to = _LEAST[dtype], _rounding(dtype)
    with _draws(generator, len(alpha)) as (unit, normal):
        return [max(least, to(_gamma(a, to, unit, normal))) for a in alpha]


def sample_dirichlet(
    alpha: Sequence[float], columns: int, dtype: DType, generator: Generator
) -> list[float]:
    """Rows of `columns` positive numbers that sum to 1: gamma numbers in float64 over their sum.

    All lie in the open interval (0, 1).  Equal to PyTorch, bit for bit; it adds a single row of
    32,768 and more numbers in an order that depends on the number of its threads.
    """
    least, most, to = _LEAST[dtype], _BELOW_ONE[dtype], _rounding(dtype)
    with _draws(generator, len(alpha)) as (unit, normal):
        gammas = [max(_LEAST[D.float64], _gamma(a, _same, unit, normal)) for a in alpha]
    found: list[float] = []
    for start in range(0, len(gammas), columns or 1):
        row = gammas[start : start + columns]
        total = row_sum(row)
        found += [min(most, max(least, to(value / total))) for value in row]
    return found


def binomial(
    counts: Sequence[float], probs: Sequence[float], dtype: DType, generator: Generator
) -> list[float]:
    """Numbers of successes in `counts` trials of probability `probs`, pair by pair.

    Means below 10 add up waiting times between successes; others are drawn by transformed
    rejection.  nan where either is nan.  Equal to PyTorch, which never returns if a count is nan.
    """
    to = _rounding(dtype)
    with _draws(generator, len(counts)) as (unit, _):
        return [_successes(n, p, to, unit) for n, p in zip(counts, probs, strict=True)]


def row_sum(row: Sequence[float]) -> float:
    """The sum of float64 numbers in the order in which PyTorch adds a contiguous row.

    Vectors of four numbers, four of them side by side, in levels; after the rest of the row.
    """
    vectors = len(row) // 4
    if not vectors:
        return _side_by_side([[value] for value in row])[0]
    lanes = _side_by_side([list(row[4 * i : 4 * i + 4]) for i in range(vectors)])
    total = 0.0
    for value in (*row[4 * vectors :], *lanes):
        total += value
    return total


def _side_by_side(vectors: list[list[float]]) -> list[float]:
    quarter = len(vectors) // 4
    sums = _in_levels([[*chain(*vectors[4 * i : 4 * i + 4])] for i in range(quarter)])
    width = len(vectors[0]) if vectors else 1
    if not sums:
        sums = [0.0] * (4 * width)
    parts = [sums[width * k : width * (k + 1)] for k in range(4)]
    first = parts[0]
    for other in (*vectors[4 * quarter :], *parts[1:]):
        first = [a + b for a, b in zip(first, other, strict=True)]
    return first


def _in_levels(rows: list[list[float]]) -> list[float]:
    """The sum of rows, in four levels, each of which takes 2ᵏ sums of the one below."""
    if not rows:
        return []
    size, width = len(rows), len(rows[0])
    power = max(4, (size - 1).bit_length() // 4)
    step = 1 << power
    levels = [[0.0] * width for _ in range(4)]
    done = 0
    while done + step <= size:
        for row in rows[done : done + step]:
            levels[0] = [a + b for a, b in zip(levels[0], row, strict=True)]
        done += step
        for level in range(1, 4):
            below = levels[level - 1]
            levels[level] = [a + b for a, b in zip(levels[level], below, strict=True)]
            levels[level - 1] = [0.0] * width
            if done & ((step - 1) << (level * power)):
                break
    for row in rows[done:]:
        levels[0] = [a + b for a, b in zip(levels[0], row, strict=True)]
    total = levels[0]
    for level in levels[1:]:
        total = [a + b for a, b in zip(total, level, strict=True)]
    return total


@contextmanager
def _draws(generator: Generator, count: int) -> Iterator[tuple[Draw, Draw]]:
    """A uniform and a normal number at each call, for `count` numbers or more."""
    with generator.lock:
        unit = S.Units(generator, 1 if count < 16 else 128)

        def normal() -> float:
            waiting = generator.next_normal
            if waiting is not None:
                generator.next_normal = None
                return waiting
            theta = 2.0 * math.pi * unit()
            radius = math.sqrt(-2.0 * math.log1p(-unit()))
            generator.next_normal = radius * math.sin(theta)
            return radius * math.cos(theta)

        try:
            yield unit, normal
        finally:
            unit.give_back()
            generator.keep(generator.next_normal)


def _gamma(alpha: float, to: Round, unit: Draw, normal: Draw) -> float:
    scale = 1.0
    if alpha < 1:
        if alpha == 0:
            return 0.0
        scale = _power(1 - unit(), to(1 / alpha))
        alpha = to(alpha + 1)
    d = to(alpha - _THIRD)
    c = 1 / math.sqrt(9 * d) if d > 0 else math.nan
    while True:
        x = normal()
        y = 1 + c * x
        if y <= 0:
            continue
        v = y * y * y
        u = 1 - unit()
        square = x * x
        if u < 1 - _SQUEEZE * square * square:
            return scale * d * v
        if math.log(u) < 0.5 * square + d * (1 - v + _log(v)):
            return scale * d * v


def _successes(count: float, prob: float, to: Round, unit: Draw) -> float:
    if math.isnan(count) or math.isnan(prob):
        return 0.0 if count <= 0 or prob <= 0 else count if prob >= 1 else math.nan
    if count <= 0 or prob <= 0:
        return 0.0
    if prob >= 1:
        return count
    rarer = prob if prob <= 0.5 else to(1 - prob)
    few = to(count * rarer) < 10
    found = (_by_waiting if few else _by_rejection)(count, rarer, to, unit)
    return found if prob <= 0.5 else to(count - found)


def _by_waiting(count: float, prob: float, to: Round, unit: Draw) -> float:
    failure, passed, found = to(math.log1p(-prob)), 0.0, 0
    while True:
        passed += _ceil(_log(unit()) / failure)
        if passed > count:
            return found
        found += 1


def _by_rejection(count: float, prob: float, to: Round, unit: Draw) -> float:
    failure = to(1 - prob)
    mean = to(count * prob)
    deviation = to(math.sqrt(to(mean * failure)))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * prob
    centre = mean + 0.5
    bound = 0.92 - 4.2 / b
    odds = to(prob / failure)
    alpha = (2.83 + 5.1 / b) * deviation
    mode = float(_floor(to(to(count + 1) * prob)))
    while True:
        u, v = unit() - 0.5, unit()
        near = 0.5 - abs(u)
        if near == 0:  # infinitely far to the left
            continue
        k = to(float(_floor((2 * a / near + b) * u + centre)))
        if k < 0 or k > count:
            continue
        if near >= 0.07 and v <= bound:
            return k
        above, rest = to(k + 1), to(count - k)
        left = to(rest + 1)
        level = _log(v * alpha / (a / (near * near) + b))
        most = (
            (mode + 0.5) * _log((mode + 1) / (odds * (count - mode + 1)))
            + to(count + 1) * _log((count - mode + 1) / left)
            + (k + 0.5) * _log(odds * left / above)
            + _stirling_end(mode)
            + _stirling_end(count - mode)
            - _stirling_end(k)
            - _stirling_end(rest)
        )
        if level <= most:
            return k


def _stirling_end(k: float) -> float:
    """log k! less Stirling's formula at k + 1."""
    if k < len(_STIRLING_ENDS):
        return _STIRLING_ENDS[int(k)]
    square = (k + 1) * (k + 1)
    return (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)


def _rounding(dtype: DType) -> Round:
    return _same if dtype is D.float64 else S.round32


def _same(value: float) -> float:
    return value


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf


def _log(x: float) -> float:
    if x > 0:
        return math.log(x)
    return -math.inf if x == 0 else math.nan


def _floor(x: float) -> float:
    return math.floor(x) if math.isfinite(x) else x


def _ceil(x: float) -> float:
    return math.ceil(x) if math.isfinite(x) else x
