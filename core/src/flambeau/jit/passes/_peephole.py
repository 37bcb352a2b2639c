"""Small simplifications, each of a node and what it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flambeau.jit import _types as T

if TYPE_CHECKING:
    from flambeau.jit._graph import Block, Graph, Node, Value


def peephole(graph: Graph) -> bool:
    """Drop what does nothing: packing that is unpacked, casts to the same, ``x * 1``."""
    return _simplify(graph.block)


def _simplify(block: Block) -> bool:
    changed = False
    for node in list(block.nodes_):
        for inner in node.blocks_:
            changed |= _simplify(inner)
        replacement = _of(node)
        if replacement is None:
            continue
        for old, new in zip(node.outputs_, replacement, strict=True):
            old.replaceAllUsesWith(new)
        node.destroy()
        changed = True
    return changed


def _of(node: Node) -> list[Value] | None:
    """What the outputs of a node are without it."""
    if not node.inputs_ or not node.outputs_:
        return None
    first = node.inputs_[0]
    made = first.node
    kind = node.kind
    if kind == "prim::TupleUnpack" and made is not None and made.kind == "prim::TupleConstruct":
        return list(made.inputs_)
    if kind == "prim::TupleIndex" and made is not None and made.kind == "prim::TupleConstruct":
        at = node.inputs_[1].toIValue()
        return [made.inputs_[at]] if isinstance(at, int) else None
    if kind == "prim::unchecked_cast" and first.type() is node.output().type():
        return [first]
    if kind == "aten::_unwrap_optional" and not first.type().is_optional():
        return [first] if first.type() is not T.NONE else None
    if kind in ("aten::Int", "aten::Float", "aten::Bool", "aten::str"):
        return [first] if first.type() is node.output().type() else None
    if kind == "aten::__not__" and made is not None and made.kind == "aten::__not__":
        return [made.inputs_[0]]
    if kind in ("aten::mul", "aten::div", "aten::add", "aten::sub", "aten::pow"):
        return _neutral(node, first)
    if kind in ("aten::__isnot__", "aten::__is__"):
        return None
    return None


def _neutral(node: Node, first: Value) -> list[Value] | None:
    """A number with which an integer or a float stays what it is."""
    if first.type() not in (T.INT, T.FLOAT) or node.output().type() is not first.type():
        return None
    second = node.inputs_[1].toIValue()
    neutral = 0 if node.kind in ("aten::add", "aten::sub") else 1
    same_kind = type(second) is (int if first.type() is T.INT else float)
    # Adding 0.0 turns -0.0 into 0.0.
    if same_kind and second == neutral and not (neutral == 0 and isinstance(second, float)):
        return [first]
    return None
