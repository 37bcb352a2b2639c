"""Random numbers drawn in compiled code: the streams of the NumPy kernels, bit for bit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from flambeau_native.extension import native
from flambeau_native.kernels._common import (
    FLOAT32,
    FLOAT64,
    Array,
    Kernel,
    compiled,
    made,
    otherwise,
)
from flambeau_numpy.casts import copy_order
from flambeau_numpy.extending import FROM_NUMPY, MT19937, THRESHOLD, TO_NUMPY, empty, quiet

if TYPE_CHECKING:
    from flambeau.plugin import dtype as DType
    from flambeau_numpy.extending import Generator


Shape = tuple[int, ...]
FEW = THRESHOLD // FLOAT32.itemsize  # elements up to which an array comes from NumPy itself


def _reads_the_state() -> bool:
    """Whether NumPy's generator keeps its state as the compiled code expects it."""
    ours, theirs = MT19937(20), MT19937(20)
    found, wanted = np.empty(1300, np.uint32), theirs.random_bits(1300)
    native.words(found[:700], ours.memory(), 700)
    native.words(found[700:], ours.memory(), 600)
    return bool((found == wanted).all()) and ours.get_words() == theirs.get_words()


def uniform(shape: Shape, low: float, high: float, dtype: DType, generator: Generator) -> Array:
    kind, count = TO_NUMPY[dtype], math.prod(shape)
    if not count:
        return _uniform(shape, low, high, dtype, generator)
    if kind == FLOAT32:
        out = np.empty(shape, kind) if count < FEW else empty(shape, kind)
        with generator.lock:
            native.uniform_f32(out, generator.engine.memory(), count, low, high)
        return out
    if kind == FLOAT64 and low == 0 and high == 1:
        out = empty(shape, kind)
        with generator.lock:
            native.unit_f64(out, generator.engine.memory(), count)
        return out
    return _uniform(shape, low, high, dtype, generator)


def normal(shape: Shape, mean: float, std: float, dtype: DType, generator: Generator) -> Array:
    kind, count = TO_NUMPY[dtype], math.prod(shape)
    if count < 16 and kind in _SERIAL:
        return normal_serial(shape, mean, std, dtype, generator)
    if kind != FLOAT32 or count < 16:  # the kernel writes 16 at a time
        return _normal(shape, mean, std, dtype, generator)
    out = np.empty(shape, kind) if count < FEW else empty(shape, kind)
    with generator.lock:
        native.normal_f32(out, generator.engine.memory(), count, mean, std)
    return out


def normal_serial(
    shape: Shape, mean: float, std: float, dtype: DType, generator: Generator
) -> Array:
    kind = TO_NUMPY[dtype]
    draw = _SERIAL.get(kind)
    if draw is None:
        return _normal_serial(shape, mean, std, dtype, generator)
    out, spare = made(shape, kind), np.empty(1)
    n = out.size
    with generator.lock:
        if n:
            waiting = generator.next_normal
            has = waiting is not None
            engine = generator.engine.memory()
            draw(out, spare, engine, n, has, mean, std, waiting if has else 0.0)
            generator.next_normal = spare.item() if (n - has) % 2 else None
    return out


def bernoulli_scalar(shape: Shape, p: float, dtype: DType, generator: Generator) -> Array:
    kind = TO_NUMPY[dtype]
    draw = _BERNOULLI.get(kind)
    if draw is None or not math.prod(shape):
        return _bernoulli_scalar(shape, p, dtype, generator)
    out = empty(shape, kind)
    with generator.lock:
        draw(out, generator.engine.memory(), out.size, math.ceil(p * 2.0**53))
    return out


def bernoulli(p: Array, generator: Generator) -> Array:
    """1 where a uniform number is less than `p`."""
    kind = p.dtype
    if not p.size or (kind != FLOAT32 and kind != FLOAT64):
        return _bernoulli(p, generator)
    drawn = np.empty(p.shape, kind)
    with generator.lock:
        if kind == FLOAT32:
            native.uniform_f32(drawn, generator.engine.memory(), p.size, 0.0, 1.0)
        else:
            native.unit_f64(drawn, generator.engine.memory(), p.size)
    return np.less(drawn, p).astype(kind)


@quiet
def dropout(a: Array, p: float, generator: Generator) -> tuple[Array, Array]:
    """`a` times a noise that is 0 with probability `p` and else 1/(1 - p), and the noise.

    Draws follow the order of memory, or that of the elements where some share memory.
    """
    order = list(range(a.ndim))
    if not a.flags.c_contiguous and copy_order(a) == "K":
        order.sort(key=lambda d: -a.strides[d])
    table = np.asarray(a.transpose(order), order="C")
    kind, kept = a.dtype, 1 - p
    inner = FLOAT64 if kind == FLOAT64 else FLOAT32
    scale = inner.type(1) / inner.type(kept)
    draw = _DROPOUT.get(kind)
    if draw is None or not a.size:
        noise = _bernoulli_scalar(table.shape, kept, FROM_NUMPY[kind], generator)
        noise = np.multiply(noise, scale.astype(kind))
        out = np.multiply(table, noise)
    else:
        out, noise = empty(table.shape, kind), empty(table.shape, kind)
        with generator.lock:
            engine = generator.engine.memory()
            draw(out, noise, table, engine, a.size, math.ceil(kept * 2.0**53), scale)
    back = [order.index(d) for d in range(a.ndim)]
    return out.transpose(back), noise.transpose(back)


def exponential(shape: Shape, rate: float, dtype: DType, generator: Generator) -> Array:
    kind = TO_NUMPY[dtype]
    draw = _EXPONENTIAL.get(kind)
    if draw is None or not math.prod(shape):
        return _exponential(shape, rate, dtype, generator)
    out = made(shape, kind)
    with generator.lock:
        draw(out, generator.engine.memory(), out.size, -1.0 / rate)
    return out


def multinomial(probs: Array, num_samples: int, replacement: bool, generator: Generator) -> Array:
    """ValueError where weights are negative or not finite, or a row has no positive one."""
    draw = _MULTINOMIAL.get(probs.dtype)
    if draw is None or not probs.flags.c_contiguous or (num_samples > 1 and not replacement):
        if not ((probs >= 0) & (probs < np.inf)).all() or not (probs > 0).any(-1).all():
            raise ValueError
        return _multinomial(probs, num_samples, replacement, generator)
    columns = probs.shape[-1]
    rows = probs.size // columns
    out, refused = np.empty((*probs.shape[:-1], num_samples), np.int64), np.empty(1, np.uint8)
    bounds = np.empty(columns)
    with generator.lock:
        engine = generator.engine.memory()
        draw(out, engine, refused, probs, bounds, rows, columns, num_samples)
    if refused[0]:
        raise ValueError
    return out


multinomial.checks_weights = True  # pyright: ignore[reportFunctionMemberAccess]


def randperm(n: int, dtype: DType, generator: Generator) -> Array:
    if not 1 < n < 1 << 31:
        return _randperm(n, dtype, generator)
    # Half the memory is half the cache misses; the copy to 64 bits is cheap beside them.
    out = empty((n,), np.int32)
    with generator.lock:
        native.randperm_i32(out, generator.engine.memory(), n)
    kind = TO_NUMPY[dtype]
    return out if kind == out.dtype else out.astype(kind)


KERNELS: dict[str, Kernel] = {}

if native is not None and _reads_the_state():
    drawn = uniform, normal, normal_serial, bernoulli_scalar, randperm, exponential, multinomial
    KERNELS = {kernel.__name__: kernel for kernel in drawn}
    _BERNOULLI = {
        FLOAT32: native.bernoulli_f32,
        FLOAT64: native.bernoulli_f64,
        np.dtype(np.bool_): native.bernoulli_u8,
        np.dtype(np.uint8): native.bernoulli_u8,
    }
    _DROPOUT = {FLOAT32: native.dropout_f32, FLOAT64: native.dropout_f64}
    _EXPONENTIAL, _MULTINOMIAL = compiled("exponential"), compiled("multinomial")
    _SERIAL = compiled("normal_serial")
    _uniform, _normal, _normal_serial, _bernoulli_scalar = map(otherwise, list(KERNELS)[:4])
    _randperm, _exponential, _multinomial = map(otherwise, list(KERNELS)[4:])
    _bernoulli = otherwise("bernoulli")
    KERNELS["dropout"], KERNELS["bernoulli"] = dropout, bernoulli
