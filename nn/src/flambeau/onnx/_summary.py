"""What is in a model, as text."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any

from flambeau.onnx._operators import OPERATORS
from flambeau.onnx._order import check_place, check_texts, shown
from flambeau.overrides import all_take_as_annotated

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto

__all__ = ["summary"]


def summary(f: str | os.PathLike[str] | Any) -> str:
    """What is in a model: versions, inputs and outputs, weights, and how often each operator is.

    Operators that `load` does not know are marked.  Needs the package onnx.

    Args:
        f: a path, or a ``ModelProto``.

    Raises:
        ValueError: this is no model of ONNX.

    >>> import flambeau as fb, onnx.parser
    >>> model = onnx.parser.parse_model('''
    ...   <ir_version: 8, opset_import: ["": 18]>
    ...   double (float[N, 3] x) => (float[N, 3] y) { y = Add(x, x) }
    ... ''')
    >>> print(fb.onnx.summary(model))
    double: opset 18, format 8
    input   x  float[N, 3]
    output  y  float[N, 3]
    weights 0, of 0 elements
    1 nodes
          1  Add
    """
    from google.protobuf.message import DecodeError

    import onnx

    if isinstance(f, onnx.ModelProto):
        model = f
    elif not isinstance(f, (str, os.PathLike)) and not hasattr(f, "read"):
        # A number would be an open file of the process, which were closed then.
        raise TypeError(f"summary(): f must be a model or its path, not {type(f).__name__}")
    else:
        check_place(f)
        try:
            model = onnx.load(f, load_external_data=False)
        except DecodeError as error:
            raise ValueError(f"{os.fspath(f)} is no model of ONNX: {error}") from error
    check_texts(model)
    graph = model.graph
    held = {tensor.name: tensor for tensor in graph.initializer}
    sets = ", ".join(
        f"opset {o.version}" if o.domain in ("", "ai.onnx") else f"{shown(o.domain)} {o.version}"
        for o in model.opset_import
    )
    producer = (
        shown(f", by {model.producer_name} {model.producer_version}") if model.producer_name else ""
    )
    lines = [f"{shown(graph.name)}: {sets}, format {model.ir_version}{producer}".rstrip()]
    rows = [("input", i) for i in graph.input if i.name not in held]
    rows += [("output", o) for o in graph.output]
    width = max((len(shown(value.name)) for _, value in rows), default=0)
    lines += [f"{kind:<7} {shown(value.name):<{width}}  {_type(value)}" for kind, value in rows]
    count = sum(_elements(tensor) for tensor in held.values())
    lines.append(f"weights {len(held):,}, of {count:,} elements")
    functions = {(function.domain, function.name) for function in model.functions}
    kinds = Counter((_domain(node), node.op_type) for node in _nodes(graph))
    lines.append(f"{sum(kinds.values()):,} nodes")
    for (domain, name), times in sorted(kinds.items(), key=lambda item: (-item[1], item[0])):
        called = shown(f"{domain}::{name}" if domain else name)
        known = (domain, name) in OPERATORS or (domain, name) in functions
        lines.append(f"{times:>7,}  {called}{'' if known else '  (not known to flambeau)'}")
    return "\n".join(lines)


def _domain(node: NodeProto) -> str:
    return "" if node.domain == "ai.onnx" else node.domain


def _nodes(graph: GraphProto) -> Iterator[Any]:
    """The nodes of a graph and of the graphs in them."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)
            for inner in attribute.graphs:
                yield from _nodes(inner)


def _elements(tensor: TensorProto) -> int:
    return prod(
        tensor.dims[:64]
    )  # no tensor has more dimensions, and a product could be any length


def _type(value: ValueInfoProto) -> str:
    from onnx import TensorProto

    if not value.type.HasField("tensor_type"):
        return value.type.WhichOneof("value") or "?"
    kind = value.type.tensor_type
    sizes = ", ".join(
        shown(d.dim_param) or (str(d.dim_value) if d.HasField("dim_value") else "?")
        for d in kind.shape.dim
    )
    return f"{TensorProto.DataType.Name(kind.elem_type).lower()}[{sizes}]"


all_take_as_annotated(globals())
