"""Parts of a graph that look like a pattern, and others in their place."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import flambeau as fb
from flambeau.fx._symbolic_trace import symbolic_trace
from flambeau.fx.graph import Graph
from flambeau.fx.graph_module import GraphModule
from flambeau.fx.node import Node, map_arg
from flambeau.nn import Module
from flambeau.overrides import all_take_as_annotated

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]

Pattern = Callable[..., Any] | GraphModule | Graph
Filter = Callable[["Found", Graph, Graph], bool]


class Match(NamedTuple):
    """A part that was replaced: its last node, and a node for each one of the pattern."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """As `Match`, with the nodes that came in."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


@dataclass
class Found:
    """A part that looks like the pattern.

    Attributes:
        nodes_map: the node of the graph, or the constant, for each node of the pattern.
        anchors: the pattern's last nodes.
        placeholder_nodes: what stands for the pattern's inputs.
        returning_nodes: what stands for its results.
    """

    nodes_map: dict[Node, Any]
    anchors: list[Node] = field(default_factory=list)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)


def replace_pattern(
    gm: GraphModule,
    pattern: Callable[..., Any] | GraphModule,
    replacement: Callable[..., Any] | GraphModule,
) -> list[Match]:
    """Replace all parts of a graph that do what `pattern` does by what `replacement` does.

    Parts match if their nodes have the same operations, targets and constants, and nothing outside
    uses a value from within, results excepted.  Parts do not overlap.  Both functions have the
    same number of parameters, which stand for what the part takes from outside.

    Raises:
        RuntimeError: the functions have not the same number of inputs or of results.

    >>> import flambeau as fb
    >>> traced = fb.fx.symbolic_trace(lambda x, y: fb.relu(x + y) * 2)
    >>> matches = fb.fx.replace_pattern(traced, lambda a, b: fb.relu(a + b), lambda a, b: a - b)
    >>> print(len(matches), traced.code.strip(), sep="\\n")
    1
    def forward(self, x, y):
        sub = x - y;  x = y = None
        mul = sub * 2;  sub = None
        return mul
    """
    done = replace_pattern_with_filters(gm, pattern, replacement)
    return [Match(anchor=d.anchor, nodes_map=d.nodes_map) for d in done]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Pattern,
    replacement: Pattern | None = None,
    match_filters: list[Filter] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[Any, Graph, Graph], Graph] | None = None,
) -> list[ReplacedPatterns]:
    """As `replace_pattern`, for the parts that all filters accept.

    Args:
        match_filters: called with a part, the graph and the pattern's graph.
        ignore_literals: numbers and strings match any others.
        replacement_callback: gives the graph for a part, instead of `replacement`.
    """
    graph, wanted = gm.graph, _graph_of(pattern)
    if replacement is None and replacement_callback is None:
        raise AssertionError("Must provide either replacement GraphModule or replacement callback")
    accepted = [
        found
        for found in _matches(graph, wanted, ignore_literals)
        if all(accept(found, graph, wanted) for accept in match_filters or ())
    ]
    fixed = None if replacement is None else _graph_of(replacement)
    done: list[ReplacedPatterns] = []
    moved: dict[Node, Node] = {}  # what an earlier replacement has put for a node
    for found in accepted:
        new = fixed if fixed is not None else replacement_callback(found, graph, wanted)  # type: ignore[misc]
        done.append(_replace(graph, wanted, new, found, moved))
    gm.recompile()
    if isinstance(replacement, Module):
        _adopt(gm, replacement)
    return done


def _graph_of(pattern: Pattern) -> Graph:
    if isinstance(pattern, Graph):
        return pattern
    return pattern.graph if isinstance(pattern, GraphModule) else symbolic_trace(pattern).graph


def _matches(graph: Graph, pattern: Graph, ignore_literals: bool) -> list[Found]:
    """The parts of a graph that look like a pattern, from the first on, without overlaps."""
    ends = _flat(pattern.output_node().args[0])
    inputs = [n for n in pattern.nodes if n.op == "placeholder"]
    found: list[Found] = []
    taken: set[Node] = set()
    roots = [n for n in ends if n.op != "placeholder"]
    if not roots:
        return []
    for node in graph.nodes:
        matching = _Matching(ignore_literals)
        if not matching.node(roots[-1], node) or not _others(matching, roots[:-1], graph):
            continue
        inner = {matching.nodes[n] for n in matching.nodes if n.op not in ("placeholder", "output")}
        results = {matching.nodes[n] for n in ends if n in matching.nodes}
        if inner & taken or any(user not in inner for n in inner - results for user in n.users):
            continue
        taken |= inner
        found.append(
            Found(
                nodes_map=matching.nodes,
                anchors=roots,
                placeholder_nodes=[matching.nodes.get(n) for n in inputs],
                returning_nodes=[matching.nodes[n] for n in ends],
            )
        )
    return found


def _others(matching: _Matching, roots: list[Node], graph: Graph) -> bool:
    """Whether the pattern's other results can be found as well."""
    for root in reversed(roots):
        if root in matching.nodes:
            continue
        used = set(matching.nodes.values())
        for node in graph.nodes.__reversed__():
            trial = copy.copy(matching)
            trial.nodes = dict(matching.nodes)
            if node not in used and trial.node(root, node):
                matching.nodes = trial.nodes
                break
        else:
            return False
    return True


def _flat(a: object) -> list[Node]:
    nodes: list[Node] = []
    map_arg(a, lambda n: nodes.append(n))
    return nodes


class _Matching:
    """An attempt to see a pattern in a graph, from a last node backwards."""

    def __init__(self, ignore_literals: bool) -> None:
        self.ignore_literals = ignore_literals
        self.nodes: dict[Node, Any] = {}

    def node(self, wanted: Node, node: Node) -> bool:
        if wanted in self.nodes:
            return self.nodes[wanted] is node
        if wanted.op != "placeholder":
            if wanted.op != node.op or node in self.nodes.values():
                return False
            if wanted.op in ("call_module", "get_attr"):
                if not _same_attribute(wanted, node):
                    return False
            elif wanted.target != node.target:
                return False
        self.nodes[wanted] = node
        if wanted.op == "placeholder":
            return True
        return self.argument(_by_name(wanted), _by_name(node))

    def argument(self, wanted: Any, a: Any) -> bool:
        if isinstance(wanted, Node):
            if wanted.op == "placeholder":
                known = self.nodes.setdefault(wanted, a)
                return known is a or (
                    type(known) is type(a) and not isinstance(a, Node) and known == a
                )
            return isinstance(a, Node) and self.node(wanted, a)
        if isinstance(a, Node):
            return False
        if isinstance(wanted, tuple | list) and isinstance(a, tuple | list):
            return len(wanted) == len(a) and all(map(self.argument, wanted, a))
        if isinstance(wanted, dict) and isinstance(a, dict):
            return wanted.keys() == a.keys() and all(self.argument(wanted[k], a[k]) for k in wanted)
        if isinstance(wanted, slice) and isinstance(a, slice):
            both = zip(
                (wanted.start, wanted.stop, wanted.step), (a.start, a.stop, a.step), strict=True
            )
            return all(self.argument(x, y) for x, y in both)
        if self.ignore_literals and isinstance(wanted, int | float | str | bool):
            return isinstance(a, int | float | str | bool)
        return type(wanted) is type(a) and wanted == a


def _by_name(node: Node) -> Any:
    """The arguments, in one form for calls that give them by place and by name."""
    if node.op == "call_function":
        from flambeau.fx.operator_schemas import bound_arguments

        bound = bound_arguments(node.target, node.args, node.kwargs)
        if bound is not None:
            return bound
    return node.args, dict(node.kwargs)


def _same_attribute(wanted: Node, node: Node) -> bool:
    if wanted.target == node.target:
        return True
    owners = wanted.graph.owning_module, node.graph.owning_module
    if owners[0] is None or owners[1] is None or wanted.op != "call_module":
        return False
    mine, theirs = (
        owners[0].get_submodule(str(wanted.target)),
        owners[1].get_submodule(str(node.target)),
    )
    return type(mine) is type(theirs)


def _replace(
    graph: Graph, pattern: Graph, new: Graph, found: Found, moved: dict[Node, Node]
) -> ReplacedPatterns:
    inputs = [n for n in new.nodes if n.op == "placeholder"]
    if len(inputs) != len(found.placeholder_nodes):
        raise RuntimeError(
            f"the pattern has {len(found.placeholder_nodes)} inputs, its replacement {len(inputs)}"
        )

    def current(a: Node) -> Node:
        while isinstance(a, Node) and a in moved:
            a = moved[a]
        return a

    given = {n: current(a) for n, a in zip(inputs, found.placeholder_nodes, strict=True)}
    old = [found.nodes_map[n] for n in found.nodes_map if n.op not in ("placeholder", "output")]
    old_set = set(old)
    order = [n for n in graph.nodes if n in old_set]
    ends = set(found.returning_nodes)
    users = {u for end in ends for u in end.users if u not in old_set}
    point = next((n for n in graph.nodes if n in users), order[-1].next)
    copies: dict[Node, Any] = dict(given)
    made: list[Node] = []
    with graph.inserting_before(point):
        for node in new.nodes:
            if node.op in ("placeholder", "output"):
                continue
            copies[node] = graph.node_copy(node, lambda n: copies[n])
            made.append(copies[node])
    results = [copies[n] for n in _flat(new.output_node().args[0])]
    if len(results) != len(found.returning_nodes):
        raise RuntimeError(
            f"the pattern has {len(found.returning_nodes)} results, its replacement {len(results)}"
        )
    for before, after in zip(found.returning_nodes, results, strict=True):
        if before not in old_set:
            continue
        if isinstance(after, Node):
            before.replace_all_uses_with(after)
            moved[before] = after
        else:
            _use_value(before, after)
    for node in reversed(order):
        if not node.users:
            graph.erase_node(node)
    return ReplacedPatterns(found.nodes_map[found.anchors[0]], found.nodes_map, made)


def _use_value(node: Node, value: object) -> None:
    """Let the users of a node take a constant instead."""

    def swap(n: Node) -> object:
        return value if n is node else n

    for user in list(node.users):
        user.args, user.kwargs = map_arg(user.args, swap), map_arg(user.kwargs, swap)


def _adopt(gm: GraphModule, replacement: Module) -> None:
    """Take over the modules and tensors that the replacement's nodes name."""
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        path = str(node.target)
        have = gm
        for name in path.split("."):
            have = getattr(have, name, None)
        if have is not None:
            continue
        value = replacement
        for name in path.split("."):
            value = getattr(value, name, None)
        if value is None:
            raise RuntimeError(
                f'Attempted to create a "{node.op}" node during subgraph rewriting with target '
                f"{path}, but the referenced attribute does not exist in the replacement "
                "GraphModule"
            )
        if isinstance(value, Module):
            gm.add_submodule(path, copy.deepcopy(value))
        else:
            from flambeau.fx.graph_module import _assign_attr

            kept = copy.deepcopy(value) if isinstance(value, fb.Tensor) else value
            _assign_attr(kept, gm, path)
    gm.delete_all_unused_submodules()
    gm.graph.lint()


all_take_as_annotated(globals())
