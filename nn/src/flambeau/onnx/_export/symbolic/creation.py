"""New tensors whose sizes or numbers depend on the inputs, and random ones."""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau.onnx._export.errors import UnsupportedOperatorError
from flambeau.onnx._export.graph import Graph, Value, number_of
from flambeau.onnx._export.table import need_number, symbolic


def _filled(names: tuple[str, ...], like: str, new: str, value: object) -> None:
    @symbolic(*names)
    def plain(g: Graph, size: Any, dtype: Any = None) -> Value:
        return g.filled(size, value, g.dtype)

    @symbolic(*(f"{name}_like" for name in names))
    def as_other(g: Graph, self: Value, dtype: object = None) -> Value:
        return g.filled(g.shape_of(self), value, g.dtype)

    @symbolic(*(f"new_{name}" for name in names))
    def beside(g: Graph, self: Value, size: Any, dtype: Any = None) -> Value:
        return g.filled(size, value, g.dtype)


_filled(("zeros", "empty"), "zeros_like", "new_zeros", 0)
_filled(("ones",), "ones_like", "new_ones", 1)


@symbolic("full")
def full(g: Graph, size: Any, fill_value: Any, dtype: Any = None) -> Value:
    return g.filled(size, fill_value, g.dtype)


@symbolic("full_like")
def full_like(g: Graph, self: Value, fill_value: object, dtype: object = None) -> Value:
    return g.filled(g.shape_of(self), fill_value, g.dtype)


@symbolic("new_full")
def new_full(g: Graph, self: Value, size: Any, fill_value: Any, dtype: Any = None) -> Value:
    return g.filled(size, fill_value, g.dtype)


@symbolic("fill")
def fill(g: Graph, self: Value, value: object) -> Value:
    return g.filled(g.shape_of(self), value, g.dtype)


@symbolic("zero_")
def zero(g: Graph, self: Value) -> Value:
    return g.filled(g.shape_of(self), 0, g.dtype)


@symbolic("arange", since=11)
def arange(
    g: Graph, end: object, start: object = 0, step: object = 1, dtype: object = None
) -> Value:
    made = g.op("Range", *(g.value(v, g.dtype) for v in (start, end, step)))
    made.dtype = g.dtype
    return made


def _gaps(g: Graph, count: Value) -> Value:
    """How many gaps there are between so many places, one at least."""
    one = g.constant(1)
    return g.op("Where", g.op("Greater", count, one), g.op("Sub", count, one), one)


@symbolic("linspace", since=11)
def linspace(g: Graph, start: object, end: object, steps: object, dtype: object = None) -> Value:
    known = not isinstance(steps, Value)
    if known and not isinstance(start, Value) and not isinstance(end, Value):
        return g.constant(g.result)
    kind = g.dtype if g.dtype.is_floating_point else fb.float64
    if not isinstance(steps, Value):
        places = g.constant(fb.linspace(0, 1, need_number(steps, "a number"), dtype=kind))
    else:
        whole = g.op("Range", g.constant(0), steps, g.constant(1))
        places = g.op("Div", g.cast(whole, kind), g.cast(_gaps(g, steps), kind))
    first, last = g.value(start, kind), g.value(end, kind)
    return g.cast(g.op("Add", first, g.op("Mul", places, g.op("Sub", last, first))), g.dtype)


def _window(g: Graph, length: object, periodic: bool, *factors: float) -> Value:
    """A sum of cosines over a window, with signs that alternate."""
    if not isinstance(length, Value):
        return g.constant(g.result)
    gaps = length if periodic else _gaps(g, length)
    places = g.op("Range", g.constant(0), length, g.constant(1))
    places.dtype, places.shape = fb.int64, (None,)
    turns = g.op("Div", g.cast(places, fb.float64), g.cast(gaps, fb.float64))
    total = g.constant(factors[0], fb.float64)
    for at, factor in enumerate(factors[1:], 1):
        angle = g.op("Mul", turns, g.constant(2 * math.pi * at, fb.float64))
        wave = g.op("Cos", g.cast(angle, fb.float32))
        part = g.op("Mul", g.cast(wave, fb.float64), g.constant(factor, fb.float64))
        total = g.op("Sub" if at % 2 else "Add", total, part)
    alone = g.op("Equal", length, g.constant(1))
    made = g.op("Where", alone, g.constant(1.0, fb.float64), total)
    made.dtype, made.shape = fb.float64, (None,)
    return g.cast(made, g.dtype)


@symbolic("hann_window", since=11)
def hann_window(
    g: Graph, window_length: object, periodic: bool = True, dtype: object = None
) -> Value:
    return _window(g, window_length, periodic, 0.5, 0.5)


@symbolic("hamming_window", since=11)
def hamming_window(
    g: Graph,
    window_length: object,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    dtype: object = None,
) -> Value:
    return _window(g, window_length, periodic, alpha, beta)


@symbolic("blackman_window", since=11)
def blackman_window(
    g: Graph, window_length: object, periodic: bool = True, dtype: object = None
) -> Value:
    return _window(g, window_length, periodic, 0.42, 0.5, 0.08)


@symbolic("eye", since=9)
def eye(g: Graph, n: object, m: object = None, dtype: object = None) -> Value:
    grid = g.filled([n, n if m is None else m], 0, g.dtype)
    return g.op("EyeLike", grid, dtype_i=number_of(g.dtype))


def _random(name: str, kind: str) -> None:
    @symbolic(name)
    def plain(g: Graph, size: Any, dtype: object = None) -> Value:
        if all(isinstance(n, int) for n in size):
            made = g.op(kind, shape_i=list(size), dtype_i=number_of(g.dtype))
        else:
            like = g.filled(size, 0, g.dtype)
            made = g.op(f"{kind}Like", like, dtype_i=number_of(g.dtype))
        made.dtype = g.dtype
        return made

    @symbolic(f"{name}_like")
    def like(g: Graph, self: Value, dtype: object = None) -> Value:
        return g.op(f"{kind}Like", self, dtype_i=number_of(g.dtype))


_random("rand", "RandomUniform")
_random("randn", "RandomNormal")


@symbolic("uniform_")
def uniform(g: Graph, self: Value, **bounds: Any) -> Value:
    low, high = bounds.get("from", 0.0), bounds.get("to", 1.0)
    return g.op("RandomUniformLike", self, low_f=float(low), high_f=float(high))


@symbolic("normal_")
def normal(g: Graph, self: Value, mean: float = 0.0, std: float = 1.0) -> Value:
    return g.op("RandomNormalLike", self, mean_f=float(mean), scale_f=float(std))


@symbolic("bernoulli")
def bernoulli(g: Graph, self: Value, p: object = None) -> Value:
    assert self.dtype is not None
    chance = self if p is None else g.value(p, self.dtype)
    drawn = g.op("RandomUniformLike", self)
    return g.cast(g.op("Less", drawn, chance), g.dtype)


@symbolic("multinomial")
def multinomial(g: Graph, self: Value, num_samples: int, replacement: bool = False) -> Value:
    if not replacement and num_samples != 1:
        raise UnsupportedOperatorError("multinomial without replacement")
    weights = g.op("Log", self)
    made = g.op("Multinomial", weights, sample_size_i=num_samples, dtype_i=number_of(fb.int64))
    made.dtype = fb.int64
    return made
