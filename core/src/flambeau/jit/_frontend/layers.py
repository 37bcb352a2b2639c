"""Methods of the library's own modules that in a program are other than in Python."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from flambeau.jit import _types as T
from flambeau.jit._frontend import values as V
from flambeau.jit._frontend.function import Declaration, ScriptFunction, literal_defaults, parse
from flambeau.jit._frontend.resolve import Resolver
from flambeau.jit._frontend.source import Source, pieces
from flambeau.jit._parts import compiler
from flambeau.jit._types import ClassType

if TYPE_CHECKING:
    from flambeau.jit._frontend.values import Sugar
    from flambeau.jit._graph import Value
    from flambeau.nn.module import Module


@cache
def _texts() -> tuple[dict[str, str], Source]:
    text = files("flambeau.jit").joinpath("layers.txt").read_text("utf-8")
    return pieces(text), Source(tuple(text.splitlines()), "<layers>")


@cache
def _methods(name: str) -> dict[str, ast.FunctionDef]:
    """The methods that the text has for a class."""
    texts, source = _texts()
    if name not in texts:
        return {}
    (node,) = parse(texts[name], source).body
    assert isinstance(node, ast.ClassDef)
    return {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}


class _Functional(V.Sugar):
    """``F`` in the text of the layers."""

    what = "module"

    def attribute(self, c: object, node: ast.AST | None, name: str) -> Value | Sugar:
        _functional = compiler.functional

        return _functional.choice(name)


def _results(owner: type) -> dict[str, Any]:
    """The named tuples that a layer may return."""
    space = vars(sys.modules[owner.__module__])
    return {
        name: value
        for name, value in space.items()
        if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields")
    }


def _weights(names: tuple[str, ...]) -> Callable[[Any], None]:
    """What lets ``weights`` be the parameters of a recurrent layer in order."""

    def setup(c: Any) -> None:
        of = c.graph.block.inputs_[0]
        parts = [c.emit("prim::GetAttr", [of], T.TENSOR, name=name) for name in names]
        c.frame.variables["weights"] = c.emit("prim::ListConstruct", parts, T.list_of(T.TENSOR))

    return setup


def declaration_for(
    kind: ClassType, owner: type, name: str, module: Module
) -> ScriptFunction | None:
    """A method as the text of the layers has it, or None where Python's serves."""
    if not owner.__module__.startswith("flambeau.nn"):
        return None
    node = None
    for cls in type(module).__mro__:
        if cls.__module__.startswith("flambeau.nn"):
            node = _methods(cls.__name__).get(name)
        if node is not None:
            break
        if name in vars(cls):
            break
    if node is None:
        return None
    resolver = Resolver(
        {"torch": V.AtenNamespace(), **V.language(), "F": _Functional(), **_results(owner)},
        known=False,
    )
    declaration = Declaration(
        node, _texts()[1], resolver, literal_defaults(node, resolver), f"{kind.name}.{name}"
    )
    declaration.self_type = kind
    declaration.owner = owner
    if hasattr(module, "_flat_weights_names"):
        declaration.setup = _weights(tuple(module._flat_weights_names))
    made = ScriptFunction(name, f"{kind.name}.{name}", lambda: declaration)
    made.owner = kind
    return made
