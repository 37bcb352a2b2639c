"""A graph in parts, each a submodule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.fx.graph import Graph
from flambeau.fx.graph_module import GraphModule
from flambeau.fx.node import Node, map_arg
from flambeau.nn import Module
from flambeau.overrides import all_take_as_annotated

__all__ = ["split_module"]


def split_module(
    m: GraphModule,
    root_m: Module | None,
    split_callback: Callable[[Node], int],
    qualname_map: dict[str, str] | None = None,
    **options: object,
) -> GraphModule:
    """A module that calls a submodule ``submod_N`` for each part of a graph.

    Args:
        m: whose graph is split.
        root_m: no effect; the attributes are those of `m`.
        split_callback: the number of the part that a node belongs to.
        qualname_map: a dictionary that takes the old path of each attribute by its new one.
        options: no effect.

    Raises:
        RuntimeError: two parts need each other's results.

    >>> import flambeau as fb
    >>> from flambeau.fx.passes.split_module import split_module
    >>> traced = fb.fx.symbolic_trace(lambda x: (x + 1) * 2)
    >>> split = split_module(traced, None, lambda n: 0 if n.name == "add" else 1)
    >>> print(split.code.strip())
    def forward(self, x):
        submod_0 = self.submod_0(x);  x = None
        submod_1 = self.submod_1(submod_0);  submod_0 = None
        return submod_1
    """
    apart = ("placeholder", "output", "get_attr")
    part_of = {n: split_callback(n) for n in m.graph.nodes if n.op not in apart}
    order = _sorted(part_of)
    inputs: dict[int, dict[Node, None]] = {part: {} for part in order}
    results: dict[int, dict[Node, None]] = {part: {} for part in order}
    for node in m.graph.nodes:
        for used in node.all_input_nodes:
            here, there = part_of.get(node), part_of.get(used)
            if here is None and there is not None:
                results[there].setdefault(used)
            elif here is not None and here != there and used.op != "get_attr":
                inputs[here].setdefault(used)
                if there is not None:
                    results[there].setdefault(used)
    outer = Graph()
    values: dict[Node, Any] = {}
    for node in m.graph.nodes:
        if node.op == "placeholder":
            values[node] = outer.node_copy(node)
    children: dict[str, Any] = {}
    for part in order:
        name = f"submod_{part}"
        children[name] = _part(m, part_of, part, inputs[part], results[part], qualname_map)
        called = outer.call_module(name, tuple(values[n] for n in inputs[part]))
        for i, node in enumerate(results[part]):
            values[node] = called if len(results[part]) == 1 else _item(outer, called, i)
    output = m.graph.output_node()
    for node in output.all_input_nodes:
        if node not in values:  # an attribute that is returned as it is
            values[node] = outer.node_copy(node)
            children[str(node.target)] = _at(m, str(node.target))
    outer.output(map_arg(output.args[0], lambda n: values[n]), output.type)
    return GraphModule(children, outer, type(m).__name__)


def _item(graph: Graph, called: Node, i: int) -> Node:
    import operator

    return graph.call_function(operator.getitem, (called, i))


def _at(m: Module, path: str) -> Any:
    value = m
    for name in path.split("."):
        value = getattr(value, name)
    return value


def _sorted(part_of: dict[Node, int]) -> list[int]:
    """The parts, each after those whose results it takes."""
    needs: dict[int, set[int]] = {}
    for node, part in part_of.items():
        needs.setdefault(part, set())
        for used in node.all_input_nodes:
            if used in part_of and part_of[used] != part:
                needs[part].add(part_of[used])
    order: list[int] = []
    while len(order) < len(needs):
        ready = [p for p in needs if p not in order and needs[p] <= set(order)]
        if not ready:
            raise RuntimeError("cycle exists between partitions!")
        order.append(ready[0])
    return order


def _part(
    m: GraphModule,
    part_of: dict[Node, int],
    part: int,
    inputs: dict[Node, None],
    results: dict[Node, None],
    qualname_map: dict[str, str] | None,
) -> GraphModule:
    graph = Graph()
    values = {n: graph.placeholder(n.name, n.type) for n in inputs}
    for new, old in zip(graph.nodes, inputs, strict=True):
        new.meta = dict(old.meta)
    attributes: dict[str, Any] = {}
    for node in m.graph.nodes:
        used = node.op == "get_attr" and any(part_of.get(u) == part for u in node.users)
        if not used and part_of.get(node) != part:
            continue
        values[node] = graph.node_copy(node, lambda n: values[n])
        if node.op in ("get_attr", "call_module"):
            path = str(node.target)
            attributes[path] = _at(m, path)
            if qualname_map is not None:
                qualname_map[f"submod_{part}.{path}"] = path
    made = [values[n] for n in results]
    graph.output(made[0] if len(made) == 1 else tuple(made))
    return GraphModule(attributes, graph)


all_take_as_annotated(globals())
