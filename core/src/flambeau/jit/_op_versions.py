"""Which version an archive has, and what ops meant in archives of earlier ones.

An op whose meaning changed has in each archive the one of its time.  What is written has the lowest
version in which all of its ops mean what they do now: no reader takes them for something else, and
older ones read as much as they can.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from flambeau.jit import _types as T
from flambeau.jit._frontend import values as V
from flambeau.jit._frontend.match import call_op
from flambeau.jit._parts import compiler

if TYPE_CHECKING:
    from flambeau.jit._frontend.function import ScriptFunction
    from flambeau.jit._frontend.state import Compilation
    from flambeau.jit._graph import Node, Value

_SINCE = {
    "aten::div": 4,
    "aten::div_": 4,
    "aten::full": 5,
    "aten::linspace": 8,
    "aten::logspace": 9,
    "aten::gelu": 10,
}
"""The version from which on an op means what it does now, by torch 2.13's table."""
DIVIDES_TRULY = _SINCE["aten::div"]
"""The version from which on integers have a quotient with a fraction."""
_OLDEST = 3
"""The version that PyTorch 1.4 wrote; what is older was another format."""
NEWEST = 10
"""The newest version of which it is known what ops mean."""

# Integers were divided as C does it.
_DIVISIONS = """
def div(self: Tensor, other: Tensor) -> Tensor:
    if torch.is_floating_point(self) or torch.is_floating_point(other):
        return torch.true_divide(self, other)
    return torch.divide(self, other, rounding_mode="trunc")

def div_(self: Tensor, other: Tensor) -> Tensor:
    if torch.is_floating_point(self) or torch.is_floating_point(other):
        return torch.true_divide_(self, other)
    return torch.divide_(self, other, rounding_mode="trunc")

def div_out(self: Tensor, other: Tensor, out: Tensor) -> Tensor:
    if torch.is_floating_point(self) or torch.is_floating_point(other):
        return torch.true_divide(self, other, out=out)
    return torch.divide(self, other, rounding_mode="trunc", out=out)

def div_by_integer(self: Tensor, other: int) -> Tensor:
    if torch.is_floating_point(self):
        return torch.true_divide(self, other)
    return torch.divide(self, other, rounding_mode="trunc")

def div__by_integer(self: Tensor, other: int) -> Tensor:
    if torch.is_floating_point(self):
        return torch.true_divide_(self, other)
    return torch.divide_(self, other, rounding_mode="trunc")
"""


def version_of(ops: Iterable[str]) -> int:
    """The version of an archive in which these ops are called.

    >>> version_of(["aten::add", "aten::div"]), version_of(["aten::add"])
    (4, 3)
    """
    return max((_SINCE.get(op, _OLDEST) for op in ops), default=_OLDEST)


class Namespace(V.AtenNamespace):
    """``torch`` in the code of an archive of a version."""

    def __init__(self, version: int) -> None:
        self.version = version

    def attribute(self, c: Compilation, node: ast.AST | None, name: str) -> Any:
        found = super().attribute(c, node, name)
        if isinstance(found, V.Namespace):
            return _Jit(found.module)
        op = f"aten::{name}"
        return _Earlier(op) if self.version < _SINCE.get(op, 0) else found


class _Jit(V.Namespace):
    """``torch.jit`` there: what is a form of the language."""

    def attribute(self, c: Compilation, node: ast.AST | None, name: str) -> Any:
        if name not in _FORMS:
            c.fail(node, f"the code of an archive cannot use torch.jit.{name:.80}")
        return super().attribute(c, node, name)


_FORMS = ("annotate", "fork", "isinstance", "wait", "_fork", "_isinstance", "_wait")


class _Earlier(V.Builtin):
    """An op as it was."""

    def call(
        self, c: Compilation, node: Any, args: Sequence[Value], kwargs: Mapping[str, Value]
    ) -> Any:
        name = self.name.partition("::")[2]
        if name in ("div", "div_"):
            form = _division(name, args, kwargs)
            if form:
                return V.FunctionRef(_divisions()[form]).call(c, node, args, kwargs)
        elif name == "full":
            if _is_none(kwargs.get("dtype")) and "out" not in kwargs:
                args, kwargs = _with(c, args, kwargs, "fill_value", 1, _as_float, node)
        elif name in ("linspace", "logspace"):
            args, kwargs = _with(c, args, kwargs, "steps", 2, _hundred, node)
        return super().call(c, node, args, kwargs)


@cache
def _divisions() -> dict[str, ScriptFunction]:
    words = {"torch": V.AtenNamespace(), **V.language()}
    resolver = compiler.resolve.Resolver(words, known=False)
    made = compiler.function.declarations(_DIVISIONS, resolver, "<earlier>", "__torch__.earlier.")
    return {
        name: compiler.function.ScriptFunction(
            name, declaration.qualified_name, lambda given=declaration: given
        )
        for name, declaration in made.items()
    }


def _division(name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> str:
    """Which of the functions above a call is; none, where it means what it does now."""
    if "rounding_mode" in kwargs or len(args) > 2:
        return ""
    this = args[0] if args else kwargs.get("self")
    other = args[1] if len(args) > 1 else kwargs.get("other")
    if this is None or other is None or this.type() is not T.TENSOR:
        return ""
    if other.type() is T.TENSOR:
        return "div_out" if "out" in kwargs else name
    return f"{name}_by_integer" if other.type() in (T.INT, T.BOOL) else ""


def _with(
    c: Compilation,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    name: str,
    place: int,
    change: Any,
    node: Node,
) -> tuple[Sequence[Value], Mapping[str, Value]]:
    """Arguments of which one is another."""
    if len(args) > place:
        return [*args[:place], change(c, args[place], node), *args[place + 1 :]], kwargs
    return args, {**kwargs, name: change(c, kwargs.get(name), node)}


def _as_float(c: Compilation, value: Value, node: Any) -> Value:
    return call_op(c, "aten::Float", [value], at=node) if value.type() in _WHOLE else value


def _hundred(c: Compilation, value: Value | None, node: Any) -> Value:
    return c.constant(100, at=node) if value is None or _is_none(value) else value


_WHOLE = (T.INT, T.BOOL)


def _is_none(value: Value | None) -> bool:
    return value is None or value.type() is T.NONE


class Divisions(ast.NodeTransformer):
    """Makes ``a / b`` the call that it stands for, which means what it did."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """The call."""
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div):
            return node
        torch = ast.Name("torch", ast.Load())
        called = ast.Call(ast.Attribute(torch, "div", ast.Load()), [node.left, node.right], [])
        return ast.fix_missing_locations(ast.copy_location(called, node))
