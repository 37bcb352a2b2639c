"""Linear layers, which ONNX has no operator for: which nodes of a graph are one.

The exporter writes a layer as a product with a transposed weight, and what is transposed by the
program without ``perm``: products of programs stay products.  Other exporters make no difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import flambeau.nn.functional as F
from flambeau import Tensor

if TYPE_CHECKING:
    from onnx import GraphProto

__all__ = ["Layer", "layers"]

_INPUTS = {"Transpose": 1, "MatMul": 2, "Add": 2}


class Layer(NamedTuple):
    """The names of what a linear layer is of."""

    input: str
    weight: str
    bias: str | None = None

    def __call__(self, values: dict[str, Any]) -> Tensor:
        """What the layer makes of the values."""
        x, weight = values[self.input], values[self.weight]
        bias = None if self.bias is None else values[self.bias]
        if x.dtype.is_floating_point:
            return F.linear(x, weight, bias)
        product = x @ weight.t()
        return product if bias is None else product + bias


def layers(graph: object, functions: Iterable[Any]) -> dict[str, Layer | None]:
    """The layers by the name of what they make; None for a product that a layer has in it.

    Branches, loops and functions may use the same names for different things: such names are left
    to the operators.
    """
    once = _made_once([graph, *functions])
    uses = Counter(name for inner in _graphs(graph) for name in _read(inner))
    sizes = {t.name: list(t.dims) for inner in _graphs(graph) for t in inner.initializer}
    turned: dict[str, str] = {}
    found: dict[str, Layer | None] = {}
    for inner in _graphs(graph):
        for node in inner.node:
            if node.domain or len(node.input) != _INPUTS.get(node.op_type):
                continue
            if len(node.output) != 1 or not once.issuperset((*node.input, *node.output)):
                continue
            if node.op_type == "Transpose":
                if any(list(a.ints) == [1, 0] for a in node.attribute):
                    turned[node.output[0]] = node.input[0]
            elif node.op_type == "MatMul" and node.input[1] in turned:
                found[node.output[0]] = Layer(node.input[0], turned[node.input[1]])
            elif node.op_type == "Add":
                for product, bias in (node.input, node.input[::-1]):
                    layer = found.get(product)
                    if layer is None or layer.bias is not None or uses[product] > 1:
                        continue
                    if sizes.get(bias) == sizes.get(layer.weight, [])[:1]:
                        found[product] = None
                        found[node.output[0]] = layer._replace(bias=bias)
                        break
    return found


def _made_once(parts: Iterable[Any]) -> set[str]:
    """The names that mean one thing in all parts of a model."""
    made: Counter[str] = Counter()
    for whole in parts:
        for graph in _graphs(whole):
            names = {tensor.name for tensor in getattr(graph, "initializer", ())}
            names.update(getattr(each, "name", each) for each in graph.input)
            made.update(names)
            made.update(name for node in graph.node for name in node.output)
    return {name for name, times in made.items() if times == 1}


def _graphs(graph: Any) -> Iterator[Any]:
    """A graph and those within its nodes, outer ones first."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _graphs(attribute.g)
            for inner in attribute.graphs:
                yield from _graphs(inner)


def _read(graph: GraphProto) -> Iterator[str]:
    """The names that a graph reads, as often as it does."""
    for node in graph.node:
        yield from node.input
    yield from (output.name for output in graph.output)
