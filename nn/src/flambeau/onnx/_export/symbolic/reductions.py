"""Reductions, orders and cumulative sums."""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau.onnx._export.errors import UnsupportedOperatorError
from flambeau.onnx._export.graph import Graph, Value
from flambeau.onnx._export.symbolic.elementwise import extreme
from flambeau.onnx._export.table import symbolic


def dims_of(x: Value, dim: Any) -> list[int] | None:
    """Dimensions counted from the front; None for all."""
    if dim is None or dim == []:
        return None
    return [d % max(1, x.rank) for d in (dim if isinstance(dim, list | tuple) else [dim])]


def _reduction(name: str, kind: str) -> None:
    @symbolic(name)
    def write(
        g: Graph, self: Value, dim: object = None, keepdim: bool = False, dtype: object = None
    ) -> Value:
        return g.reduce(kind, g.cast(self, g.dtype), dims_of(self, dim), keepdim)


_reduction("sum", "ReduceSum")
_reduction("mean", "ReduceMean")
_reduction("prod", "ReduceProd")


@symbolic("nansum")
def nansum(
    g: Graph, self: Value, dim: object = None, keepdim: bool = False, dtype: object = None
) -> Value:
    kept = g.op("Where", g.op("IsNaN", self), g.constant(0, self.dtype), self)
    return g.reduce("ReduceSum", g.cast(kept, g.dtype), dims_of(self, dim), keepdim)


def _whole(g: Graph, x: Value) -> Value:
    """Integers in the dtype that runtimes reduce."""
    narrow = (fb.bool, fb.uint8, fb.int8, fb.int16)
    return g.cast(x, fb.int32) if x.dtype in narrow else x


@symbolic("amax")
def amax(g: Graph, self: Value, dim: object = None, keepdim: bool = False) -> Value:
    return g.cast(g.reduce("ReduceMax", _whole(g, self), dims_of(self, dim), keepdim), g.dtype)


@symbolic("amin")
def amin(g: Graph, self: Value, dim: object = None, keepdim: bool = False) -> Value:
    return g.cast(g.reduce("ReduceMin", _whole(g, self), dims_of(self, dim), keepdim), g.dtype)


def _extreme(name: str, kind: str, arg: str, pairwise: str) -> None:
    @symbolic(name)
    def write(
        g: Graph,
        self: Value,
        dim: Any = None,
        keepdim: bool = False,
        other: Value | None = None,
    ) -> object:
        if other is not None:
            return extreme(g, pairwise, self, other)
        if dim is None:
            return g.cast(g.reduce(kind, _whole(g, self)), g.dtype)
        places = _place(g, arg, self, dim, keepdim)
        dim %= max(1, self.rank)
        return g.cast(g.reduce(kind, _whole(g, self), [dim], keepdim), g.dtype), places


_extreme("max", "ReduceMax", "ArgMax", "Max")
_extreme("min", "ReduceMin", "ArgMin", "Min")


def _place(g: Graph, kind: str, x: Value, dim: Any, keepdim: bool) -> Value:
    return g.op(kind, _whole(g, x), axis_i=dim % max(1, x.rank), keepdims_i=int(keepdim))


@symbolic("argmax")
def argmax(g: Graph, self: Value, dim: object = None, keepdim: bool = False) -> Value:
    return _position(g, "ArgMax", self, dim, keepdim)


@symbolic("argmin")
def argmin(g: Graph, self: Value, dim: object = None, keepdim: bool = False) -> Value:
    return _position(g, "ArgMin", self, dim, keepdim)


def _position(g: Graph, kind: str, x: Value, dim: object, keepdim: bool) -> Value:
    if dim is not None:
        return _place(g, kind, x, dim, keepdim)
    made = g.op(kind, g.reshape(_whole(g, x), [-1]), axis_i=0, keepdims_i=0)
    return g.reshape(made, [1] * x.rank) if keepdim else made


def _truth(name: str, kind: str) -> None:
    @symbolic(name)
    def write(g: Graph, self: Value, dim: object = None, keepdim: bool = False) -> Value:
        number = g.cast(g.cast(self, fb.bool), fb.int32)
        # Of nothing, runtimes give the smallest or largest integer.
        found = g.reduce(kind, number, dims_of(self, dim), keepdim)
        return g.cast(g.op("Greater", found, g.constant(0, fb.int32)), g.dtype)


_truth("all", "ReduceMin")
_truth("any", "ReduceMax")


@symbolic("count_nonzero")
def count_nonzero(g: Graph, self: Value, dim: object = None) -> Value:
    number = g.cast(g.cast(self, fb.bool), fb.int64)
    return g.reduce("ReduceSum", number, dims_of(self, dim))


@symbolic("logsumexp")
def logsumexp(g: Graph, self: Value, dim: object, keepdim: bool = False) -> Value:
    return g.reduce("ReduceLogSumExp", g.cast(self, g.dtype), dims_of(self, dim), keepdim)


def spread(g: Graph, x: Value, dim: object, correction: Any, keepdim: bool) -> tuple[Value, Value]:
    """Variance and mean."""
    dims = dims_of(x, dim)
    axes = list(range(x.rank)) if dims is None else dims
    mean = g.reduce("ReduceMean", x, axes, True)
    centred = g.op("Sub", x, mean)
    total = g.reduce("ReduceSum", g.op("Mul", centred, centred), axes, keepdim)
    count = 1
    for axis in axes:
        size = g.size(x, axis)
        if isinstance(size, int) and isinstance(count, int):
            count *= size
        else:
            count = g.op("Mul", g.value(count, fb.int64), g.value(size, fb.int64))
    if isinstance(count, int):
        below = g.constant(float(max(0, count - correction)), x.dtype)
    else:
        assert x.dtype is not None
        below = g.op("Sub", g.cast(count, x.dtype), g.constant(correction, x.dtype))
    return g.op("Div", total, below), mean if keepdim else g.squeeze(mean, axes)


def _correction(unbiased: bool, correction: object) -> object | int:
    return correction if correction is not None else int(unbiased)


def _deviation(name: str, root: bool, pair: bool) -> None:
    @symbolic(name)
    def write(
        g: Graph,
        self: Value,
        dim: object = None,
        unbiased: bool = True,
        keepdim: bool = False,
        correction: object = None,
    ) -> object:
        made, mean = spread(g, self, dim, _correction(unbiased, correction), keepdim)
        made = g.op("Sqrt", made) if root else made
        return (made, mean) if pair else made


_deviation("var", False, False)
_deviation("std", True, False)
_deviation("var_mean", False, True)
_deviation("std_mean", True, True)


@symbolic("norm", "frobenius_norm", "linalg_vector_norm", "linalg_norm")
def norm(
    g: Graph,
    self: Value,
    p: Any = 2,
    dim: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
    ord: Any = None,
) -> Value:
    order = 2 if p is None else p
    order = order if ord is None else ord
    dims = dims_of(self, dim)
    x = g.cast(self, g.dtype)
    if order == 2 or order == "fro":
        return g.reduce("ReduceL2", x, dims, keepdim)
    if order == 1:
        return g.reduce("ReduceL1", x, dims, keepdim)
    size = g.op("Abs", x)
    if order in (math.inf, -math.inf):
        return g.reduce("ReduceMax" if order > 0 else "ReduceMin", size, dims, keepdim)
    if not isinstance(order, int | float) or order == 0:
        raise UnsupportedOperatorError(f"a norm of order {order!r}")
    total = g.reduce("ReduceSum", g.op("Pow", size, g.constant(order, g.dtype)), dims, keepdim)
    return g.op("Pow", total, g.constant(1 / order, g.dtype))


@symbolic("cumsum", since=11)
def cumsum(g: Graph, self: Value, dim: int, dtype: object = None) -> Value:
    return g.op("CumSum", g.cast(self, g.dtype), g.constant(dim))


@symbolic("cumprod", since=11)
def cumprod(g: Graph, self: Value, dim: int, dtype: object = None) -> Value:
    """The products of rows of a triangle: no opset that is written has an operator."""
    x = g.cast(self, g.dtype)
    rank = self.rank
    dim %= rank
    places = g.op("Range", *(g.value(v, fb.int64) for v in (0, g.size(self, dim), 1)))
    places.dtype = fb.int64
    after = [*range(1, rank - dim)]  # the dimensions behind those of the triangle
    rows = g.unsqueeze(places, [1, *(1 + at for at in after)])
    columns = g.unsqueeze(places, [0, *(1 + at for at in after)])
    later = g.op("Less", rows, columns)
    triangle = g.op("Where", later, g.constant(1, g.dtype), g.unsqueeze(x, [dim]))
    triangle.dtype = g.dtype
    return g.reduce("ReduceProd", triangle, [dim + 1], False)


def ranked(g: Graph, x: Value, count: object, dim: int, largest: bool) -> tuple[Value, Value]:
    """The largest or smallest elements in order, and where they were."""
    wide = g.cast(x, fb.float32) if x.dtype in (fb.bool,) else x
    if g.opset >= 11:
        amount = g.ints([count])
        made = g.op("TopK", wide, amount, axis_i=dim, largest_i=int(largest), outputs=2)
    else:
        turned = wide if largest else _descending(g, wide)
        if g.opset == 10:
            made = g.op("TopK", turned, g.ints([count]), axis_i=dim, outputs=2)
        else:
            made = g.op("TopK", turned, k_i=count, axis_i=dim, outputs=2)
        if not largest:
            made = _ascending(g, made[0], wide), made[1]
    places = made[1]
    places.dtype = fb.int64
    return (g.cast(made[0], x.dtype) if x.dtype is not None else made[0]), places


_FAR = 1e300


def _descending(g: Graph, x: Value) -> Value:
    """Numbers whose largest ones are the smallest of x; what is no number is the largest of x."""
    if x.dtype is None or not x.dtype.is_floating_point:
        return g.op("Neg", x)
    if x.dtype is fb.float64:
        g.needs(11, "the smallest of float64 numbers, of which some may be NaN,")
    near = g.op("Neg", g.cast(x, fb.float64))
    for kind, end in (("Max", -_FAR), ("Min", _FAR)):
        near = g.op(kind, near, g.constant(end, fb.float64))
    return g.op("Where", g.op("IsNaN", x), g.constant(-math.inf, fb.float64), near)


def _ascending(g: Graph, turned: Value, x: Value) -> Value:
    """The numbers that `_descending` has turned round."""
    if x.dtype is None or not x.dtype.is_floating_point:
        return g.op("Neg", turned)
    turned.dtype = fb.float64
    none = g.op("Less", turned, g.constant(-2 * _FAR, fb.float64))
    back = g.cast(g.op("Neg", turned), x.dtype)
    return g.op("Where", none, g.constant(math.nan, x.dtype), back)


@symbolic("topk")
def topk(
    g: Graph, self: Value, k: object, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Value, ...]:
    return ranked(g, self, k, dim % max(1, self.rank), largest)


@symbolic("sort")
def sort(
    g: Graph, self: Value, dim: int = -1, descending: bool = False, stable: object = None
) -> tuple[Value, ...]:
    dim %= max(1, self.rank)
    return ranked(g, self, g.size(self, dim), dim, descending)


@symbolic("argsort")
def argsort(
    g: Graph, self: Value, dim: int = -1, descending: bool = False, stable: object = None
) -> Value:
    return sort(g, self, dim, descending)[1]


@symbolic("cosine_similarity")
def cosine_similarity(g: Graph, x1: Value, x2: Value, dim: int = 1, eps: float = 1e-8) -> Value:
    axis = [dim % x1.rank]
    dot = g.reduce("ReduceSum", g.op("Mul", x1, x2), axis)
    sizes = [g.clip(g.reduce("ReduceL2", x, axis), eps, None) for x in (x1, x2)]
    return g.op("Div", dot, g.op("Mul", *sizes))


@symbolic("pairwise_distance")
def pairwise_distance(
    g: Graph, x1: Value, x2: Value, p: float = 2, eps: float = 1e-6, keepdim: bool = False
) -> Value:
    apart = g.op("Add", g.op("Sub", x1, x2), g.constant(eps, x1.dtype))
    apart.shape = (None,) * max(x1.rank, x2.rank)
    return norm(g, apart, p, [apart.rank - 1], keepdim)


@symbolic("unique_dim", since=11)
def unique_dim(
    g: Graph,
    self: Value,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Value, ...]:
    return _unique(g, self, axis_i=dim % max(1, self.rank))


@symbolic("_unique2", since=11)
def unique(
    g: Graph,
    self: Value,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> tuple[Value, ...]:
    found, inverse, counts = _unique(g, self)
    return found, g.reshape(inverse, g.shape_of(self)), counts


def _unique(g: Graph, x: Value, **axis: int) -> tuple[Value, ...]:
    """What there is, in order, which of it each one is, and how often each is there."""
    found, _, inverse, counts = g.op("Unique", x, sorted_i=1, outputs=4, **axis)
    for each in (inverse, counts):
        each.dtype, each.shape = fb.int64, (None,)
    return found, inverse, counts
