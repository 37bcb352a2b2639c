"""Nodes whose results nobody reads are dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flambeau.jit.passes._effects import has_effects

if TYPE_CHECKING:
    from flambeau.jit._graph import Block, Graph, Node


def eliminate_dead_code(graph: Graph) -> bool:
    """Drop the nodes that compute nothing that is read and have no effect."""
    changed = False
    while _sweep(graph.block):
        changed = True
    return changed


def _sweep(block: Block) -> bool:
    changed = False
    for node in reversed(list(block.nodes_)):
        if not any(v.readers for v in node.outputs_) and not has_effects(node):
            node.destroy()
            changed = True
            continue
        if node.kind in ("prim::If", "prim::Loop"):
            changed |= _unread_outputs(node)
        for inner in node.blocks_:
            changed |= _sweep(inner)
    return changed


def _unread_outputs(node: Node) -> bool:
    """Drop the outputs of a branch or loop that nobody reads, not even the loop itself."""
    changed = False
    loop = node.kind == "prim::Loop"
    for at in reversed(range(len(node.outputs_))):
        if node.outputs_[at].readers:
            continue
        if loop:
            block = node.blocks_[0]
            carried = block.inputs_[at + 1]
            if any(r is not block or w != at + 1 for r, w in carried.readers):
                continue
            block.remove_output(at + 1)
            del block.inputs_[at + 1]
            node.remove_input(at + 2)
        else:
            for block in node.blocks_:
                block.remove_output(at)
        del node.outputs_[at]
        changed = True
    return changed
