"""Capture: what a function asks of a backend while it runs once, written down as steps.

While a capture is on, the kernels among the attributes of a bound backend are replaced by ones that
write their calls down, as profilers do; without one an op has no test and no cost.  Gradient
formulas are captured with the rest, since their namespace is the same object.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import attrgetter, setitem
from typing import TYPE_CHECKING, Any

from flambeau._autograd import engine as _engine
from flambeau._autograd.journal import kept
from flambeau._autograd.modes import recording
from flambeau._dispatch import arguments as _arguments
from flambeau._dispatch import bound as _bound
from flambeau._dispatch import dispatch as _dispatch
from flambeau._dispatch.dispatch import OPS, SIZED_BY_VALUES, version, wrap
from flambeau._dispatch.warning import where
from flambeau._random.generator import Generator
from flambeau._types.dtype import beyond
from flambeau.amp.grad_scaler import GradScaler
from flambeau.ops.optimisers.optimizer_steps import StepOp
from flambeau.plans import checks
from flambeau.plans.followed import (
    Followed,
    decided_width,
    is_lost,
    lose,
    number_of,
    plainly,
    sizes_by,
    to_the_end,
)
from flambeau.plans.late import settling
from flambeau.plans.numbers import Counter, Tracked
from flambeau.plans.skipped import step_unless
from flambeau.plugin import steps as _steps
from flambeau.plugin.backend import Backend
from flambeau.plugin.forks import make_lock
from flambeau.plugin.plan import Number, Option, Slot, Step

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend
    from flambeau._tensor.tensor import Tensor
    from flambeau._types.dtype import dtype as DType
    from flambeau._types.native import Array

__all__ = ["Capture", "capturing"]

# What gives values, or memory, to the host: from then on the program may depend on them.
_READS = ("item", "tolist", "to_host", "numpy", "data_ptr", "reinterpret")
_LISTS = {
    "sgd_step_": _steps.SgdStep,
    "asgd_step_": _steps.AsgdStep,
    "adam_step_": _steps.AdamStep,
    "rmsprop_step_": _steps.RmspropStep,
    "adagrad_step_": _steps.AdagradStep,
    "adadelta_step_": _steps.AdadeltaStep,
    "adamax_step_": _steps.AdamaxStep,
    "nadam_step_": _steps.NadamStep,
    "radam_step_": _steps.RadamStep,
    "rprop_step_": _steps.RpropStep,
}
# Those whose bodies compute with rates and counts, and decide nothing by them.
_TRACKED = frozenset(
    ("sgd_step_", "adam_step_", "rmsprop_step_", "adagrad_step_", "adadelta_step_", "adamax_step_")
)
_PLAIN = frozenset((int, float, bool, str, type(None), slice))  # that hold no array
_HOOKS = ("_run_tensor_hooks", "_run_node_hooks", "_run_post_hooks", "_run_leaf_hooks")
_lock = make_lock()  # captures replace attributes of objects that all threads use
_current: Capture | None = None


class _Weakly(weakref.ref[Any]):
    """An array while it lives, with its slot."""

    __slots__ = ("slot",)


class _Kept:
    """The same of an array that allows no weak reference."""

    __slots__ = ("array", "slot")

    def __init__(self, array: Array) -> None:
        self.array = array

    def __call__(self) -> Array:
        return self.array


class Capture:
    """The steps of one run on one backend, in the making.

    Attributes:
        steps: the calls so far.
        refused: why the run cannot become a plan, or None; `lasting` unless another run may.
        depth: how many blocks `inside` there are.
        thread: the one whose calls are written down.
    """

    def __init__(self, be: BoundBackend) -> None:
        self.be = be
        self._array: Any = be.array
        late = be.formulas is not be
        self._arrays: Any = (be.array, be.backend.stand_in) if late else be.array
        self.steps: list[Step] = []
        self.refused: str | None = None
        self.lasting = True
        self.constants: dict[int, Any] = {}
        self.specs: dict[int, tuple[tuple[int, ...], Any]] = {}
        self.strides: dict[int, tuple[int, ...]] = {}
        self.unknown: dict[int, Any] = {}  # arrays that no step made: tensors from before
        self.numbers: list[tuple[Any, dict[str, Any]]] = []  # (arrays of parameters, group)
        self.counts: dict[int, tuple[Any, int]] = {}  # counted-up tensors of the host, how often
        self.data: str | None = None  # a container that nobody watches: `Reach.data`
        self.grads: list[tuple[Any, Any]] = []  # tensors with the gradients they had before
        self.truths: dict[int, tuple[Any, int]] = {}  # `Reach.truths`, and their versions
        self.leaves: list[tuple[Any, Any]] = []  # tensors that are held, with the same
        self.set: dict[int, Any] = {}  # gradients that a step has set, by tensors
        self.setting: list[tuple[Step, set[int]]] = []  # these steps, and of which tensors
        self.early: dict[Step, set[int]] = {}  # by checks, of which tensors they were there still
        self.within: set[int] = set()  # slots that a step makes which may be left out
        self.followed: list[list[Any]] = []  # [mapping, key, number that it holds, first type]
        self.follows = True  # until the end of the run that is captured
        self.stand_ins: list[weakref.ref[Any]] = []  # for numbers that follow from these
        self.decisions: list[tuple[Number, Any]] = []  # by such numbers
        self.passes = 0  # how many backward passes the function makes
        # By identities, which others have after them: no callback takes a dead array out, for
        # what interrupts a callback is printed and gone.
        self._slots: dict[int, _Weakly | _Kept] = {}
        # Of arrays of NumPy's kind what it takes three calls to say is kept by what they say.
        self._said = (
            attrgetter("shape", "dtype", "strides")
            if be.strided and hasattr(be.array, "strides")
            else None
        )
        self._layouts: dict[Any, tuple[tuple[tuple[int, ...], Any], tuple[int, ...]]] = {}
        # Of groups that no step of an optimiser's has used before: parameters, and what they were.
        self.scheduled: list[tuple[Any, int, Any]] = []
        self._stepped: set[int] = set()
        self._changed: dict[int, Any] = {}  # groups of optimisers that actions have changed
        self.thread = threading.get_ident()
        self.depth = 0

    def refuse(self, why: str, lasting: bool = True) -> None:
        """Note the first reason why there can be no plan; the run goes on as it is."""
        if self.refused is None:
            self.refused, self.lasting = f"{why}, {where()}", lasting

    def slot(self, array: Array) -> Slot:
        """The slot of an array that is new here."""
        slot = Slot(len(self.specs))
        if not isinstance(array, self._array):  # a stand-in, which lies nowhere yet
            self.specs[slot], strides = (tuple(array.shape), self.be.dtype_of(array)), ()
        elif self._said is None:
            self.specs[slot], strides = self._layout(array)
        else:
            said = self._said(array)
            if (known := self._layouts.get(said)) is None:
                known = self._layouts[said] = self._layout(array)
            self.specs[slot], strides = known
        if self.be.strided:
            self.strides[slot] = strides
        held: _Weakly | _Kept
        try:
            held = _Weakly(array)
        except TypeError:
            held = _Kept(array)
        held.slot = slot
        self._slots[id(array)] = held
        return slot

    def _layout(self, array: Array) -> tuple[tuple[tuple[int, ...], Any], tuple[int, ...]]:
        """Shape, dtype and strides of an array."""
        be = self.be
        spec = tuple(array.shape), be.dtype_of(array)
        return spec, be.backend.strides(array) if be.strided else ()

    def find(self, array: object) -> Slot | None:
        """The slot of an array, None if it has not been seen."""
        held = self._slots.get(id(array))
        return held.slot if held is not None and held() is array else None

    @contextmanager
    def acting(self, actions: list[tuple[Any, str, Sequence[Any]]]) -> Iterator[None]:
        """A block in which these methods (`Reach.actions`) are one step a call."""
        for owner, name, groups in actions:
            vars(owner)[name] = self._action(getattr(owner, name), name, groups)
        try:
            yield
        finally:
            for owner, name, _ in actions:
                del vars(owner)[name]

    def _action(
        self, method: Callable[..., Any], name: str, groups: Sequence[Any]
    ) -> Callable[..., Any]:
        def run(*args: object, **named: object) -> Any:
            if not self.listens:
                return method(*args, **named)
            if named or args:
                self.refuse(f"{name}() was called with arguments")
            with self.inside():
                result = method(*args, **named)
            self.steps.append(Step(name, method, (), None, effect=True))
            self._changed.update({id(group): group for group in groups})
            lose(self, groups)
            by_hand = [group for group in groups if id(group) not in self._stepped]
            params = [p for group in by_hand for p in group["params"]]
            self.scheduled += [(p, version(p), p._a) for p in params]
            return result

        return run

    @property
    def listens(self) -> bool:
        """Whether calls of this thread are written down at the moment."""
        return self.depth == 0 and threading.get_ident() == self.thread

    @contextmanager
    def inside(self) -> Iterator[None]:
        """A block of which nothing is written down: it is one step as a whole."""
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def add(
        self,
        op: str,
        kernel: Callable[..., Any],
        args: tuple[Any, ...],
        result: object,
        *,
        raw: bool = False,
        effect: bool = False,
    ) -> None:
        """Write a call down."""
        if op in _LISTS:
            args = self._with_numbers(op, args)
        if self.followed and sizes_by(op, args):
            self.refuse(f"a number that changes is a size or a place ({op})")
        array, slots = self._array, self._slots
        given = []
        for a in args:
            kind = type(a)
            if kind is array and (held := slots.get(id(a))) is not None and held() is a:
                given.append(held.slot)
            elif kind in _PLAIN:
                given.append(a)
            else:
                given.append(self.reference(a))
        held = slots.get(id(result)) if type(result) is array else None
        made = held.slot if held is not None and held() is result else self._made(result)
        convert = self.be.to_array if raw else None
        effect = effect or op[-1] == "_" or op == "assign" or made is None
        self.steps.append(Step(op, kernel, tuple(given), made, convert, effect))

    def reference(self, value: Any) -> Any:
        """An argument as the plan holds it."""
        kind = type(value)
        if kind is self._array or isinstance(value, self._arrays):
            found = self.find(value)
            if found is None:
                found = self.slot(value)
                self.unknown[found] = value
            return found
        if kind is tuple or kind is list:
            return kind([x if type(x) in _PLAIN else self.reference(x) for x in value])
        return value.number if isinstance(value, Tracked) else number_of(value)

    def _made(self, result: Any) -> Any:
        if isinstance(result, self._arrays):
            found = self.find(result)
            return self.slot(result) if found is None else found
        if type(result) in (tuple, list):
            return tuple([self._made(x) for x in result])
        return None

    def _with_numbers(self, op: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of an optimiser's step with what its group holds by name."""
        first = args[0][0]
        if (group := self._group(op, lambda p: p._a is first)) is None:
            return args
        found = list(args)
        for i, name in enumerate(_LISTS[op]._fields):
            if type(args[i]) not in (float, int):
                continue
            key, at = ("betas", int(name[-1]) - 1) if name in ("beta1", "beta2") else (name, None)
            if key == "shrink" or key == "grow":
                continue
            held = group.get(key)
            if held is None:
                continue
            number = Option(group, key, at)
            if type(number.read()) is type(args[i]) and number.read() == args[i]:
                # A zero may have decided what the step does at all.
                if args[i] or key == "lr":
                    found[i] = self._once(number)
        return tuple(found)

    def set_gradients(self) -> None:
        """Set, in every run, the gradients that there are now: what comes next may raise."""
        found = []
        for t, before in self.leaves:
            grad = t._grad
            if grad is self.set.get(id(t), before):
                continue
            slot = None if grad is None or grad.is_sparse else self.find(grad._a)
            if slot is not None or (grad is None and self.passes):
                found.append((t, slot))
                self.set[id(t)] = grad
        if found:
            kernel = partial(_set_gradients, self.be, [(t, slot is None) for t, slot in found])
            given = tuple([slot for _, slot in found if slot is not None])
            self.steps.append(Step("gradients", kernel, given, None, effect=True))
            self.setting.append((self.steps[-1], {id(t) for t, _ in found}))

    def set_numbers(self) -> None:
        """Set, in every run, the numbers that are followed to what they are now."""
        for entry in self.followed:
            mapping, key, before, _ = entry
            held = mapping.get(key)
            if is_lost(held) or (number := number_of(held)) is before:
                continue
            if type(plainly(held)) not in (int, float):
                self.refuse(f"{key}, a number that changes, is no number any more")
                continue
            kernel = partial(setitem, mapping, key)
            self.steps.append(Step("set", kernel, (number,), None, effect=True))
            entry[2] = number

    def count(self, tensor: Tensor) -> int:
        """Count a tensor of the host up, in every run; how often that was done in this one."""
        with self.inside():
            tensor.add_(1)
        advance = partial(tensor.add_, 1)
        self.steps.append(Step("count", advance, (), None, effect=True))
        times = self.counts.get(id(tensor), (tensor, 0))[1] + 1
        self.counts[id(tensor)] = tensor, times
        return times

    def read(self, tensor: Tensor) -> float:
        """The value of a tensor of the host that `count` counts up."""
        with self.inside():
            return tensor.item()

    def by_body(self, op: StepOp, args: tuple[Any, ...]) -> None:
        """Run the body of an optimiser's step with numbers that know what they are made of."""
        fields = _LISTS[op.name]._fields
        params, given = args[0], list(args)
        group = self._group(op.name, lambda p: p is params[0])
        if group is not None and type(args[at := fields.index("lr")]) in (float, int):
            option = Option(group, "lr")
            if option.read() == args[at]:
                given[at] = Tracked(args[at], option, self.refuse)
        if "steps" in fields and all(t.device.type == "cpu" for t in args[fields.index("steps")]):
            at = fields.index("steps")
            given[at] = [Counter(t, self.count, self.read, self.refuse) for t in args[at]]
        op.body(*given)

    def _group(self, op: str, holds: Callable[[Any], bool]) -> dict[str, Any] | None:
        """The group of the parameters of a step."""
        group = next((g for params, g in self.numbers if any(map(holds, params))), None)
        if group is None:
            self.refuse(f"{op}: a step of parameters that no optimiser within reach holds")
        elif id(group) in self._changed:
            self.refuse("a schedule's step() comes before the optimiser's")
        else:
            self._stepped.add(id(group))
        return group

    def _once(self, number: Option) -> Option:
        for step in self.steps:
            for a in step.args:
                if (
                    type(a) is Option
                    and a.mapping is number.mapping
                    and (a.key, a.at) == (number.key, number.at)
                ):
                    return a
        return number


def _set_gradients(be: BoundBackend, tensors: Sequence[tuple[Any, bool]], *arrays: Any) -> None:
    given = iter(arrays)
    for t, none in tensors:
        t._grad = None if none else wrap(be, next(given), t.dtype)


@contextmanager
def capturing(be: _bound.BoundBackend) -> Iterator[Capture]:
    """A block whose calls of the kernels of `be`, on this thread, are written down.

    Other devices are watched too: using one refuses the plan.
    """
    capture = Capture(be)
    others = [b for b in set(_bound._bound.values()) if b is not be]
    former: list[tuple[dict[str, Any], dict[str, Any]]] = []
    replaced: list[tuple[Any, str, Callable[..., Any]]] = []
    global _current
    with _lock:
        try:
            _current = capture
            _dispatch.captures = True
            former.append((be.__dict__, dict(be.__dict__)))
            former.append((be.kernels, dict(be.kernels)))
            _listen(be, capture)
            if be.formulas is not be:
                former.append((be.formulas.__dict__, dict(be.formulas.__dict__)))
                _listen_late(be, capture)
            for other in others:
                former.append((other.__dict__, dict(other.__dict__)))
                _stand_by(other, capture)
            for name in _HOOKS:
                replaced.append((_engine, name, getattr(_engine, name)))
            for name in ("manual_seed", "seed", "set_state", "get_state", "set_offset", "_restore"):
                replaced.append((Generator, name, getattr(Generator, name)))
            for owner, name, function in replaced:
                setattr(owner, name, _watched(function, capture))
            replaced.append((_engine, "run", _engine.run))
            _engine.run = _counted(_engine.run, capture)
            replaced.append((StepOp, "_by_body", StepOp._by_body))
            StepOp._by_body = _tracked(StepOp._by_body, capture)
            replaced.append((GradScaler, "_maybe_opt_step", GradScaler._maybe_opt_step))
            GradScaler._maybe_opt_step = step_unless(GradScaler._maybe_opt_step, capture)
            yield capture
        finally:
            to_the_end(partial(_restore, replaced, former))  # else half of it listens for ever


def _restore(
    replaced: list[tuple[Any, str, Callable[..., Any]]],
    former: list[tuple[dict[str, Any], dict[str, Any]]],
) -> None:
    """Let all be as it was before a capture; once more if an interrupt came into it."""
    global _current
    _current = None
    _dispatch.captures = False
    for owner, name, function in replaced:
        setattr(owner, name, function)
    for namespace, before in former:
        for name in namespace.keys() - before.keys():
            del namespace[name]
        namespace.update(before)


def current() -> Capture | None:
    """The capture that is on, of whichever thread."""
    return _current


def busy() -> bool:
    """Whether calls are to be looked at: a capture is on, in any thread, or a checkpoint's run."""
    return _current is not None or bool(kept())


def _listen(be: _bound.BoundBackend, capture: Capture) -> None:
    decomposes = type(be.backend).compile is Backend.compile
    kernels = be.kernels
    own = be.__dict__
    for name in {*OPS, *kernels}:
        one, other = own.get(name), kernels.get(name)
        whole = other is not None or not decomposes
        if one is not None:
            own[name] = _listener(name, one, be, whole)
        if other is not None:
            kernels[name] = own[name] if other is one else _listener(name, other, be, whole)
    be.part = _written("slice", be.part, be, True)
    own["consts"] = {dtype: _Constants(table) for dtype, table in be.consts.items()}
    be.scalar_const = _constant(be, be.scalar_const, capture)
    be.host_array = _of_few(_written("host_array", be.host_array, be, True), capture)
    be.backend = _Backend(be.backend, be, capture)


def _listen_late(be: BoundBackend, capture: Capture) -> None:
    """The same of what gradient formulas call where they are computed late."""
    own = be.formulas.__dict__
    for name in OPS:
        if (op := own.get(name)) is not None:
            own[name] = _listener(name, op, be, True)
    own["part"] = own["slice"]
    own.update(
        {name: be.__dict__[name] for name in ("consts", "scalar_const", "host_array", "backend")}
    )
    be.settle = settling(be.settle, be, capture)


def _listener(
    name: str, kernel: Callable[..., Any], be: _bound.BoundBackend, whole: bool
) -> Callable[..., Any]:
    """`_written`, made once: of hundreds it is a tenth of what a small capture takes."""
    key = name, id(kernel), whole
    if (made := be.listening.get(key)) is None:
        made = be.listening[key] = _written(name, kernel, be, whole)
    return made


def _written(
    name: str, kernel: Callable[..., Any], be: _bound.BoundBackend, whole: bool
) -> Callable[..., Any]:
    """The kernel that also writes its calls down; those inside of a decomposition, by itself."""
    array, to_array, counts = be.array, be.to_array, name in SIZED_BY_VALUES
    identity = threading.get_ident

    def run(*args: object, **named: object) -> Any:
        capture = _current
        if named or capture is None or capture.depth or identity() != capture.thread:
            if named and capture is not None and capture.listens:
                capture.refuse(f"{name} was called with named arguments")
            return kernel(*args, **named)
        draws = Generator in map(type, args)
        if not whole and not draws:
            return kernel(*args)
        given = plainly(args) if capture.followed else args
        capture.depth += 1  # as `inside` does, which takes longer than most of what is captured
        try:
            result = kernel(*given)
        finally:
            capture.depth -= 1
        kind, raw = type(result), False
        if kind is not array and kind is not tuple and kind is not list and result is not None:
            result, raw = to_array(result), True
        if counts:
            capture.refuse(f"a size depends on values ({name})")
        capture.add(name, kernel, args, result, raw=raw, effect=draws)
        return result

    run.__dict__.update(_bound.facts_of(kernel))
    return run


def _constant(be: BoundBackend, make: Callable[..., Any], capture: Capture) -> Callable[..., Any]:
    """`BoundBackend.scalar_const`, whose arrays nobody writes to."""
    full = be.full  # written down already

    def run(value: object, dtype: DType) -> Any:
        if isinstance(value, Tracked):
            if capture.listens:
                return full((), value, dtype)
            value = float(value)
        if isinstance(value, Followed):
            number = plainly(value)
            if type(number) is int and not decided_width(value, dtype):
                raise beyond(number, dtype)
            if capture.listens and not (dtype.category == 1 and type(number) is float):
                return full((), value, dtype)
            if capture.listens:
                capture.refuse("a number that changes is cut to a whole one")
            value = number
        native = make(value, dtype)
        if capture.listens and capture.find(native) is None:
            capture.constants[capture.slot(native)] = native
        return native

    return run


class _Constants:
    """A table of constants by numbers, which has none for those that are followed."""

    def __init__(self, table: dict[Any, Any]) -> None:
        self._table = table

    def get(self, number: object) -> Any:
        return None if isinstance(number, Followed) else self._table.get(number)

    def __contains__(self, number: object) -> bool:
        return self.get(number) is not None

    def __setitem__(self, number: object, native: Any) -> None:
        self._table[number] = native

    def __len__(self) -> int:
        return len(self._table)

    def values(self) -> Any:
        return self._table.values()


def _made_of_data(capture: Capture) -> None:
    capture.refuse(
        f"a tensor is made of numbers, maybe of {capture.data}, which is too long to be watched: "
        "give the tensor as an argument"
    )


def _of_few(make: Callable[..., Any], capture: Capture) -> Callable[..., Any]:
    """`BoundBackend.host_array`, whose numbers are watched where no long container has some."""

    def run(values: Any, shape: Any, dtype: object) -> Any:
        if capture.data is not None and capture.listens:
            _made_of_data(capture)
        return make(values, shape, dtype)

    return run


def checked_index(
    be: BoundBackend,
    array: Array,
    size: int,
    wrapped: bool,
    allowed: int | None,
    error: type[Exception],
    text: str,
) -> Array:
    """`flambeau._dispatch.arguments.checked` of a native array."""
    index = wrap(be, array, be.dtype_of(array))
    return _arguments.checked(index, size, error, text, (), wrap=wrapped, allowed=allowed)._a


def check_values(
    be: BoundBackend, array: object, low: float, high: float, error: object, text: str
) -> None:
    """`flambeau._dispatch.arguments.check_values` of a native array."""
    _arguments.check_values(wrap(be, array, be.dtype_of(array)), low, high, text)


def check_all(be: BoundBackend, found: object, value: object, text: str) -> None:
    """`flambeau.plans.checks.check_all` of native arrays."""
    holds = wrap(be, found, be.dtype_of(found))
    checks.check_all(holds, wrap(be, value, be.dtype_of(value)), lambda: text)


class _Watched:
    """A backend during a capture: reading values refuses the plan."""

    def __init__(self, backend: Any, capture: Capture) -> None:
        self._held = backend
        self._capture = capture
        for name in _READS:
            if (read := getattr(backend, name, None)) is not None:
                self.__dict__[name] = self._reading(name, read)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return getattr(self._held, name)

    def _reading(self, name: str, read: Callable[..., Any]) -> Callable[..., Any]:
        capture = self._capture

        def run(array: object, *args: object) -> Any:
            if capture.listens:
                capture.refuse(f"values were read ({name})")
            return read(array, *args)

        return run


class _Backend(_Watched):
    """The backend of a capture: new arrays are steps, too."""

    lies_within = None  # indices are looked at by `checked_index`, which is a step

    def __init__(self, backend: Any, be: BoundBackend, capture: Capture) -> None:
        super().__init__(backend, capture)
        self._be = be
        self.from_host = _written("from_host", backend.from_host, be, True)
        self.as_strided = _written("as_strided", backend.as_strided, be, True)
        if (nested := getattr(backend, "from_nested", None)) is not None:
            self.from_nested = self._numbers(nested)
        # Those of `arguments`: ranges are checked anew in every run.
        self.checked_index = self._check("checked_index", checked_index)
        self.check_values = self._check("check_values", check_values)

    def _numbers(self, nested: Callable[..., Any]) -> Callable[..., Any]:
        """`from_nested` whose arrays are constants, of which the function has a copy to write to.

        The numbers are watched as others are that the function has.
        """
        capture, be = self._capture, self._be

        def run(data: object, dtype: object) -> Any:
            if (found := nested(data, dtype)) is None or not capture.listens:
                return found
            if capture.data is not None:
                _made_of_data(capture)
            capture.constants[capture.slot(found[0])] = found[0]
            return be.clone(found[0]), found[1]

        return run

    def _check(self, name: str, check: Callable[..., Any]) -> Callable[..., Any]:
        capture, be, held = self._capture, self._be, self._held

        def run(array: object, *args: object) -> Any:
            if not capture.listens:
                own = getattr(held, name, None)
                return None if own is None else own(array, *args)
            with capture.inside():
                result = check(be, array, *args)
                if result is array:  # in another run it may be one of its own
                    result = be.clone(array)
            self._note(name, check, (array, *args), result)
            return True if result is None else result

        return run

    def _note(
        self, name: str, check: Callable[..., Any], args: tuple[Any, ...], result: Any
    ) -> None:
        capture = self._capture
        capture.set_gradients()
        capture.set_numbers()
        capture.add(name, _of(check, self._be), args, result, effect=True)
        capture.early[capture.steps[-1]] = {id(t) for t, grad in capture.grads if t._grad is grad}

    def check_all(self, found: object, value: object, complaint: Callable[[], str]) -> bool:
        """See `checks.check_all`; runs complain in the words of the captured one."""
        if not self._capture.listens:
            return False
        with self._capture.inside():
            text = complaint()
            check_all(self._be, found, value, text)
        self._note("check_all", check_all, (found, value, text), None)
        return True


def _of(check: Callable[..., Any], be: BoundBackend) -> Callable[..., Any]:
    def run(*args: object) -> Any:
        return check(be, *args)

    return run


def _watched(function: Callable[..., Any], capture: Capture) -> Callable[..., Any]:
    """A function whose effects, on more than arrays, no plan would have."""
    what = {
        **dict.fromkeys(_HOOKS, "a hook was called"),
        "get_state": "the state of a generator was read",
    }.get(function.__name__, "the state of a generator was set")

    def run(*args: object, **named: object) -> Any:
        if capture.listens:
            capture.refuse(what)
        return function(*args, **named)

    return run


def _counted(run: Callable[..., Any], capture: Capture) -> Callable[..., Any]:
    def counted(*args: object, **named: object) -> Any:
        if capture.listens:
            capture.passes += 1
        return run(*args, **named)

    return counted


def _tracked(plainly: Callable[..., Any], capture: Capture) -> Callable[..., Any]:
    def by_body(op: StepOp, args: tuple[Any, ...]) -> None:
        if op.name in _TRACKED and capture.listens and not recording():
            capture.by_body(op, args)
        else:
            plainly(op, args)

    return by_body


def _stand_by(be: _bound.BoundBackend, capture: Capture) -> None:
    """Refuse the plan where a second device computes."""
    for name in {*OPS, *be.kernels}:
        if (kernel := be.__dict__.get(name)) is not None:
            be.__dict__[name] = _refusing(kernel, capture, be)
    be.backend = _Watched(be.backend, capture)


def _refusing(kernel: Callable[..., Any], capture: Capture, be: BoundBackend) -> Callable[..., Any]:
    def run(*args: object, **named: object) -> Any:
        if capture.listens:
            capture.refuse(f"a second device is used: {be.device} beside {capture.be.device}")
        return kernel(*args, **named)

    run.__dict__.update(_bound.facts_of(kernel))
    return run
