"""Random numbers drawn in compiled code: the streams of the NumPy kernels, bit for bit."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from flambeau_native.extension import native
from flambeau_native.kernels._common import (
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    Array,
    Kernel,
    compiled,
    made,
    otherwise,
    zeros,
)
from flambeau_numpy.casts import copy_order
from flambeau_numpy.extending import FROM_NUMPY, MT19937, THRESHOLD, TO_NUMPY, empty, quiet

if TYPE_CHECKING:
    from collections.abc import Container

    from flambeau.plugin import dtype as DType
    from flambeau_numpy.extending import Generator


Shape = tuple[int, ...]
_FEWEST_IN_BLOCKS = 16  # normal numbers that are not made in pairs
_FEW_PLACES = 1024  # of a permutation, in whose dtype they are swapped
_WIDE_RANGE = 1 << 28  # from here on, integers take 64 bits each


def _reads_the_state() -> bool:
    """Whether NumPy's generator keeps its state as the compiled code expects it."""
    ours, theirs = MT19937(20), MT19937(20)
    found, wanted = np.empty(1300, np.uint32), theirs.random_bits(1300)
    native.words(found[:700], ours.memory(), 700)
    native.words(found[700:], ours.memory(), 600)
    return bool((found == wanted).all()) and ours.get_words() == theirs.get_words()


def uniform_(a: Array, low: float, high: float, generator: Generator) -> None:
    if (run := _UNIFORM.get(a.dtype)) is None:
        _assign(a, _uniform(a.shape, low, high, FROM_NUMPY[a.dtype], generator))
    elif count := a.size:
        with generator.lock:
            run(a, generator.engine.memory(), count, low, high)


def normal_(a: Array, mean: float, std: float, generator: Generator) -> None:
    count = a.size
    if (run := _NORMAL.get(a.dtype)) is None:  # of complex numbers half as many fill a block
        _assign(a, _normal(a.shape, mean, std, FROM_NUMPY[a.dtype], generator))
    elif count < _FEWEST_IN_BLOCKS:
        _serial(_SERIAL, _normal_serial, a, mean, std, generator)
    else:
        with generator.lock:
            run(a, generator.engine.memory(), count, mean, std)


def normal_serial_(a: Array, mean: float, std: float, generator: Generator) -> None:
    _serial(_SERIAL, _normal_serial, a, mean, std, generator)


def log_normal_(a: Array, mean: float, std: float, generator: Generator) -> None:
    _serial(_LOG_NORMAL, _log_normal, a, mean, std, generator)


def _serial(
    table: dict[np.dtype, Kernel],
    general: Kernel,
    a: Array,
    mean: float,
    std: float,
    generator: Generator,
) -> None:
    """Numbers made of normals in pairs; the second of the last may have to wait."""
    if (run := table.get(a.dtype)) is None:
        _assign(a, general(a.shape, mean, std, FROM_NUMPY[a.dtype], generator))
    elif count := a.size:
        with generator.lock:
            engine, waiting = generator.engine.memory(), generator.next_normal
            if waiting is None and not count % 2:  # none waits before or after
                run(a, _NOBODY, engine, count, 0, mean, std, 0.0)
                return
            spare, has = np.empty(1), waiting is not None
            run(a, spare, engine, count, has, mean, std, waiting if has else 0.0)
            generator.next_normal = spare.item() if (count - has) % 2 else None


def cauchy_(a: Array, median: float, sigma: float, generator: Generator) -> None:
    if (run := _CAUCHY.get(a.dtype)) is None:
        _assign(a, _cauchy(a.shape, median, sigma, FROM_NUMPY[a.dtype], generator))
    elif count := a.size:
        with generator.lock:
            run(a, generator.engine.memory(), count, median, sigma)


def geometric_(a: Array, p: float, generator: Generator) -> None:
    if (run := _GEOMETRIC.get(a.dtype)) is None:
        _assign(a, _geometric(a.shape, p, FROM_NUMPY[a.dtype], generator))
    elif count := a.size:
        with generator.lock:
            run(a, generator.engine.memory(), count, math.log1p(-p), 0.0)


def exponential_(a: Array, rate: float, generator: Generator) -> None:
    if (run := _EXPONENTIAL.get(a.dtype)) is None:
        _assign(a, _exponential(a.shape, rate, FROM_NUMPY[a.dtype], generator))
    elif count := a.size:
        with generator.lock:
            run(a, generator.engine.memory(), count, -1.0 / rate)


def randint_(a: Array, low: int, high: int, generator: Generator) -> None:
    span = high - low
    if (run := _RANDINT.get(a.dtype)) is None:
        _assign(a, _randint(low, high, a.shape, FROM_NUMPY[a.dtype], generator))
    elif count := a.size:
        is_wide, low = (
            span >= _WIDE_RANGE,
            0 if span >> 64 else low,
        )  # all of int64: bits as they are
        with generator.lock:
            run(a, generator.engine.memory(), count, low, _signed(span), is_wide)


def _signed(span: int) -> int:
    """The 64 bits of a span as compiled code takes them; 2⁶⁴ is 0."""
    return span - (1 << 64) if span >> 63 else span


def random_full_(a: Array, generator: Generator) -> None:
    dtype = a.dtype
    if (run := _RANDINT.get(dtype)) is None or (span := _SPANS.get(dtype)) is None:
        _assign(a, _random_full(a.shape, FROM_NUMPY[dtype], generator))
    elif count := a.size:
        with generator.lock:
            run(a, generator.engine.memory(), count, 0, span, dtype.itemsize == 8)


def bernoulli_scalar_(a: Array, p: float, generator: Generator) -> None:
    if (run := _BERNOULLI.get(a.dtype)) is None:
        _assign(a, _bernoulli_scalar(a.shape, p, FROM_NUMPY[a.dtype], generator))
    elif count := a.size:
        with generator.lock:
            run(a, generator.engine.memory(), count, math.ceil(p * 2.0**53))


def _fresh(fill: Kernel, table: Container[np.dtype], general: Kernel) -> Kernel:
    """The kernel ``(shape, *numbers, dtype, generator)`` of the one that fills an array."""

    def draw(shape: Shape, *given: Any) -> Array:
        *numbers, dtype, generator = given
        kind = TO_NUMPY[dtype]
        if kind not in table:
            return general(shape, *given)
        out = made(shape, kind)
        fill(out, *numbers, generator)
        return out

    return draw


def _in_one(name: str, fresh: Kernel, fill: Kernel) -> tuple[Kernel, Kernel]:
    """`fresh` and `fill` by one compiled call for the dtypes that the compiled functions have."""
    serial = compiled("normal_serial") if name == "normal" else {}
    cases = tuple(
        [
            (FROM_NUMPY[kind], kind, run, serial.get(kind))
            for kind, run in compiled(name).items()
            if kind in (FLOAT32, FLOAT64)
        ]
    )
    return native.drawing(cases, _FEWEST_IN_BLOCKS, fresh, fill, empty, THRESHOLD)


def randint(low: int, high: int, shape: Shape, dtype: DType, generator: Generator) -> Array:
    kind = TO_NUMPY[dtype]
    if kind not in _RANDINT:
        return _randint(low, high, shape, dtype, generator)
    out = made(shape, kind)
    randint_(out, low, high, generator)
    return out


def bernoulli(p: Array, generator: Generator) -> Array:
    """1 where a uniform number is less than `p`."""
    if p.dtype not in (FLOAT32, FLOAT64) or not p.size:
        return _bernoulli(p, generator)
    return _below(p, generator).astype(p.dtype)


def bernoulli_(a: Array, p: Array, generator: Generator) -> None:
    if p.dtype not in (FLOAT32, FLOAT64) or not p.size:
        _assign(a, _bernoulli(p, generator))
    else:
        np.copyto(a, _below(p, generator))


def _below(p: Array, generator: Generator) -> Array:
    drawn = np.empty(p.shape, p.dtype)
    uniform_(drawn, 0.0, 1.0, generator)
    return np.less(drawn, p)


def dropout(a: Array, p: float, generator: Generator) -> tuple[Array, Array]:
    """`a` times a noise that is 0 with probability `p` and else 1/(1 - p), and the noise.

    Draws follow the order of memory, or that of the elements where some share memory.
    """
    kind = a.dtype
    draw = _DROPOUT.get(kind)
    if draw is None or not a.size or not a.flags.c_contiguous:
        return _any_dropout(a, p, generator)
    out, noise = made(a.shape, kind), made(a.shape, kind)
    bound, scale = _chance(p, kind)
    with generator.lock:
        draw(out, noise, a, generator.engine.memory(), a.size, bound, scale)
    return out, noise


@lru_cache(maxsize=64)
@quiet
def _chance(p: float, kind: np.dtype) -> tuple[int, float]:
    """Below how many of 2⁵³ a number is kept, and what it is multiplied by."""
    inner = FLOAT64 if kind == FLOAT64 else FLOAT32
    return math.ceil((1 - p) * 2.0**53), float(inner.type(1) / inner.type(1 - p))


@quiet
def _any_dropout(a: Array, p: float, generator: Generator) -> tuple[Array, Array]:
    order = list(range(a.ndim))
    if not a.flags.c_contiguous and copy_order(a) == "K":
        order.sort(key=lambda d: -a.strides[d])
    table = np.asarray(a.transpose(order), order="C")
    if a.size and a.dtype in _DROPOUT:
        out, noise = dropout(table, p, generator)
    else:
        scale = _chance(p, a.dtype)[1]
        noise = _bernoulli_scalar(table.shape, 1 - p, FROM_NUMPY[a.dtype], generator)
        noise = np.multiply(noise, np.asarray(scale, a.dtype))
        out = np.multiply(table, noise)
    back = [order.index(d) for d in range(a.ndim)]
    return out.transpose(back), noise.transpose(back)


def multinomial(probs: Array, num_samples: int, replacement: bool, generator: Generator) -> Array:
    """ValueError where weights are negative or not finite, or a row has no positive one."""
    draw = _MULTINOMIAL.get(probs.dtype)
    if draw is None or not probs.flags.c_contiguous:
        _check_weights(probs)
        return _multinomial(probs, num_samples, replacement, generator)
    if num_samples > 1 and not replacement:
        _check_weights(probs)
        waits = np.empty_like(probs)
        exponential_(waits, 1.0, generator)
        return _largest(probs, waits, num_samples)
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


@quiet
def _largest(weights: Array, waits: Array, count: int) -> Array:
    """The indices of the `count` largest quotients of each row, equal ones in their order."""
    scores = np.divide(weights, waits, out=waits)
    order = np.negative(scores, out=scores).argsort(-1, kind="stable")
    return order[..., :count].copy()


def _check_weights(weights: Array) -> None:
    """ValueError where one is negative or not finite, or a row has none that is positive."""
    greatest = weights.max(-1)
    if not (weights.min() >= 0 and greatest.min() > 0 and greatest.max() < np.inf):
        raise ValueError


multinomial.checks_weights = True  # pyright: ignore[reportFunctionMemberAccess]


def randperm(n: int, dtype: DType, generator: Generator) -> Array:
    kind = TO_NUMPY[dtype]
    if n < 2:  # nothing is drawn
        return zeros((n,), kind)
    if n <= _FEW_PLACES and kind in _PERMUTED:
        out = made((n,), kind)
        with generator.lock:
            _PERMUTED[kind](out, generator.engine.memory(), n)
        return out
    if n >= 1 << 31:
        return _randperm(n, dtype, generator)
    # Half the memory is half the cache misses; the copy to 64 bits is cheap beside them.
    out = empty((n,), np.int32)
    with generator.lock:
        native.randperm_i32(out, generator.engine.memory(), n)
    return out if kind == out.dtype else out.astype(kind)


KERNELS: dict[str, Kernel] = {}

if native is not None and _reads_the_state():
    _BERNOULLI = {
        FLOAT32: native.bernoulli_f32,
        FLOAT64: native.bernoulli_f64,
        np.dtype(np.bool_): native.bernoulli_u8,
        np.dtype(np.uint8): native.bernoulli_u8,
    }
    _DROPOUT = {FLOAT32: native.dropout_f32, FLOAT64: native.dropout_f64}
    _UNIFORM, _NORMAL, _SERIAL = map(compiled, ("uniform", "normal", "normal_serial"))
    _CAUCHY, _LOG_NORMAL, _EXPONENTIAL = map(compiled, ("cauchy", "log_normal", "exponential"))
    _GEOMETRIC = {**compiled("geometric"), INT64: native.geometric_i64}
    _RANDINT = {**compiled("randint"), INT32: native.randint_i32, INT64: native.randint_i64}
    _SPANS = {FLOAT32: (1 << 24) + 1, FLOAT64: (1 << 53) + 1, INT32: 1 << 31}
    _SPANS[INT64] = _signed(1 << 63)
    _MULTINOMIAL = compiled("multinomial")
    _PERMUTED = {INT32: native.randperm_i32, INT64: native.randperm_i64}
    _uniform, _normal, _normal_serial = map(otherwise, ("uniform", "normal", "normal_serial"))
    _cauchy, _geometric, _randint = map(otherwise, ("cauchy", "geometric", "randint"))
    _exponential, _log_normal = otherwise("exponential"), otherwise("log_normal")
    _bernoulli, _bernoulli_scalar = otherwise("bernoulli"), otherwise("bernoulli_scalar")
    _randperm, _multinomial = otherwise("randperm"), otherwise("multinomial")
    _random_full, _assign = otherwise("random_full"), otherwise("assign")
    _NOBODY = np.empty(1)  # where nobody's number is put
    for fill, table in (
        (uniform_, _UNIFORM),
        (normal_, _NORMAL),
        (normal_serial_, _SERIAL),
        (log_normal_, _LOG_NORMAL),
        (cauchy_, _CAUCHY),
        (geometric_, _GEOMETRIC),
        (exponential_, _EXPONENTIAL),
        (random_full_, _SPANS),
        (bernoulli_scalar_, _BERNOULLI),
    ):
        name = fill.__name__[:-1]
        KERNELS[f"{name}_"], KERNELS[name] = fill, _fresh(fill, table, otherwise(name))
    for name in ("uniform", "normal", "cauchy"):
        KERNELS[name], KERNELS[f"{name}_"] = _in_one(name, KERNELS[name], KERNELS[f"{name}_"])
    for kernel in (randint_, randint, randperm, multinomial, dropout, bernoulli, bernoulli_):
        KERNELS[kernel.__name__] = kernel
