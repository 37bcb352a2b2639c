"""Sums into elements that tensors choose, for opsets whose scatters do not add."""

from __future__ import annotations

from collections.abc import Callable

import flambeau as fb
from flambeau.onnx._export.graph import Graph, Value

ADDS = 16
"""The opset from which on ``ScatterElements`` and ``ScatterND`` add."""


def added(g: Graph, x: Value, values: Value, chosen: Callable[[Value], Value], what: str) -> Value:
    """x with values added to elements of it, to one perhaps several.

    Each value is compared with the number of each element, which takes as much memory as both
    have elements, multiplied: a product with zeros would make NaN of infinities.

    Args:
        chosen: takes from a tensor of x's sizes the elements that the values are added to.
        what: the op, for the error of an opset without that form.
    """
    g.needs(11, what)
    sizes = g.shape_of(x)
    numbers = g.op("Range", g.constant(0), g.value(g.numel(x), fb.int64), g.constant(1))
    numbers.dtype, numbers.shape = fb.int64, (None,)
    grid = g.reshape(numbers, sizes)
    grid.dtype, grid.shape = fb.int64, x.shape
    places = g.reshape(chosen(grid), [-1, 1])
    kind = x.dtype or fb.float32
    wide = kind if kind.is_floating_point else fb.int64
    parts = g.reshape(g.cast(values, wide), [-1, 1])
    here = g.op("Where", g.op("Equal", places, numbers), parts, g.constant(0, wide))
    here.dtype, here.shape = wide, (None, None)
    total = g.op("Add", g.cast(g.reshape(x, [-1]), wide), g.reduce("ReduceSum", here, [0], False))
    total.dtype = wide
    made = g.cast(g.reshape(total, sizes), kind)
    made.shape = x.shape
    return made
