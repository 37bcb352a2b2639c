"""Plans under scripts: a function that is called again and again repeats its kernel calls.

A plan (`flambeau.plans`) is made of a call that records no history, of a function without effects,
and is repeated for inputs of the same kind; every other call runs as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any

from flambeau._autograd.engine import watchers as _watchers
from flambeau._autograd.modes import recording
from flambeau._dispatch import dispatch as _dispatch
from flambeau._tensor import function_modes
from flambeau._types import dtype as D
from flambeau._types.device import default_device
from flambeau.jit import _types as T
from flambeau.jit import passes
from flambeau.jit._graph import Graph, Node, Value
from flambeau.jit._parts import compiler
from flambeau.jit._repeats import MISSED, Repeat, fits
from flambeau.jit._types import ClassType, Type
from flambeau.jit.passes._effects import has_effects, is_random
from flambeau.plans.capture import busy
from flambeau.plans.compiled import Compiled, narrowing

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend
    from flambeau.jit._frontend.function import ScriptFunction
    from flambeau.jit._schemas import Schema
    from flambeau.plans.entry import Entry

_AFTER = 6  # calls of a function that run as they are before it is looked at
_OF_KIND = 2  # calls of one kind before the two of which a plan is made
_NOT_ASKED = 64  # calls after one that recorded a history: the next will as well
_KINDS = 8  # kinds of calls that have a plan, or were refused one
_LOCAL = frozenset(
    """prim::RaiseException prim::ListUnpack aten::append aten::extend aten::insert aten::remove
    aten::reverse aten::clear aten::pop aten::_set_item aten::Delete
    aten::_unwrap_optional""".split()
)
"""What changes lists of the function itself, or raises: a plan is of a run that did not."""
_READS = frozenset(
    """aten::item aten::Int aten::Float aten::Complex aten::Bool aten::IntImplicit
    aten::FloatImplicit aten::ScalarImplicit aten::is_nonzero aten::equal aten::allclose
    prim::tolist prim::CreateObject""".split()
)
"""What takes values out of tensors, by which the function may decide."""
_array = attrgetter("_a")


class _UnfitError(Exception):
    """A function that has no plans."""


def _inputs_only(function: ScriptFunction) -> tuple[Callable[..., Any], list[str] | None] | None:
    """A function whose parameters are arguments, and what they are of its module, if it has one."""
    if not any(node.kind.startswith("aten::") for node in function.inlined_graph.block.all_nodes()):
        return None
    graph = function.inlined_graph.copy()
    passes.optimize(graph)
    for node in graph.block.all_nodes():
        _look(node)
    inputs = list(graph.block.inputs_)
    paths = None
    if inputs and isinstance(inputs[0].type(), ClassType):
        paths = _hoisted(graph, inputs[0])
    if not all(_is_plain(value.type()) for value in graph.block.inputs_):
        return None
    return compiler.execute.generate(graph, function.name), paths


def _look(node: Node) -> None:
    kind = node.kind
    if kind in _READS and any(v.type() is T.TENSOR for v in node.inputs_):
        raise _UnfitError
    if kind in _LOCAL:
        return
    schema = node.schema
    if has_effects(node) and not (node.blocks_ or _draws(node, schema)):
        raise _UnfitError
    if kind in ("prim::CallFunction", "prim::CallMethod", "prim::PythonOp", "prim::SetAttr"):
        raise _UnfitError


def _draws(node: Node, schema: Schema | None) -> bool:
    """Whether all that a node does besides computing is to draw random numbers."""
    writes = schema.writes if schema is not None else node.kind.endswith("_")
    return is_random(node) and not writes


def _is_plain(kind: Type) -> bool:
    """Whether nothing that a function does to values of a type is seen by who gave them."""
    if kind.kind in ("Optional", "Tuple"):
        return all(map(_is_plain, kind.args))
    return kind in (T.TENSOR, T.INT, T.FLOAT, T.BOOL, T.STR, T.NONE)


def _hoisted(graph: Graph, module: Value) -> list[str]:
    """Make inputs of what a graph reads of its module ``m``: the expressions for them."""
    paths: dict[Value, str] = {module: "m"}
    places: dict[str, Value] = {}
    found: list[Node] = []
    for node in graph.block.all_nodes():
        if not any(value in paths for value in node.inputs_):
            continue
        if node.kind != "prim::GetAttr":
            raise _UnfitError
        of, output = node.inputs_[0], node.output()
        path = compiler.execute.attribute_of(paths[of], of.type(), node.attributes["name"])
        found.append(node)
        if isinstance(output.type(), ClassType):
            paths[output] = path  # an archive's were looked at when it was read, or put there
            continue
        if path not in places:
            places[path] = graph.addInput("", output.type())
        output.replaceAllUsesWith(places[path])
    for node in reversed(found):
        node.destroy()
    inputs = graph.block.inputs_
    held = inputs[len(inputs) - len(places) :]
    inputs[:] = [*held, *(v for v in inputs if v is not module and v not in held)]
    return list(places)


def _reader(paths: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What reads of a module ``m`` all that expressions name."""
    text = f"def read(m): return ({''.join(f'{path}, ' for path in paths)})"
    space: dict[str, Any] = {}
    exec(compile(text, "<parameters>", "exec"), space)
    return space["read"]


class Planned:
    """A function that repeats plans of itself.

    Attributes:
        plans: by kind of call; None for what was refused.
    """

    def __init__(self, scripted: ScriptFunction, space: dict[str, Any]) -> None:
        """Stand for a function.

        Args:
            scripted: the function.
            space: where this is called as ``run``; what has no plans takes its place there.
        """
        self.scripted, self.space, self.raw = scripted, space, scripted.raw
        self.calls = 0
        self.recorded = 0  # calls that are not looked at, after one that recorded a history
        self.function: Any = None
        self.paths: Sequence[str] | None = None
        self.read: Callable[[Any], tuple[Any, ...]] | None = None
        self.repeat: Repeat | None = None  # of the last call that had a plan
        self.repeats: dict[Any, Repeat] = {}
        self.plans: dict[Any, Entry | None] = {}
        self.counts: dict[Any, int] = {}
        self.pending: dict[Any, Compiled] = {}
        self.held: Sequence[Any] = ()  # the parameters of the last call
        self.arrays: Sequence[Any] = ()
        self.held_kind: Any = None

    def __call__(self, *args: object) -> Any:
        if self.recorded and recording():
            self.recorded -= 1
            return self.raw(*args)
        if self.calls < _AFTER:
            self.calls += 1
            return self.raw(*args)
        repeat = self.repeat
        if repeat is not None:
            try:
                found = repeat.run(*args)
            except Exception:  # a kernel's own words, as below
                return self.raw(*args)
            if found is not MISSED:
                return found
        if function_modes.stack.modes or _dispatch.modes or _watchers or not self._ready():
            return self.raw(*args)
        leaves: list[Any] = []
        held: tuple[Any, ...] = ()
        given = args
        if self.read is not None:
            held, given = self.read(args[0]), args[1:]
        kind = self._held_kind(held, leaves), _kind(given, leaves)
        if None in kind:
            self.recorded = _NOT_ASKED
            return self.raw(*args)
        key = kind, recording(), D.get_default_dtype(), default_device(), narrowing()
        plan = self.plans.get(key)
        if plan is None:
            return self._counted(key, args, (*held, *given), leaves)
        state = plan.ready()
        if state is None:
            return self.raw(*args)
        self._repeated(key, plan, held, given)
        try:
            return plan.give(leaves, state)
        except (
            Exception
        ):  # whatever it is: a kernel's own words, which the ops have better ones for
            return self.raw(*args)

    def _ready(self) -> bool:
        """Whether the function may have plans; one that may not is called itself from now on."""
        if self.function is None:
            try:
                found = _inputs_only(self.scripted)
            except _UnfitError:
                found = None
            if found is None:
                self.space["run"] = self.raw
                return False
            self.function, self.paths = found
            if self.paths is not None:
                self.read = _reader(self.paths)
        return True

    def _repeated(
        self, key: object, plan: Entry, held: tuple[Any, ...], given: tuple[Any, ...]
    ) -> None:
        """Look at the next call first as if it were like this one."""
        found = self.repeats.get(key)
        if found is None:
            if not (fits(held, plan) and fits(given, plan)):
                return
            found = self.repeats[key] = Repeat(plan, self.paths or (), held, given)
        else:
            found.hold(held)
        last, self.repeat = self.repeat, found
        if last is not None and last is not found:
            last.forget()

    def _held_kind(self, held: tuple[Any, ...], leaves: list[Any]) -> Any:
        """The kind of the parameters, which is mostly what it was."""
        if (
            held
            and not recording()
            and len(held) == len(self.held)
            and all(map(is_, held, self.held))
        ):
            if all(map(is_, map(_array, held), self.arrays)):
                leaves += held
                return self.held_kind
        kind = _kind(held, leaves)
        self.held = ()
        if kind is not None and len(leaves) == len(held):
            self.held, self.arrays, self.held_kind = held, [*map(_array, held)], kind
        return kind

    def _counted(
        self, key: object, args: tuple[Any, ...], given: tuple[Any, ...], leaves: list[Any]
    ) -> Any:
        """Run a call that has no plan, and make one of it if there have been some of its kind."""
        kept = len(self.plans) + len(self.pending)
        if key in self.plans or (kept >= _KINDS and key not in self.pending):
            return self.raw(*args)
        count = self.counts[key] = self.counts.get(key, 0) + 1
        if len(self.counts) > 8 * _KINDS:
            self.counts.clear()
        if count <= _OF_KIND or busy() or len({id(t._a) for t in leaves}) < len(leaves):
            return self.raw(*args)
        compiled = self.pending.pop(key, None)
        if compiled is None:  # what is made once is made in the first call of these two
            compiled = self.pending[key] = Compiled(self.function, 1, False)
            return compiled(*given)
        result = compiled(*given)
        found = [each for entries in compiled._entries.values() for each in entries]
        self.plans[key] = found[0] if found and found[0].gives_only else None
        return result


@cache
def _plans_on(be: BoundBackend) -> bool:
    """Whether a device has arrays of the host's memory, whose strides are at hand."""
    return be.device.type == "cpu" and be.strided and hasattr(be.array, "strides")


def _kind(values: Sequence[Any], leaves: list[Any]) -> tuple[Any, ...] | None:
    """What calls with one plan have in common; None if there can be none."""
    records = recording()
    parts: list[Any] = []
    for value in values:
        if type(value) in _dispatch.PLAIN:
            be, array = value._be, value._a
            if (records and value._rg and value.requires_grad) or not _plans_on(be):
                return None
            leaves.append(value)
            parts += (be, array.shape, array.strides, value.dtype)
        elif type(value) is tuple:
            inner = _kind(value, leaves)
            if inner is None:
                return None
            parts.append(inner)
        elif value is None or type(value) in (int, bool, str):
            parts += (type(value), value)
        elif type(value) is float:  # zeros have signs
            parts.append(repr(value))
        else:
            return None
    return tuple(parts)
