"""Random ops: what each draws from a generator, as flat lists of Python numbers in row-major order.

The bits are MT19937's and every stream is that of PyTorch's CPU kernels (x86-64 with fused
multiply-add), so the same seed gives the same tensors; a docstring says where it does not.
Results of libm (``log``, ``log1p``, ``sin``, ``cos``, ``tan``, ``exp``) are equal where both use
one libm.  Backends may override each op by a kernel of the same name and arguments that returns a
native array.

The order is that of memory: a contiguous tensor is filled in row-major order, any other along its
dimensions from the largest stride to the smallest (`fill_order`).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from flambeau._dispatch.warning import warn
from flambeau._random import streams as S
from flambeau._types import dtype as D

if TYPE_CHECKING:
    from flambeau._random.generator import Generator
    from flambeau._types.dtype import dtype as DType

Shape = tuple[int, ...]

_DIGITS = {D.float16: 11, D.bfloat16: 8, D.float32: 24, D.float64: 53}
_WIDE_RANGE = 1 << 28  # from here on, integers take 64 bits each
_INT64_MIN = -(1 << 63)


def uniform(shape: Shape, low: float, high: float, dtype: DType, generator: Generator) -> list[Any]:
    """u·(high - low) + low in one rounding, with u uniform on [0, 1).

    What rounds up to `high` becomes `low`.  float64 takes u from 53 bits, all others from 24 bits
    (half precisions round the float32 result).  Complex dtypes draw real and imaginary parts in
    turn.  Equal to PyTorch, bit for bit.
    """
    if dtype.is_complex:
        return _complex(uniform((*shape, 2), low, high, dtype.to_real(), generator))
    if dtype is D.float64:
        values = [S.fma64(u, high - low, low) for u in S.uniforms64(generator, math.prod(shape))]
        return [low if value == high else value for value in values]
    start, end = S.rounded(low, dtype), S.rounded(high, dtype)
    low, high = S.round32(low), S.round32(high)
    span = S.round32(high - low)
    values = [
        S.rounded(S.fma32(u, span, low), dtype) for u in S.uniforms32(generator, math.prod(shape))
    ]
    return [start if value == end else value for value in values]


def normal(shape: Shape, mean: float, std: float, dtype: DType, generator: Generator) -> list[Any]:
    """Normals of a contiguous tensor: blocks of 16 from 16 elements on, else as `normal_serial`.

    float64 blocks are the textbook Box-Muller transform; float32 blocks use Cephes' polynomials,
    and the half precisions round float32 blocks.  Complex dtypes draw real and imaginary parts in
    turn, each with std/√2.  Equal to PyTorch, bit for bit.
    """
    if dtype.is_complex:
        part = std / math.sqrt(2.0)
        return _complex(normal((*shape, 2), mean, part, dtype.to_real(), generator))
    n = math.prod(shape)
    if n < S.BLOCK:
        return normal_serial(shape, mean, std, dtype, generator)
    if dtype is D.float64:
        return S.normal_blocks64(generator, n, mean, std)
    values = S.normal_blocks32(generator, n, mean, std, draw_tail_first=dtype is D.float32)
    return values if dtype is D.float32 else [S.rounded(value, dtype) for value in values]


def normal_serial(
    shape: Shape, mean: float, std: float, dtype: DType, generator: Generator
) -> list[Any]:
    """Normals of a tensor that is not contiguous: one float64 after the other, then rounded.

    The numbers of a pair that is not used up wait in the generator.  Complex dtypes draw as in
    `normal`.  Equal to PyTorch, bit for bit.
    """
    if dtype.is_complex:
        part = std / math.sqrt(2.0)
        return _complex(normal_serial((*shape, 2), mean, part, dtype.to_real(), generator))
    samples = S.standard_normals(generator, math.prod(shape))
    return [S.rounded(S.fma64(sample, std, mean), dtype) for sample in samples]


def bernoulli(p: Sequence[float], dtype: DType, generator: Generator) -> list[int]:
    """1 with probability p, element by element: u < p with a float64 u if p is, else a float32 u.

    `dtype` is that of `p`.  Equal to PyTorch.
    """
    draw = S.uniforms64 if dtype is D.float64 else S.uniforms32
    return [int(u < bound) for u, bound in zip(draw(generator, len(p)), p, strict=True)]


def bernoulli_scalar(shape: Shape, p: float, dtype: DType, generator: Generator) -> list[int]:
    """1 with probability `p`: a float64 u < p, whatever the dtype.

    Equal to PyTorch 2.13; some earlier releases drew from MKL on Intel's processors.
    """
    return [int(u < p) for u in S.uniforms64(generator, math.prod(shape))]


def randint(low: int, high: int, shape: Shape, dtype: DType, generator: Generator) -> list[int]:
    """low + bits mod (high - low): 64 bits each for ranges from 2²⁸ on, else 32.

    The range 2⁶⁴ (all of int64) takes the 64 bits as they are.  `integer_range` gives the bounds.
    Equal to PyTorch.
    """
    n, span = math.prod(shape), high - low
    if span == 1 << 64:
        return [word - (1 << 64) if word >> 63 else word for word in S.words64(generator, n)]
    words = (S.words64 if span >= _WIDE_RANGE else S.words32)(generator, n)
    numbers = [low + word % span for word in words]
    if dtype.is_floating_point and dtype is not D.float64:
        return [S.sticky(number) for number in numbers]
    return numbers


def random_full(shape: Shape, dtype: DType, generator: Generator) -> list[int]:
    """Integers from the whole range that `dtype` counts without gaps, as ``random_()`` draws them.

    bool: 0 or 1; integers: 0 to the largest; floats: 0 to 2ᵈ, with d digits of mantissa.  int64 and
    float64 take 64 bits each.  Equal to PyTorch.
    """
    draw = S.words64 if dtype in (D.int64, D.float64) else S.words32
    span = full_range(dtype)
    return [word % span for word in draw(generator, math.prod(shape))]


def randperm(n: int, dtype: DType, generator: Generator) -> list[int]:
    """A permutation of 0 … n-1 by Fisher and Yates: place i swaps with i + bits mod (n - i).

    Equal to PyTorch for n < 214,748,364 (= 2³²/20); above, PyTorch takes 64 bits each.
    """
    order = list(range(n))
    for i, word in enumerate(S.words32(generator, max(n - 1, 0))):
        j = i + word % (n - i)
        order[i], order[j] = order[j], order[i]
    return order


def exponential(shape: Shape, rate: float, dtype: DType, generator: Generator) -> list[float]:
    """-log1p(-u)/rate from float64 uniforms.

    Equal to PyTorch 2.13; some earlier releases drew from MKL on Intel's processors.
    """
    scale = -1.0 / rate
    return [
        S.rounded(scale * math.log1p(-u), dtype) for u in S.uniforms64(generator, math.prod(shape))
    ]


def cauchy(
    shape: Shape, median: float, sigma: float, dtype: DType, generator: Generator
) -> list[float]:
    """median + sigma·tan(π·(u - ½)) from float64 uniforms.  Equal to PyTorch, bit for bit."""
    return [
        S.rounded(S.fma64(sigma, math.tan(math.pi * (u - 0.5)), median), dtype)
        for u in S.uniforms64(generator, math.prod(shape))
    ]


def log_normal(
    shape: Shape, mean: float, std: float, dtype: DType, generator: Generator
) -> list[float]:
    """exp of float64 normals made one after the other (see `normal_serial`).  Equal to PyTorch."""
    samples = S.standard_normals(generator, math.prod(shape))
    return [S.rounded(_exp(S.fma64(sample, std, mean)), dtype) for sample in samples]


def geometric(shape: Shape, p: float, dtype: DType, generator: Generator) -> list[float]:
    """The trial of the first success: ⌈log(u)/log1p(-p)⌉, u float64.  Equal to PyTorch."""
    failure = math.log1p(-p)
    trials = [
        float(math.ceil(math.log(u) / failure)) if u else math.inf
        for u in S.uniforms64(generator, math.prod(shape))
    ]
    if dtype.is_floating_point:
        return [S.rounded(trial, dtype) for trial in trials]
    return [int(trial) if trial < -_INT64_MIN else _INT64_MIN for trial in trials]


def poisson(rates: Sequence[float], generator: Generator) -> list[int]:
    """Numbers of events of the given rates, one after the other, from float64 uniforms.

    Below 10, uniforms are multiplied until the product falls to exp(-rate) (Knuth); from there on
    by transformed rejection (W. Hörmann, The transformed rejection method for generating Poisson
    random variables, 1993, algorithm PTRS).  Equal to PyTorch.
    """
    with generator.lock:
        return [_events(rate, generator) for rate in rates]


def _events(rate: float, generator: Generator) -> int:
    if rate == 0:
        return 0
    if rate >= 10:
        return _rejected(rate, generator)
    bound, product, count = math.exp(-rate), 1.0, 0
    while True:
        product *= S.uniforms64(generator, 1)[0]
        if product <= bound:
            return count
        count += 1


def _rejected(rate: float, generator: Generator) -> int:
    root, log_rate = math.sqrt(rate), math.log(rate)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    bound = 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = S.uniforms64(generator, 2)
        u -= 0.5
        us = 0.5 - abs(u)
        if us == 0:  # the whole line is as likely: the quotient below is infinite
            continue
        k = math.floor((2 * a / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= bound:
            return k
        if k < 0 or (us < 0.013 and v > us):
            continue
        level = math.log(inverse_alpha) - math.log(a / (us * us) + b)
        if not v or math.log(v) + level <= -rate + k * log_rate - math.lgamma(k + 1):
            return k


def multinomial(
    probs: Sequence[float],
    shape: Shape,
    num_samples: int,
    replacement: bool,
    dtype: DType,
    generator: Generator,
) -> list[int]:
    """Indices drawn with the weights `probs`: `num_samples` per row (1-d or 2-d, row-major).

    With replacement: float64 uniforms searched in the row's cumulative sum.  Without, and for
    single samples: the indices of the largest weight/e with e exponential.  `dtype` is that of
    `probs`.  Equal to PyTorch up to the order of equal quotients, which PyTorch leaves open and
    which comes up in half precision and among zero weights.
    The weights are finite and not negative, and each row has a positive one.
    """
    width = shape[-1]
    rows = [list(probs[i : i + width]) for i in range(0, len(probs), width)]
    if replacement and num_samples > 1:
        return [i for row in rows for i in _searched(row, num_samples, dtype, generator)]
    waits = exponential((len(probs),), 1.0, dtype, generator)
    scores = [_quotient(w, wait, dtype) for w, wait in zip(probs, waits, strict=True)]
    drawn: list[int] = []
    for start in range(0, len(scores), width):
        row = scores[start : start + width]
        drawn += sorted(range(width), key=lambda i: -row[i])[:num_samples]
    return drawn


def full_range(dtype: DType) -> int:
    """The number of values that `random_full` draws from."""
    if dtype in _DIGITS:
        return (1 << _DIGITS[dtype]) + 1
    if dtype is D.bool_:
        return 2
    return 1 << (8 * dtype.itemsize - dtype.is_signed)


def integer_range(low: int, high: int | None, dtype: DType) -> tuple[int, int]:
    """The bounds that ``random_(low, high)`` and ``randint`` hand to `randint` for a dtype.

    Without `high`, all values from `low` on that the dtype counts without gaps.  In floating
    dtypes the bounds move inwards to representable numbers, so that no drawn integer rounds out of
    the interval.

    Raises:
        RuntimeError: the range is empty, or the dtype does not reach its bounds.
        ValueError: a bound has more than 64 bits.
    """
    for bound in (low, high):
        if bound is not None and not _INT64_MIN <= bound < -_INT64_MIN:
            raise ValueError(f"Overflow when unpacking long long: {bound}")
    floating = dtype.is_floating_point
    if dtype.is_complex:
        raise RuntimeError(f"random_ and randint give integral, floating or bool, not {dtype}")
    if high is None:
        if low == _INT64_MIN:
            return low, -low
        high = full_range(dtype)
        if floating and (low := _least(low, dtype)) >= high - 1:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' "
                f"casted to dtype, but got from={low} > to_inc={high - 1} ({dtype})"
            )
    else:
        if low >= high:
            raise RuntimeError(
                "random_ expects 'from' to be less than 'to', "
                f"but got from={low} >= to={high}; swap or widen the bounds"
            )
        if floating:
            given, exact = (low, high), 1 << _DIGITS[dtype]
            if -exact <= low and high <= exact:
                return given  # the dtype has all integers between them
            low, high = _least(low, dtype), _beyond(high, dtype)
            if low >= high:
                raise RuntimeError(
                    "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, "
                    f"but got from={low} >= to={high} (from {given} in {dtype})"
                )
    _check_reach(low, high - 1, dtype)
    return low, high


def fill_order(shape: Shape, stride: Shape) -> tuple[int, ...]:
    """The dimensions of a tensor from the slowest to the fastest when random ops fill it in place.

    Fill a fresh array of shape ``[shape[d] for d in fill_order(...)]`` and permute it back.

    >>> from flambeau.ops.randomness.random import fill_order
    >>> fill_order((2, 3), (1, 2))
    (1, 0)
    """
    if len(shape) < 2:
        return tuple(range(len(shape)))
    long = [d for d in range(len(shape)) if shape[d] != 1]
    placed = iter(sorted(long, key=lambda d: -stride[d]))
    return tuple(next(placed) if shape[d] != 1 else d for d in range(len(shape)))


def _searched(weights: list[float], count: int, dtype: DType, generator: Generator) -> list[int]:
    inner = D.float64 if dtype is D.float64 else D.float32
    sums = list(accumulate(weights, lambda total, weight: S.rounded(total + weight, inner)))
    bounds = [S.rounded(part / sums[-1], inner) for part in sums]
    bounds[-1] = 1.0
    return [bisect_left(bounds, u) for u in S.uniforms64(generator, count)]


def _quotient(weight: float, wait: float, dtype: DType) -> float:
    return S.rounded(weight / wait, dtype) if wait else math.inf


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _complex(parts: Sequence[float]) -> list[complex]:
    return [complex(re, im) for re, im in zip(parts[::2], parts[1::2], strict=True)]


def _least(low: int, dtype: DType) -> int:
    """`low`, or the next number of `dtype` above where low + 1 rounds to less than it."""
    cast = S.rounded(float(low + 1), dtype)
    if math.isinf(cast) or cast >= low:
        return low
    return int(cast) + _gap(low + 1, dtype)


def _beyond(high: int, dtype: DType) -> int:
    """`high`, or a number of `dtype` below where high - 1 rounds to `high` or more.

    PyTorch makes this comparison in int64 and lets numbers pass that round beyond it.
    """
    cast = S.rounded(float(high - 1), dtype)
    if cast < high or cast >= -_INT64_MIN:
        return high
    return int(cast) - _gap(high - 1, dtype)


def _gap(number: int, dtype: DType) -> int:
    return 1 << max(abs(number).bit_length() - _DIGITS[dtype], 0)


def exact_range(dtype: DType) -> int:
    """The greatest whole number up to which a dtype has all from 0."""
    if dtype.is_floating_point:
        return 1 << _DIGITS[dtype]
    return full_range(dtype) - 1


BOUNDS_FIT_DTYPES = True
"""Whether numbers are drawn between bounds that the dtype can hold; others are cut to its bits."""


def _check_reach(low: int, last: int, dtype: DType) -> None:
    if not BOUNDS_FIT_DTYPES and dtype is not D.bool_:
        return
    if dtype.is_floating_point:
        digits = _DIGITS[dtype]
        top = {D.float16: 65504.0, D.bfloat16: 3.3895313892515355e38}.get(dtype, math.inf)
        bottom, exact = -top, 1 << digits
    else:
        top = full_range(dtype) - 1
        bottom = -top - 1 if dtype.is_signed else 0
        exact = None
    for name, bound in (("from", low), ("to - 1", last)):
        if not bottom <= bound <= top:
            raise RuntimeError(
                f"{name} is out of bounds for {dtype}: {bound} is not in [{bottom}, {top}]"
            )
        if exact is not None and abs(bound) > exact:
            warn(
                f"{name} is out of bounds [-{exact}, {exact}]: {bound}. {dtype} cannot represent "
                "all integers beyond, so the numbers drawn there are uneven"
            )
