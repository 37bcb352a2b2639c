"""What is computed twice from the same is computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau.jit import _types as T
from flambeau.jit.passes._effects import has_effects, is_mutable, writes_anything

if TYPE_CHECKING:
    from flambeau.jit._graph import Block, Graph, Node, Value

_MAKES_NEW = frozenset(
    """prim::ListConstruct prim::DictConstruct prim::CreateObject prim::Uninitialized aten::list
    aten::dict aten::copy""".split()
)


def eliminate_common_subexpressions(graph: Graph) -> bool:
    """Replace a node by an earlier one that does the same.

    Graphs that write to anything stay as they are: the two might read different contents.  What
    the caller gets stays two things: who writes to one of them has not written to the other.
    """
    if writes_anything(graph.block):
        return False
    given: set[Value] = set()
    for value in graph.block.outputs_:
        _reach(value, given)
    return _eliminate(graph.block, {}, given)


def _reach(value: Value, found: set[Value]) -> None:
    """Add the values that a value may share memory with, or hold."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if value in found or not is_mutable(value):
            continue
        found.add(value)
        node = value.node
        if node is None or _is_fresh(node):
            continue
        waiting += node.inputs_
        for block in node.blocks_:
            waiting += block.outputs_


def _is_fresh(node: Node) -> bool:
    """Whether what a node makes is no part or view of what it reads."""
    schema = node.schema
    if schema is None or not node.kind.startswith("aten::"):
        return False
    if any("(" in each.text for each in schema.returns) or schema.writes:
        return False
    return all(v.type() is T.TENSOR or not is_mutable(v) for v in node.outputs_)


def _eliminate(block: Block, known: dict[Any, Node], given: set[Value]) -> bool:
    changed = False
    known = dict(known)
    for node in list(block.nodes_):
        for inner in node.blocks_:
            changed |= _eliminate(inner, known, given)
        if node.blocks_ or has_effects(node) or node.kind in _MAKES_NEW or not node.outputs_:
            continue
        if node.kind == "prim::Constant":
            continue
        attributes = tuple((k, repr(v)) for k, v in node.attributes.items())
        key = (
            node.kind,
            tuple(node.inputs_),
            attributes,
            tuple(v.type() for v in node.outputs_),
        )
        earlier = known.get(key)
        if earlier is None:
            known[key] = node
            continue
        pairs = list(zip(node.outputs_, earlier.outputs_, strict=True))
        if any(old in given and new in given for old, new in pairs):
            continue
        for old, new in pairs:
            if old in given:
                _reach(new, given)
            old.replaceAllUsesWith(new)
        node.destroy()
        changed = True
    return changed
