"""Modules as values: what they hold, and what containers of modules are."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from flambeau.jit import _types as T
from flambeau.jit._frontend.values import Many, Sugar
from flambeau.jit._graph import Value
from flambeau.jit._parts import compiler
from flambeau.jit._types import ClassType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from flambeau.jit._frontend.state import Compilation


def _container(kind: ClassType) -> str:
    return kind.values.get("!container", "")


def _held(c: Compilation, node: ast.AST, of: Value, kind: ClassType) -> list[tuple[str, Value]]:
    """The parts of a container, by name."""
    found = []
    for name in kind.values.get("!items", ()):
        made = c.emit("prim::GetAttr", [of], kind.attributes[name], at=node, name=name)
        made.name = f"_{name}" if name.isdigit() else name if name.isidentifier() else ""
        found.append((name, made))
    return found


def module_members(c: Compilation, node: ast.AST, of: Value) -> list[Any] | None:
    """What iteration over a container of modules gives; None for what is no container."""
    kind = of.type()
    if not isinstance(kind, ClassType) or not _container(kind):
        return None
    held = _held(c, node, of, kind)
    if _container(kind) == "dict":
        return [c.constant(name, T.STR, node) for name, _ in held]
    return [each for _, each in held]


def module_item(c: Compilation, node: ast.AST, of: Value, at: ast.expr) -> Any:
    """A module of a dict of modules, or what an interface says of all of a list."""
    kind = of.type()
    if not isinstance(kind, ClassType) or not kind.is_module:
        return None
    value = compiler.expressions.value

    if _container(kind) == "dict":
        key = value(c, at).toIValue()
        for name, made in _held(c, node, of, kind):
            if name == key:
                return made
        c.fail(node, f"Key Error, {key}: the keys of a ModuleDict have to be constants")
    return None


class _Container(Sugar):
    """A method of a container of modules."""

    what = "method"

    def __init__(self, name: str, held: list[tuple[str, Value]]) -> None:
        self.name, self.held = name, held

    def call(
        self, c: Compilation, node: Any, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Many:
        keys = [c.constant(name, T.STR, node) for name, _ in self.held]
        values = [each for _, each in self.held]
        if self.name == "keys":
            return Many(keys)
        if self.name == "items":
            return Many([Many([k, v]) for k, v in zip(keys, values, strict=True)])
        return Many(values)


_METHODS = {
    "keys": "keys",
    "values": "values",
    "items": "items",
    "children": "values",
    "named_children": "items",
}
_WALKS = {
    "modules": "values",
    "named_modules": "items",
    "parameters": "values",
    "named_parameters": "items",
    "buffers": "values",
    "named_buffers": "items",
}


def container_method(
    c: Compilation, node: ast.AST, of: Value, kind: ClassType, name: str
) -> _Container | None:
    """The methods of modules that list what they hold."""
    if name in ("keys", "values", "items") and _container(kind) == "dict":
        return _Container(_METHODS[name], _held(c, node, of, kind))
    if name in ("children", "named_children"):
        return _Container(_METHODS[name], _named(c, node, of, kind, lambda t: _is_module(t)))
    if name in ("modules", "named_modules"):
        return _Container(_WALKS[name], _walk(c, node, of, kind))
    if name in ("parameters", "named_parameters", "buffers", "named_buffers"):
        found = []
        for prefix, module in _walk(c, node, of, kind):
            owner = module.type()
            assert isinstance(owner, ClassType)
            mine = owner.parameters if "param" in name else owner.buffers
            for each in owner.attributes:
                if each in mine and owner.attributes[each] is T.TENSOR:
                    made = c.emit("prim::GetAttr", [module], T.TENSOR, at=node, name=each)
                    found.append((f"{prefix}.{each}" if prefix else each, made))
        return _Container(_WALKS[name], found)
    return None


def _is_module(kind: object) -> bool:
    return isinstance(kind, ClassType) and kind.is_module


def _named(
    c: Compilation, node: ast.AST, of: Value, kind: ClassType, wanted: Any
) -> list[tuple[str, Value]]:
    return [
        (name, c.emit("prim::GetAttr", [of], each, at=node, name=name))
        for name, each in kind.attributes.items()
        if wanted(each)
    ]


def _walk(c: Compilation, node: ast.AST, of: Value, kind: ClassType) -> list[tuple[str, Value]]:
    found = [("", of)]
    for name, child in _named(c, node, of, kind, _is_module):
        inner = child.type()
        assert isinstance(inner, ClassType)
        for below, each in _walk(c, node, child, inner):
            found.append((f"{name}.{below}" if below else name, each))
    return found


def contains(c: Compilation, node: ast.AST | None, of: Many, what: Value) -> bool | None:
    """Whether a constant is among parts that are known; None if that cannot be told."""
    parts = of.members(c, node)
    if parts is None or not isinstance(what, Value) or not what.is_constant():
        return None
    if not all(isinstance(each, Value) and each.is_constant() for each in parts):
        return None
    return any(each.toIValue() == what.toIValue() for each in parts)
