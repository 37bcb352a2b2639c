"""Runs graphs with the values of a trace: what they do is noted, which way they went is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau.jit import _types as T
from flambeau.jit._frontend.match import call_op
from flambeau.jit._graph import Block, Graph, Node, Value, copy_node
from flambeau.jit._parts import compiler
from flambeau.jit._tracing.numbers import plain, traced
from flambeau.jit._types import ClassType, NamedTupleType, Type
from flambeau.jit.passes._inline import called

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flambeau._tensor.tensor import Tensor
    from flambeau.jit._frontend.function import ScriptFunction
    from flambeau.jit._tracing.recorder import Recorder

_KNOWN = frozenset(
    """aten::dim prim::dtype prim::layout prim::device aten::is_floating_point aten::is_complex
    aten::len prim::requires_grad aten::is_leaf aten::format aten::str""".split()
)
"""Ops whose results are part of what a trace holds for all runs."""
_SAME = frozenset({"prim::unchecked_cast", "prim::unchecked_unwrap_optional"})
_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "aten::IntImplicit": int,
    "aten::FloatImplicit": float,
    "aten::ScalarImplicit": plain,
}
"""What makes the number of a tensor that is given where a function takes one."""


class _Both:
    """A value as a graph has it, and as it is in this run.

    Attributes:
        noted: the value in the graph of the trace; None for what is the same in each run.
        real: the value of Python.
    """

    __slots__ = ("noted", "real")

    def __init__(self, noted: Value | None, real: Any) -> None:
        self.noted, self.real = noted, real


class _Many(_Both):
    """A list or tuple whose members are known one by one.

    Attributes:
        parts: the members; those of a list may change.
        made: what makes a list or tuple of their real values.
    """

    __slots__ = ("made", "parts")

    def __init__(self, parts: list[_Both], made: Callable[[Any], Any] = list) -> None:
        self.parts, self.made = parts, made
        self.noted = None

    @property
    def real(self) -> Any:  # type: ignore[override]
        """The list or tuple as it is now."""
        return self.made([each.real for each in self.parts])

    @property
    def fixed(self) -> bool:
        """Whether nothing in it depends on the inputs."""
        return all(_fixed(each) for each in self.parts)


def _fixed(both: _Both) -> bool:
    return both.fixed if isinstance(both, _Many) else both.noted is None


def run(c: Recorder, function: ScriptFunction, inputs: Sequence[Value]) -> Any:
    """Run a function with values of a trace."""
    return _out(c, _Run(c).function(function, [_given(c, value) for value in inputs]))


def _given(c: Recorder, value: Value) -> _Both:
    """An argument: constants, and containers of them, are the same in each run."""
    node = value.node
    if value.is_constant() and node is not None:
        real = node.attributes.get("value")
        if isinstance(real, fb.Tensor):  # the node has a copy
            return _Both(value, c.reals.get(value, real))
        return _Both(None, real)
    if node is not None and node.kind == "prim::ListConstruct":
        return _Many([_given(c, each) for each in node.inputs_])
    if node is not None and node.kind == "prim::TupleConstruct":
        return _Many([_given(c, each) for each in node.inputs_], tuple)
    if node is not None and node.kind in _NUMBERS:  # a tensor where the function takes a number
        return _Both(value, _NUMBERS[node.kind](c.real(node.inputs_[0]).item()))
    return _Both(value, c.real(value))


def _out(c: Recorder, both: _Both) -> Any:
    """What a run returned, as the program gets it."""
    if isinstance(both, _Many):
        return both.made([_out(c, each) for each in both.parts])
    if both.noted is not None and type(both.real) in (int, float):
        return traced(c, both.real, both.noted)
    return both.real


class _Run:
    """One run of a function and those that it calls."""

    def __init__(self, c: Recorder) -> None:
        self.c = c

    def function(self, function: ScriptFunction, given: Sequence[_Both]) -> _Both:
        function.compile()
        graph = function.graph
        env = dict(zip(graph.block.inputs_, given, strict=True))
        self.block(graph.block, env)
        return env[graph.block.outputs_[0]]

    def block(self, block: Block, env: dict[Value, _Both]) -> None:
        for node in block.nodes_:
            self.node(node, env)

    def node(self, node: Node, env: dict[Value, _Both]) -> None:
        kind = node.kind
        if kind == "prim::Constant":
            attributes = node.attributes
            real = attributes.get("value", attributes.get("_object", attributes.get("_function")))
            env[node.output()] = _Both(None, real)
        elif kind in _SAME:
            env[node.output()] = env[node.inputs_[0]]
        elif kind == "prim::Uninitialized":
            env[node.output()] = _Both(None, None)
        elif kind == "prim::If":
            block = node.blocks_[0 if env[node.inputs_[0]].real else 1]
            self.block(block, env)
            for output, inner in zip(node.outputs_, block.outputs_, strict=True):
                env[output] = env[inner]
        elif kind == "prim::Loop":
            self.loop(node, env)
        elif kind in ("prim::CallFunction", "prim::CallMethod"):
            self.call(node, env)
        elif kind == "prim::GetAttr":
            self.attribute(node, env)
        elif not self.container(node, env):
            self.op(node, env)

    def container(self, node: Node, env: dict[Value, _Both]) -> bool:
        """What makes, reads and changes lists and tuples: nothing of it is noted."""
        kind = node.kind
        given = [env[each] for each in node.inputs_]
        first = given[0] if given else None
        if kind == "prim::ListConstruct":
            result: _Both = _Many(given)
        elif kind == "prim::TupleConstruct":
            runner, _ = self.runner(node)
            named = isinstance(node.output().type(), NamedTupleType)
            result = _Many(given, (lambda parts: runner(*parts)) if named else tuple)
        elif kind == "aten::size" and len(given) == 1 and given[0].noted is not None:
            result = _Many([self.size(given[0], dim) for dim in range(given[0].real.dim())])
        elif not isinstance(first, _Many):
            return False
        elif kind in ("prim::ListUnpack", "prim::TupleUnpack"):
            env.update(zip(node.outputs_, first.parts, strict=True))
            return True
        elif kind in ("prim::TupleIndex", "aten::__getitem__"):
            at = given[1].real
            if not -len(first.parts) <= at < len(first.parts):
                return False  # the op says what is wrong
            result = first.parts[at]
        elif kind == "aten::slice":
            start, end, step = (each.real for each in given[1:])
            result = _Many(first.parts[start:end:step], first.made)
        elif kind == "aten::append":
            first.parts.append(given[1])
            result = first
        elif kind == "aten::list":
            result = _Many(list(first.parts))
        elif kind == "aten::add" and isinstance(given[1], _Many):
            result = _Many(first.parts + given[1].parts)
        else:
            return False
        if node.outputs_:
            env[node.output()] = result
        return True

    def size(self, tensor: _Both, dim: int) -> _Both:
        """The size of a dimension of a tensor that is in the trace."""
        c = self.c
        value = call_op(c, "aten::size", [self.noted(tensor, T.TENSOR), c.constant(dim, T.INT)])
        c.note(value, tensor.real._a.shape[dim])
        return _Both(value, tensor.real._a.shape[dim])

    def loop(self, node: Node, env: dict[Value, _Both]) -> None:
        body = node.blocks_[0]
        trips, goes_on = int(env[node.inputs_[0]].real), env[node.inputs_[1]].real
        carried = [env[each] for each in node.inputs_[2:]]
        count = 0
        while goes_on and count < trips:
            env[body.inputs_[0]] = _Both(None, count)
            env.update(zip(body.inputs_[1:], carried, strict=True))
            self.block(body, env)
            goes_on = env[body.outputs_[0]].real
            carried = [env[each] for each in body.outputs_[1:]]
            count += 1
        env.update(zip(node.outputs_, carried, strict=True))

    def call(self, node: Node, env: dict[Value, _Both]) -> None:
        function = called(node)
        inputs = node.inputs_[1:] if node.kind == "prim::CallFunction" else node.inputs_
        given = [env[each] for each in inputs]
        if function is None:
            kind = compiler.classes.type_of_object(given[0].real)
            function = kind.method(node.attributes["name"])
        env[node.output()] = self.function(function, given)

    def attribute(self, node: Node, env: dict[Value, _Both]) -> None:
        of, kind = env[node.inputs_[0]], node.inputs_[0].type()
        if isinstance(kind, ClassType) and kind.is_foreign:
            compiler.classes.object_of(of.real, kind)
        real = getattr(of.real, node.attributes["name"])
        noted = self.c.tensor(real) if isinstance(real, fb.Tensor) else None
        env[node.output()] = _Both(noted, real)

    def op(self, node: Node, env: dict[Value, _Both]) -> None:
        c = self.c
        given = [env[each] for each in node.inputs_]
        runner, order = self.runner(node)
        real = runner(*(env[each].real for each in order))
        results = list(real) if len(node.outputs_) > 1 else [real]
        if not node.outputs_:
            results = []
        free = all(map(_fixed, given))
        effect = not node.outputs_ or node.kind[-1] == "_"
        fixed = node.kind in _KNOWN or all(v.type() is T.BOOL for v in node.outputs_)
        tensors = any(_holds_tensor(each) for each in results)
        if (node.outputs_ and fixed and not effect) or (free and not tensors):
            for output, result in zip(node.outputs_, results, strict=True):
                env[output] = _Both(None, result)
            return
        inputs = [self.noted(g, v.type()) for g, v in zip(given, node.inputs_, strict=True)]
        made = copy_node(node, dict(zip(node.inputs_, inputs, strict=True)))
        made.place = c.here
        made.attributes = dict(node.attributes)
        c.block.append(made)
        for output, new, result in zip(node.outputs_, made.outputs_, results, strict=True):
            new.name = ""
            env[output] = _Both(new, result)
            if isinstance(result, fb.Tensor):
                c.bind(result, new)
            elif _holds_tensor(result):
                env[output] = self.unpacked(new, result)
            else:
                c.note(new, result)

    def unpacked(self, value: Value, real: list[Tensor]) -> _Many:
        """A list of tensors that an op made, taken apart."""
        parts = self.c.node("prim::ListUnpack", [value], [T.TENSOR] * len(real)).outputs_
        for each, part in zip(real, parts, strict=True):
            self.c.bind(each, part)
        return _Many([_Both(part, each) for each, part in zip(real, parts, strict=True)])

    def noted(self, both: _Both, kind: Type) -> Value:
        """The value in the trace; a constant is made where there is none."""
        if both.noted is not None:
            return both.noted
        if isinstance(both, _Many):
            inner = kind.args * len(both.parts) if kind.kind == "List" else kind.args
            if kind.kind == "Optional":
                return self.noted(both, kind.args[0])
            members = [self.noted(p, k) for p, k in zip(both.parts, inner, strict=False)]
            made = "prim::TupleConstruct" if kind.kind == "Tuple" else "prim::ListConstruct"
            return self.c.emit(made, members, kind)
        if both.real is None:
            return self.c.constant(None, T.NONE)
        if isinstance(kind, ClassType) or kind is T.FUNCTION:
            raise TypeError(f"a {kind} cannot be an argument in a trace")
        if kind in (T.INT, T.FLOAT, T.STR, T.BOOL):
            return self.c.constant(plain(both.real), kind)
        if kind.kind == "List" and isinstance(both.real, list):
            inner = kind.args[0]
            parts = [self.noted(_Both(None, each), inner) for each in both.real]
            return self.c.emit("prim::ListConstruct", parts, kind)
        return self.c.value(both.real)

    def runner(self, node: Node) -> Any:
        """A node as a function of its inputs that are no constants, and which these are."""
        found = self.c.runners.get(node)
        if found is None:
            graph = Graph()
            places: dict[Value, Value] = {}
            order: list[Value] = []
            for value in node.inputs_:
                if value in places:
                    continue
                if value.is_constant() and value.node is not None:
                    graph.block.append(copy_node(value.node, places))
                else:
                    places[value] = graph.addInput("", value.type())
                    order.append(value)
            made = graph.block.append(copy_node(node, places))
            for output in made.outputs_:
                graph.registerOutput(output)
            found = compiler.execute.generate(graph, "one"), order
            self.c.runners[node] = found
        return found


def _holds_tensor(what: object) -> bool:
    if isinstance(what, (list, tuple)):
        return any(map(_holds_tensor, what))
    return isinstance(what, fb.Tensor)
