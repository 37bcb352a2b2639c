"""Loops and comprehensions, and what they go over."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flambeau.jit import _types as T
from flambeau.jit._frontend.conditions import condition
from flambeau.jit._frontend.expressions import LAST, expression, members, value
from flambeau.jit._frontend.match import call_op, convert
from flambeau.jit._frontend.state import DID_BREAK, DID_RETURN, RETURNED, Compilation, Frame
from flambeau.jit._frontend.values import Sugar, as_value
from flambeau.jit._graph import Value
from flambeau.jit._parts import compiler
from flambeau.jit._types import ClassType, Type

if TYPE_CHECKING:
    from flambeau.jit._frontend.values import Many


_SCOPES = (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.DictComp)
"""What has variables of its own."""


MOST_TURNS = 20_000
"""Of all loops over tuples and modules in a function."""


class Iteration(Sugar):
    """Something to go over: how often, and what is there at each step.

    Attributes:
        length: how often, or None where `parts` are known one by one.
        item: the thing at a step, given its number.
    """

    what = "iterator"

    def __init__(
        self,
        length: Value | None = None,
        item: Callable[[Value], Any] | None = None,
        parts: list[Any] | None = None,
    ) -> None:
        self.length, self._item, self.parts = length, item, parts

    def item(self, index: Value) -> Value | Sugar:
        """What is there at a step."""
        assert self._item is not None
        return self._item(index)

    def members(self, c: Compilation, node: ast.AST | None) -> list[Any] | None:
        return self.parts

    @classmethod
    def of_call(cls, c: Compilation, node: ast.Call, name: str) -> Iteration:
        """`range`, `enumerate` or `zip`."""
        if node.keywords and name != "enumerate":
            c.fail(node, f"{name} doesn't accept any keyword arguments")
        if name == "range":
            return _range(c, node)
        if name == "enumerate":
            return _enumerate(c, node)
        inner = [of_value(c, each, expression(c, each)) for each in node.args]
        return zipped(c, node, inner)


def _range(c: Compilation, node: ast.Call) -> Iteration:
    if not 1 <= len(node.args) <= 3:
        c.fail(node, f"range expected 1 to 3 arguments but found {len(node.args)}")
    given = []
    for each in node.args:
        found = value(c, each)
        made = convert(c, found, T.INT, allow=True, at=each)
        if made is None:
            c.fail(
                node,
                f"range expects integers, but an argument is of type {found.type().annotation}",
            )
        given.append(made)
    if len(given) == 1:
        return Iteration(given[0], lambda index: index)
    if len(given) == 2:
        given.append(c.constant(1, T.INT, node))
    start, _, step = given
    length = call_op(c, "aten::__range_length", given, at=node)
    return Iteration(
        length, lambda index: call_op(c, "aten::__derive_index", [index, start, step], at=node)
    )


def _enumerate(c: Compilation, node: ast.Call) -> Iteration:
    start = next((k.value for k in node.keywords if k.arg == "start"), None)
    if start is None and len(node.args) == 2:
        start = node.args[1]
    if not node.args or len(node.args) > 2:
        c.fail(node, "enumerate expected 1 or 2 arguments")
    inner = of_value(c, node.args[0], expression(c, node.args[0]))
    first = value(c, start) if start is not None else None
    if inner.parts is not None:
        begin = first.toIValue() if first is not None else 0
        parts: list[Any] = []
        for at, part in enumerate(inner.parts):
            number = c.constant(at + (begin or 0), T.INT, node)
            parts.append(_pair([number, part]))
        return Iteration(parts=parts)

    def item(index: Value) -> Value | Sugar:
        number = index if first is None else call_op(c, "aten::add", [index, first], at=node)
        return _pair([number, inner.item(index)])

    return Iteration(inner.length, item)


def _pair(parts: list[Any]) -> Value | Sugar:
    Many = compiler.values.Many

    return Many(parts)


def zipped(c: Compilation, node: ast.AST, inner: list[Iteration]) -> Iteration:
    """Several iterations side by side, as long as the shortest."""
    if not inner:
        c.fail(node, "zip needs something to go over")
    fixed = [each for each in inner if each.parts is not None]
    if fixed:
        count = min(len(each.parts or ()) for each in fixed)
        parts = []
        for at in range(count):
            row = []
            for each in inner:
                if each.parts is not None:
                    row.append(each.parts[at])
                else:
                    row.append(each.item(c.constant(at, T.INT, node)))
            parts.append(_pair(row))
        return Iteration(parts=parts)
    lengths = [each.length for each in inner if each.length is not None]
    length = lengths[0]
    if len(lengths) > 1:
        many = c.emit("prim::ListConstruct", lengths, T.list_of(T.INT), at=node)
        length = call_op(c, "prim::min", [many], at=node)
    return Iteration(length, lambda index: _pair([each.item(index) for each in inner]))


def of_value(c: Compilation, node: ast.AST, of: Value | Sugar) -> Iteration:
    """What there is to go over in something."""
    if isinstance(of, Iteration):
        return of
    if not isinstance(of, Value):
        found = of.members(c, node)
        if found is None:
            c.fail(node, f"'{of.what}' object is not iterable")
        return Iteration(parts=found)
    kind = of.type()
    if kind.kind == "Tuple":
        return Iteration(parts=members(c, node, of))
    if isinstance(kind, ClassType):
        module_members = compiler.module_values.module_members

        found = module_members(c, node, of)
        if found is not None:
            return Iteration(parts=found)
    if kind.kind == "Dict":
        of = call_op(c, "aten::keys", [of], at=node)
        kind = of.type()
    if kind.kind == "List" or kind is T.STR:
        length = call_op(c, "aten::len", [of], at=node)
        return Iteration(
            length, lambda index: call_op(c, "aten::__getitem__", [of, index], at=node)
        )
    if kind is T.TENSOR:
        length = call_op(c, "aten::len", [of], at=node)
        zero = c.constant(0, T.INT, node)
        return Iteration(length, lambda at: call_op(c, "aten::select", [of, zero, at], at=node))
    c.fail(node, f"'{kind.annotation}' object is not iterable")


def assigned(body: list[ast.stmt]) -> set[str]:
    """The names that statements bind or write to."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(
            node, (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.DictComp)
        ):
            return
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        for child in ast.iter_child_nodes(node):
            visit(child)

    for statement in body:
        visit(statement)
    return found


def has(body: list[ast.stmt], *kinds: type[ast.stmt]) -> bool:
    """Whether statements contain one that leaves: loops within have breaks of their own."""
    for statement in body:
        if isinstance(statement, kinds):
            return True
        if isinstance(statement, ast.FunctionDef):
            continue
        inner = kinds
        if isinstance(statement, (ast.For, ast.While)):
            inner = tuple(kind for kind in kinds if kind is ast.Return)
            if has(statement.orelse, *kinds):
                return True
        for part in ("body", "orelse"):
            nested = getattr(statement, part, [])
            if isinstance(nested, list) and inner and has(nested, *inner):
                return True
    return False


def compile_for(c: Compilation, node: ast.For) -> Value | str:
    """A loop over something; answers how it leaves."""
    if node.orelse:
        c.unsupported(node, "else branches of for loops aren't supported")
    if isinstance(node.iter, ast.Tuple) and not _bracketed(c, node.iter):
        c.fail(node, "List of iterables is not supported currently")
    over = of_value(c, node.iter, expression(c, node.iter))
    assign_to = compiler.statements.assign_to

    if over.parts is not None:
        return _unrolled(c, node, over.parts)
    assert over.length is not None
    always = c.constant(True, T.BOOL, node)

    def begin(index: Value) -> None:
        assign_to(c, node.target, over.item(index))

    names = assigned(node.body) | assigned([ast.Assign([node.target], ast.Constant(0))])
    return _loop(c, node, over.length, always, names, begin, None)


def _bracketed(c: Compilation, node: ast.Tuple) -> bool:
    lines = c.source.lines
    line = lines[node.lineno - 1] if node.lineno <= len(lines) else "("
    return line[node.col_offset : node.col_offset + 1] == "("


def compile_while(c: Compilation, node: ast.While) -> Value | Sugar:
    """A loop while something holds; answers how it leaves."""
    if node.orelse:
        c.unsupported(node, "else branches of while loops aren't supported")
    trips = c.constant(LAST, T.INT, node)
    start = condition(c, node.test).value(c, node.test)
    return _loop(c, node, trips, start, assigned(node.body), None, node.test)


def _unrolled(c: Compilation, node: ast.For, parts: list[Any]) -> Any:
    """Each part in turn, for their types may differ."""
    FALLS = compiler.statements.FALLS
    assign_to = compiler.statements.assign_to
    statements = compiler.statements.statements

    if has(node.body, ast.Break, ast.Continue):
        what = "break" if has(node.body, ast.Break) else "continue"
        c.fail(
            node,
            f"'{what}' statements inside of loops over tuples and modules, which are unrolled, "
            "are not supported",
        )
    _count(c, node, len(parts))
    bodies: list[ast.stmt] = []
    for part in parts:
        bodies.append(_Step(node, part))  # type: ignore[arg-type]
    if has(node.body, ast.Return):
        return statements(c, bodies)
    for part in parts:
        assign_to(c, node.target, part)
        statements(c, node.body)
    return FALLS


def _count(c: Compilation, node: ast.AST, turns: int) -> None:
    """Refuse loops within loops that would be unrolled without end."""
    c.turns += turns
    if c.turns > MOST_TURNS:
        c.fail(node, f"loops of a function are unrolled to at most {MOST_TURNS} turns")


class _Step(ast.stmt):
    """One turn of an unrolled loop."""

    def __init__(self, loop: ast.For, part: Many | Value) -> None:
        super().__init__()
        self.loop, self.part = loop, part
        self.body = loop.body
        ast.copy_location(self, loop)


def step(c: Compilation, node: Any) -> Value | Sugar:
    """Compile one turn of an unrolled loop."""
    assign_to = compiler.statements.assign_to
    statements = compiler.statements.statements

    assign_to(c, node.loop.target, node.part)
    return statements(c, node.loop.body)


STEP = _Step


def _loop(
    c: Compilation,
    node: ast.For | ast.While,
    trips: Value,
    start: Value,
    names: set[str],
    begin: Callable[[Value], None] | None,
    test: ast.expr | None,
) -> Any:
    EXITS = compiler.statements.EXITS
    FALLS = compiler.statements.FALLS
    statements = compiler.statements.statements

    returns, breaks = has(node.body, ast.Return), has(node.body, ast.Break)
    outer = c.frame
    if returns:
        if not outer.assigned(DID_RETURN):
            c.assign(node, DID_RETURN, c.constant(False, T.BOOL, node))
            c.assign(node, RETURNED, c.uninitialized(c.declared_return or T.UNKNOWN))
        names = names | {DID_RETURN, RETURNED}
    carried = sorted(n for n in names if isinstance(outer.find(n), Value) and outer.assigned(n))
    before = [_whole(c, outer, name) for name in carried]
    made = c.node("prim::Loop", [trips, start, *before], at=node)
    block = made.addBlock()
    index = block.add_input(T.INT)
    frame = Frame(outer)
    for name, first in zip(carried, before, strict=True):
        phi = block.add_input(first.type(), "" if name.startswith("$") else name)
        phi.inferred = first.inferred
        if first.type() is T.UNKNOWN:
            c.open_types.append(phi)
        frame.variables[name] = phi
    body = Frame(frame)
    with c.inside(block, body):
        if breaks:
            c.assign(node, DID_BREAK, c.constant(False, T.BOOL, node))
        if begin is not None:
            begin(index)
        c.loops += 1
        status = statements(c, node.body)
        c.loops -= 1
        again = _again(c, node, status, breaks, returns, test)
        block.add_output(again)
        for name, first in zip(carried, before, strict=True):
            last = body.find(name)
            converted = convert(c, last, first.type(), allow=False)
            if converted is None and (name == RETURNED):
                converted = last
            if converted is None:
                c.fail(
                    node,
                    f"Variable '{name}' previously had type {first.type().annotation} but is now "
                    f"being assigned to a value of type {last.type().annotation}",
                )
            block.add_output(converted)
    for name, first in zip(carried, before, strict=True):
        back = made.add_output(first.type())
        back.inferred = first.inferred
        if first.type() is T.UNKNOWN:
            c.open_types.append(back)
        outer.refined.pop(name, None)
        outer.variables[name] = back
        back.name = "" if name.startswith("$") else name
    for name in body.variables.keys() - set(carried):
        if not outer.assigned(name) and not name.startswith("$"):
            outer.complaints[name] = (
                f"{name} is not defined outside of the loop that it was assigned in"
            )
    assert EXITS
    return outer.variables[DID_RETURN] if returns else FALLS


def _whole(c: Compilation, frame: Frame, name: str) -> Value:
    """A variable as a loop carries it: of its declared type, where it has one."""
    found = frame.find(name)
    declared = frame.declaration(name)
    if declared is not None and found.type() is not declared:
        return c.emit("prim::unchecked_cast", [found], declared)
    whole = c._unrefined(name)
    if whole is not None and whole is not found.type() and T.is_subtype(found.type(), whole):
        return c.emit("prim::unchecked_cast", [found], whole)
    return found


def _again(
    c: Compilation,
    node: ast.AST | None,
    status: Value | str,
    breaks: bool,
    returns: bool,
    test: ast.expr | None,
) -> Value:
    """Whether the loop goes on."""
    FALLS = compiler.statements.FALLS

    stop: Value | None = None
    if status is not FALLS:
        for name, there in ((DID_BREAK, breaks), (DID_RETURN, returns)):
            if there:
                flag = c.frame.find(name)
                stop = flag if stop is None else call_op(c, "aten::__or__", [stop, flag], at=node)
    if stop is None:
        return condition(c, test).value(c, test) if test else c.constant(True, T.BOOL, node)
    if test is None:
        return call_op(c, "aten::__not__", [stop], at=node)
    made = c.node("prim::If", [stop], at=node)
    yes, no = made.addBlock(), made.addBlock()
    with c.inside(yes, Frame(c.frame)):
        yes.add_output(c.constant(False, T.BOOL, node))
    with c.inside(no, Frame(c.frame)):
        no.add_output(condition(c, test).value(c, test))
    return made.add_output(T.BOOL)


def comprehension(
    c: Compilation,
    node: ast.ListComp | ast.GeneratorExp | ast.DictComp,
    parts: list[ast.expr],
    wanted: Type | None,
) -> Value | Sugar:
    """``[element for x in it if test]``, and the same of dicts."""
    if len(node.generators) != 1:
        c.unsupported(node, "Only a single generator is currently supported")
    generator = node.generators[0]
    if generator.is_async:
        c.unsupported(node, "Asynchronous comprehensions aren't supported")
    over = of_value(c, generator.iter, expression(c, generator.iter))
    return _collect(c, node, over, generator.target, generator.ifs, parts, wanted)


def comprehension_over(c: Compilation, node: ast.AST, of: Value | Sugar) -> Value:
    """``list(it)``."""
    name = ast.copy_location(ast.Name("$each", ast.Load()), node)
    target = ast.copy_location(ast.Name("$each", ast.Store()), node)
    return _collect(c, node, of_value(c, node, of), target, [], [name], None)


def _collect(
    c: Compilation,
    node: ast.AST,
    over: Iteration,
    target: ast.expr,
    tests: list[ast.expr],
    parts: list[ast.expr],
    wanted: Type | None,
) -> Value:
    assign_to = compiler.statements.assign_to

    is_list = len(parts) == 1
    empty = T.list_of(T.UNKNOWN) if is_list else T.dict_of(T.UNKNOWN, T.UNKNOWN)
    kind = "prim::ListConstruct" if is_list else "prim::DictConstruct"
    if over.parts is not None and is_list and not tests:
        _count(c, node, len(over.parts))
        elements = []
        for part in over.parts:
            with c.inside(c.block, Frame(c.frame)):
                assign_to(c, target, part)
                elements.append(value(c, parts[0], wanted.args[0] if wanted else None))
        of = wanted.args[0] if wanted else elements[0].type() if elements else T.TENSOR
        for each in elements:
            joined = T.unify(of, each.type())
            if joined is None:
                c.fail(node, "the elements of a list must all have the same type")
            of = joined
        return c.emit(kind, elements, T.list_of(of), at=node)
    made = c.emit(kind, (), wanted or empty, at=node)

    def turn() -> None:
        with c.inside(c.block, Frame(c.frame)):
            found = [
                value(c, part, wanted.args[at] if wanted else None) for at, part in enumerate(parts)
            ]
            if wanted is None:
                types = [each.type() for each in found]
                made.setType(T.list_of(types[0]) if is_list else T.dict_of(*types))
            else:
                found = [
                    convert(c, each, wanted.args[at], allow=False, at=node) or each
                    for at, each in enumerate(found)
                ]
            call_op(c, "aten::append" if is_list else "aten::_set_item", [made, *found], at=node)

    def tested(left: list[ast.expr]) -> None:
        if not left:
            turn()
            return
        test = condition(c, left[0])
        choice = c.node("prim::If", [test.value(c, node)], at=node)
        yes = choice.addBlock()
        choice.addBlock()
        with c.inside(yes, Frame(c.frame)):
            test.refine(c, True)
            tested(left[1:])

    if over.parts is not None:
        for part in over.parts:
            with c.inside(c.block, Frame(c.frame)):
                assign_to(c, target, part)
                tested(tests)
        return made
    assert over.length is not None
    always = c.constant(True, T.BOOL, node)
    loop = c.node("prim::Loop", [over.length, always], at=node)
    block = loop.addBlock()
    index = block.add_input(T.INT)
    with c.inside(block, Frame(c.frame)):
        c.frame.variables.update(_free(target))
        assign_to(c, target, as_target(c, node, over.item(index)))
        tested(tests)
        block.add_output(c.constant(True, T.BOOL, node))
    return made


def _free(target: ast.expr) -> dict[str, Any]:
    return {}


def as_target(c: Compilation, node: ast.AST, of: Value | Sugar) -> Value | Sugar:
    """What a loop binds."""
    return as_value(c, node, of) if isinstance(of, Value) else of
