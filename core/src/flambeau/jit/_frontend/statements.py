"""Statements: what a function does, in order, and how it leaves."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from flambeau.jit import _types as T
from flambeau.jit._frontend import annotations as _annotations
from flambeau.jit._frontend import loops as _loops
from flambeau.jit._frontend.calls import annotation
from flambeau.jit._frontend.conditions import Truth, condition, refine
from flambeau.jit._frontend.expressions import (
    BINARY,
    binary,
    expression,
    index_list,
    index_view,
    subscript,
    value,
)
from flambeau.jit._frontend.match import call_op, convert
from flambeau.jit._frontend.state import DID_BREAK, DID_RETURN, RETURNED, Compilation, Frame
from flambeau.jit._frontend.values import (
    ExceptionMade,
    ExceptionRef,
    Sugar,
    as_value,
    raises,
    set_attribute,
    value_attribute,
)
from flambeau.jit._graph import Block, Value
from flambeau.jit._parts import compiler
from flambeau.jit._schemas import schemas
from flambeau.jit._types import ClassType

if TYPE_CHECKING:
    from flambeau.jit._types import Type

FALLS, EXITS, RAISES = "falls", "exits", "raises"
"""How a block ends; the fourth way is a value, the truth of having left."""

_UNSUPPORTED = {
    ast.Try: "try blocks aren't supported",
    ast.ClassDef: "class definitions aren't supported",
    ast.Global: "global variables aren't supported",
    ast.Nonlocal: "nonlocal variables aren't supported",
    ast.Import: "import statements aren't supported",
    ast.ImportFrom: "import statements aren't supported",
    ast.AsyncFunctionDef: "async functions aren't supported",
    ast.AsyncFor: "async loops aren't supported",
    ast.AsyncWith: "async with statements aren't supported",
}


def statements(c: Compilation, body: Sequence[ast.stmt]) -> Any:
    """Compile statements in order; answers how they end."""
    for at, statement in enumerate(body):
        rest = body[at + 1 :]
        if isinstance(statement, ast.If):
            done, status = _if(c, statement, rest)
            if done:
                return status
        else:
            status = _statement(c, statement)
        if status is FALLS:
            continue
        if status in (EXITS, RAISES):
            return status
        return _rest(c, statement, status, rest)
    return FALLS


def _statement(c: Compilation, node: ast.stmt) -> Any:
    form = _FORMS.get(type(node))
    if form is None:
        c.unsupported(node, _UNSUPPORTED.get(type(node), f"{type(node).__name__} isn't supported"))
    c.at = node
    return form(c, node) or FALLS


def _rest(c: Compilation, node: ast.AST, left: Value, rest: Sequence[ast.stmt]) -> Any:
    """What follows a statement that may have left: it is done where that has not."""
    if not rest:
        return left
    test = Truth(left)
    return _branches(c, node, test, lambda: EXITS, lambda: statements(c, rest))


def _if(c: Compilation, node: ast.If, rest: Sequence[ast.stmt]) -> tuple[bool, Any]:
    """Compile a branch; answers whether what follows was compiled as well, and how it ends."""
    test = condition(c, node.test)
    if test.static is not None:
        test.refine(c, test.static)
        status = statements(c, node.body if test.static else node.orelse)
        return False, status
    followed = False

    def arm(body: Sequence[ast.stmt], other: Sequence[ast.stmt]) -> Callable[[], Any]:
        def compile_arm() -> Value | str:
            nonlocal followed
            status = statements(c, body)
            if status is FALLS and rest and _leaves(other):
                followed = True
                return statements(c, rest)
            return status

        return compile_arm

    status = _branches(c, node, test, arm(node.body, node.orelse), arm(node.orelse, node.body))
    return followed, status


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether statements always leave the function or the turn of the loop."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, (ast.Return, ast.Break, ast.Continue)):
        return True
    if isinstance(last, ast.If):
        return _leaves(last.body) and _leaves(last.orelse)
    return isinstance(last, ast.With) and _leaves(last.body)


def _branches(
    c: Compilation,
    node: ast.AST,
    test: Truth,
    yes: Callable[[], Any],
    no: Callable[[], Any],
) -> Any:
    """Add an If, and join the variables of its two blocks."""
    made = c.node("prim::If", [test.value(c, node)], at=node)
    outer = c.frame
    arms: list[tuple[Block, Frame, Any]] = []
    for holds, compile_arm in ((True, yes), (False, no)):
        block, frame = made.addBlock(), Frame(outer)
        with c.inside(block, frame):
            test.refine(c, holds)
            status = compile_arm()
        arms.append((block, frame, status))
    statuses = [status for _, _, status in arms]
    for (_, frame, status), (_, other, _) in ((arms[0], arms[1]), (arms[1], arms[0])):
        del frame
        if status is RAISES:
            _keep(c, outer, other)
    changed = sorted(set(arms[0][1].variables) | set(arms[1][1].variables))
    for name in changed:
        _join(c, node, made, arms, outer, name)
    if all(status is FALLS or status is RAISES for status in statuses):
        return RAISES if all(status is RAISES for status in statuses) else FALLS
    if all(status in (EXITS, RAISES) for status in statuses):
        return EXITS
    for block, frame, status in arms:
        with c.inside(block, frame):
            if isinstance(status, Value):
                block.add_output(status)
            else:
                block.add_output(c.constant(status is EXITS, T.BOOL, node))
    return made.add_output(T.BOOL)


def _keep(c: Compilation, outer: Frame, frame: Frame) -> None:
    """After a branch that raises, what is known in the other is known."""
    for name, cast in frame.refined.items():
        if name not in frame.variables:
            refine(c, name, cast.type())
    del outer


def _join(
    c: Compilation,
    node: ast.AST | None,
    made: Any,
    arms: list[tuple[Block, Frame, Any]],
    outer: Frame,
    name: str,
) -> None:
    found = [frame.find(name) for _, frame, _ in arms]
    # What a turn of a loop that ends early has assigned is there in the next one.
    left_function = (RAISES,) if c.loops else (EXITS, RAISES)
    gone = [status in left_function for _, _, status in arms]
    ends = [status in (EXITS, RAISES) for _, _, status in arms]
    own = [name in frame.variables for _, frame, _ in arms]
    hidden = name.startswith("$")
    for at in (0, 1):
        missing = found[at] is None or (gone[at] and not own[at] and not hidden)
        if missing and not ends[at] and not hidden and not isinstance(arms[at][2], Value):
            branch = "true" if at == 0 else "false"
            if outer.find(name) is None:
                outer.complaints[name] = f"{name} is not defined in the {branch} branch"
            return
    if hidden and name == DID_BREAK and outer.find(name) is None:
        return
    known = [
        each
        for each, left, mine in zip(found, gone, own, strict=True)
        if each is not None and (not left or mine or hidden)
    ]
    live = [each for each, left in zip(found, gone, strict=True) if each is not None and not left]
    if hidden:
        live = known
    if not live:
        return
    if not all(isinstance(each, Value) for each in live):
        if len(live) == 1 or live[0] is live[1]:
            outer.variables[name] = live[0]
        return
    kind = live[0].type()
    for each in live[1:]:
        declared = outer.declaration(name) or _declared(arms, name)
        if name == RETURNED and declared is None:
            declared = c.declared_return
        joined = T.unify(kind, each.type())
        if name == RETURNED and declared is None and T.UNKNOWN in (kind, each.type()):
            joined = c.returned  # what a loop is left with is known only now
        if declared is not None and all(T.is_subtype(k.type(), declared) for k in live):
            joined = declared
        if joined is None and name == RETURNED:
            c.fail(
                node,
                f"Previous return statement returned a value of type {kind.annotation} but this "
                f"return statement returns a value of type {each.type().annotation}",
            )
        if joined is None:
            if outer.find(name) is not None:
                c.fail(
                    node,
                    f"Type mismatch: {name} is set to type {kind.annotation} in the true branch "
                    f"and type {each.type().annotation} in the false branch",
                )
            outer.complaints[name] = (
                f"Type mismatch: {name} is set to type {kind.annotation} in the true branch and "
                f"type {each.type().annotation} in the false branch"
            )
            return
        kind = joined
    for (block, frame, _), each, left in zip(arms, found, gone, strict=True):
        with c.inside(block, frame):
            usable = each is not None and (hidden or not left) and isinstance(each, Value)
            part = convert(c, each, kind, allow=False) if usable and each is not None else None
            block.add_output(part if part is not None else c.uninitialized(kind))
    back = made.add_output(kind)
    back.inferred = all(each.inferred for each in live)
    if kind is T.UNKNOWN:
        c.open_types.append(back)
    outer.refined.pop(name, None)
    outer.variables[name] = back
    if not hidden:
        back.name = name
    for _, frame, _ in arms:
        if name in frame.declared and name not in outer.declared and outer.parent is not None:
            outer.declared[name] = frame.declared[name]


def _declared(arms: list[tuple[Block, Frame, Any]], name: str) -> Type | None:
    return next((f.declared[name] for _, f, _ in arms if name in f.declared), None)


def _member_by_member(c: Compilation, node: ast.AST, made: Value, wanted: Type) -> Value | None:
    """A tuple that was just made, with its members converted to those of another type."""
    if made.node is None or made.node.kind != "prim::TupleConstruct" or wanted.kind != "Tuple":
        return None
    members = list(made.node.inputs())
    if len(members) != len(wanted.args):
        return None
    found = [
        convert(c, member, kind, allow=True, at=node)
        for member, kind in zip(members, wanted.args, strict=True)
    ]
    known = [each for each in found if each is not None]
    if len(known) != len(found):
        return None
    return c.emit("prim::TupleConstruct", known, wanted, at=node)


def _return(c: Compilation, node: ast.Return) -> str:
    wanted = c.declared_return
    if node.value is None:
        made = c.constant(None, T.NONE, node)
    else:
        made = value(c, node.value, wanted)
    if (wanted is not None and wanted is not T.NONE) or (wanted is T.NONE and node.value):
        assert wanted is not None
        converted = convert(c, made, wanted, allow=True, at=node)
        if converted is None:
            converted = _member_by_member(c, node, made, wanted)
        if converted is None:
            c.fail(
                node,
                f"Return value was annotated as having type {wanted.annotation} but is actually "
                f"of type {made.type().annotation}",
            )
        made = converted
        if made.type() is not wanted and wanted.kind in ("Optional", "Union", "Any"):
            pass
    else:
        joined = T.unify(c.returned, made.type())
        if joined is None:
            c.fail(
                node,
                f"Previous return statement returned a value of type {c.returned.annotation} but "
                f"this return statement returns a value of type {made.type().annotation}",
            )
        c.returned = joined
    c.frame.variables[RETURNED] = made
    if c.loops:
        c.frame.variables[DID_RETURN] = c.constant(True, T.BOOL, node)
    return EXITS


def _break(c: Compilation, node: ast.stmt) -> str:
    if not c.loops:
        c.fail(node, "'break' outside of a loop")
    c.frame.variables[DID_BREAK] = c.constant(True, T.BOOL, node)
    return EXITS


def _continue(c: Compilation, node: ast.stmt) -> str:
    if not c.loops:
        c.fail(node, "'continue' outside of a loop")
    return EXITS


def _pass(c: Compilation, node: ast.stmt) -> None:
    return None


def _expression(c: Compilation, node: ast.Expr) -> None:
    if not isinstance(node.value, ast.Constant):
        expression(c, node.value)


def _assert(c: Compilation, node: ast.Assert) -> None:
    test = condition(c, node.test)
    if test.static is True:
        return

    def fails() -> str:
        text: Value = c.constant("AssertionError: ", T.STR, node)
        if node.msg is not None:
            said = value(c, node.msg)
            if said.type() is not T.STR:
                said = c.emit("aten::str", [said], T.STR, at=node)
            if isinstance(said.toIValue(), str):
                text = c.constant("AssertionError: " + said.toIValue(), T.STR, node)
            else:
                text = call_op(c, "aten::add", [text, said], at=node)
        c.node("prim::RaiseException", [text, c.constant(None, T.NONE, node)], at=node)
        return RAISES

    _branches(c, node, test, lambda: FALLS, fails)


def _raise(c: Compilation, node: ast.Raise) -> str:
    if node.exc is None:
        c.fail(node, "raise needs an exception")
    found = expression(c, node.exc)
    if isinstance(found, ExceptionRef):
        raises(c, node, "", _exception_name(found.cls))
        return RAISES
    if not isinstance(found, ExceptionMade):
        c.fail(node, "exceptions must derive from BaseException")
    parts = found.args
    if len(parts) > 1:
        parts = [c.emit("prim::TupleConstruct", parts, T.tuple_of(*(p.type() for p in parts)))]
    text = parts[0] if parts else c.constant("", T.STR, node)
    if text.type() is not T.STR:
        text = c.emit("aten::str", [text], T.STR, at=node)
    cls = c.constant(_exception_name(found.cls), T.STR, node)
    c.node("prim::RaiseException", [text, cls], at=node)
    return RAISES


def _exception_name(cls: type[BaseException]) -> str:
    return f"{cls.__module__}.{cls.__qualname__}".replace(".<locals>", "")


def _function(c: Compilation, node: ast.FunctionDef) -> None:
    inner_function = compiler.function.inner_function

    made = inner_function(c, node)
    c.functions[node.name] = made


def _delete(c: Compilation, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            if c.frame.find(target.id) is None:
                c.fail(target, f"undefined value {target.id}")
            c.frame.variables.pop(target.id, None)
            c.frame.refined.pop(target.id, None)
        elif isinstance(target, ast.Subscript):
            of, at = value(c, target.value), value(c, target.slice)  # type: ignore[arg-type]
            if isinstance(of.type(), ClassType):
                value_attribute(c, node, of, "__delitem__").call(c, node, [at], {})
            else:
                call_op(c, "aten::Delete", [of, at], at=node)
        else:
            c.fail(target, "del of an attribute isn't supported")


def _assign(c: Compilation, node: ast.Assign) -> None:
    hint = None
    noted = getattr(node, "type_comment", None)
    target = node.targets[0]
    if noted:
        try:
            hint = annotation(c, _annotations.parsed(noted))
        except _annotations.AnnotationError as error:
            c.fail(node, str(error))
        if isinstance(target, ast.Name):
            c.frame.declared[target.id] = hint
    elif isinstance(target, ast.Name):
        hint = c.frame.declaration(target.id)
    elif isinstance(target, ast.Attribute):
        of = expression(c, target.value)
        if isinstance(of, Value) and isinstance(kind := of.type(), ClassType):
            hint = kind.attributes.get(target.attr)
    made = expression(c, node.value, hint)
    for each in node.targets:
        assign_to(c, each, made)


def _annotated(c: Compilation, node: ast.AnnAssign) -> None:
    kind = annotation(c, node.annotation)
    if isinstance(node.target, ast.Attribute):
        if node.value is None:
            return
        of = expression(c, node.target.value)
        made = value(c, node.value, kind)
        converted = convert(c, made, kind, allow=False, at=node)
        if converted is None:
            _mistyped(c, node, ast.unparse(node.target), kind, made)
        owner = of.type() if isinstance(of, Value) else None
        if isinstance(owner, ClassType) and not owner.is_module and c.name == "__init__":
            owner.attributes.setdefault(node.target.attr, kind)
        set_attribute(c, node, of, node.target.attr, converted)
        return
    if not isinstance(node.target, ast.Name):
        c.fail(node, "only names and attributes can be annotated")
    name = node.target.id
    known = c.frame.declaration(name) if name in c.frame.declared else None
    if known is not None and known is not kind:
        c.fail(
            node,
            f"Variable '{name}' is already annotated with type {known.annotation} and cannot be "
            f"annotated with {kind.annotation}",
        )
    if node.value is None:
        c.frame.declared[name] = kind
        return
    made = value(c, node.value, kind)
    converted = convert(c, made, kind, allow=False, at=node)
    if converted is None:
        _mistyped(c, node, name, kind, made)
    c.frame.declared[name] = kind
    assign_to(c, node.target, converted)


def _mistyped(c: Compilation, node: ast.AST, name: str, kind: T.Type, made: Value) -> NoReturn:
    c.fail(
        node,
        f"Variable '{name}' is annotated with type {kind.annotation} but is being assigned to a "
        f"value of type {made.type().annotation}",
    )


def assign_to(c: Compilation, target: ast.expr, made: Value | Sugar) -> None:
    """Bind a target: a name, several, an item or an attribute."""
    if isinstance(target, ast.Name):
        if isinstance(made, Sugar):
            many = made.members(c, target)
            if many is not None and all(isinstance(each, Value) for each in many):
                made = made.value(c, target)
        c.assign(target, target.id, made)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(c, target, target.elts, made)
    elif isinstance(target, ast.Subscript):
        _set_item(c, target, as_value(c, target, made))
    elif isinstance(target, ast.Attribute):
        set_attribute(
            c, target, expression(c, target.value), target.attr, as_value(c, target, made)
        )
    elif isinstance(target, ast.Starred):
        c.fail(target, "starred assignment target must be in a tuple")
    else:
        c.fail(target, "this cannot be assigned to")


def _unpack(
    c: Compilation, node: ast.AST, targets: Sequence[ast.expr], made: Value | Sugar
) -> None:
    stars = [at for at, each in enumerate(targets) if isinstance(each, ast.Starred)]
    if len(stars) > 1:
        c.fail(node, "Only one starred expression is allowed on the lhs")
    if stars and len(targets) == 1:
        c.fail(
            node,
            "A Starred expression may only appear on the lhs within the presence of "
            "another non-starred expression",
        )
    parts: list[Any]
    if isinstance(made, Value) and made.type().kind == "List":
        if stars:
            c.fail(node, "a list cannot be unpacked with a starred name: its length is unknown")
        kind = made.type().args[0]
        parts = c.node("prim::ListUnpack", [made], [kind] * len(targets), at=node).outputs_
    else:
        members = compiler.expressions.members

        if (
            isinstance(made, Value)
            and made.type().kind != "Tuple"
            and not isinstance(made.type(), ClassType)
        ):
            c.fail(node, f"{made.type().annotation} cannot be used as a tuple")
        parts = members(c, node, made)
        if stars:
            at, extra = stars[0], len(parts) - len(targets) + 1
            if extra < 0:
                c.fail(node, f"need {len(targets) - 1} values to unpack, got {len(parts)}")
            middle = [as_value(c, node, each) for each in parts[at : at + extra]]
            kind = T.tuple_of(*(each.type() for each in middle))
            packed = c.emit("prim::TupleConstruct", middle, kind, at=node)
            parts = [*parts[:at], packed, *parts[at + extra :]]
    if len(parts) < len(targets):
        c.fail(node, f"need {len(targets)} values to unpack but found only {len(parts)}")
    if len(parts) > len(targets):
        c.fail(node, f"too many values to unpack: need {len(targets)} but found {len(parts)}")
    for target, part in zip(targets, parts, strict=True):
        assign_to(c, target.value if isinstance(target, ast.Starred) else target, part)


def _set_item(c: Compilation, target: ast.Subscript, made: Value) -> None:
    of = value(c, target.value)
    kind = of.type()
    if kind is T.TENSOR:
        parts = list(target.slice.elts) if isinstance(target.slice, ast.Tuple) else [target.slice]
        view, indices = index_view(c, target, of, parts)
        if made.type() is not T.TENSOR:
            if made.type() not in (T.INT, T.FLOAT, T.BOOL, T.COMPLEX, T.NUMBER):
                c.fail(target, f"a {made.type().annotation} cannot be written into a tensor")
            if not any(each is not None for each in indices):
                call_op(c, "aten::fill_", [view, made], at=target)
                return
            like = call_op(c, "prim::dtype", [of], at=target)
            place = call_op(c, "prim::device", [of], at=target)
            given = {"dtype": like, "device": place}
            made = call_op(c, "aten::tensor", [made], given, at=target)
        if any(each is not None for each in indices):
            where = index_list(c, target, indices)
            call_op(c, "aten::index_put_", [view, where, made], at=target)
        else:
            call_op(c, "aten::copy_", [view, made], at=target)
        return
    if isinstance(kind, ClassType):
        at = value(c, target.slice)
        value_attribute(c, target, of, "__setitem__").call(c, target, [at, made], {})
        return
    if kind.kind == "Tuple":
        c.fail(target, "Tuple does not support item assignment")
    if isinstance(target.slice, ast.Slice):
        c.fail(target, "Sliced assignment to a list is not supported")
    if kind.args:
        converted = convert(c, made, kind.args[-1], allow=False, at=target)
        made = converted if converted is not None else made
    call_op(c, "aten::_set_item", [of, value(c, target.slice), made], at=target)


def _augmented(c: Compilation, node: ast.AugAssign) -> None:
    name = BINARY.get(type(node.op))
    if name is None:
        c.unsupported(node, f"unsupported augmented assignment {type(node.op).__name__}")
    target = node.target
    if isinstance(target, ast.Subscript):
        _augmented_item(c, node, target)
        return
    left = value(c, target)
    right = value(c, node.value, left.type() if left.type().kind == "List" else None)
    made = _augment(c, node, left, right)
    assign_to(c, target, made)


def _augment(c: Compilation, node: ast.AugAssign, left: Value, right: Value) -> Value:
    name, magic = BINARY[type(node.op)]
    kind = left.type()
    if isinstance(kind, ClassType):
        inplace = "__i" + magic[2:]
        if kind.method(inplace) is not None:
            return value_attribute(c, node, left, inplace).call(c, node, [right], {})
    if kind is T.TENSOR:
        inplace = {"floordiv": "floor_divide_"}.get(name)
        inplace = inplace or (f"__i{name[2:]}" if name.startswith("__") else f"{name}_")
        if schemas(f"aten::{inplace}"):
            return call_op(c, f"aten::{inplace}", [left, right], at=node)
    if kind.kind == "List" and name in ("add", "mul"):
        return call_op(c, f"aten::{name}_", [left, right], at=node)
    return as_value(c, node, binary(c, node, node.op, left, right))


def _augmented_item(c: Compilation, node: ast.AugAssign, target: ast.Subscript) -> None:
    of = value(c, target.value)
    if of.type() is T.TENSOR:
        parts = list(target.slice.elts) if isinstance(target.slice, ast.Tuple) else [target.slice]
        view, indices = index_view(c, target, of, parts)
        right = value(c, node.value)
        if any(each is not None for each in indices):
            where = index_list(c, target, indices)
            old = c.emit("aten::index", [view, where], T.TENSOR, at=node)
            made = _augment(c, node, old, right)
            call_op(c, "aten::index_put_", [view, where, made], at=node)
        else:
            _augment(c, node, view, right)
        return
    old = as_value(c, target, subscript(c, target, of, target.slice))
    made = _augment(c, node, old, value(c, node.value))
    _set_item(c, target, made)


def _with(c: Compilation, node: ast.With) -> Any:
    entered = compiler.contexts.entered

    exits = []
    for item in node.items:
        context, bound = entered(c, item.context_expr)
        if item.optional_vars is not None:
            assign_to(c, item.optional_vars, bound)
        exits.append(context)
    status = statements(c, node.body)
    for context in reversed(exits):
        c.node("prim::Exit", [context], [T.TENSOR], at=node)
    return status


_FORMS: dict[type, Callable[..., Any]] = {
    ast.Return: _return,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Pass: _pass,
    ast.Expr: _expression,
    ast.Assert: _assert,
    ast.Raise: _raise,
    ast.FunctionDef: _function,
    ast.Delete: _delete,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.For: _loops.compile_for,
    ast.While: _loops.compile_while,
    ast.With: _with,
    _loops.STEP: _loops.step,
}
