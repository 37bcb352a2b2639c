"""Numbers that depend on the inputs, which are tensors without dimensions to ONNX."""

from __future__ import annotations

import flambeau as fb
from flambeau.onnx._export.graph import Graph, Value
from flambeau.onnx._export.symbolic.elementwise import extreme
from flambeau.onnx._export.table import symbolic


@symbolic(
    "Int",
    "Float",
    "Bool",
    "IntImplicit",
    "FloatImplicit",
    "ScalarImplicit",
    "item",
    "is_nonzero",
    "NumToTensor",
)
def number(g: Graph, self: object = None, t: object = None) -> Value:
    """A number of a tensor of one element, or a tensor of a number."""
    x = g.value(self if self is not None else t)
    if x.shape:
        x = g.reshape(x, g.constant(fb.empty(0, dtype=fb.int64)))
    return g.cast(x, g.dtype)


@symbolic("scalar_tensor")
def scalar_tensor(g: Graph, s: object, dtype: object = None) -> Value:
    return g.cast(g.value(s), g.dtype)


@symbolic("tensor", "as_tensor")
def tensor(g: Graph, data: object = None, t: object = None, dtype: object = None) -> Value:
    """A tensor of numbers."""
    what = t if data is None else data
    if isinstance(what, list | tuple):
        return _nested(g, what)
    return g.cast(g.value(what), g.dtype)


def _nested(g: Graph, values: object) -> Value:
    if not isinstance(values, list | tuple):
        return g.cast(g.value(values), g.dtype)
    parts = [g.unsqueeze(_nested(g, value), [0]) for value in values]
    return parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis_i=0)


def _of_two(name: str, kind: str) -> None:
    @symbolic(f"prim_{name}")
    def write(g: Graph, self: object, other: object) -> Value:
        return extreme(g, kind, self, other)


_of_two("max", "Max")
_of_two("min", "Min")
