"""Methods that `dataclasses` wrote: they have no source, so that it is written here."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from flambeau.jit._frontend.annotations import parsed
from flambeau.jit._frontend.function import Declaration, ScriptFunction, parse
from flambeau.jit._frontend.source import Source
from flambeau.jit._parts import compiler
from flambeau.jit._types import ClassType

if TYPE_CHECKING:
    from collections.abc import Callable

    from flambeau.jit._frontend.resolve import Resolver


# Which of two objects has to be less, in the first field where they differ; and if none does.
_ORDERS = {
    "__lt__": ("a", "b", False),
    "__le__": ("a", "b", True),
    "__gt__": ("b", "a", False),
    "__ge__": ("b", "a", True),
}


def is_generated(cls: type, fn: Callable[..., Any]) -> bool:
    """Whether `dataclasses` gave a class a method."""
    places = ("<string>", dataclasses.__file__)
    return dataclasses.is_dataclass(cls) and inspect.unwrap(fn).__code__.co_filename in places


def generated_method(kind: ClassType, cls: type, name: str) -> ScriptFunction | None:
    """``__init__`` or a comparison of a data class; scripted programs do not see the others.

    Raises:
        NotImplementedError: a field has a default that a function makes.
    """
    if name == "__init__":
        return _init(kind, cls)
    compared = [f.name for f in dataclasses.fields(cls) if f.compare]
    if name == "__eq__":
        return _comparison(kind, cls, name, compared, _DIFFER, True)
    if name in _ORDERS:
        less, more, at_end = _ORDERS[name]
        return _comparison(kind, cls, name, compared, _DECIDE.format(less=less, more=more), at_end)
    return None


_DIFFER = """
        if a_{0} != b_{0}:
            return False
    elif (a_{0} is None) != (b_{0} is None):
        return False
"""
_DECIDE = """
        if {less}_{{0}} < {more}_{{0}}:
            return True
        if {more}_{{0}} < {less}_{{0}}:
            return False
    else:
        raise TypeError("what is None has no order")
"""


def _comparison(
    kind: ClassType, cls: type, name: str, compared: list[str], decide: str, at_end: bool
) -> ScriptFunction:
    """A comparison field by field, where one that may be None has to be asked first."""
    lines = [f"def {name}(self, other: Own) -> bool:\n"]
    for field in compared:
        lines.append(f"    a_{field} = self.{field}\n    b_{field} = other.{field}\n")
        lines.append(f"    if a_{field} is not None and b_{field} is not None:")
        lines.append(decide.format(field))
    return _method(kind, f"{''.join(lines)}    return {at_end}\n", {"Own": cls})


def _init(kind: ClassType, cls: type) -> ScriptFunction:
    fields = [f for f in dataclasses.fields(cls) if f.init]
    if any(f.default_factory is not dataclasses.MISSING for f in fields):
        raise NotImplementedError(
            f"{cls.__name__}: Default factory initializers are not supported in TorchScript "
            "dataclasses"
        )
    resolver = compiler.resolve.of_function(cls.__init__)
    scope = {f"type_of_{f.name}": _annotation(f.type, resolver) for f in fields}
    lines = [f"    self.{f.name} = {f.name}\n" for f in fields]
    if hasattr(cls, "__post_init__"):
        lines.append("    self.__post_init__()\n")
    taken = "".join(f", {f.name}: type_of_{f.name}" for f in fields)
    text = f"def __init__(self{taken}) -> None:\n{''.join(lines)}    return\n"
    defaults = {f.name: f.default for f in fields if f.default is not dataclasses.MISSING}
    return _method(kind, text, scope, defaults)


def _annotation(written: object, resolver: Resolver) -> Any:
    if not isinstance(written, str):
        return written
    return resolver.evaluate(parsed(written))


def _method(
    kind: ClassType,
    text: str,
    scope: Mapping[str, Any],
    defaults: Mapping[str, Any] | None = None,
) -> ScriptFunction:
    source = Source(tuple(text.splitlines()), f"<data class {kind.name}>")
    node: Any = parse(text, source).body[0]
    name = f"{kind.name}.{node.name}"
    resolver = compiler.resolve.Resolver(scope)

    def declare() -> Declaration:
        declaration = Declaration(node, source, resolver, defaults or {}, name)
        declaration.self_type = kind
        declaration.owner = kind.maker
        return declaration

    made = ScriptFunction(node.name, name, declare)
    made.owner = kind
    return made
