"""`compile`: a function that repeats plans of itself where it can, and runs as it is elsewhere."""

from __future__ import annotations

import functools
import gc
import importlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from flambeau._autograd.engine import watchers as _watchers
from flambeau._autograd.journal import ANY
from flambeau._autograd.journal import kept as _kept
from flambeau._autograd.modes import recording
from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._memory.record import is_tensor
from flambeau._random.generator import generator_for
from flambeau._tensor import function_modes
from flambeau._types import dtype as D
from flambeau._types.device import default_device
from flambeau.plans import capture as _capture
from flambeau.plans.again import Before
from flambeau.plans.entry import Entry, Given, GradOf, RefusedError, Seen
from flambeau.plans.followed import bare, followed_in
from flambeau.plans.gradient import captured_backward
from flambeau.plans.outside import drawn
from flambeau.plans.reach import Reach, is_plain
from flambeau.plans.repeats import MISSED, Repeat, fits, narrowing

if TYPE_CHECKING:
    from flambeau._autograd.journal import Journal
    from flambeau._dispatch.bound import BoundBackend


__all__ = ["Compiled", "Explanation", "compile", "explain", "reset"]

_living: weakref.WeakSet[Compiled] = weakref.WeakSet()
_KEPT = 8  # plans of one function
_FORMS = 1000  # forms of arguments of one function, before all is forgotten
_TRIES = 3  # captures that are refused for what may be over the next time


@dataclass
class Explanation:
    """What became of the calls of a compiled function.

    Attributes:
        calls: how many there were.
        replays: how many repeated a plan.
        captures: how many were captured; these run as they are, too.
        plans: how many plans there are.
        reasons: why calls ran as they are, and how many for each reason.
        text: the plans, call by call.
    """

    calls: int = 0
    replays: int = 0
    captures: int = 0
    plans: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    text: str = ""

    def __str__(self) -> str:
        lines = [
            f"{self.calls} calls: {self.replays} replays of {self.plans} plans, "
            f"{self.captures} captures"
        ]
        lines += [f"{count} as they are: {why}" for why, count in self.reasons.items()]
        return "\n".join(lines)


class Compiled:
    """A function with the plans of its calls; see `compile`."""

    def __init__(self, function: Callable[..., Any], kept: int, whole: bool) -> None:
        for name in functools.WRAPPER_ASSIGNMENTS:  # not `__dict__`: of modules it is their state
            if (value := getattr(function, name, None)) is not None:
                setattr(self, name, value)
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self.__wrapped__ = self._function = function
        self._kept = kept
        self._whole = whole
        self._entries: dict[Any, list[Entry]] = {}
        self._tries: dict[Any, int] = {}
        self._refused: dict[Any, str] = {}
        self._followed: dict[Any, list[tuple[Any, str]]] = {}  # numbers that change
        self._constant: set[Any] = set()  # where those that others change cannot be followed
        self._told = Explanation()
        self._repeats = 0  # calls that it did
        self._repeat: Repeat | None = None  # of the last plan that gives tensors, and no more
        _living.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Compiled, (self._function, self._kept, self._whole)

    def __plan__(self, reach: Any, name: str) -> None:
        """What has to stay the same for a plan of a function that calls this one."""
        reach.walk(self._function, name)

    def __get__(self, instance: object, owner: object = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        if (repeat := self._repeat) is not None and repeat.count == len(args) and not kwargs:
            self._repeats += 1
            found = repeat.repeat(*args)
            if found is not MISSED:
                return found
            self._repeats -= 1
        self._told.calls += 1
        if journals := _kept():
            return self._alike(journals, args, kwargs)
        return self._called(args, kwargs)

    def _alike(
        self, journals: Sequence[Journal], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A call within runs of checkpoints: in the second it does what it did in the first."""
        places = [journal.begin() for journal in journals]
        wanted = next((plan for _, plan in reversed(places) if plan is not ANY), ANY)

        def note(plan: object) -> None:
            for journal, (place, _) in zip(journals, places, strict=True):
                journal.note(place, plan)

        if wanted is ANY:
            return self._called(args, kwargs, note)
        if wanted is None:
            why = "the first run within a checkpoint did, and the second has to do the same"
            return self._plainly(why, args, kwargs, expected=True)
        note(wanted)
        if (capture := _capture.current()) is not None and capture.listens:
            capture.refuse("a checkpoint repeats a plan")
        leaves: list[Any] = []
        key, entry = wanted
        try:
            state = entry.ready(leaves) if self._key(args, kwargs, leaves) == key else None
        except UnusableError:
            state = None
        again = functools.partial(self._function, *args, **kwargs)
        if state is not None:
            self._told.replays += 1
            return entry.run(leaves, state, again)
        result = self._plainly("something has changed since the first run", args, kwargs, True)
        return entry.instead(leaves, result)

    def _key(self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[Any]) -> Any:
        """What plans of a call have in common; its tensors are appended to `leaves`.

        Raises:
            UnusableError: there are none.
        """
        form = _form(args, leaves, {}) if not kwargs else _form((args, kwargs), leaves, {})
        return recording(), D.get_default_dtype(), default_device(), narrowing(), form

    def _called(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        note: Callable[[object], None] | None = None,
    ) -> Any:
        told = self._told
        if _watchers and not _dispatch.modes:  # that see ops: also of a function that is all plan
            return self._plainly("a profiler looks on", args, kwargs, expected=True)
        if _capture.current() is not None:  # of which the calls become a part
            return self._plainly("another function is captured", args, kwargs, expected=True)
        if _dispatch.modes or function_modes.stack.modes:
            why = "anomaly mode, a function mode or trace is on"
            return self._plainly(why, args, kwargs)
        leaves: list[Any] = []
        try:
            key = self._key(args, kwargs, leaves)
            entries = self._entries.get(key)
        except UnusableError as error:
            return self._plainly(str(error), args, kwargs)
        if entries is not None:
            for entry in entries:
                if (state := entry.ready(leaves)) is not None:
                    told.replays += 1
                    if note is not None:
                        note((key, entry))
                    if not kwargs:
                        self._look_first(entry, args, leaves)
                    if entry.gives_only:
                        return entry.give(leaves, state)
                    return entry.run(
                        leaves, state, functools.partial(self._function, *args, **kwargs)
                    )
        if (why := self._refused.get(key)) is not None:
            return self._plainly(why, args, kwargs)
        tries = self._tries[key] = self._tries.get(key, 0) + 1
        if len(self._tries) > _FORMS:
            self.forget()
        if tries == 1:  # makes what is made once: the state of optimisers, lazy layers, caches
            return self._plainly("the first call with such arguments", args, kwargs, expected=True)
        if entries is not None and len(entries) >= self._kept:
            why = f"{self._kept} plans were made: {entries[-1].why_not()} keeps changing"
            self._refused[key] = why
            return self._plainly(why, args, kwargs)
        return self._captured(key, leaves, args, kwargs)

    def _look_first(self, entry: Entry, args: tuple[Any, ...], leaves: list[Any]) -> None:
        """Ask of the next call first whether it is like this one, which has a plan."""
        only_gives = entry.gives_only or entry.records_only
        apart = len({id(t._a) for t in leaves}) == len(leaves)
        if only_gives and apart and hasattr(entry.be.array, "strides") and fits(args, entry):
            if self._repeat is None or self._repeat.plan is not entry:
                self._repeat = Repeat(entry, self._function, args)

    def _plainly(
        self, why: str, args: tuple[Any, ...], kwargs: dict[str, Any], expected: bool = False
    ) -> Any:
        reasons = self._told.reasons
        reasons[why] = reasons.get(why, 0) + 1
        if self._whole and not expected:
            raise RuntimeError(f"{self.__name__}: no plan, since {why}")
        return self._function(*args, **kwargs)

    def _captured(
        self, key: object, leaves: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        told = self._told
        told.captures += 1
        followed, entries = self._followed.get(key, []), self._entries.get(key)
        others = entries[-1].moved() if entries and key not in self._constant else []
        followed = [(of, at) for of, at in (*followed, *others) if type(of.get(at)) in (int, float)]
        reach = Reach(self._function, _objects((args, kwargs)), followed)
        seen = _seen(leaves, reach)
        if not seen:
            why = "there is no tensor among the arguments and within reach"
            self._refused[key] = reach.refused or why
            return self._plainly(self._refused[key], args, kwargs)
        be: BoundBackend = seen[0].tensor._be
        if be.formulas is not be and be.backend.stand_in is None:
            reach.refuse(f"{seen[0].tensor.device} computes gradients late")
        elif held := [i for i, t in enumerate(leaves) if id(t) in reach.tensors]:
            name = reach.tensors[id(leaves[held[0]])][1]
            reach.refuse(f"argument {held[0]} is {name}, which the function holds")
        elif len(devices := {str(t.device) for t in (seen[0].tensor, *leaves)}) > 1:
            reach.refuse(f"its tensors are on {' and '.join(sorted(devices))}")
        elif followed and any(one.tensor.is_sparse for one in seen):
            reach.refuse("a number changes beside sparse tensors")
        if (why := reach.refused) is not None:
            self._refused[key] = why
            return self._plainly(why, args, kwargs)
        before = None
        if followed:
            generators = [generator_for(be.device, None), *reach.generators()]
            before = Before(generators, seen, followed)
        try:
            return self._run(key, leaves, reach, seen, followed, others, args, kwargs)
        except Exception as error:  # maybe since something would have no stand-in for a number
            if before is None or self._whole:
                raise
            before.back()
            reach.back()
            why = f"{type(error).__name__} was raised while a number that changes was followed"
        result = self._plainly(why, args, kwargs)  # may raise it as well
        if others:
            self._constant.add(key)
        else:
            self._refused[key] = why
        return result

    def _run(
        self,
        key: object,
        leaves: list[Any],
        reach: Reach,
        seen: list[Seen],
        followed: list[tuple[Any, str]],
        others: list[tuple[Any, str]],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Run the function and make a plan of it; `others` of the numbers need not be followed."""
        told, be = self._told, seen[0].tensor._be
        with _capture.capturing(be) as capture, capture.acting(reach.actions):
            capture.numbers, capture.data = reach.groups, reach.data
            capture.truths = {id(t): (t, _dispatch.version(t)) for t in reach.truths}
            capture.leaves = [(one.tensor, one.grad) for one in seen if one.holder is one.tensor]
            capture.grads = [(one.tensor, one.grad) for one in seen if one.grad is not None]
            for t in leaves:
                if capture.find(t._a) is None:
                    capture.slot(t._a)
            streams = drawn()
            with followed_in(capture, followed):
                result = bare(self._function(*args, **kwargs))
            if drawn() != streams:
                reach.refuse("random numbers of Python's or NumPy's were drawn")
            backward = None
            if capture.refused is None and recording():
                backward = captured_backward(capture, result, seen)
        collects = gc.isenabled()
        gc.disable()  # of thousands of new objects all stay: it would look through them in vain
        try:
            entry = Entry(capture, reach, leaves, seen, result, backward)
        except RefusedError as refused:
            why = str(refused)
            told.reasons[why] = told.reasons.get(why, 0) + 1
            if refused.moved:
                self._followed[key] = [*followed, *refused.moved]
            elif others:
                self._constant.add(key)
            elif refused.lasting or self._tries[key] > _TRIES:
                self._refused[key] = why
            if self._whole and key in self._refused:
                raise RuntimeError(f"no plan, since {why}") from None
            return result
        finally:
            if collects:
                gc.enable()
        self._entries.setdefault(key, []).append(entry)
        self._followed[key] = followed
        return result

    def explain(self) -> Explanation:
        """What became of the calls so far."""
        told = self._told
        found = [entry for entries in self._entries.values() for entry in entries]
        text = "\n\n".join(str(entry.plan) for entry in found)
        return Explanation(
            told.calls + self._repeats,
            told.replays + self._repeats,
            told.captures,
            len(found),
            dict(told.reasons),
            text,
        )

    def forget(self) -> None:
        """Drop the plans: the next calls are captured again."""
        self._repeat = None
        self._entries.clear()
        self._tries.clear()
        self._refused.clear()
        self._followed.clear()
        self._constant.clear()


class UnusableError(Exception):
    """Arguments that cannot be those of a plan."""


@functools.cache
def _layout(be: BoundBackend) -> Callable[[Any], Any]:
    """A function that tells arrays of a device apart that lie otherwise in memory."""
    if not be.strided:
        return _nothing
    return attrgetter("strides") if hasattr(be.array, "strides") else be.backend.strides


def _nothing(array: object) -> None:
    return None


def _form(value: Any, leaves: list[Any], places: dict[int, int]) -> Any:
    """What plans of these arguments have in common; their tensors are appended to `leaves`.

    `places` is filled with the first tensor of each array.
    """
    kind = type(value)
    plain = _dispatch.PLAIN
    if kind in plain:
        return _form((value,), leaves, places)[1]
    if kind is tuple or kind is list:
        found: list[Any] = [kind]
        for part in value:
            if (of := type(part)) not in plain:
                found.append(_form(part, leaves, places))
                continue
            be, a = part._be, part._a
            first = places.setdefault(id(a), len(leaves))
            leaves.append(part)
            wants = part._rg if type(part._rg) is bool else part.requires_grad  # that of a view
            found.append((of, a.shape, part.dtype, be, _layout(be)(a), wants, first))
        return tuple(found)
    if kind is dict:
        return (kind, *[(key, _form(part, leaves, places)) for key, part in value.items()])
    if is_tensor(value):
        raise UnusableError(f"an argument is a {kind.__name__}")
    try:
        hash(value)
    except TypeError:
        raise UnusableError(f"an argument is a {kind.__name__}, which cannot be compared") from None
    if kind.__hash__ is object.__hash__:
        return kind, _reference(value)
    if (kind is float or kind is complex) and not value:
        return kind, repr(value)  # zeros have signs
    return kind, value


def _reference(value: Any) -> Any:
    """A key for an object that is like no other, which it need not keep alive."""
    try:
        return weakref.ref(value)
    except TypeError:
        return value


def _objects(value: Any) -> Iterator[Any]:
    """The arguments that are neither tensors nor plain values: what is in them may change."""
    if type(value) in (tuple, list, dict):
        for part in value.values() if type(value) is dict else value:
            yield from _objects(part)
    elif not (is_tensor(value) or is_plain(value)):
        yield value


def _seen(given: Sequence[Any], reach: Reach) -> list[Seen]:
    """All tensors known before a run, arguments first."""
    found = [Seen(t, Given(i), f"argument {i}") for i, t in enumerate(given)]
    known = {id(t) for t in given}
    for one in list(found):
        if one.grad is not None and id(one.grad) not in known:
            known.add(id(one.grad))
            found.append(Seen(one.grad, GradOf(one.tensor), f"{one.name}.grad"))
    for key, (t, name) in reach.tensors.items():
        if key in known:
            continue
        known.add(key)
        found.append(Seen(t, t, name))
    of = {id(one.grad): one for one in found if one.grad is not None}
    for one in found:
        if (owner := of.get(id(one.tensor))) is not None and one.holder is one.tensor:
            one.holder = GradOf(owner.tensor)
    return found


@takes_as_annotated
def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: object = "plan",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """`model` with plans: its kernel calls are captured once and repeated without anything else.

    The first call with arguments of some shapes runs as it is, the second is captured, and from
    the third on the plan is repeated.  A whole training step may be compiled: gradients, hooks of
    none, clipping, and the optimiser's step are kernel calls like others.  Values are those that
    the function itself computes, to the last bit.

    Args:
        model: a function or module; without one, a decorator is returned.
        fullgraph: raise RuntimeError where there can be no plan, instead of running as it is.
        dynamic: accepted; other shapes are captured anew.
        backend: accepted; what executes a plan is the backend of the tensors.
        mode: accepted.
        options: ``{"kept": 8}``: how many plans there may be for arguments of the same shapes.
        disable: return `model` itself.

    A plan is not used where it could differ from the function: another shape, dtype or device of
    the arguments, another mode, other modules or tensors, other plain values in what the function
    can reach.  A function of which there is none runs as it is: one that reads values (``item()``,
    ``if loss > 1``), prints or counts.  `explain` says what became of the calls.

    >>> import flambeau as fb
    >>> @fb.compile
    ... def scaled(x):
    ...     return (x * 2).tanh()
    >>> for _ in range(3):
    ...     y = scaled(fb.ones(2))
    >>> print(scaled.explain())
    3 calls: 1 replays of 1 plans, 1 captures
    1 as they are: the first call with such arguments
    """
    if model is None:
        return functools.partial(
            compile,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            disable=disable,
        )
    if disable:
        return model
    if not callable(model):
        raise TypeError(f"compile(): a function or module is expected, got {type(model).__name__}")
    kept = (options or {}).get("kept", _KEPT)
    if hasattr(type(model), "forward") and hasattr(model, "named_parameters"):
        parts = importlib.import_module("flambeau.nn._compiled")
        return parts.compiled_module(model, kept, fullgraph)
    return Compiled(model, kept, fullgraph)


def reset() -> None:
    """Drop the plans of all compiled functions.

    >>> import flambeau as fb
    >>> fb.plans.reset()
    """
    for compiled in list(_living):
        compiled.forget()


@takes_as_annotated
def explain(compiled: Any) -> Explanation:
    """What became of the calls of a compiled function: see `Explanation`.

    Raises:
        TypeError: `compiled` is no result of `compile`.
    """
    if not hasattr(compiled, "explain"):
        raise TypeError(f"explain(): {compiled!r} is no compiled function")
    return compiled.explain()
