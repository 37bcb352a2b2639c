"""Shapes that follow from those of the inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau.jit import _types as T
from flambeau.jit._parts import compiler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flambeau.jit._graph import Graph, Value


def propagate_shapes(graph: Graph, inputs: Sequence[Any]) -> dict[Value, tuple[int, ...]]:
    """The shapes of the tensors of a graph that has no branches, for inputs of given shapes.

    The graph runs on device ``meta``, where tensors have shapes and no numbers; what cannot be
    computed there, and what depends on it, is left out.

    >>> import flambeau as fb
    >>> @fb.jit.script
    ... def f(x, y):
    ...     return fb.mm(x, y).sum(0)
    >>> found = fb.jit.passes.propagate_shapes(f.graph, [fb.empty(2, 3), fb.empty(3, 5)])
    >>> sorted(shape for shape in found.values())
    [(2, 3), (2, 5), (3, 5), (5,)]
    """
    evaluate_with = compiler.execute.evaluate_with

    known: dict[Value, Any] = {}
    for value, given in zip(graph.inputs(), inputs, strict=True):
        known[value] = given.to("meta") if value.type() is T.TENSOR else given
    for node in graph.nodes():
        if node.blocks_ or not all(v in known or v.is_constant() for v in node.inputs_):
            continue
        try:
            results = evaluate_with(node, known)
        except Exception:  # this op needs numbers
            continue
        known.update(zip(node.outputs_, results, strict=True))
    return {v: tuple(each.shape) for v, each in known.items() if hasattr(each, "shape")}
