"""Expressions: syntax trees become values of a graph."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flambeau.jit import _types as T
from flambeau.jit._frontend.conditions import Truth, compare_nodes, condition, merged
from flambeau.jit._frontend.match import call_op, convert, unpack
from flambeau.jit._frontend.state import Compilation, Frame
from flambeau.jit._frontend.values import (
    Bounds,
    Many,
    Special,
    as_value,
    tuple_item,
    value_attribute,
)
from flambeau.jit._graph import Value
from flambeau.jit._parts import compiler
from flambeau.jit._types import ClassType, Type

if TYPE_CHECKING:
    from flambeau.jit._frontend.values import Sugar


BINARY: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("add", "__add__"),
    ast.Sub: ("sub", "__sub__"),
    ast.Mult: ("mul", "__mul__"),
    ast.Div: ("div", "__truediv__"),
    ast.FloorDiv: ("floordiv", "__floordiv__"),
    ast.Mod: ("remainder", "__mod__"),
    ast.Pow: ("pow", "__pow__"),
    ast.MatMult: ("matmul", "__matmul__"),
    ast.BitAnd: ("__and__", "__and__"),
    ast.BitOr: ("__or__", "__or__"),
    ast.BitXor: ("__xor__", "__xor__"),
    ast.LShift: ("__lshift__", "__lshift__"),
    ast.RShift: ("__rshift__", "__rshift__"),
}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Is: "__is__",
    ast.IsNot: "__isnot__",
    ast.In: "__contains__",
    ast.NotIn: "__contains__",
}
_MAGIC = {"lt": "__lt__", "le": "__le__", "gt": "__gt__", "ge": "__ge__"}
_MAGIC |= {"eq": "__eq__", "ne": "__ne__", "__contains__": "__contains__"}

LAST = 9223372036854775807
"""The end of a slice that has none."""


def expression(c: Compilation, node: ast.expr, hint: Type | None = None) -> Value | Sugar:
    """What an expression means: a value, or something that is none.

    Args:
        hint: the type that is wanted, which empty lists and dicts take.
    """
    form = _FORMS.get(type(node))
    if form is None:
        c.unsupported(node, f"{_KINDS.get(type(node), type(node).__name__)} aren't supported")
    before, c.at = c.at, node
    try:
        return form(c, node, hint)
    finally:
        c.at = before


_KINDS: dict[type, str] = {
    ast.Lambda: "Lambda expressions",
    ast.Yield: "yield expressions",
    ast.YieldFrom: "yield expressions",
    ast.Await: "await expressions",
    ast.Set: "Set literals",
    ast.SetComp: "Set comprehensions",
    ast.NamedExpr: "Assignment expressions",
}


def value(c: Compilation, node: ast.expr, hint: Type | None = None) -> Value:
    """The value of an expression."""
    return as_value(c, node, expression(c, node, hint))


def _constant(c: Compilation, node: ast.Constant, hint: Type | None) -> Value | Sugar:
    if node.value is Ellipsis:
        c.fail(node, "'...' is only supported in subscripts")
    if isinstance(node.value, bytes):
        c.unsupported(node, "bytes literals aren't supported")
    if isinstance(node.value, int) and not -(2**63) <= node.value < 2**63:
        c.fail(node, f"{node.value} is no 64-bit integer")
    return c.constant(node.value, at=node)


def _name(c: Compilation, node: ast.Name, hint: Type | None) -> Value | Sugar:
    return c.lookup(node, node.id)


def _attribute(c: Compilation, node: ast.Attribute, hint: Type | None) -> Value | Sugar:
    return attribute(c, node, expression(c, node.value), node.attr)


def attribute(c: Compilation, node: ast.AST | None, of: Value | Sugar, name: str) -> Value | Sugar:
    """What ``of.name`` means."""
    if isinstance(of, Value):
        return value_attribute(c, node, of, name)
    return of.attribute(c, node, name)


def _binary(c: Compilation, node: ast.BinOp, hint: Type | None) -> Value:
    left = expression(c, node.left, hint)
    right = expression(c, node.right, hint)
    return binary(c, node, node.op, as_value(c, node, left), as_value(c, node, right))


def binary(
    c: Compilation, node: ast.AST, operator: ast.operator, left: Value, right: Value
) -> Value:
    """Two values joined by an operator."""
    found = BINARY.get(type(operator))
    if found is None:
        c.unsupported(node, f"unsupported binary operator: {type(operator).__name__}")
    name, magic = found
    if isinstance(left.type(), ClassType):
        return _magic(c, node, left, magic, [right])
    if left.type().kind == right.type().kind == "Tuple" and name == "add":
        parts = [*unpack(c, left), *unpack(c, right)]
        kind = T.tuple_of(*(each.type() for each in parts))
        return c.emit("prim::TupleConstruct", parts, kind, at=node)
    if left.type() is T.STR and name == "remainder":
        return c.emit("aten::percentFormat", [left, *_format_parts(c, right)], T.STR, at=node)
    if name == "floordiv" and T.TENSOR in (left.type(), right.type()):
        name = "floor_divide"
    return call_op(c, f"aten::{name}", [left, right], at=node)


def _format_parts(c: Compilation, right: Value) -> list[Value]:
    return unpack(c, right) if right.type().kind == "Tuple" else [right]


def _magic(c: Compilation, node: ast.AST | None, of: Value, name: str, args: list[Value]) -> Any:
    kind = of.type()
    assert isinstance(kind, ClassType)
    if kind.method(name) is None:
        c.fail(node, f"'{kind.annotation}' object has no method '{name}'")
    return value_attribute(c, node, of, name).call(c, node, args, {})


def _unary(c: Compilation, node: ast.UnaryOp, hint: Type | None) -> Value:
    if isinstance(node.op, ast.Not):
        return _as_condition(c, node, hint)
    if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        number = node.operand.value
        if isinstance(number, (int, float, complex)) and not isinstance(number, bool):
            return c.constant(-number, at=node)
    of = value(c, node.operand)
    if isinstance(node.op, ast.UAdd):
        c.unsupported(node, "unsupported unary operator: UAdd")
    if isinstance(of.type(), ClassType):
        magic = "__neg__" if isinstance(node.op, ast.USub) else "__invert__"
        return _magic(c, node, of, magic, [])
    name = "neg" if isinstance(node.op, ast.USub) else "bitwise_not"
    return call_op(c, f"aten::{name}", [of], at=node)


def _as_condition(c: Compilation, node: ast.expr, hint: Type | None) -> Value:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        none = any(
            isinstance(each, ast.Constant) and each.value is None
            for each in (node.left, *node.comparators)
        )
        if not none and not isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return compare_nodes(c, node, node.ops[0], node.left, node.comparators[0])
    return condition(c, node).value(c, node)


def compare(c: Compilation, node: ast.AST, op: ast.cmpop, left: Value, right: Value) -> Value:
    """Two values compared."""
    name = _COMPARE[type(op)]
    if name == "__contains__":
        left, right = right, left
        if left.type().kind == "Tuple" and left.type().args:
            parts = unpack(c, left)
            kind = T.list_of(_common(c, node, parts, "tuple"))
            left = c.emit("prim::ListConstruct", parts, kind, at=node)
    if isinstance(left.type(), ClassType) and name in _MAGIC:
        return _magic(c, node, left, _MAGIC[name], [right])
    if left.type().kind == right.type().kind == "Enum" and name in ("eq", "ne", "__is__"):
        if not T.same(left.type(), right.type()):
            c.fail(
                node, f"{left.type()} and {right.type()} are different enums and are never equal"
            )
        return c.emit(f"aten::{name}", [left, right], T.BOOL, at=node)
    if left.type().kind == right.type().kind == "Tuple" and name in ("eq", "ne"):
        return _compare_tuples(c, node, name, left, right)
    made = call_op(c, f"aten::{name}", [left, right], at=node)
    if isinstance(op, ast.NotIn):
        return call_op(c, "aten::__not__", [made], at=node)
    return made


def _compare_tuples(c: Compilation, node: ast.AST, name: str, left: Value, right: Value) -> Value:
    if len(left.type().args) != len(right.type().args):
        return c.constant(name == "ne", at=node)
    total: Value | None = None
    for a, b in zip(unpack(c, left), unpack(c, right), strict=True):
        one = call_op(c, f"aten::{name}", [a, b], at=node)
        op = "aten::__and__" if name == "eq" else "aten::__or__"
        total = one if total is None else call_op(c, op, [total, one], at=node)
    return total if total is not None else c.constant(name == "eq", at=node)


def _if_expression(c: Compilation, node: ast.IfExp, hint: Type | None) -> Value | Sugar:
    test = condition(c, node.test)
    if test.static is not None:
        frame = Frame(c.frame)
        with c.inside(c.block, frame):
            test.refine(c, test.static)
            return expression(c, node.body if test.static else node.orelse, hint)
    made = c.node("prim::If", [test.value(c, node)], at=node)
    values = []
    for arm, holds in ((node.body, True), (node.orelse, False)):
        block = made.addBlock()
        with c.inside(block, Frame(c.frame)):
            test.refine(c, holds)
            values.append(value(c, arm, hint))
    kind = T.unify(values[0].type(), values[1].type())
    if kind is None and hint is not None and all(T.is_subtype(v.type(), hint) for v in values):
        kind = hint
    if kind is None:
        c.fail(
            node,
            "Type mismatch: the true branch of a conditional expression has type "
            f"{values[0].type().annotation} and the false one type "
            f"{values[1].type().annotation}",
        )
    for block, made_value in zip(made.blocks_, values, strict=True):
        with c.inside(block, Frame(c.frame)):
            block.add_output(convert(c, made_value, kind, allow=False) or made_value)
    return made.add_output(kind)


def _tuple(c: Compilation, node: ast.Tuple, hint: Type | None) -> Value | Sugar:
    hints = hint.args if hint is not None and hint.kind == "Tuple" else ()
    parts: list[Any] = []
    for at, each in enumerate(node.elts):
        if isinstance(each, ast.Starred):
            parts += members(c, each, expression(c, each.value))
        else:
            wanted = hints[at] if len(hints) == len(node.elts) else None
            parts.append(expression(c, each, wanted))
    if all(isinstance(each, Value) for each in parts):
        return c.emit(
            "prim::TupleConstruct", parts, T.tuple_of(*(each.type() for each in parts)), at=node
        )
    return Many(parts)


def members(c: Compilation, node: ast.AST | None, of: Value | Sugar) -> list[Any]:
    """The parts of something whose number is known."""
    if isinstance(of, Value):
        if of.type().kind == "Tuple":
            return list(unpack(c, of))
        module_members = compiler.module_values.module_members

        if (found := module_members(c, node, of)) is not None:
            return found
    elif (found := of.members(c, node)) is not None:
        return found
    kind = of.type().annotation if isinstance(of, Value) else of.what
    c.fail(node, f"cannot statically infer the expected size of a {kind} in this context")


def _list(c: Compilation, node: ast.List, hint: Type | None) -> Value:
    wanted = _inside(hint, "List")
    parts: list[Value] = []
    for each in node.elts:
        if isinstance(each, ast.Starred):
            parts += [as_value(c, each, m) for m in members(c, each, expression(c, each.value))]
        else:
            parts.append(value(c, each, wanted[0] if wanted else None))
    if wanted:
        element = wanted[0]
        for at, part in enumerate(parts):
            converted = convert(c, part, element, allow=False, at=node)
            if converted is None:
                c.fail(
                    node,
                    f"Expected type {T.list_of(element).annotation} for a list, but one of its "
                    f"elements has type {part.type().annotation}",
                )
            parts[at] = converted
    else:
        element = _common(c, node, parts, "list", True) if parts else T.TENSOR
    return c.emit("prim::ListConstruct", parts, T.list_of(element), at=node, _open=True)


def _inside(hint: Type | None, kind: str) -> tuple[Type, ...]:
    if hint is None:
        return ()
    choices = hint.args if hint.kind in ("Optional", "Union") else (hint,)
    return next((each.args for each in choices if each.kind == kind), ())


def _common(
    c: Compilation, node: ast.AST, parts: list[Value], what: str, unions: bool = False
) -> Type:
    kind = parts[0].type()
    for part in parts[1:]:
        joined = T.unify(kind, part.type(), unions)
        if joined is None:
            c.fail(
                node,
                f"{what.title()} contained elements of different types: {kind.annotation} and "
                f"{part.type().annotation}. The elements of a {what} must all have the same type",
            )
        kind = joined
    return kind


def _dict(c: Compilation, node: ast.Dict, hint: Type | None) -> Value | Sugar:
    wanted = _inside(hint, "Dict")
    keys: list[Value] = []
    values: list[Value] = []
    for key, each in zip(node.keys, node.values, strict=True):
        if key is None:
            c.unsupported(node, "dict unpacking isn't supported")
        keys.append(value(c, key))
        values.append(value(c, each, wanted[1] if wanted else None))
    kinds = wanted or (
        (_common(c, node, keys, "dict"), _common(c, node, values, "dict", True))
        if keys
        else (T.STR, T.TENSOR)
    )
    for parts, kind in ((keys, kinds[0]), (values, kinds[1])):
        for at, part in enumerate(parts):
            converted = convert(c, part, kind, allow=False, at=node)
            if converted is None:
                c.fail(
                    node,
                    f"Expected type {kind.annotation} in a dict, found {part.type().annotation}",
                )
            parts[at] = converted
    inputs = [each for pair in zip(keys, values, strict=True) for each in pair]
    return c.emit("prim::DictConstruct", inputs, T.dict_of(*kinds), at=node, _open=True)


def _subscript(c: Compilation, node: ast.Subscript, hint: Type | None) -> Value | Sugar:
    of = expression(c, node.value)
    if isinstance(of, Special):
        c.fail(node, f"{of.name} cannot be subscripted")
    if not isinstance(of, Value):
        return _pick(c, node, of.members(c, node), node.slice)
    return subscript(c, node, of, node.slice)


def _pick(c: Compilation, node: ast.AST, parts: list[Any] | None, at: ast.expr) -> Value | Sugar:
    if parts is None:
        c.fail(node, "this cannot be subscripted")
    found = _part(c, at)
    if isinstance(found, ast.Slice | Bounds):
        return Many(parts[_static_slice(c, at, found)])
    index = _number(found if isinstance(found, Value) else value(c, at))
    if index is None or not -len(parts) <= index < len(parts):
        c.fail(node, "the index of what is no list has to be a constant within its range")
    return parts[index]


def _number(found: Value) -> int | None:
    """The number that a value is, if it is a constant."""
    number = found.toIValue()
    return number if isinstance(number, int) else None


def _part(c: Compilation, at: ast.expr) -> ast.Slice | ast.Constant | Bounds | Value:
    """A part of an index: as it is written where that says all, or what it is."""
    if isinstance(at, ast.Slice) or (isinstance(at, ast.Constant) and at.value in (None, ...)):
        return at
    found = expression(c, at)
    return found if isinstance(found, Bounds) else as_value(c, at, found)


def _static_slice(c: Compilation, node: ast.AST, at: ast.Slice | Bounds) -> slice:
    bounds: list[int | None] = []
    for each in _bounds(at):
        bounds.append(None if each is None else _number(_made(c, each)))
        if each is not None and bounds[-1] is None:
            c.fail(node, "tuple slice indices must be integer constants")
    return slice(*bounds)


def _bounds(at: ast.Slice | Bounds) -> tuple[ast.expr | Value | None, ...]:
    """The start, the end and the step of a slice; what is not given is None."""
    if isinstance(at, Bounds):
        return at.start, at.end, at.step
    return at.lower, at.upper, at.step


def _made(c: Compilation, each: ast.expr | Value) -> Value:
    return each if isinstance(each, Value) else value(c, each)


def subscript(c: Compilation, node: ast.AST, of: Value, at: ast.expr) -> Value | Sugar:
    """What ``of[at]`` means."""
    kind = of.type()
    if kind is T.TENSOR:
        return _index_tensor(c, node, of, at)
    if isinstance(kind, ClassType):
        module_members = compiler.module_values.module_members
        module_item = compiler.module_values.module_item

        if (found := module_item(c, node, of, at)) is not None:
            return found
        if kind.is_module and (parts := module_members(c, node, of)) is not None:
            return _pick(c, node, parts, at)
        return _magic(c, node, of, "__getitem__", [value(c, at)])
    part = at if isinstance(at, ast.Tuple) else _part(c, at)
    if kind.kind == "Tuple":
        if isinstance(part, ast.Slice | Bounds):
            parts = unpack(c, of)[_static_slice(c, at, part)]
            return c.emit(
                "prim::TupleConstruct", parts, T.tuple_of(*(p.type() for p in parts)), at=node
            )
        index = part if isinstance(part, Value) else value(c, at)
        number = index.toIValue()
        if not isinstance(number, int):
            if len(set(kind.args)) == 1 and index.type() is T.INT:
                return c.emit("prim::TupleIndex", [of, index], kind.args[0], at=node)
            c.fail(
                node,
                "tuple index must be a compile time constant, for the types of the members differ",
            )
        if not -len(kind.args) <= number < len(kind.args):
            c.fail(node, f"Tuple index out of range: {number} of {len(kind.args)}")
        return tuple_item(c, node, of, number % len(kind.args))
    if isinstance(part, ast.Slice | Bounds):
        return call_op(c, "aten::slice", [of, *_slice_bounds(c, node, part)], at=node)
    if isinstance(at, ast.Tuple):
        c.fail(at, f"cannot index {kind.annotation} with several indices")
    if kind.kind == "Optional":
        c.fail(node, f"'{kind.annotation}' object is not subscriptable")
    index = part if isinstance(part, Value) else value(c, at)
    return call_op(c, "aten::__getitem__", [of, index], at=node)


def _slice_bounds(c: Compilation, node: ast.AST, at: ast.Slice | Bounds) -> list[Value]:
    *ends, step = _bounds(at)
    none = [c.constant(None, T.NONE, node) for each in ends if each is None]
    return [
        *(none.pop(0) if each is None else _made(c, each) for each in ends),
        c.constant(1, T.INT, node) if step is None else _made(c, step),
    ]


def _index_tensor(c: Compilation, node: ast.AST, of: Value, at: ast.expr) -> Value:
    parts = list(at.elts) if isinstance(at, ast.Tuple) else [at]
    view, indices = index_view(c, node, of, parts)
    if not any(each is not None for each in indices):
        return view
    return c.emit("aten::index", [view, index_list(c, node, indices)], T.TENSOR, at=node)


def index_list(c: Compilation, node: ast.AST, indices: list[Value | None]) -> Value:
    """The tensors of an index, one for each dimension or None."""
    while indices and indices[-1] is None:
        indices = indices[:-1]
    parts = [c.constant(None, T.NONE, node) if each is None else each for each in indices]
    return c.emit("prim::ListConstruct", parts, T.list_of(T.optional(T.TENSOR)), at=node)


def index_view(
    c: Compilation, node: ast.AST, of: Value, parts: list[ast.expr]
) -> tuple[Value, list[Value | None]]:
    """The view that slices and numbers of an index give, and the tensors that are left of it."""
    known: list[tuple[ast.expr, Any]] = [(part, _part(c, part)) for part in parts]
    dim, tensors = 0, {}
    for at, (part, found) in enumerate(known):
        if isinstance(part, ast.Constant) and part.value is Ellipsis:
            taken = [each for _, each in known[at + 1 :] if not _is_new(each)]
            if any(_is_ellipsis(each) for _, each in known[at + 1 :]):
                c.fail(part, "An index can only have a single ellipsis ('...')")
            if not taken and at + 1 == len(known):
                break
            if known[at + 1 :] and not any(
                _drops(each) or _is_new(each) for _, each in known[at + 1 :]
            ):
                dim = -len(taken)
            else:
                return _from_the_end(c, node, of, dim, known[at + 1 :], tensors)
        elif isinstance(found, Value) and found.type() is T.INT:
            of = call_op(c, "aten::select", [of, c.constant(dim, T.INT, node), found], at=node)
        elif (isinstance(found, Value) and found.type() is T.NONE) or _is_new(found):
            of = call_op(c, "aten::unsqueeze", [of, c.constant(dim, T.INT, node)], at=node)
            dim += 1
        elif isinstance(found, Value):
            tensors[dim] = _index_value(c, part, found)
            dim += 1
        else:
            bounds = _slice_bounds(c, node, found)
            of = call_op(c, "aten::slice", [of, c.constant(dim, T.INT, node), *bounds], at=node)
            dim += 1
    if not tensors:
        return of, []
    if min(tensors) < 0:
        c.fail(node, "tensors after an ellipsis are not supported in an index")
    return of, [tensors.get(at) for at in range(max(tensors) + 1)]


def _from_the_end(
    c: Compilation,
    node: ast.AST,
    of: Value,
    before: int,
    rest: list[tuple[ast.expr, Any]],
    tensors: dict[int, Value],
) -> tuple[Value, list[Value | None]]:
    """The parts after an ellipsis, last first, so that dimensions count from the end."""
    dim = -1
    for part, found in reversed(rest):
        if isinstance(found, Value) and found.type() is T.INT:
            of = call_op(c, "aten::select", [of, c.constant(dim, T.INT, node), found], at=node)
        elif _is_new(found) or (isinstance(found, Value) and found.type() is T.NONE):
            of = call_op(c, "aten::unsqueeze", [of, c.constant(dim, T.INT, node)], at=node)
            dim -= 1
        elif isinstance(found, Value):
            c.fail(part, "tensors after an ellipsis are not supported in an index")
        else:
            bounds = _slice_bounds(c, node, found)
            of = call_op(c, "aten::slice", [of, c.constant(dim, T.INT, node), *bounds], at=node)
            dim -= 1
    if not tensors:
        return of, []
    return of, [tensors.get(at) for at in range(max(tensors) + 1)]


def _is_new(found: Value | Sugar) -> bool:
    return isinstance(found, ast.Constant) and found.value is None


def _is_ellipsis(found: Value | Sugar) -> bool:
    return isinstance(found, ast.Constant) and found.value is Ellipsis


def _drops(found: Value | Sugar) -> bool:
    return isinstance(found, Value) and found.type() is T.INT


def _index_value(c: Compilation, part: ast.expr, found: Value) -> Value:
    if found.type() is T.TENSOR or found.type().kind == "Optional":
        return found
    if found.type().kind == "List":
        return call_op(c, "aten::tensor", [found], at=part)
    c.fail(
        part,
        "Unsupported operation: indexing tensor with unsupported index type "
        f"'{found.type().annotation}'. Only ints, slices, lists and tensors are supported",
    )


def _list_comprehension(
    c: Compilation, node: ast.ListComp | ast.GeneratorExp, hint: Type | None
) -> Value | Sugar:
    comprehension = compiler.loops.comprehension

    wanted = _inside(hint, "List")
    return comprehension(c, node, [node.elt], T.list_of(wanted[0]) if wanted else None)


def _dict_comprehension(c: Compilation, node: ast.DictComp, hint: Type | None) -> Value | Sugar:
    comprehension = compiler.loops.comprehension

    wanted = _inside(hint, "Dict")
    return comprehension(c, node, [node.key, node.value], T.dict_of(*wanted) if wanted else None)


def _joined(c: Compilation, node: ast.JoinedStr, hint: Type | None) -> Value | Sugar:
    text, parts = "", []
    for each in node.values:
        if isinstance(each, ast.Constant):
            text += str(each.value)
        elif isinstance(each, ast.FormattedValue):
            if each.conversion != -1 or each.format_spec is not None:
                c.unsupported(node, "Don't know how to handle conversions or formats in f-strings")
            text += "{}"
            parts.append(value(c, each.value))
    made = c.constant(text, at=node)
    return c.emit("aten::format", [made, *parts], T.STR, at=node)


def _call(c: Compilation, node: ast.Call, hint: Type | None) -> Value | Sugar:
    call = compiler.calls.call

    return call(c, node, hint)


_FORMS: dict[type[ast.expr], Callable[..., Any]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _as_condition,
    ast.Compare: _as_condition,
    ast.IfExp: _if_expression,
    ast.Tuple: _tuple,
    ast.List: _list,
    ast.Dict: _dict,
    ast.Subscript: _subscript,
    ast.GeneratorExp: _list_comprehension,
    ast.ListComp: _list_comprehension,
    ast.DictComp: _dict_comprehension,
    ast.JoinedStr: _joined,
    ast.Call: _call,
}

__all__ = ["Truth", "compare", "expression", "merged", "value"]
