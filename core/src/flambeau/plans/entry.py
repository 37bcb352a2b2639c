"""One captured run made ready to be repeated: plan, what it reads and what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter, is_, itemgetter
from typing import TYPE_CHECKING, Any

from flambeau._autograd.node import Out
from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.dispatch import wrap
from flambeau._memory.record import is_tensor
from flambeau._memory.views import storage_of
from flambeau._types.size import Size
from flambeau._types.trees import SUPPORTED_NODES, tree_map
from flambeau.plans.again import Moment, drawn_from, replace
from flambeau.plans.capture import Capture
from flambeau.plans.gradient import (
    INSTEAD,
    Backward,
    Facts,
    Halves,
    Recorder,
    recorder,
    with_history,
)
from flambeau.plans.reach import Reach, changes
from flambeau.plugin.plan import Option, Plan, Step, reading, replayed

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend
    from flambeau._random.generator import Generator
    from flambeau._tensor.tensor import Tensor
    from flambeau._types.dtype import dtype as DType
    from flambeau._types.native import Array

__all__ = ["Entry", "Given", "GradOf", "RefusedError", "Seen"]

_CHECKS = ("checked_index", "check_values", "check_all")
_array, _history = attrgetter("_a"), attrgetter("_rg", "_hooks")


class RefusedError(Exception):
    """Why a run cannot be repeated as a plan; `lasting` unless another try may do better.

    It may if numbers that `moved` are followed.
    """

    def __init__(
        self, why: str, lasting: bool = True, moved: Sequence[tuple[Any, str]] = ()
    ) -> None:
        super().__init__(why)
        self.lasting = lasting
        self.moved = moved


class Given(int):
    """An argument, by its number."""

    _st = None


class GradOf:
    """The gradient that a tensor has at the moment, in the place of a tensor of the state."""

    __slots__ = ("of",)

    def __init__(self, of: Tensor) -> None:
        self.of = of

    _st = None  # that of the gradient is asked for

    @property
    def _a(self) -> Any:
        return None if self.of._grad is None else self.of._grad._a

    @property
    def dtype(self) -> Any:
        return self.of._grad.dtype


class Seen:
    """A tensor before the run; its holder is where the next runs find it.

    That is the tensor itself, a number of the argument, or a `GradOf`.
    """

    __slots__ = ("array", "fn", "grad", "holder", "name", "rg", "tensor", "version")

    def __init__(self, tensor: Tensor, holder: object, name: str) -> None:
        self.tensor = tensor
        self.holder = holder
        self.name = name
        self.array = tensor._a
        self.version = _dispatch.version(tensor)
        self.rg = tensor._rg
        self.fn = tensor._fn
        self.grad = tensor._grad


class Entry:
    """A plan with its surroundings; `run` repeats what the captured run did."""

    def __init__(
        self,
        capture: Capture,
        reach: Reach,
        given: Sequence[Any],
        seen: Sequence[Seen],
        result: object,
        backward: Backward | None = None,
    ) -> None:
        """Make it of a capture.

        Args:
            capture: the run.
            reach: what the function could reach before it.
            given: the tensors among the arguments.
            seen: all tensors known before the run, arguments first.
            result: what the function returned.
            backward: the captured pass through what has a history of that.

        Raises:
            RefusedError: there can be no plan.
        """
        self.be = be = capture.be
        self.capture, self.reach = capture, reach
        why = capture.refused or reach.refused or (backward and backward.refused)
        if why is not None:
            raise RefusedError(why, capture.refused is None or capture.lasting)
        if any(_dispatch.version(t) != v or t._a is not a for t, v, a in capture.scheduled):
            raise RefusedError("a schedule's step() comes before the optimiser's")
        if backward is not None and capture.followed:
            raise RefusedError("numbers change, and what is returned has a history")
        self.backward = backward
        self.draws: list[Generator] = []
        self.written: list[Any] = []
        self.recorded: Recorder | None = None
        self._decides: Callable[[], list[Any]] | None = None
        self.ends = 0
        self._changed = changes(reach.checks)
        if _says_so(self._changed):
            why, moved = _changes(f"{reach.changed()}", reach)
            if not moved and reach.changed() is not None and reach.counted():
                why += ": count in a tensor, as in `count += 1` of tensor(0), or outside of it"
            raise RefusedError(why, False, moved)
        self.given = given
        self.seen = seen
        self._owners: dict[int, Seen] = {}
        for one in seen:
            first = self._owners.setdefault(id(one.array), one)
            if first is not one and type(first.holder) is Given is not type(one.holder):
                raise RefusedError(f"{first.name} is {one.name}, which the function holds")
        self.state: list[Any] = []
        self.state_slots: list[int] = []
        self._last: list[Any] = []  # the arrays that were there, or others laid out like them
        constants = dict(capture.constants)
        known = {id(a) for cached in be.consts.values() for a in cached.values()}
        known |= {id(a) for a in be.zero.values()}
        for slot, array in capture.unknown.items():
            owner = self._owners.get(id(array))
            if owner is not None:
                if not any(owner.tensor is t for t in given):
                    self._use(owner, slot)
            elif id(array) in known:
                constants[slot] = array
            else:
                shape = list(array.shape)
                raise RefusedError(f"a tensor of shape {shape} comes from where it cannot be seen")
        self._left_behind()
        self.form, outputs = self._results(result)
        self.outputs = len(outputs)
        outputs += [slot for _, slot in self.replaced]
        outputs += [slot for _, slot in self.grads if slot is not None]
        if capture.within:
            read = {*outputs}.union(*[step.reads for step in capture.steps])
            if not read.isdisjoint(capture.within):
                raise RefusedError("what a step makes that may be left out is used after it")
        inputs = [*self._given_slots(), *self.state_slots]
        if backward is None:
            specs, strides = capture.specs, capture.strides
            self.plan = Plan(self._steps(), inputs, outputs, constants, specs, strides)
            self.replay = be.backend.compile_plan(self.plan) or replayed(self.plan)
        else:
            self._cut(backward, inputs, outputs, constants)
        self._numbers = reading(self.plan.numbers)
        decisions = [number for number, _ in capture.decisions]
        self._decided = [truth for _, truth in capture.decisions]
        if capture.followed:  # where a number cannot be computed the function itself has to run
            self._decides = reading([*decisions, *self.plan.numbers])
        kinds: dict[Any, type] = {(id(m), key, None): k for m, key, _, k in capture.followed}
        roots = [Option(of, key) for of, key, *_ in capture.followed]  # what they are may decide
        options = (o for n in (*roots, *self.plan.numbers, *decisions) for o in n.options())
        read = {(id(o.mapping), o.key, o.at): o for o in options}
        self._options_read = [o.read for o in read.values()]
        self._moved = reach.moved
        self._kinds = tuple([kinds.get(key) or type(o.read()) for key, o in read.items()])
        self._last = [*map(_latest, self.state, self._last)]
        self._checks, self._options = reach.checks, self._fixed()
        self._options_held = [held for *_, held in self._options]
        self.kernels = be.kernels
        # Not gradients: of these each run leaves others.
        held = [one.tensor for one in seen[len(given) :] if type(one.holder) is not GradOf]
        self._flags = held, [*map(_history, held)]
        changes_none = not (self.bumps or self.replaced or self.grads or self.plan.numbers)
        only_new = changes_none and _only_results(self.form)
        self.gives_only = only_new and backward is None
        self.records_only = only_new and backward is not None and not (self.draws or self.written)
        self.made = of_form(self.form, be, self.records_only) if only_new else None
        depends = self.grads_before, held, self._checks, self._options_held, self._options_read
        self.free = not any(depends) and not self.state
        # What held arrays of the captured run, in circles that are collected late.
        capture.unknown.clear()
        reach.forget()
        del self.capture, self.reach, self.seen, self._owners, self.given, self._placed

    def _cut(
        self, backward: Backward, inputs: list[int], outputs: list[int], constants: dict[int, Any]
    ) -> None:
        """Make the plans of the function and of its backward pass."""
        capture = self.capture
        halves = Halves(capture, inputs, outputs, backward, constants)
        self.plan, self.late = halves.early, halves.late
        self.replay, replay_late = halves.compiled(self.be)
        arguments = map(Given, range(len(self.given)))
        holders = dict(zip(inputs, [*arguments, *self.state], strict=True))
        names = {id(one.tensor): one.name for one in self.seen}
        space: dict[str, Any] = {}
        guarded = []
        for slot in halves.saved:
            if (holder := holders.get(slot)) is not None:
                name = names[id(_tensor(holder, self.given))]
                guarded.append((_expression(holder, space), name))
        by_id = {id(one.tensor): one.holder for one in self.seen}
        wanted = [_expression(by_id[id(t)], space) for t in backward.wanted]
        ends = [(tuple(t._a.shape), t.dtype) for t in backward.results]
        facts = Facts(self.be, replay_late, backward.found, backward.reached, ends)
        self.ends = len(ends)
        self.recorded = recorder(facts, guarded, wanted, len(halves.saved), space)
        # What a run changes, and the function would again where it runs for gradients of gradients.
        self.draws = drawn_from(self.plan.steps)
        changed = [t for t, _ in (*self.bumps, *self.replaced, *capture.counts.values())]
        self.written = [t for t in {id(t): t for t in changed}.values() if type(t) is not GradOf]

    def _given_slots(self) -> list[int]:
        found: list[int] = []
        for one in self.seen[: len(self.given)]:
            slot = self.capture.find(one.array)
            if slot is None or slot in found:  # an array given twice is read in the first place
                slot = self.capture.slot(one.array)
            found.append(slot)
        return found

    def _fixed(self) -> list[tuple[list[str], Callable[[Any], Any], dict[str, Any], Any]]:
        """What the plan does not read of the options of optimisers, which has to stay as it is."""
        found, reach = [], self.reach
        for (_, group), before in zip(reach.groups, reach.options, strict=True):
            read = {"params", "param_names"}
            read |= {key for key in group if (id(group), key) in reach.followed}
            if not reach.names("param_groups"):  # else the user's code may read them as well
                options = (o for n in self.plan.numbers for o in n.options())
                read |= {o.key for o in options if o.mapping is group}
            if keys := [key for key in before if key not in read]:
                get = itemgetter(*keys, keys[0])  # of one it would be no tuple
                found.append((keys, get, group, get(before)))
            for key in {*keys, *(group.keys() - before.keys())}:
                if key not in group or key not in before or _differ(group[key], before[key]):
                    why, moved = _changes(f"the option {key}", reach)
                    raise RefusedError(why, False, moved)
        return found

    def _of_no_argument(self, one: Seen) -> None:
        """Refuse what reads or writes the gradient that an argument comes with."""
        if type(one.holder) is GradOf and any(one.holder.of is t for t in self.given):
            raise RefusedError(f"{one.name} is used, which other arguments may not have")

    def _use(self, owner: Seen, slot: int) -> None:
        self._of_no_argument(owner)
        self.state.append(owner.holder)
        self.state_slots.append(slot)
        self._last.append(owner.array)

    def _left_behind(self) -> None:
        """What the run changed of the tensors that were there before."""
        capture = self.capture
        self.bumps: list[tuple[Any, int]] = []
        self.replaced: list[tuple[Any, int]] = []
        self.grads: list[tuple[Any, int | None]] = []  # by holders, which are no `GradOf`
        self.grads_before: list[tuple[Any, bool]] = []
        counted: set[int] = set()
        for one in self.seen:
            t = one.tensor
            if capture.passes and one.fn is not None and t._base is None:
                raise RefusedError(f"a backward pass may go on behind {one.name}")
            if t._base is None and (t._rg is not one.rg or t._fn is not one.fn):
                raise RefusedError(f"the history of {one.name} changes")
            by = _dispatch.version(t) - one.version
            if by or t._a is not one.array:
                self._of_no_argument(one)
            if by and id(t) not in capture.counts and id(t._st) not in counted:
                counted.add(id(t._st))
                self.bumps.append((one.holder, by))
            if by and not self.be.strided and self._seen_elsewhere(t):
                raise RefusedError(f"{one.name} is written to, and has a view that cannot be seen")
            if t._a is not one.array:
                slot = capture.find(t._a)
                if slot is None:
                    raise RefusedError(f"{one.name} takes memory from where it cannot be seen")
                self.replaced.append((one.holder, slot))
            if t._grad is not one.grad or id(t) in capture.set:
                holder = t if type(one.holder) is GradOf else one.holder
                self.grads_before.append((holder, one.grad is None))
                self.grads.append((holder, self._gradient(t, one)))
        # By the end of a run there may be others.
        changed = [holder for holder, _ in (*self.bumps, *self.replaced)]
        self.of_gradients = GradOf in map(type, changed)

    def _steps(self) -> list[Step]:
        """The calls, with those that drop the gradients that the run replaces.

        They come after the last check that the function makes before it drops one: where such a
        one raises it is what it was.  So checks come as early as they can.
        """
        steps, capture = _checked_early(self.capture.steps), self.capture
        setting = dict(capture.setting)
        last: dict[int, int] = {}  # check before which a gradient is still there
        first: dict[int, int] = {}  # call that sets one
        for i, step in enumerate(steps, 1):
            last.update(dict.fromkeys(capture.early.get(step, ()), i))
            for key in setting.get(step, ()):
                first.setdefault(key, i)
        before = {id(one.tensor): one.grad for one in self.seen}
        places: dict[int, list[Any]] = {}
        for t, _ in self.grads:
            at = last.get(id(t), 0)
            if type(t) is not Given and before[id(t)] is not None and first.get(id(t), at + 1) > at:
                places.setdefault(at, []).append(t)
        for at in sorted(places, reverse=True):
            drop = partial(_drop, places[at])
            steps.insert(at, Step("drop", drop, (), None, effect=True))
        return steps

    def _seen_elsewhere(self, t: Any) -> bool:
        """Whether memory without strides has tensors that this run would not renew."""
        known = {id(one.tensor) for one in self.seen}
        living = (ref() for ref in t._st.aliases)
        return any(alias is not None and id(alias) not in known for alias in living)

    def _gradient(self, t: Tensor, one: Seen) -> int | None:
        grad = t._grad
        if grad is None:
            return None
        slot = None if grad.is_sparse else self.capture.find(grad._a)
        if slot is None or grad._fn is not None or type(grad) is not _dispatch.Tensor_:
            raise RefusedError(f"the gradient of {one.name} is none that a plan can give")
        return slot

    def _results(self, result: object) -> tuple[Any, list[int]]:
        """What is returned, with places for tensors, and the slots of these."""
        slots: list[int] = []
        self._placed: dict[int, _Result] = {}
        storages = {id(one.tensor._st): one for one in self.seen if one.tensor._st is not None}

        def place(value: object) -> Any:
            if is_tensor(value):
                return self._place(value, slots, storages)
            if type(value) in (list, tuple, dict) or hasattr(value, "_fields"):
                return _mapped(value, place)
            if value is None or isinstance(value, (bool, str, Size)):
                return value
            if (node := SUPPORTED_NODES.get(type(value))) is not None:
                parts, context = node.flatten_fn(value)
                return _Tree([place(part) for part in parts], node.unflatten_fn, context)
            raise RefusedError(f"a {type(value).__name__} is returned: return tensors")

        return place(result), slots

    def _place(self, t: Tensor, slots: list[int], storages: dict[int, Seen]) -> Any:
        for i, given in enumerate(self.given):
            if t is given:
                return _Argument(i)
        if any(t is one.tensor for one in self.seen):
            return _Constant(t)
        if (placed := self._placed.get(id(t))) is not None:
            return placed
        slot = self.capture.find(t._a)
        if slot is None or type(t) is not _dispatch.Tensor_:
            raise RefusedError("a result is none that a plan can give")
        if t._st is not None and (owner := storages.get(id(t._st))) is not None:
            raise RefusedError(f"a result shares its memory with {owner.name}")
        if t._st is not None and t._st.shared and slot in slots:
            raise RefusedError("two results share their memory")
        slots.append(slot)
        ends = self.backward.results if self.backward is not None else ()
        end = next((i for i, r in enumerate(ends) if r is t), None)
        placed = self._placed[id(t)] = _Result(len(slots) - 1, t.dtype, end)
        return placed

    def ready(self, given: Sequence[Any] = ()) -> list[Any] | None:
        """The arrays of the state if a run may be repeated for these arguments, else None."""
        if self.be.kernels is not self.kernels:
            return None
        if self.free:
            return []  # all that it depends on are the arguments
        for t, none in self.grads_before:
            if type(t) is Given:
                t = given[t]
            if (t._grad is None) is not none:
                return None
        held, flags = self._flags
        options, kinds = self._options_held, self._kinds
        try:
            if (
                (held and [*map(_history, held)] != flags)
                or self._changed()
                or (options and [get(group) for _, get, group, _ in self._options] != options)
                or (kinds and tuple([type(read()) for read in self._options_read]) != kinds)
                or (
                    self._decides is not None
                    and self._decides()[: len(self._decided)] != self._decided
                )
            ):
                return None
            if not self.state:
                return []
            arrays = [*map(_array, self.state)]
            if not all(map(is_, arrays, self._last)):
                if not all(map(self._alike, arrays, self._last)):
                    return None
                self._last = arrays
        except Exception:  # something is gone, or cannot be compared
            return None
        return arrays

    def moved(self) -> list[tuple[Any, str]]:
        """Entries whose floats keep a run from being repeated now, if nothing else does."""
        return [(of, key) for of, key in self._moved() if type(of[key]) is float]

    def why_not(self) -> str:
        """The name of what keeps a run from being repeated now."""
        held, flags = self._flags
        for check in self._checks:
            if not check.holds():
                return check.name
        for keys, _, group, values in self._options:
            for key, value in zip(keys, values, strict=False):
                if (now := group.get(key)) is not value and now != value:
                    return f"the option {key}"
        if [*map(_history, held)] != flags:
            return "which tensors require a gradient or have hooks"
        held = [(t, none) for t, none in self.grads_before if type(t) is not Given]
        if any((t._grad is None) is not none for t, none in held):
            return "a gradient that was, or was not, there before"
        return "a tensor that the function holds"

    def _alike(self, a: Array, b: Array) -> bool:
        if a is b:
            return True
        be = self.be
        if a.shape != b.shape or be.dtype_of(a) is not be.dtype_of(b):
            return False
        return not be.strided or be.backend.strides(a) == be.backend.strides(b)

    def give(self, given: Sequence[Any], state: list[Any]) -> Any:
        """`run` where a run `gives_only` tensors, new or given, alone or in tuples and lists."""
        assert self.made is not None
        return self.made(self.replay(*[t._a for t in given], *state), given)

    def record(self, given: Sequence[Any], state: list[Any], again: Callable[[], Any]) -> Any:
        """`run` where a run `records_only`: it gives tensors of which some have a history."""
        assert self.made is not None
        assert self.recorded is not None
        found = self.replay(*[t._a for t in given], *state)
        result, ends = self.made(found, given)
        self.recorded(given, found, ends, again)
        return result

    def run(self, given: Sequence[Any], state: list[Any], again: Callable[[], Any]) -> Any:
        """Repeat the run for other arguments.

        Args:
            given: the tensors among the arguments.
            state: what `ready` returned.
            again: the call of the function itself, for gradients of gradients.
        """
        be = self.be
        if self.draws or self.written:
            written = [_tensor(holder, given) for holder in self.written]
            again = partial(Moment(self.draws, written).during, again)
        bumps, replaced = self.bumps, self.replaced
        if self.of_gradients:
            bumps, replaced = _held(bumps, given), _held(replaced, given)
        found = self.replay(*[t._a for t in given], *state, *self._numbers())
        for holder, by in bumps:
            (holder._st or storage_of(_tensor(holder, given))).version += by
        at = self.outputs
        for holder, _ in replaced:
            replace(be, _tensor(holder, given), found[at])
            at += 1
        if self.replaced:
            self._last = [*map(_latest, self.state, state)]
        new, cls = object.__new__, _dispatch.Tensor_
        for t, slot in self.grads:
            if type(t) is Given:
                t = given[t]
            if slot is None:
                t._grad = None
                continue
            grad = new(cls)
            grad._a = found[at]
            grad._be = be
            grad.dtype = t.dtype
            grad._rg = False
            t._grad = grad
            at += 1
        if self.recorded is None:
            return self._returned(self.form, given, found, ())
        ends: list[Any] = [None] * self.ends
        result = self._returned(self.form, given, found, ends)
        self.recorded(given, found, ends, again)
        return result

    def instead(self, given: Sequence[Any], result: Any) -> Any:
        """What the function itself gave, behind the node that a run would have recorded."""
        found: list[Any] = []
        with_history(result, {id(t) for t in given}, found)
        if self.recorded is None or len(found) != self.ends:
            return result  # it did other things, which who compares the runs will say
        ends = [wrap(self.be, t._a, t.dtype) for t in found]
        self.recorded(given, (), ends, lambda: result)
        node = ends[0]._fn
        (node.node if isinstance(node, Out) else node).saved = INSTEAD
        behind = {id(t): end for t, end in zip(found, ends, strict=True)}
        return tree_map(lambda t: behind.get(id(t), t), result)

    def _returned(self, form: Any, given: Sequence[Any], found: Sequence[Any], ends: Any) -> Any:
        kind = type(form)
        if kind is _Result:
            if form.end is not None and ends[form.end] is not None:
                return ends[form.end]
            t = wrap(self.be, found[form.at], form.dtype)
            if form.end is not None:
                ends[form.end] = t
            return t
        if kind is _Argument:
            return given[form.at]
        if kind is _Constant:
            return form.tensor
        if kind is _Tree:
            parts = [self._returned(part, given, found, ends) for part in form.parts]
            return form.unflatten(parts, form.context)
        if kind in (list, tuple, dict) or hasattr(form, "_fields"):
            return _mapped(form, lambda part: self._returned(part, given, found, ends))
        return form


def _changes(name: str, reach: Reach) -> tuple[str, Sequence[tuple[Any, str]]]:
    """Why what the function changes refuses a plan, and the numbers that may be followed."""
    moved = reach.moved()
    then = "is followed from now on" if moved else "a plan would not"
    return f"the function changes {name}, which {then}", moved


def _drop(tensors: Sequence[Any]) -> None:
    for t in tensors:
        t._grad = None


def _differ(a: Any, b: Any) -> bool:
    return a is not b and a != b


def _latest(holder: Any, before: Array) -> Array:
    """The array of a tensor after a run; of a gradient that the run dropped, the one before."""
    return before if (now := holder._a) is None else now


def _says_so(changed: Callable[[], bool]) -> bool:
    """Whether something has changed, or can no longer be read or compared."""
    try:
        return changed()
    except Exception:  # of a property or an operator of the program's own
        return True


def _checked_early(steps: Sequence[Step]) -> list[Step]:
    """The calls, with checks before those that have no effect and do not make what they read."""
    if not any(step.op in _CHECKS for step in steps):
        return list(steps)
    found: list[Step] = []
    for step in steps:
        at = len(found)
        if step.op in _CHECKS:
            read = set(step.reads)
            while at and not found[at - 1].effect and read.isdisjoint(found[at - 1].makes):
                at -= 1
        found.insert(at, step)
    return found


def _tensor(holder: Any, given: Sequence[Any]) -> Tensor:
    if type(holder) is Given:
        return given[holder]
    return holder.of._grad if type(holder) is GradOf else holder


def _held(pairs: Sequence[tuple[Any, int]], given: Sequence[Any]) -> list[tuple[Any, int]]:
    """These with tensors in the place of what holds them now."""
    return [(_tensor(holder, given), number) for holder, number in pairs]


def _expression(holder: Any, space: dict[str, Any]) -> str:
    """The tensor of a holder in generated code, where ``given`` is what the call was given."""
    if type(holder) is Given:
        return f"given[{int(holder)}]"
    name = f"held{len(space)}"
    of_grad = type(holder) is GradOf
    space[name] = holder.of if of_grad else holder
    return f"{name}._grad" if of_grad else name


_NEW = """    t{at} = new(Tensor)
    a = found[{at}]
    t{at}._a = a if type(a) is array else be.to_array(a)
    t{at}._be = be
    t{at}.dtype = d{at}
    t{at}._rg = False
"""


def of_form(form: Any, be: BoundBackend, with_ends: bool = False) -> Callable[..., Any]:
    """What makes the results of a run of the arrays that it found and the tensors it was given.

    Args:
        form: the results.
        be: the device.
        with_ends: give a pair of these and the list of the tensors that have a history.
    """
    space: dict[str, Any] = {
        "new": _dispatch.new,
        "Tensor": _dispatch.Tensor_,
        "be": be,
        "array": be.array,
    }
    lines: list[str] = []
    ends: dict[int, str] = {}

    def text(part: Any) -> str:
        if type(part) is _Argument:
            return f"given[{part.at}]"
        if type(part) is not _Result:
            inner = "".join(f"{text(each)}, " for each in part)
            return f"({inner})" if type(part) is tuple else f"[{inner}]"
        at = part.at
        if f"d{at}" not in space:
            space[f"d{at}"] = part.dtype
            lines.append(_NEW.format(at=at))
            if part.end is not None:
                ends[part.end] = f"t{at}"
        return f"t{at}"

    back = text(form)
    if with_ends:
        back = f"{back}, [{', '.join(ends[i] for i in sorted(ends))}]"
    exec(f"def made(found, given):\n{''.join(lines)}    return {back}\n", space)
    return space["made"]


def _only_results(form: Any) -> bool:
    """Whether all that is returned are new or given tensors, alone or in tuples and lists."""
    if type(form) in (tuple, list):
        return all(map(_only_results, form))
    return type(form) in (_Result, _Argument)


class _Result:
    """A tensor that a run returns: its place, and which end of the backward pass it is."""

    __slots__ = ("at", "dtype", "end")

    def __init__(self, at: int, dtype: DType, end: int | None) -> None:
        self.at, self.dtype, self.end = at, dtype, end


class _Argument:
    __slots__ = ("at",)

    def __init__(self, at: int) -> None:
        self.at = at


class _Tree:
    """A container of a class that says how it is taken apart and put together."""

    __slots__ = ("context", "parts", "unflatten")

    def __init__(
        self, parts: list[Any], unflatten: Callable[[list[Any], Any], Any], context: Any
    ) -> None:
        self.parts, self.unflatten, self.context = parts, unflatten, context


class _Constant:
    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {key: change(part) for key, part in value.items()}
    parts = [change(part) for part in value]
    return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
