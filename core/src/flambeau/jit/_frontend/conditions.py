"""Conditions: truth, and what a variable is known to be where one holds or does not."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flambeau.jit import _types as T
from flambeau.jit._frontend.match import call_op
from flambeau.jit._frontend.state import Compilation, Frame
from flambeau.jit._frontend.values import Special, as_value
from flambeau.jit._graph import Value
from flambeau.jit._parts import compiler

if TYPE_CHECKING:
    from flambeau.jit._frontend.values import Sugar
    from flambeau.jit._types import Type


class Truth:
    """A test.

    Attributes:
        static: its truth, if that is known from types.
        when: the types of variables where it holds (True) and where it does not (False).
    """

    def __init__(
        self,
        made: Value | None = None,
        static: bool | None = None,
        true: dict[str, Type] | None = None,
        false: dict[str, Type] | None = None,
    ) -> None:
        self.made, self.static = made, static
        self.when = {True: true or {}, False: false or {}}

    def value(self, c: Compilation, node: ast.AST) -> Value:
        """The truth as a value."""
        if self.made is None:
            self.made = c.constant(bool(self.static), T.BOOL, node)
        return self.made

    def refine(self, c: Compilation, holds: bool) -> None:
        """Let the variables of the block be of the types that they are known to have in it."""
        for name, kind in self.when[holds].items():
            refine(c, name, kind)


def refine(c: Compilation, name: str, kind: Type) -> None:
    """Let a variable be of a narrower type in this block."""
    found = c.frame.find(name)
    if isinstance(found, Value) and found.type() is not kind and kind is not T.UNKNOWN:
        made = c.emit("prim::unchecked_cast", [found], kind)
        made.name = found.name or name
        c.frame.refined[name] = made


def condition(c: Compilation, node: ast.expr) -> Truth:
    """Compile a test."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return Truth(None, node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = condition(c, node.operand)
        if inner.static is not None:
            return Truth(None, not inner.static, inner.when[False], inner.when[True])
        made = call_op(c, "aten::__not__", [inner.value(c, node)], at=node)
        return Truth(made, None, inner.when[False], inner.when[True])
    if isinstance(node, ast.BoolOp):
        return _chain(c, node, node.values, isinstance(node.op, ast.And))
    if isinstance(node, ast.Compare):
        return _comparison(c, node)
    if isinstance(node, ast.Call):
        return _call(c, node)
    expression = compiler.expressions.expression

    return truth(c, node, expression(c, node))


def truth(c: Compilation, node: ast.AST, of: Value | Sugar) -> Truth:
    """Whether something is true."""
    if isinstance(of, Truth):
        return of
    made = as_value(c, node, of)
    kind = made.type()
    if kind is T.BOOL:
        return Truth(made)
    if kind in (T.INT, T.FLOAT, T.TENSOR, T.NUMBER):
        return Truth(call_op(c, "aten::Bool", [made], at=node))
    if kind is T.NONE:
        c.fail(node, "Could not cast value of type NoneType to bool")
    if isinstance(kind, T.ClassType) and kind.method("__bool__") is not None:
        value_attribute = compiler.values.value_attribute

        return Truth(value_attribute(c, node, made, "__bool__").call(c, node, [], {}))
    c.fail(node, f"Could not cast value of type {kind.annotation} to bool")


def _chain(c: Compilation, node: ast.expr, parts: list[ast.expr], both: bool) -> Truth:
    first = condition(c, parts[0])
    if len(parts) == 1:
        return first
    if first.static is not None and first.static != both:
        return first
    if first.static is not None:
        frame = Frame(c.frame)
        with c.inside(c.block, frame):
            first.refine(c, both)
            rest = _chain(c, node, parts[1:], both)
        return _joined(first, rest, rest.made, rest.static, both)
    made = c.node("prim::If", [first.value(c, node)], at=node)
    blocks = made.addBlock(), made.addBlock()
    second = Truth(None, both)
    for block, holds in zip(blocks, (True, False), strict=True):
        with c.inside(block, Frame(c.frame)):
            if holds == both:
                first.refine(c, holds)
                second = _chain(c, node, parts[1:], both)
                block.add_output(second.value(c, node))
            else:
                block.add_output(c.constant(not both, T.BOOL, node))
    return _joined(first, second, made.add_output(T.BOOL), None, both)


def _joined(
    first: Truth, second: Truth, made: Value | None, static: bool | None, both: bool
) -> Truth:
    """Of `and` both parts hold, or one does not; of `or` the other way round."""
    all_of = {**first.when[both], **second.when[both]}
    a, b = first.when[not both], second.when[not both]
    some = merged(a, b)
    return Truth(made, static, *((all_of, some) if both else (some, all_of)))


def merged(a: dict[str, Type], b: dict[str, Type]) -> dict[str, Type]:
    """What is known of variables where one of two things is."""
    return {
        name: joined
        for name in a.keys() & b.keys()
        if (joined := T.unify(a[name], b[name])) is not None
    }


def _comparison(c: Compilation, node: ast.Compare) -> Truth:
    if len(node.ops) > 1:
        parts: list[ast.expr] = []
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            part = ast.Compare(left, [op], [right])
            parts.append(ast.copy_location(part, node))
            left = right
        return _chain(c, node, parts, True)
    compare = compiler.expressions.compare
    value = compiler.expressions.value

    op, right_node = node.ops[0], node.comparators[0]
    if isinstance(op, (ast.Is, ast.IsNot)) or _none_of_optional(c, node):
        positive = isinstance(op, (ast.Is, ast.Eq))
        left, right = value(c, node.left), value(c, right_node)
        if right.type() is T.NONE or left.type() is T.NONE:
            of, tested = (left, node.left) if right.type() is T.NONE else (right, right_node)
            return _is_none(c, node, of, tested, positive, left, right)
        if isinstance(op, (ast.Is, ast.IsNot)):
            return Truth(compare(c, node, op, left, right))
        return Truth(compare(c, node, op, left, right))
    return truth(c, node, compare_nodes(c, node, op, node.left, right_node))


def _none_of_optional(c: Compilation, node: ast.Compare) -> bool:
    return isinstance(node.ops[0], (ast.Eq, ast.NotEq)) and any(
        isinstance(each, ast.Constant) and each.value is None
        for each in (node.left, *node.comparators)
    )


def compare_nodes(
    c: Compilation, node: ast.AST, op: ast.cmpop, left: ast.expr, right: ast.expr
) -> Value:
    """Two expressions compared; the value may be a tensor."""
    compare = compiler.expressions.compare
    expression = compiler.expressions.expression

    a, b = expression(c, left), expression(c, right)
    if not isinstance(b, Value) and isinstance(op, (ast.In, ast.NotIn)):
        contains = compiler.module_values.contains

        if (found := contains(c, node, b, a)) is not None:
            return c.constant(found != isinstance(op, ast.NotIn), T.BOOL, node)
    return compare(c, node, op, as_value(c, left, a), as_value(c, right, b))


def _is_none(
    c: Compilation,
    node: ast.AST,
    of: Value,
    tested: ast.expr,
    positive: bool,
    left: Value,
    right: Value,
) -> Truth:
    kind = of.type()
    if kind is T.NONE:
        return Truth(None, positive)
    if not kind.is_optional() and kind is not T.ANY and kind is not T.UNKNOWN:
        return Truth(None, not positive)
    made = c.emit("aten::__is__" if positive else "aten::__isnot__", [left, right], T.BOOL, at=node)
    if not isinstance(tested, ast.Name) or kind is T.ANY:
        return Truth(made)
    rest = [each for each in kind.args if each is not T.NONE]
    inner = T.union(*rest) if kind.kind == "Union" else rest[0]
    there, gone = {tested.id: inner}, {tested.id: T.NONE}
    return Truth(made, None, *((gone, there) if positive else (there, gone)))


def _call(c: Compilation, node: ast.Call) -> Truth:
    _calls = compiler.calls
    expression = compiler.expressions.expression

    last = ast.unparse(node.func).rpartition(".")[2].lstrip("_")
    called = expression(c, node.func) if last in _calls.SAID else None
    if isinstance(called, Special) and called.name in _calls.STATIC:
        return _calls.static_call(c, node, called.name)
    return truth(c, node, expression(c, node))
