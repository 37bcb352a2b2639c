"""Constants: each once and first, and what follows from constants alone is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau.jit import _types as T
from flambeau.jit._graph import Node
from flambeau.jit._parts import compiler
from flambeau.jit.passes._effects import has_effects

if TYPE_CHECKING:
    from flambeau.jit._graph import Block, Graph, Value

_FOLDED = (T.INT, T.FLOAT, T.BOOL, T.STR, T.COMPLEX, T.NUMBER)


def _key(node: Node) -> int | tuple[Any, ...]:
    value = node.attributes.get("value")
    if "_object" in node.attributes or "_function" in node.attributes:
        return id(node.attributes.get("_object", node.attributes.get("_function")))
    if isinstance(value, (bool, int, float, str, complex)):
        return type(value), repr(value)
    return (type(value), value) if value is None else id(value)


def pool_constants(graph: Graph) -> bool:
    """Put each constant once at the beginning of the graph."""
    seen: dict[Any, Node] = {}
    order: list[Node] = []
    changed = False
    for node in list(graph.block.all_nodes()):
        if node.kind != "prim::Constant":
            continue
        key = node.output().type(), _key(node)
        if key in seen:
            node.output().replaceAllUsesWith(seen[key].output())
            node.destroy()
            changed = True
            continue
        seen[key] = node
        order.append(node)
    if graph.block.nodes_[: len(order)] != order:
        for node in order:
            assert node.owner is not None
            node.owner.nodes_.remove(node)
            node.owner = graph.block
        graph.block.nodes_[:0] = order
        changed = True
    return changed


def propagate_constants(graph: Graph) -> bool:
    """Compute what reads nothing but constants, and take the branch that a constant chooses."""
    return _propagate(graph.block)


def _propagate(block: Block) -> bool:
    changed = False
    for node in list(block.nodes_):
        if node.owner is None:
            continue
        if node.kind == "prim::If" and node.input().is_constant():
            _take(node, node.blocks_[0 if node.input().toIValue() else 1])
            changed = True
            continue
        for inner in node.blocks_:
            changed |= _propagate(inner)
        if _foldable(node):
            changed |= _fold(node)
    return changed


def _foldable(node: Node) -> bool:
    return (
        node.kind.startswith(("aten::", "prim::"))
        and node.kind != "prim::Constant"
        and bool(node.inputs_)
        and not node.blocks_
        and len(node.outputs_) == 1
        and node.output().type() in _FOLDED
        and all(v.is_constant() and not isinstance(v.type(), T.ClassType) for v in node.inputs_)
        and not has_effects(node)
    )


def _fold(node: Node) -> bool:
    evaluate = compiler.execute.evaluate

    try:
        value = evaluate(node)
    except Exception:  # it is raised when the graph runs, if it does
        return False
    output = node.output()
    kind = output.type()
    if kind is T.NUMBER:
        kind = {int: T.INT, float: T.FLOAT, complex: T.COMPLEX}.get(type(value), kind)
    made = Node("prim::Constant", (), (kind,), {"value": value}, node.place)
    made.insert_before(node)
    output.replaceAllUsesWith(made.output())
    node.destroy()
    return True


def _take(node: Node, block: Block) -> None:
    """Put the nodes of one branch where the choice was."""
    results: list[Value] = list(block.outputs_)
    for inner in list(block.nodes_):
        block.nodes_.remove(inner)
        inner.insert_before(node)
    for output, result in zip(node.outputs_, results, strict=True):
        output.replaceAllUsesWith(result)
    node.destroy()
