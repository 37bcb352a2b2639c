"""What nodes do besides computing: whether they may be dropped, moved or done once for two."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from flambeau.jit import _types as T
from flambeau.jit._parts import compiler

if TYPE_CHECKING:
    from flambeau.jit._graph import Block, Node, Value

_EFFECTS = frozenset(
    """prim::Print prim::RaiseException prim::SetAttr prim::PythonOp prim::CallFunction
    prim::CallMethod prim::Enter prim::Exit prim::fork aten::wait aten::warn aten::append
    aten::extend aten::insert aten::remove aten::reverse aten::sort aten::clear aten::pop
    aten::_set_item aten::Delete aten::update aten::popitem aten::setdefault aten::manual_seed
    aten::set_grad_enabled aten::backward aten::grad aten::requires_grad_ aten::save
    aten::_unwrap_optional aten::seed aten::IntImplicit aten::FloatImplicit aten::ComplexImplicit
    aten::ScalarImplicit prim::ListUnpack""".split()
)
_UNSETTLED = frozenset(
    """empty empty_like empty_strided new_empty new_empty_strided is_grad_enabled""".split()
)


def has_effects(node: Node) -> bool:
    """Whether a node must stay though nobody reads what it makes."""
    if node.kind in _EFFECTS or (node.schema is not None and node.schema.writes):
        return True
    if node.kind.startswith("aten::") and node.kind[-1] == "_" and node.kind[-2:] != "__":
        return True
    if node.schema is None and node.kind.startswith("aten::") and _writes(node.kind):
        return True
    if node.kind.startswith("aten::") and is_random(node):
        return True
    return any(map(block_has_effects, node.blocks_))


@cache
def _writes(kind: str) -> bool:
    schemas = compiler.schemas.schemas

    found = schemas(kind)
    return bool(found) and all(schema.writes for schema in found)


def block_has_effects(block: Block) -> bool:
    """Whether a node of a block must stay."""
    return any(map(has_effects, block.nodes_))


def is_random(node: Node) -> bool:
    """Whether a node gives something else each time."""
    return node.isNondeterministic() or node.kind.removeprefix("aten::") in _UNSETTLED


def is_mutable(value: Value) -> bool:
    """Whether what a value holds may change while it is held."""
    kind = value.type()
    return kind is T.TENSOR or kind.kind in (
        "List",
        "Dict",
        "Class",
        "Future",
        "Any",
        "Tuple",
        "Optional",
    )


def writes_anything(block: Block) -> bool:
    """Whether anything in a block changes what it is given."""
    return any(
        has_effects(node) and node.kind != "prim::RaiseException" for node in block.all_nodes()
    )
