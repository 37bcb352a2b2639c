"""What is computed twice from the same is computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau.jit.passes._effects import has_effects, writes_anything

if TYPE_CHECKING:
    from flambeau.jit._graph import Block, Graph, Node

_MAKES_NEW = frozenset(
    """prim::ListConstruct prim::DictConstruct prim::CreateObject prim::Uninitialized aten::list
    aten::dict aten::copy""".split()
)


def eliminate_common_subexpressions(graph: Graph) -> bool:
    """Replace a node by an earlier one that does the same.

    Graphs that write to anything stay as they are: the two might read different contents.
    """
    if writes_anything(graph.block):
        return False
    return _eliminate(graph.block, {})


def _eliminate(block: Block, known: dict[Any, Node]) -> bool:
    changed = False
    known = dict(known)
    for node in list(block.nodes_):
        for inner in node.blocks_:
            changed |= _eliminate(inner, known)
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
        for old, new in zip(node.outputs_, earlier.outputs_, strict=True):
            old.replaceAllUsesWith(new)
        node.destroy()
        changed = True
    return changed
