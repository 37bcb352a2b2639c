"""Random numbers from the stream of `flambeau_cupy.device.philox`.

Element i of an array takes word i of its draw, or words 2i and 2i + 1 where it needs 64 bits.
Uniforms are the top 24 bits of a word (float32, and halves rounded from it) or the top 53 of two.
Normals come in pairs by Box and Muller: elements 2i and 2i + 1 are r·cos θ and r·sin θ with
r = √(-2 log(1 - u)) and θ = 2πv from the uniforms u, v of their two places.  These are not the
numbers of PyTorch on CUDA, which depend on the size of its launches.  What is drawn by rejection
(gamma, Dirichlet, binomial, Poisson) takes as many blocks for element i as it needs: block i of its
draw with 0, 1, ... in the counter's third word.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from flambeau_cupy.device.array_module import Array, Kernel
from flambeau_cupy.device.launch import blocks_for, rows_for
from flambeau_cupy.dtypes import BFLOAT16, FLOATS, TO_NUMPY
from flambeau_cupy.kernels.indexing import topk
from flambeau_cupy.layer import Layer

if TYPE_CHECKING:
    from flambeau.plugin import dtype as DType


Shape = tuple[int, ...]
_WIDE_RANGE = 1 << 28
_DIGITS = {
    np.dtype(np.float16): 11,
    BFLOAT16: 8,
    np.dtype(np.float32): 24,
    np.dtype(np.float64): 53,
}


def words32(layer: Layer, generator: Any, n: int) -> Array:
    with generator.lock:
        if layer.launch is None:
            return generator.engine.drawn(layer.xp, n)
        place = generator.engine.place(n)
    out = layer.xp.empty((n,), np.uint32)
    if n:
        grid = blocks_for(n, 16)
        layer.launched(np.dtype(np.float32), "philox_words", *grid, out, *place, np.int64(n))
    return out


def drawn(
    layer: Layer,
    kind: np.dtype,
    kernel: str,
    generator: Any,
    words: int,
    out: Array,
    *given: object,
) -> Array:
    """`out`, whose elements a kernel makes of `words` words, row-major arrays and numbers."""
    with generator.lock:
        place = generator.engine.place(words)
    if out.size:
        arrays = [layer.dense(g) for g in given if type(g) is layer.array]
        numbers = [g for g in given if type(g) is not layer.array]
        given = *arrays, *place, *numbers, np.int64(out.size)
        layer.launched(kind, kernel, *blocks_for(out.size, 16), out, *given)
    return out


def words64(layer: Layer, generator: object, n: int) -> Array:
    pairs = words32(layer, generator, 2 * n).reshape(n, 2).astype(np.uint64)
    return (pairs[:, 0] << np.uint64(32)) | pairs[:, 1]


def uniforms(layer: Layer, generator: object, n: int, kind: np.dtype) -> Array:
    if kind == np.float64:
        return (words64(layer, generator, n) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return (words32(layer, generator, n) >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def real(kind: np.dtype) -> np.dtype:
    return np.dtype(np.float64 if kind == np.float64 else np.float32)


def halves(
    layer: Layer, draw: Kernel, shape: Shape, a: float, b: float, kind: np.dtype, g: object
) -> Array:
    part = np.dtype(np.float32 if kind.itemsize == 8 else np.float64)
    return draw(layer, (*shape, 2), a, b, part, g).view(kind).reshape(shape)


def uniform_of(
    layer: Layer, shape: Shape, low: float, high: float, kind: np.dtype, generator: object
) -> Array:
    xp = layer.xp
    if kind.kind == "c":
        return halves(layer, uniform_of, shape, low, high, kind, generator)
    compute = real(kind)
    n = math.prod(shape)
    if layer.launch is not None:
        words = n * compute.itemsize // 4
        numbers = np.float64(low), np.float64(high)
        return drawn(
            layer, kind, "philox_uniform", generator, words, xp.empty(shape, kind), *numbers
        )
    u = uniforms(layer, generator, n, compute)
    start, end = compute.type(low), compute.type(high)
    out = (u * (end - start) + start).astype(kind)
    # Rounding may have reached the open end.
    first, last = np.array(start).astype(kind), np.array(end).astype(kind)
    return xp.where(out == xp.full((), last, kind), xp.full((), first, kind), out).reshape(shape)


def normal_of(
    layer: Layer, shape: Shape, mean: float, std: float, kind: np.dtype, generator: object
) -> Array:
    xp = layer.xp
    if kind.kind == "c":
        return halves(layer, normal_of, shape, mean, std / math.sqrt(2.0), kind, generator)
    n, compute = math.prod(shape), real(kind)
    if layer.launch is not None:
        words = (n + n % 2) * compute.itemsize // 4
        numbers = np.float64(mean), np.float64(std)
        return drawn(
            layer, kind, "philox_normal", generator, words, xp.empty(shape, kind), *numbers
        )
    u = uniforms(layer, generator, n + n % 2, compute).reshape(-1, 2)
    one, two_pi = compute.type(1), compute.type(2 * math.pi)
    radius = xp.sqrt(compute.type(-2) * xp.log(one - u[:, 0]))
    theta = two_pi * u[:, 1]
    pairs = xp.stack([radius * xp.cos(theta), radius * xp.sin(theta)], -1).reshape(-1)[:n]
    return (pairs * compute.type(std) + compute.type(mean)).astype(kind).reshape(shape)


def uniform(
    layer: Layer, shape: Shape, low: float, high: float, dtype: DType, generator: object
) -> Array:
    return uniform_of(layer, shape, low, high, TO_NUMPY[dtype], generator)


def normal(
    layer: Layer, shape: Shape, mean: float, std: float, dtype: DType, generator: object
) -> Array:
    return normal_of(layer, shape, mean, std, TO_NUMPY[dtype], generator)


def bernoulli(layer: Layer, p: Array, generator: object) -> Array:
    compute = real(p.dtype)
    if layer.launch is not None:
        words, out = p.size * compute.itemsize // 4, layer.xp.empty(p.shape, p.dtype)
        return drawn(layer, p.dtype, "philox_bernoulli_each", generator, words, out, p)
    u = uniforms(layer, generator, p.size, compute).reshape(p.shape)
    return (u < p.astype(compute)).astype(p.dtype)


def bernoulli_scalar(
    layer: Layer, shape: Shape, p: float, dtype: DType, generator: object
) -> Array:
    kind, n = TO_NUMPY[dtype], math.prod(shape)
    if layer.launch is not None and kind in FLOATS:
        out = layer.xp.empty(shape, kind)
        return drawn(layer, kind, "philox_bernoulli", generator, 2 * n, out, np.float64(p))
    u = uniforms(layer, generator, n, np.dtype(np.float64))
    return (u < p).astype(kind).reshape(shape)


def dropout(layer: Layer, a: Array, p: float, generator: Any) -> tuple[Array, Array]:
    order = sorted(range(a.ndim), key=lambda d: -a.strides[d])
    table = a.transpose(order)
    if not table.flags.c_contiguous:  # draws follow the memory of what has no gaps
        order, table = list(range(a.ndim)), layer.dense(a)
    with generator.lock:
        place = generator.engine.place(2 * a.size)
    made = [layer.xp.empty(table.shape, a.dtype) for _ in range(2)]
    if a.size:
        sizes = np.float64(1 - p), np.int64(a.size)
        grid = blocks_for(a.size, 16)
        layer.launched(a.dtype, "philox_dropout", *grid, *made, table, *place, *sizes)
    out, noise = (m.transpose([order.index(d) for d in range(a.ndim)]) for m in made)
    return out, noise


def stored(numbers: Array, kind: np.dtype) -> Array:
    return numbers.astype(np.float32).astype(kind) if kind in _DIGITS else numbers.astype(kind)


def randint(
    layer: Layer, low: int, high: int, shape: Shape, dtype: DType, generator: object
) -> Array:
    n, span, kind = math.prod(shape), high - low, TO_NUMPY[dtype]
    if span >= _WIDE_RANGE:
        bits = words64(layer, generator, n)
    else:
        bits = words32(layer, generator, n).astype(np.uint64)
    if span < 1 << 64:
        bits = bits % np.uint64(span)
    numbers = bits.view(np.int64) + np.int64(low if span < 1 << 64 else 0)
    if kind == np.float64:
        return numbers.astype(kind).reshape(shape)
    return stored(numbers, kind).reshape(shape)


def random_full(layer: Layer, shape: Shape, dtype: DType, generator: object) -> Array:
    kind = TO_NUMPY[dtype]
    if kind in _DIGITS:
        span = (1 << _DIGITS[kind]) + 1
    elif kind.kind == "b":
        span = 2
    else:
        span = 1 << (8 * kind.itemsize - (kind.kind == "i"))
    draw = words64 if kind.itemsize == 8 else words32
    numbers = (draw(layer, generator, math.prod(shape)).astype(np.uint64) % np.uint64(span)).view(
        np.int64
    )
    return numbers.astype(kind).reshape(shape)


def randperm(layer: Layer, n: int, dtype: DType, generator: object) -> Array:
    # Keys of 64 bits: two equal ones among 2^32 elements are rarer than one in two.
    order = layer.xp.argsort(words64(layer, generator, n), kind="stable")
    return order.astype(TO_NUMPY[dtype])


def exponential(layer: Layer, shape: Shape, rate: float, dtype: DType, generator: object) -> Array:
    u = uniforms(layer, generator, math.prod(shape), np.dtype(np.float64))
    return (layer.xp.log1p(-u) * (-1.0 / rate)).astype(TO_NUMPY[dtype]).reshape(shape)


def cauchy(
    layer: Layer, shape: Shape, median: float, sigma: float, dtype: DType, generator: object
) -> Array:
    u = uniforms(layer, generator, math.prod(shape), np.dtype(np.float64))
    found = median + sigma * layer.xp.tan(math.pi * (u - 0.5))
    return found.astype(TO_NUMPY[dtype]).reshape(shape)


def log_normal(
    layer: Layer, shape: Shape, mean: float, std: float, dtype: DType, generator: object
) -> Array:
    z = normal_of(layer, shape, mean, std, np.dtype(np.float64), generator)
    return layer.xp.exp(z).astype(TO_NUMPY[dtype])


def geometric(layer: Layer, shape: Shape, p: float, dtype: DType, generator: object) -> Array:
    xp = layer.xp
    u = uniforms(layer, generator, math.prod(shape), np.dtype(np.float64))
    trials = xp.ceil(xp.log1p(-u) / math.log1p(-p))
    # u = 0 is the first trial, as every u below p.
    return xp.maximum(trials, 1.0).astype(TO_NUMPY[dtype]).reshape(shape)


def poisson(layer: Layer, rates: Array, generator: object) -> Array:
    out = layer.xp.empty(rates.shape, rates.dtype)
    return drawn(layer, rates.dtype, "philox_poisson", generator, 4 * rates.size, out, rates)


def standard_gamma(layer: Layer, alpha: Array, exact: bool, generator: object) -> Array:
    out = layer.xp.empty(alpha.shape, alpha.dtype)
    return drawn(layer, alpha.dtype, "philox_gamma", generator, 4 * alpha.size, out, alpha)


def sample_dirichlet(layer: Layer, alpha: Array, generator: object) -> Array:
    xp, kind = layer.xp, alpha.dtype
    gammas = xp.empty(alpha.shape, np.float64)
    drawn(layer, kind, "philox_gamma_wide", generator, 4 * alpha.size, gammas, alpha)
    rows = gammas if alpha.ndim else gammas.reshape(1)
    numbers = np.finfo(kind)
    parts = (rows / rows.sum(-1, keepdims=True)).astype(kind).reshape(alpha.shape)
    return xp.minimum(xp.maximum(parts, numbers.tiny), kind.type(1) - numbers.epsneg)


def binomial(layer: Layer, counts: Array, probs: Array, generator: object) -> Array:
    out = layer.xp.empty(counts.shape, counts.dtype)
    words = 4 * counts.size
    return drawn(layer, counts.dtype, "philox_binomial", generator, words, out, counts, probs)


def sampled(
    layer: Layer, probs: Array, num_samples: int, replacement: bool, generator: object
) -> Array:
    xp = layer.xp
    kind, columns = probs.dtype, probs.shape[-1]
    if not replacement or num_samples == 1:
        scores = xp.empty(probs.shape, np.float64)
        drawn(layer, kind, "philox_scores", generator, 2 * probs.size, scores, probs)
        return topk(layer, scores, num_samples, probs.ndim - 1, True)[1]
    out = xp.empty((*probs.shape[:-1], num_samples), np.int64)
    weights, sums = layer.dense(probs), xp.empty(probs.shape, np.float64)
    rows = sums.size // columns
    grid = rows_for(rows, columns)
    layer.launched(kind, "weight_sums", *grid, sums, weights, np.int64(rows), np.int64(columns))
    sizes = np.int64(num_samples), np.int64(columns)
    return drawn(layer, kind, "philox_search", generator, 2 * out.size, out, weights, sums, *sizes)


def multinomial(
    layer: Layer, probs: Array, num_samples: int, replacement: bool, generator: object
) -> Array:
    xp = layer.xp
    if layer.launch is not None:
        return sampled(layer, probs, num_samples, replacement, generator)
    weights = probs.astype(np.float64)
    if replacement and num_samples > 1:
        sums = xp.cumsum(weights, axis=-1)
        bounds = sums / sums[..., -1:]
        shape = (*probs.shape[:-1], num_samples)
        u = uniforms(layer, generator, math.prod(shape), np.dtype(np.float64)).reshape(shape)
        found = (u[..., :, None] >= bounds[..., None, :]).sum(-1)
        last = (weights > 0) * xp.arange(probs.shape[-1])
        return xp.minimum(found, last.max(-1, keepdims=True)).astype(np.int64)
    u = uniforms(layer, generator, probs.size, np.dtype(np.float64)).reshape(probs.shape)
    scores = weights / -xp.log1p(-u)
    scores = xp.where(weights > 0, scores, -1.0)
    return xp.argsort(-scores, axis=-1, kind="stable")[..., :num_samples].astype(np.int64)


KERNELS: dict[str, Kernel] = {
    "uniform": uniform,
    "normal": normal,
    "normal_serial": normal,
    "bernoulli": bernoulli,
    "bernoulli_scalar": bernoulli_scalar,
    "randint": randint,
    "random_full": random_full,
    "randperm": randperm,
    "exponential": exponential,
    "cauchy": cauchy,
    "log_normal": log_normal,
    "geometric": geometric,
    "multinomial": multinomial,
}
"""Functions of a layer and what the op of their name is given."""

LAUNCHED: dict[str, Kernel] = {
    "dropout": dropout,
    "poisson": poisson,
    "standard_gamma": standard_gamma,
    "sample_dirichlet": sample_dirichlet,
    "binomial": binomial,
}
"""The same, which consist of kernels in CUDA C."""
