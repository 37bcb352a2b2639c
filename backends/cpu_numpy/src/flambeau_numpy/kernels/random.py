"""Random numbers: PyTorch's CPU streams, vectorised.

`generator` is the core's `Generator`; its engine is `flambeau_numpy.generator.MT19937`.  What each
op draws is stated in the core (`ops.randomness.random`); here the same numbers come out of NumPy,
bit for bit.

NumPy's own ``log1p``, ``log``, ``exp`` and ``tan`` differ from libm's in the last bit on some
processors.  Where float64 results must be libm's, SciPy's Box-Cox functions with exponent zero and
``xlogy`` are used: they are log1p, exp and log, each taken from libm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import boxcox1p, inv_boxcox, xlogy

from flambeau import plugin
from flambeau_numpy._box_muller import BLOCK as NORMALS
from flambeau_numpy._box_muller import BoxMuller32
from flambeau_numpy._fused import fma32, fma64
from flambeau_numpy._permutation import swapped
from flambeau_numpy.allocator import empty
from flambeau_numpy.dtypes import BFLOAT16, FROM_NUMPY, TO_NUMPY
from flambeau_numpy.silence import quiet

if TYPE_CHECKING:
    from flambeau.plugin import dtype as DType
    from flambeau_numpy.generator import MT19937, Generator


Array = NDArray[Any]
Shape = tuple[int, ...]

_BLOCK = 16384  # numbers per step, so that the steps of one block stay in the cache
_NORMAL_BLOCK = 65536  # likewise; the many cheap steps of normals favour larger blocks

# 0-d arrays: ufuncs take them faster than scalars.
_MASK24, _MASK53 = np.array((1 << 24) - 1, np.uint32), np.array((1 << 53) - 1, np.uint64)
_UNIT24, _UNIT53 = np.array(2.0**-24, np.float32), np.array(2.0**-53)
_WIDE_RANGE = 1 << 28

_FLOAT16, _FLOAT32, _FLOAT64 = (np.dtype(f"float{bits}") for bits in (16, 32, 64))
_HALF = (_FLOAT16, BFLOAT16)
_DIGITS = {_FLOAT16: 11, BFLOAT16: 8, _FLOAT32: 24, _FLOAT64: 53}


def uniform(shape: Shape, low: float, high: float, dtype: DType, generator: Generator) -> Array:
    """Uniform on [low, high)."""
    kind = TO_NUMPY[dtype]
    if kind.kind == "c":
        return _complex(uniform, shape, low, high, kind, generator)
    unit = low == 0 and high == 1
    if kind == _FLOAT64:

        def double(bits: Array, target: Array) -> None:
            _units64(bits, target)
            target[...] = fma64(target, high - low, low)
            target[target == high] = low

        return _filled(shape, kind, generator, _units64 if unit else double, wide=True)
    if unit and kind == _FLOAT32:
        return _filled(shape, kind, generator, _units32)

    start, end = (np.float32(bound).astype(kind) for bound in (low, high))
    low32 = float(np.float32(low))
    span = float(np.float32(np.float32(high) - np.float32(low)))

    def single(bits: Array, target: Array) -> None:
        units = _single(target)
        _units32(bits, units)
        fma32(units, span, low32)
        _store(units, target)
        target[target == end] = start  # rounding may have reached the open end

    return _filled(shape, kind, generator, single)


def normal(shape: Shape, mean: float, std: float, dtype: DType, generator: Generator) -> Array:
    """Normals as a contiguous tensor gets them: in blocks of 16 where there are as many."""
    kind = TO_NUMPY[dtype]
    if kind.kind == "c":
        return _complex(normal, shape, mean, std / math.sqrt(2.0), kind, generator)
    if math.prod(shape) < NORMALS:
        return normal_serial(shape, mean, std, dtype, generator)
    out = empty(shape, kind)
    flat = out.reshape(-1)
    with generator.lock:
        if kind == _FLOAT64:
            _normals64(flat, mean, std, generator.engine)
        else:
            _normals32(flat, mean, std, generator.engine)
    return out


def _normals32(flat: Array, mean: float, std: float, engine: Any) -> None:
    ragged = flat.size % NORMALS
    full = flat.size - ragged
    mean32, std32 = float(np.float32(mean)), float(np.float32(std))
    transform = BoxMuller32((min(full, _NORMAL_BLOCK) + NORMALS) // 2)
    single = np.empty(0, np.float32)
    for start in range(0, full, _NORMAL_BLOCK):
        target = flat[start : min(start + _NORMAL_BLOCK, full)]
        bits = engine.random_bits(target.size)
        single = _single(target)
        if ragged and start + _NORMAL_BLOCK >= full:
            # A last block is drawn afresh, over the end of the one before; float32 tensors have
            # drawn for the ragged end by then, half precisions have not.
            if flat.dtype == _FLOAT32:
                engine.random_bits(ragged)
            bits = np.append(bits, engine.random_bits(NORMALS))
            single = np.empty(bits.size, np.float32)
        transform.fill(bits, single)
        fma32(single, std32, mean32)
        _store(single if single is target else single[: target.size], target)
    if ragged:
        _store(single[-NORMALS:], flat[-NORMALS:])


def _normals64(flat: Array, mean: float, std: float, engine: MT19937) -> None:
    ragged = flat.size % NORMALS
    full = flat.size - ragged
    for start in range(0, full, _BLOCK):
        _normal_blocks64(flat[start : min(start + _BLOCK, full)], mean, std, engine)
    if ragged:
        engine.random_bits64(ragged)
        _normal_blocks64(flat[-NORMALS:], mean, std, engine)


def _normal_blocks64(target: Array, mean: float, std: float, engine: MT19937) -> None:
    _units64(engine.random_bits64(target.size), target)
    halves = target.reshape(-1, 2, NORMALS // 2)
    radius = np.sqrt(-2.0 * xlogy(1.0, 1.0 - halves[:, 0]))
    theta = (2.0 * math.pi) * halves[:, 1]
    halves[:, 0] = fma64(radius * np.cos(theta), std, mean)
    halves[:, 1] = fma64(radius * np.sin(theta), std, mean)


def normal_serial(
    shape: Shape, mean: float, std: float, dtype: DType, generator: Generator
) -> Array:
    """Normals one after the other, as a tensor gets them that is not contiguous."""
    kind = TO_NUMPY[dtype]
    if kind.kind == "c":
        return _complex(normal_serial, shape, mean, std / math.sqrt(2.0), kind, generator)
    out = empty(shape, kind)
    samples = _standard_normals(generator, out.size)
    _store(fma64(samples, std, mean), out.reshape(-1))
    return out


def _standard_normals(generator: Generator, n: int) -> NDArray[np.float64]:
    """float64 pairs r·cos θ, r·sin θ; the second of an odd last pair waits in the generator."""
    with generator.lock:
        waiting = generator.next_normal if n else None
        missing = n - (waiting is not None)
        units = np.empty(missing + missing % 2)
        if units.size:
            _units64(generator.engine.random_bits64(units.size), units)
        theta = (2.0 * math.pi) * units[::2]
        radius = np.sqrt(-2.0 * boxcox1p(-units[1::2], 0.0))
        samples = np.empty(1 + units.size)
        np.multiply(radius, np.cos(theta), out=samples[1::2])
        np.multiply(radius, np.sin(theta), out=samples[2::2])
        if n:
            generator.next_normal = float(samples[-1]) if missing % 2 else None
    if waiting is None:
        return samples[1 : 1 + n]
    samples[0] = waiting
    return samples[:n]


def bernoulli(p: Array, generator: Generator) -> Array:
    """1 where a uniform number falls below `p`."""
    double = p.dtype == _FLOAT64
    units = _filled(
        p.shape,
        _FLOAT64 if double else _FLOAT32,
        generator,
        _units64 if double else _units32,
        wide=double,
    )
    return np.less(units, p if double else p.astype(np.float32)).astype(p.dtype)


def bernoulli_scalar(shape: Shape, p: float, dtype: DType, generator: Generator) -> Array:
    """1 with probability `p`."""
    bound = np.uint64(math.ceil(p * 2.0**53))  # of the integer that the uniform is made from

    def compare(bits: Array, target: Array) -> None:
        bits &= _MASK53
        np.copyto(target, bits < bound, casting="unsafe")

    return _filled(shape, TO_NUMPY[dtype], generator, compare, wide=True)


def randint(low: int, high: int, shape: Shape, dtype: DType, generator: Generator) -> Array:
    """Integers from low to high - 1."""
    span = high - low

    def shifted(bits: Array, target: Array) -> None:
        if span == 1 << 64:
            numbers = bits.view(np.int64)
        else:
            numbers = _modulo(bits, span).astype(np.int64)
            numbers += low
        _store(numbers, target)

    return _filled(shape, TO_NUMPY[dtype], generator, shifted, wide=span >= _WIDE_RANGE)


def random_full(shape: Shape, dtype: DType, generator: Generator) -> Array:
    """Integers from the whole range that the dtype counts without gaps."""
    kind = TO_NUMPY[dtype]
    if kind in _DIGITS:
        span = (1 << _DIGITS[kind]) + 1
    elif kind.kind == "b":
        span = 2
    else:
        span = 1 << (8 * kind.itemsize - (kind.kind == "i"))

    def modulo(bits: Array, target: Array) -> None:
        _store(_modulo(bits, span).astype(np.int64), target)

    return _filled(shape, kind, generator, modulo, wide=kind.itemsize == 8)


def randperm(n: int, dtype: DType, generator: Generator) -> Array:
    """A permutation of 0 … n-1."""
    places = np.arange(n)
    words = generator.engine.random_bits(max(n - 1, 0))
    places[:-1] += words % np.arange(n, 1, -1, dtype=np.uint32)
    return swapped(places).astype(TO_NUMPY[dtype], copy=False)


def exponential(shape: Shape, rate: float, dtype: DType, generator: Generator) -> Array:
    """Waiting times at `rate` events per unit of time."""
    scale = -1.0 / rate

    def wait(bits: Array, target: Array) -> None:
        times = boxcox1p(-_new_units64(bits), 0.0)
        times *= scale
        _store(times, target)

    return _filled(shape, TO_NUMPY[dtype], generator, wait, wide=True)


def cauchy(shape: Shape, median: float, sigma: float, dtype: DType, generator: Generator) -> Array:
    """Cauchy-distributed numbers; slow, for neither NumPy nor SciPy offers libm's tangent."""

    def tangent(bits: Array, target: Array) -> None:
        angles = (math.pi * (_new_units64(bits) - 0.5)).tolist()
        tangents = np.fromiter(map(math.tan, angles), np.float64, target.size)
        _store(fma64(tangents, sigma, median), target)

    return _filled(shape, TO_NUMPY[dtype], generator, tangent, wide=True)


def log_normal(shape: Shape, mean: float, std: float, dtype: DType, generator: Generator) -> Array:
    """Numbers whose logarithm is normal."""
    out = empty(shape, TO_NUMPY[dtype])
    samples = fma64(_standard_normals(generator, out.size), std, mean)
    _store(inv_boxcox(samples, 0.0), out.reshape(-1))
    return out


def geometric(shape: Shape, p: float, dtype: DType, generator: Generator) -> Array:
    """Trials up to the first success, each of which has probability `p`."""
    kind = TO_NUMPY[dtype]
    failure = math.log1p(-p)

    def count(bits: Array, target: Array) -> None:
        trials = np.ceil(xlogy(1.0, _new_units64(bits)) / failure)
        _store(trials.astype(np.int64) if kind.kind in "iu" else trials, target)

    return _filled(shape, kind, generator, count, wide=True)


def multinomial(probs: Array, num_samples: int, replacement: bool, generator: Generator) -> Array:
    """Indices along the last dimension, drawn with the given weights."""
    if replacement and num_samples > 1:
        sums = np.cumsum(probs if probs.dtype == _FLOAT64 else probs.astype(np.float32), axis=-1)
        bounds = (sums / sums[..., -1:]).astype(np.float64)
        bounds[..., -1] = 1.0
        shape = (*probs.shape[:-1], num_samples)
        units = _filled(shape, _FLOAT64, generator, _units64, wide=True)
        if probs.ndim == 1:
            return np.searchsorted(bounds, units)
        return np.stack([np.searchsorted(b, u) for b, u in zip(bounds, units, strict=True)])
    # Like all in-place filling, the waiting times follow the order of the weights in memory.
    in_order = probs.T if probs.ndim == 2 and probs.strides[0] < probs.strides[1] else probs
    waits = exponential(in_order.shape, 1.0, FROM_NUMPY[probs.dtype], generator)
    scores = probs / (waits if in_order is probs else waits.T)
    if num_samples == 1:
        return scores.argmax(-1)[..., None]
    if scores.dtype != _FLOAT64:
        scores = scores.astype(np.float32)
    return np.argsort(-scores, axis=-1, kind="stable")[..., :num_samples].copy()


def _filled(
    shape: Shape,
    kind: np.dtype,
    generator: Generator,
    transform: Callable[[Array, Array], None],
    *,
    wide: bool = False,
) -> Array:
    """An array that `transform(bits, target)` fills in blocks, from 32 or 64 bits per element."""
    out = empty(shape, kind)
    flat = out.reshape(-1)
    with generator.lock:
        draw = generator.engine.random_bits64 if wide else generator.engine.random_bits
        for start in range(0, flat.size, _BLOCK):
            target = flat[start : start + _BLOCK]
            transform(draw(target.size), target)
    return out


def _units32(bits: NDArray[np.uint32], target: NDArray[np.float32]) -> None:
    bits &= _MASK24
    np.copyto(target, bits.view(np.int32), casting="unsafe")
    target *= _UNIT24


def _units64(bits: NDArray[np.uint64], target: NDArray[np.float64]) -> None:
    bits &= _MASK53
    np.copyto(target, bits.view(np.int64), casting="same_kind")
    target *= _UNIT53


def _single(target: Array) -> NDArray[np.float32]:
    return target if target.dtype == _FLOAT32 else np.empty(target.size, np.float32)


def _new_units64(bits: NDArray[np.uint64]) -> NDArray[np.float64]:
    units = np.empty(bits.size)
    _units64(bits, units)
    return units


def _modulo(words: Array, span: int) -> Array:
    number = words.dtype.type
    if span & (span - 1) == 0:
        return words & number(span - 1)
    quotient = words // number(span)  # NumPy divides by a constant faster than it takes remainders
    quotient *= number(span)
    return words - quotient


def _store(values: Array, target: Array) -> None:
    """Round numbers into `target`; half precisions are reached by way of float32."""
    if values is target:
        return
    if target.dtype in _HALF and values.dtype != _FLOAT32:
        values = values.astype(np.float32)
    np.copyto(target, values, casting="unsafe")


def _complex(
    draw: Callable[..., Array],
    shape: Shape,
    first: float,
    second: float,
    kind: np.dtype,
    generator: Generator,
) -> Array:
    """Real and imaginary parts drawn in turn."""
    part = plugin.float32 if kind.itemsize == 8 else plugin.float64
    return draw((*shape, 2), first, second, part, generator).view(kind).reshape(shape)


KERNELS = {
    kernel.__name__: quiet(kernel)
    for kernel in (
        uniform,
        normal,
        normal_serial,
        bernoulli,
        bernoulli_scalar,
        randint,
        random_full,
        randperm,
        exponential,
        cauchy,
        log_normal,
        geometric,
        multinomial,
    )
}
