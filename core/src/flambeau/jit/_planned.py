"""Plans under scripts: a function that is called again and again repeats its kernel calls.

A plan (`flambeau.plans`) is made of a call of a function without effects and is repeated for inputs
of the same kind: same shapes, same plain values, the same tensors among them that want a gradient.
Where the function decides by tensors, there are plans of some of the ways that it took.  Every
other call runs as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any, NamedTuple

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
from flambeau.jit._types import ClassType, Type
from flambeau.jit.passes._effects import has_effects, is_random
from flambeau.plans.capture import busy
from flambeau.plans.compiled import Compiled
from flambeau.plans.decisions import OtherwiseError, decided
from flambeau.plans.repeats import Repeat, fits, narrowing

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend
    from flambeau.jit._frontend.function import ScriptFunction
    from flambeau.jit._schemas import Schema
    from flambeau.plans.entry import Entry

_AFTER = 6  # calls of a function that run as they are before it is looked at
_OF_KIND = 2  # calls of one kind before the two of which a plan is made
_NOT_ASKED = 64  # calls after one of a kind that has no plans: the next will have none either
_KINDS = 8  # kinds of calls that have a plan, or were refused one
_WAYS = 4  # plans of one kind that decide otherwise
_WRONG = 8  # repeats that one decision otherwise costs; a kind that has spent all has no plans
_CREDIT = 64  # and how many it may have
_LISTS = frozenset(
    """aten::append aten::extend aten::insert aten::remove aten::reverse aten::clear aten::pop
    aten::_set_item aten::Delete aten::add_""".split()
)
"""What changes lists, of the function itself: it is given none then."""
_LOCAL = frozenset("prim::RaiseException prim::ListUnpack aten::_unwrap_optional".split())
"""What raises, or may: a plan is of a run that did not."""
_READS = frozenset(
    """aten::item aten::Int aten::Float aten::Complex aten::IntImplicit
    aten::FloatImplicit aten::ScalarImplicit aten::is_nonzero aten::equal aten::allclose
    prim::tolist prim::CreateObject""".split()
)
"""What takes values out of tensors, by which the function may decide."""
_MAKES_NONE = frozenset("prim::Constant prim::ListConstruct prim::TupleConstruct".split())
"""What computes nothing."""
_AT_ONCE = frozenset(
    f"aten::{name}"
    for name in """abs acos add alias asin atan ceil chunk cos cosh cumsum detach div erf erfc exp
    expand expm1 floor frac gelu lgamma log log10 log1p log2 log_softmax matmul mean mm mul narrow
    neg permute pow reciprocal relu reshape round rsqrt select sigmoid sign silu sin sinh slice
    softmax sqrt square squeeze sub sum t tan tanh transpose trunc unsqueeze view view_as""".split()
)
"""Ops whose call takes no longer than a plan of it, which saves nothing and tells calls apart."""
_array, _flag = attrgetter("_a"), attrgetter("_rg")


class _UnfitError(Exception):
    """A function that has no plans."""


class _Found(NamedTuple):
    """What is known of a function that may have plans.

    Attributes:
        function: the function, whose parameters are arguments.
        paths: what they are of its module; None without one.
        draws: whether it draws random numbers, so that it cannot run again to the same end.
    """

    function: Callable[..., Any]
    paths: list[str] | None
    draws: bool


def _inputs_only(function: ScriptFunction) -> _Found | None:
    """A function whose parameters are arguments; None if there is nothing to repeat."""
    if not any(node.kind.startswith("aten::") for node in function.inlined_graph.block.all_nodes()):
        return None
    graph = function.inlined_graph.copy()
    passes.optimize(graph)
    nodes = list(graph.block.all_nodes())
    for node in nodes:
        _look(node)
    at_work = [node.kind for node in nodes if node.kind not in _MAKES_NONE]
    if len(at_work) == 1 and at_work[0] in _AT_ONCE:
        return None
    draws = any(map(is_random, nodes))
    if draws and any(map(_decides, nodes)):
        return None
    inputs = list(graph.block.inputs_)
    paths = None
    if inputs and isinstance(inputs[0].type(), ClassType):
        paths = _hoisted(graph, inputs[0])
    lists = not any(map(_changes_list, nodes))
    if not all(_is_plain(value.type(), lists) for value in graph.block.inputs_):
        return None
    return _Found(compiler.execute.generate(graph, function.name, decided), paths, draws)


def _look(node: Node) -> None:
    kind = node.kind
    if kind in _READS and any(v.type() is T.TENSOR for v in node.inputs_):
        raise _UnfitError
    if kind in _LOCAL or _changes_list(node):
        return
    schema = node.schema
    if has_effects(node) and not (node.blocks_ or _draws(node, schema)):
        raise _UnfitError
    if kind in ("prim::CallFunction", "prim::CallMethod", "prim::PythonOp", "prim::SetAttr"):
        raise _UnfitError


def _changes_list(node: Node) -> bool:
    return node.kind in _LISTS and node.inputs_[0].type().kind == "List"


def _decides(node: Node) -> bool:
    return node.kind == "aten::Bool" and node.inputs_[0].type() is T.TENSOR


def _draws(node: Node, schema: Schema | None) -> bool:
    """Whether all that a node does besides computing is to draw random numbers."""
    writes = schema.writes if schema is not None else node.kind.endswith("_")
    return is_random(node) and not writes


def _is_plain(kind: Type, lists: bool) -> bool:
    """Whether nothing that a function does to values of a type is seen by who gave them.

    `lists` says that it changes none.
    """
    if kind.kind in ("Optional", "Tuple") or (lists and kind.kind == "List"):
        return all(_is_plain(part, lists) for part in kind.args)
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
        plans: by kind of call, those that decide otherwise; None for what was refused.
    """

    def __init__(self, scripted: ScriptFunction, space: dict[str, Any]) -> None:
        """Stand for a function.

        Args:
            scripted: the function.
            space: where this is called as ``run``; what has no plans takes its place there, and
                where there is one, the shortest way to it.
        """
        self.scripted, self.space, self.raw = scripted, space, scripted.raw
        self.calls = 0
        self.skipped = 0  # calls that are not looked at, after one of a kind that has no plans
        self.function: Any = None
        self.paths: Sequence[str] | None = None
        self.draws = False
        self.read: Callable[[Any], tuple[Any, ...]] | None = None
        self.repeat: Repeat | None = None  # of the last call that had a plan
        self.repeats: dict[Any, Repeat] = {}
        self.plans: dict[Any, list[Entry] | None] = {}
        self.credit: dict[Any, int] = {}
        self.counts: dict[Any, int] = {}
        self.pending: dict[Any, Compiled] = {}
        self.held: Sequence[Any] = ()  # the parameters of the last call
        self.arrays: Sequence[Any] = ()
        self.flags: Sequence[Any] = ()
        self.held_kind: Any = None

    def __call__(self, *args: object) -> Any:
        if self.skipped:
            self.skipped -= 1
            return self.raw(*args)
        if self.calls < _AFTER:
            self.calls += 1
            return self.raw(*args)
        modes = function_modes.stack.modes or _dispatch.modes or _watchers or busy()
        if modes or not self._ready():
            return self.raw(*args)
        leaves: list[Any] = []
        held: tuple[Any, ...] = ()
        given = args
        if self.read is not None:
            held, given = self.read(args[0]), args[1:]
        kind = self._held_kind(held, leaves), _kind(given, leaves)
        if None in kind or (self.draws and recording() and any(t.requires_grad for t in leaves)):
            self.skipped = _NOT_ASKED
            return self.raw(*args)
        key = kind, recording(), D.get_default_dtype(), default_device(), narrowing()
        plans = self.plans.get(key)
        if plans is None:
            return self._counted(key, args, (*held, *given), leaves)
        try:
            for plan in plans:
                state = plan.ready(leaves)
                if state is None:
                    continue
                try:
                    found = self._from(plan, leaves, state, (*held, *given))
                except OtherwiseError:
                    self.credit[key] -= _WRONG
                    continue
                self.credit[key] = min(self.credit[key] + 1, _CREDIT)
                if plan is not plans[0]:
                    plans.remove(plan)
                    plans.insert(0, plan)
                self._repeated(key, plan, held, given)
                return found
        except (
            Exception
        ):  # whatever it is: a kernel's own words, which the ops have better ones for
            return self.raw(*args)
        if self.credit[key] < 0:
            self.plans[key] = None
        elif len(plans) < _WAYS:
            return self._counted(key, args, (*held, *given), leaves)
        return self.raw(*args)

    def _from(
        self, plan: Entry, leaves: list[Any], state: list[Any], given: tuple[Any, ...]
    ) -> object:
        if plan.records_only:
            return plan.record(leaves, state, partial(self.function, *given))
        return plan.give(leaves, state)

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
            self.function, self.paths, self.draws = found
            if self.paths is not None:
                self.read = _reader(self.paths)
        return True

    def _repeated(
        self, key: object, plan: Entry, held: tuple[Any, ...], given: tuple[Any, ...]
    ) -> None:
        """Look at the next call first as if it were like this one."""
        found = self.repeats.get(key)
        if found is None or found.plan is not plan:
            if not (fits(held, plan) and fits(given, plan)):
                return
            found = Repeat(plan, self.function, given, self.paths, held)
            self.repeats[key] = found
        else:
            found.hold(held)
        last, self.repeat = self.repeat, found
        if last is not None and last is not found:
            last.forget()
        run = found.space.get("run")
        self.space["run"] = _guarded(found, self) if run is None else run

    def _held_kind(self, held: tuple[Any, ...], leaves: list[Any]) -> Any:
        """The kind of the parameters, which is mostly what it was."""
        if (
            held
            and not recording()
            and len(held) == len(self.held)
            and all(map(is_, held, self.held))
        ):
            same = all(map(is_, map(_array, held), self.arrays))
            if same and [*map(_flag, held)] == self.flags:
                leaves += held
                return self.held_kind
        kind = _kind(held, leaves)
        self.held = ()
        if kind is not None and len(leaves) == len(held) and not recording():
            self.held, self.held_kind = held, kind
            self.arrays, self.flags = [*map(_array, held)], [*map(_flag, held)]
        return kind

    def _counted(
        self, key: object, args: tuple[Any, ...], given: tuple[Any, ...], leaves: list[Any]
    ) -> Any:
        """Run a call that has no plan, and make one of it if there have been some of its kind."""
        plans = self.plans.get(key)
        if plans is None:
            kept = len(self.plans) + len(self.pending)
            if key in self.plans or (kept >= _KINDS and key not in self.pending):
                self.skipped = _NOT_ASKED
                return self.raw(*args)
        count = self.counts[key] = self.counts.get(key, 0) + 1
        if len(self.counts) > 8 * _KINDS:
            self.counts.clear()
        if count <= _OF_KIND or len({id(t._a) for t in leaves}) < len(leaves):
            return self.raw(*args)
        compiled = self.pending.pop(key, None)
        if compiled is None:  # what is made once is made in the first call of these two
            compiled = self.pending[key] = Compiled(self.function, 1, False)
            return compiled(*given)
        result = compiled(*given)
        found = [each for entries in compiled._entries.values() for each in entries]
        if found and (found[0].gives_only or found[0].records_only):
            self.plans[key] = [found[0], *(plans or ())]
            self.credit.setdefault(key, _CREDIT)
        elif plans is None:
            self.plans[key] = None
        return result


@cache
def _plans_on(be: BoundBackend) -> bool:
    """Whether a device has arrays of the host's memory, whose strides are at hand."""
    return be.device.type == "cpu" and be.strided and hasattr(be.array, "strides")


def _guarded(repeat: Repeat, planned: Planned) -> Callable[..., Any]:
    """What does a call by `repeat`, and leaves one of another kind to `planned`."""
    takes = repeat.takes
    text = f"""
def run({takes}):
    try:
        found = repeat({takes})
    except OtherwiseError:
        return planned({takes})
    except Exception:  # a kernel's own words, which the ops have better ones for
        return raw({takes})
    return planned({takes}) if found is MISSED else found
"""
    space = repeat.space
    space |= {"planned": planned, "raw": planned.raw, "OtherwiseError": OtherwiseError}
    exec(compile(text, "<repeated>", "exec"), space)
    space["run"].planned = planned
    return space["run"]


def _kind(values: Sequence[Any], leaves: list[Any]) -> tuple[Any, ...] | None:
    """What calls with one plan have in common; None if there can be none."""
    parts: list[Any] = []
    for value in values:
        if type(value) in _dispatch.PLAIN:
            be, array = value._be, value._a
            if not _plans_on(be):
                return None
            wants = bool(value._rg and value.requires_grad)
            leaves.append(value)
            parts += (be, array.shape, array.strides, value.dtype, wants)
        elif type(value) is tuple or type(value) is list:
            inner = _kind(value, leaves)
            if inner is None:
                return None
            parts += (type(value), inner)
        elif value is None or type(value) in (int, bool, str):
            parts += (type(value), value)
        elif type(value) is float:  # zeros have signs
            parts.append(repr(value))
        else:
            return None
    return tuple(parts)
