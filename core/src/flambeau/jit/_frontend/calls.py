"""Calls: of ops and functions, and of the forms that are part of the language."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flambeau.jit import _types as T
from flambeau.jit._frontend import annotations as _annotations
from flambeau.jit._frontend.conditions import Truth, condition
from flambeau.jit._frontend.expressions import expression, members, value
from flambeau.jit._frontend.match import call_op, convert
from flambeau.jit._frontend.state import Compilation
from flambeau.jit._frontend.values import (
    DTYPE_METHODS,
    Bounds,
    Builtin,
    EnumRef,
    ExceptionRef,
    FunctionRef,
    IgnoredRef,
    Many,
    MethodRef,
    NamedTupleRef,
    NewRef,
    Special,
    SuperRef,
    TensorClass,
    TypeRef,
    as_value,
    value_attribute,
)
from flambeau.jit._graph import Value
from flambeau.jit._parts import compiler
from flambeau.jit._tracing.state import current
from flambeau.jit._types import ClassType, Type

if TYPE_CHECKING:
    from flambeau.jit._frontend.loops import Iteration
    from flambeau.jit._frontend.values import Sugar


STATIC = ("isinstance", "hasattr", "is_scripting", "is_tracing")
"""Forms whose truth may be known while a function is compiled."""
SAID = (*STATIC, "get_tracing_state")
"""What programs call them."""


def special_objects() -> dict[int, str]:
    """The objects of Python that are forms of the language, by identity."""
    jit = compiler.root

    found = {
        id(getattr(builtins, name)): name
        for name in (
            "print isinstance hasattr getattr len range enumerate zip list tuple dict int float "
            "bool str complex min max abs sum round sorted all any ord chr hex oct bin divmod pow "
            "hash super type reversed iter set map filter id slice"
        ).split()
    }
    for name in (
        "annotate isinstance is_scripting is_tracing fork wait _fork _wait _unwrap_optional"
    ).split():
        found[id(getattr(jit, name))] = name.lstrip("_")
    found[id(current)] = "is_tracing"
    return found


def call(c: Compilation, node: ast.Call, hint: Type | None = None) -> Any:
    """What a call means."""
    called = expression(c, node.func)
    if isinstance(called, Special):
        form = _FORMS.get(called.name)
        if form is None:
            return _plain_builtin(c, node, called)
        return form(c, node, called, hint)
    if isinstance(called, NewRef):  # its argument is the class
        return called.call(c, node, (), {})
    args, kwargs = arguments(c, node)
    if isinstance(called, Value):
        return _call_value(c, node, called, args, kwargs)
    return called.call(c, node, args, kwargs)


def _call_value(
    c: Compilation, node: ast.AST, of: Value, args: list[Value], kwargs: dict[str, Value]
) -> Value | Sugar:
    kind = of.type()
    if isinstance(kind, ClassType):
        name = "forward" if kind.is_module else "__call__"
        if kind.method(name) is None:
            c.fail(node, f"'{kind.annotation}' object is not callable: it has no '{name}'")
        return MethodRef(of, kind, name).call(c, node, args, kwargs)
    c.fail(node, f"'{kind.annotation}' object is not callable")


def arguments(c: Compilation, node: ast.Call) -> tuple[list[Value], dict[str, Value]]:
    """The arguments of a call as values."""
    args: list[Value] = []
    for each in node.args:
        if isinstance(each, ast.Starred):
            parts = members(c, each, expression(c, each.value))
            args += [as_value(c, each, part) for part in parts]
        else:
            args.append(_argument(c, each))
    kwargs: dict[str, Value] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            c.unsupported(node, "keyword-arg expansion is not supported")
        kwargs[keyword.arg] = _argument(c, keyword.value)
    return args, kwargs


def _argument(c: Compilation, node: ast.expr) -> Value:
    found = expression(c, node)
    if isinstance(found, TypeRef | Special) and getattr(found, "name", "") in _DTYPES:
        return c.constant(_DTYPES[found.name], T.INT, node)  # type: ignore[union-attr]
    return as_value(c, node, found)


_DTYPES = {"float": 6, "int": 4, "bool": 11}


def _one(c: Compilation, node: ast.Call, name: str) -> ast.expr:
    if len(node.args) != 1 or node.keywords:
        c.fail(node, f"{name} expected exactly 1 argument but found {len(node.args)}")
    return node.args[0]


def _plain_builtin(c: Compilation, node: ast.Call, called: Special) -> Value | Sugar:
    args, kwargs = arguments(c, node)
    name = _RENAMED.get(called.name, called.name)
    space = "prim" if called.name in ("min", "max", "abs") else "aten"
    if space == "prim" and args and args[0].type() is T.TENSOR:
        space = "aten"
    if called.name in ("id",):
        space = "prim"
    return call_op(c, f"{space}::{name}", args, kwargs, at=node, shown_name=f"aten::{name}")


_RENAMED: dict[str, str] = {}


def _type(c: Compilation, node: ast.Call, called: Special, hint: Type | None) -> Value | Sugar:
    """The class of a tensor, which Python tells; it is good for messages."""
    args, kwargs = arguments(c, node)
    return IgnoredRef(type).call(c, node, args, kwargs)


def _print(c: Compilation, node: ast.Call, called: Special, hint: Type | None) -> Value | Sugar:
    args, kwargs = arguments(c, node)
    if kwargs:
        c.fail(node, "print doesn't accept any keyword arguments")
    c.node("prim::Print", args, at=node)
    return c.constant(None, T.NONE, node)


def _types_of(c: Compilation, node: ast.expr) -> list[Type]:
    """The types that the second argument of `isinstance` names."""
    if isinstance(node, ast.Tuple):
        return [kind for each in node.elts for kind in _types_of(c, each)]
    if isinstance(node, ast.Name) and node.id in ("list", "tuple", "dict"):
        return [{"list": T.ANY_LIST, "tuple": T.ANY_TUPLE, "dict": Type("dict")}[node.id]]
    if isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) in (
        "List",
        "Tuple",
        "typing.List",
        "typing.Tuple",
    ):
        return [T.ANY_LIST if ast.unparse(node).endswith("List") else T.ANY_TUPLE]
    return [annotation(c, node)]


def annotation(c: Compilation, node: ast.expr) -> Type:
    """The type that an expression names."""
    try:
        return _annotations.of_syntax(node, c.resolver)
    except _annotations.AnnotationError as error:
        c.fail(node, str(error))


def static_call(c: Compilation, node: ast.Call, name: str) -> Truth:
    """`isinstance`, `hasattr`, `is_scripting` and `is_tracing` as conditions."""
    if name in ("is_scripting", "is_tracing"):
        return Truth(None, name == "is_scripting")
    if len(node.args) != 2:
        c.fail(node, f"{name} expected exactly 2 arguments but found {len(node.args)}")
    if name == "hasattr":
        return _has_attribute(c, node)
    of = expression(c, node.args[0])
    if not isinstance(of, Value):
        c.fail(node, f"isinstance of {of.what}, which is no value")
    kinds = _types_of(c, node.args[1])
    have = of.type()
    choices = [*have.args] if have.kind == "Union" else [have]
    if have.kind == "Optional":
        choices = [have.args[0], T.NONE]
    if have is T.ANY:
        choices = []
    holds = [any(T.is_subtype(each, kind) for kind in kinds) for each in choices]
    if choices and all(holds):
        return Truth(None, True)
    if choices and not any(holds) and have is not T.ANY:
        return Truth(None, False)
    made = c.emit("prim::isinstance", [of], T.BOOL, at=node, _types=kinds)
    if not isinstance(node.args[0], ast.Name):
        return Truth(made)
    name_of = node.args[0].id
    if not choices:
        concrete = [k for k in kinds if k not in (T.ANY_LIST, T.ANY_TUPLE)]
        known = T.union(*concrete) if len(concrete) == len(kinds) else None
        return Truth(made, None, {name_of: known} if known is not None else {})
    yes = T.union(*(each for each, held in zip(choices, holds, strict=True) if held))
    no = T.union(*(each for each, held in zip(choices, holds, strict=True) if not held))
    return Truth(made, None, {name_of: yes}, {name_of: no})


def _has_attribute(c: Compilation, node: ast.Call) -> Truth:
    of = expression(c, node.args[0])
    name = node.args[1]
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
        c.fail(node, "hasattr's second argument must be a string literal")
    return Truth(None, _attribute_known(c, of, name.value))


def _attribute_known(c: Compilation, of: Value | Sugar, name: str) -> bool:
    if isinstance(of, Value):
        kind = of.type()
        if isinstance(kind, ClassType):
            return (
                name in kind.attributes
                or name in kind.constants
                or name in kind.values
                or name in kind.properties
                or kind.method(name) is not None
            )
        if isinstance(kind, T.NamedTupleType):
            return name in kind.fields
    before = len(c.block.nodes_)
    attribute = compiler.expressions.attribute
    CompilationError = compiler.source.CompilationError

    try:
        attribute(c, None, of, name)
        return True
    except CompilationError:
        return False
    finally:
        for made in reversed(c.block.nodes_[before:]):
            made.destroy()


def _condition_value(
    c: Compilation, node: ast.Call, called: Special, hint: Type | None
) -> Value | Sugar:
    return condition(c, node).value(c, node)


def _getattr(c: Compilation, node: ast.Call, called: Special, hint: Type | None) -> Value | Sugar:
    if not 2 <= len(node.args) <= 3:
        c.fail(node, "getattr expected 2 or 3 arguments")
    of = expression(c, node.args[0])
    name = node.args[1]
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
        c.fail(node, "getattr's second argument must be a string literal")
    if len(node.args) == 3 and not _attribute_known(c, of, name.value):
        return expression(c, node.args[2])
    attribute = compiler.expressions.attribute

    return attribute(c, node, of, name.value)


def _annotate(c: Compilation, node: ast.Call, called: Special, hint: Type | None) -> Value:
    if len(node.args) != 2:
        c.fail(node, f"annotate expected exactly 2 arguments but found {len(node.args)}")
    kind = annotation(c, node.args[0])
    made = value(c, node.args[1], kind)
    converted = convert(c, made, kind, allow=True, at=node)
    if converted is None:
        c.fail(
            node,
            f"expected an expression of type {kind.annotation} but found {made.type().annotation}",
        )
    if converted.type() is not kind and kind.kind != "List":
        return c.emit("prim::unchecked_cast", [converted], kind, at=node)
    return converted


def _unchecked_cast(
    c: Compilation, node: ast.Call, called: Special, hint: Type | None
) -> Value | Sugar:
    kind = annotation(c, node.args[0])
    return c.emit("prim::unchecked_cast", [value(c, node.args[1])], kind, at=node)


def _uninitialized(
    c: Compilation, node: ast.Call, called: Special, hint: Type | None
) -> Value | Sugar:
    return c.uninitialized(annotation(c, _one(c, node, "uninitialized")))


def _unwrap(c: Compilation, node: ast.Call, called: Special, hint: Type | None) -> Value | Sugar:
    of = value(c, _one(c, node, "_unwrap_optional"))
    if of.type().kind != "Optional":
        if of.type() is T.NONE:
            c.fail(node, "Unwrapping None, which is always an error")
        return of
    return c.emit("aten::_unwrap_optional", [of], of.type().args[0], at=node)


_CASTS = {"int": "Int", "float": "Float", "bool": "Bool", "str": "str", "complex": "Complex"}
_CAST_TYPES = {"int": T.INT, "float": T.FLOAT, "bool": T.BOOL, "str": T.STR, "complex": T.COMPLEX}


def _cast(c: Compilation, node: ast.Call, called: Special, hint: Type | None) -> Any:
    kind = _CAST_TYPES[called.name]
    args, kwargs = arguments(c, node)
    if len(args) == 1 and not kwargs:
        if args[0].type() is kind:
            return args[0]
        if called.name == "str":
            return c.emit("aten::str", args, T.STR, at=node)
        if isinstance(args[0].type(), ClassType):
            magic = f"__{called.name}__"
            return value_attribute(c, node, args[0], magic).call(c, node, [], {})
    return call_op(c, f"aten::{_CASTS[called.name]}", args, kwargs, at=node)


def _slice(c: Compilation, node: ast.Call, called: Special, hint: Type | None) -> Any:
    if node.keywords:
        c.fail(node, "Slice does not accept any keyword arguments")
    given, _ = arguments(c, node)
    if not 1 <= len(given) <= 3:
        c.fail(node, f"slice accepts exactly 1, 2 or 3 arguments, got: {len(given)}")
    start, end, step = (
        None if each is None or each.type() is T.NONE else each
        for each in ([None, *given, None] if len(given) == 1 else [*given, None])[:3]
    )
    return Bounds(start, end, step)


def _len(c: Compilation, node: ast.Call, called: Special, hint: Type | None) -> Any:
    of = expression(c, _one(c, node, "len"))
    if not isinstance(of, Value):
        return c.constant(len(members(c, node, of)), T.INT, node)
    if of.type().kind == "Tuple":
        return c.constant(len(of.type().args), T.INT, node)
    if isinstance(of.type(), ClassType):
        module_members = compiler.module_values.module_members

        if (parts := module_members(c, node, of)) is not None:
            return c.constant(len(parts), T.INT, node)
        return value_attribute(c, node, of, "__len__").call(c, node, [], {})
    return call_op(c, "aten::len", [of], at=node)


def _list(c: Compilation, node: ast.Call, called: Special, hint: Type | None) -> Value | Sugar:
    if not node.args:
        element = hint.args[0] if hint is not None and hint.kind == "List" else T.TENSOR
        return c.emit("prim::ListConstruct", (), T.list_of(element), at=node, _open=True)
    argument = _one(c, node, "list")
    of = expression(c, argument)
    if isinstance(of, Value) and of.type().kind == "List":
        return call_op(c, "aten::list", [of], at=node)
    if isinstance(of, Value) and of.type() is T.STR:
        return call_op(c, "aten::list", [of], at=node)
    if isinstance(of, Value) and of.type().kind == "Tuple":
        parts = members(c, node, of)
        kind = T.list_of(parts[0].type() if parts else T.TENSOR)
        return c.emit("prim::ListConstruct", parts, kind, at=node)
    comprehension_over = compiler.loops.comprehension_over

    return comprehension_over(c, node, of)


def _tuple(c: Compilation, node: ast.Call, called: Special, hint: Type | None) -> Value | Sugar:
    if not node.args:
        return c.emit("prim::TupleConstruct", (), T.tuple_of(), at=node)
    of = expression(c, _one(c, node, "tuple"))
    return Many(members(c, node, of)).value(c, node)


def _dict(c: Compilation, node: ast.Call, called: Special, hint: Type | None) -> Value | Sugar:
    kinds = hint.args if hint is not None and hint.kind == "Dict" else (T.STR, T.TENSOR)
    if node.args:
        of = value(c, node.args[0], hint)
        if of.type().kind == "List" and of.type().args[0].kind == "Tuple":
            kind = T.dict_of(*of.type().args[0].args)
            made = c.emit("aten::dict", [of], kind, at=node)
        else:
            made = call_op(c, "aten::dict", [of], at=node)
    else:
        inputs: list[Value] = []
        for keyword in node.keywords:
            inputs += [c.constant(keyword.arg, at=node), value(c, keyword.value)]
        if inputs:
            kinds = (T.STR, inputs[1].type())
        return c.emit("prim::DictConstruct", inputs, T.dict_of(*kinds), at=node, _open=True)
    for keyword in node.keywords:
        pair = [made, c.constant(keyword.arg, at=node), value(c, keyword.value)]
        call_op(c, "aten::_set_item", pair, at=node)
    return made


def _format(c: Compilation, node: ast.Call, called: Special, hint: Type | None) -> Value:
    args, kwargs = arguments(c, node)
    if kwargs:
        c.fail(node, "format doesn't accept any keyword arguments")
    assert called.of is not None
    return c.emit("aten::format", [called.of, *args], T.STR, at=node)


def _to_list(c: Compilation, node: ast.Call, called: Special, hint: Type | None) -> Value | Sugar:
    assert called.of is not None
    if hint is None:
        c.fail(
            node,
            "Expected type hint for result of tolist(): annotate the variable that it is bound to",
        )
    depth, element = 0, hint
    while element.kind == "List":
        depth, element = depth + 1, element.args[0]
    if element not in (T.INT, T.FLOAT, T.BOOL, T.COMPLEX):
        c.fail(node, f"Output type of tolist() must be a list of numbers, not {hint.annotation}")
    return c.emit("prim::tolist", [called.of], hint, at=node, depth=depth)


def _to_dtype(c: Compilation, node: ast.Call, called: Special, hint: Type | None) -> Value:
    assert called.of is not None
    name = called.name[2:-2]
    if node.args or node.keywords:
        c.fail(node, f"{name}() takes no arguments")
    dtype = c.constant(DTYPE_METHODS[name], T.INT, node)
    no, none = c.constant(False, T.BOOL, node), c.constant(None, T.NONE, node)
    return call_op(c, "aten::to", [called.of, dtype, no, no, none], at=node)


def _fork(c: Compilation, node: ast.Call, called: Special, hint: Type | None) -> Value | Sugar:
    if not node.args:
        c.fail(node, "fork needs a function to call")
    target = expression(c, node.args[0])
    rest = ast.copy_location(
        ast.Call(func=node.args[0], args=node.args[1:], keywords=node.keywords), node
    )
    args, kwargs = arguments(c, rest)
    made = c.node("prim::fork", at=node)
    block = made.addBlock()
    Frame = compiler.state.Frame

    with c.inside(block, Frame(c.frame)):
        if isinstance(target, Value):
            back = _call_value(c, node, target, args, kwargs)
        elif isinstance(target, Special):
            back = _plain_builtin(c, rest, target)
        else:
            back = target.call(c, node, args, kwargs)
        block.add_output(as_value(c, node, back))
    return made.add_output(Type("Future", block.outputs_[0].type()))


def _wait(c: Compilation, node: ast.Call, called: Special, hint: Type | None) -> Value | Sugar:
    of = value(c, _one(c, node, "wait"))
    return call_op(c, "aten::wait", [of], at=node)


def _super(c: Compilation, node: ast.Call, called: Special, hint: Type | None) -> SuperRef:
    of = c.frame.find("self")
    owner = getattr(c, "owner", None)
    if owner is None or not isinstance(of, Value):
        c.fail(node, "super() is only known in methods")
    return SuperRef(of, owner)


def _sum(c: Compilation, node: ast.Call, called: Special, hint: Type | None) -> Value | Sugar:
    args, kwargs = arguments(c, node)
    return call_op(c, "aten::sum", args, kwargs, at=node)


def _sorted(c: Compilation, node: ast.Call, called: Special, hint: Type | None) -> Value | Sugar:
    args, kwargs = arguments(c, node)
    return call_op(c, "aten::sorted", args, kwargs, at=node)


def _reversed(c: Compilation, node: ast.Call, called: Special, hint: Type | None) -> Many:
    of = expression(c, _one(c, node, "reversed"))
    if not isinstance(of, Value) or of.type().kind == "Tuple" or isinstance(of.type(), ClassType):
        return Many(list(reversed(members(c, node, of))))
    c.fail(node, "reversed is only known of tuples and modules")


def _lookup_only(c: Compilation, node: ast.Call, called: Special, hint: Type | None) -> Iteration:
    """`range`, `enumerate` and `zip` are what loops go over: see `_loops`."""
    Iteration = compiler.loops.Iteration

    return Iteration.of_call(c, node, called.name)


_FORMS: dict[str, Callable[..., Any]] = {
    "print": _print,
    "isinstance": _condition_value,
    "hasattr": _condition_value,
    "is_scripting": _condition_value,
    "is_tracing": _condition_value,
    "getattr": _getattr,
    "annotate": _annotate,
    "unchecked_cast": _unchecked_cast,
    "uninitialized": _uninitialized,
    "unwrap_optional": _unwrap,
    "int": _cast,
    "float": _cast,
    "bool": _cast,
    "str": _cast,
    "complex": _cast,
    "len": _len,
    "slice": _slice,
    "list": _list,
    "tuple": _tuple,
    "dict": _dict,
    "format": _format,
    "tolist": _to_list,
    **{f"x.{name}()": _to_dtype for name in DTYPE_METHODS},
    "fork": _fork,
    "wait": _wait,
    "super": _super,
    "type": _type,
    "sum": _sum,
    "sorted": _sorted,
    "reversed": _reversed,
    "range": _lookup_only,
    "enumerate": _lookup_only,
    "zip": _lookup_only,
}

__all__ = [
    "SAID",
    "STATIC",
    "Builtin",
    "EnumRef",
    "ExceptionRef",
    "FunctionRef",
    "NamedTupleRef",
    "TensorClass",
    "annotation",
    "arguments",
    "call",
    "special_objects",
    "static_call",
]
