"""What is computed from constants alone, computed at export."""

from __future__ import annotations

from typing import Any

from flambeau.onnx._export.graph import Graph, Node, Value
from flambeau.onnx._operators import OPERATORS, Context

FOLDED = frozenset("Concat Split Unsqueeze Squeeze Reshape Cast Gather Slice Mul Neg".split())


def fold(g: Graph) -> None:
    """Compute nodes that read nothing but constants.

    What is made of weights stays, so that each is in the model under its name, with its dtype, and
    comes back so; runtimes compute it when they load the model.
    """
    kept: list[Node] = []
    named = {id(value) for value in g.weights}
    made: set[int] = set()
    for node in g.nodes:
        known = [v.tensor for v in node.inputs if v is not None]
        if (
            node.name not in FOLDED
            or node.domain
            or not known
            or any(t is None for t in known)
            or any(v in g.outputs for v in node.outputs)
            or any(id(v) in named for v in node.inputs)
        ):
            kept.append(node)
            continue
        context = Context(g.opset, len(node.outputs), _no_graphs)
        options = {name: value for name, (_, value) in node.attributes.items()}
        results = OPERATORS["", node.name](context, *known, **options)
        results = results if isinstance(results, tuple | list) else (results,)
        for value, tensor in zip(node.outputs, results, strict=True):
            value.tensor, value.maker = tensor, None
            value.dtype, value.shape = tensor.dtype, tuple(tensor.shape)
            made.add(id(value))
    g.nodes[:] = kept
    _name(g, made)


def _name(g: Graph, made: set[int]) -> None:
    """Let folded values that are read be weights, and leave out what nothing reads any more."""
    read: dict[int, Value] = {}
    _collect(g, read)
    g.nodes[:] = [
        n for n in g.nodes if n.name != "Constant" or any(id(v) in read for v in n.outputs)
    ]
    g.weights[:] = [v for v in g.weights if id(v) in read]
    g.weights += [v for v in read.values() if id(v) in made]


def _collect(g: Graph, read: dict[int, Value]) -> None:
    for value in g.outputs:
        read[id(value)] = value
    for node in g.nodes:
        for value in node.inputs:
            if value is not None:
                read[id(value)] = value
        for letter, inner in node.attributes.values():
            if letter == "g":
                _collect(inner, read)


def _no_graphs(graph: object, args: object) -> Any:
    raise AssertionError("folded nodes have no graphs")
