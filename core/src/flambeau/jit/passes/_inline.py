"""Calls are replaced by what they call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flambeau.jit._graph import copy_node
from flambeau.jit._parts import compiler
from flambeau.jit._types import ClassType

if TYPE_CHECKING:
    from flambeau.jit._frontend.function import ScriptFunction
    from flambeau.jit._graph import Block, Graph, Node, Value


def inline(graph: Graph) -> bool:
    """Replace calls of functions and methods, and those in them, by their nodes."""
    changed = _inline(graph.block)
    if changed:
        eliminate_dead_code = compiler.passes_dead.eliminate_dead_code

        eliminate_dead_code(graph)
    return changed


def called(node: Node) -> ScriptFunction | None:
    """The function that a call calls, if it is known."""
    if node.kind == "prim::CallFunction":
        made = node.inputs_[0].node
        return made.attributes.get("_function") if made is not None else None
    if node.kind == "prim::CallMethod":
        kind = node.inputs_[0].type()
        if isinstance(kind, ClassType) and not kind.is_interface:
            return kind.method(node.attributes["name"])
    return None


def _inline(block: Block) -> bool:
    changed = False
    for node in list(block.nodes_):
        for inner in node.blocks_:
            changed |= _inline(inner)
        function = called(node)
        if function is None:
            continue
        given = node.inputs_[1:] if node.kind == "prim::CallFunction" else node.inputs_
        body = function.graph
        known: dict[Value, Value] = dict(zip(body.inputs(), given, strict=True))
        for each in body.nodes():
            made = copy_node(each, known)
            made.insert_before(node)
        for output, result in zip(node.outputs_, body.outputs(), strict=True):
            output.replaceAllUsesWith(known.get(result, result))
        node.destroy()
        changed = True
    if changed:
        _inline(block)
    return changed
