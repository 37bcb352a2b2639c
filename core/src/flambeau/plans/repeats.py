"""The shortest way to a plan: one generated function that knows the kind of the last call."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from flambeau._autograd.engine import watchers
from flambeau._autograd.journal import open_journals
from flambeau._autograd.modes import recording
from flambeau._dispatch import dispatch
from flambeau._tensor import function_modes
from flambeau._types.device import default_device
from flambeau._types.dtype import get_default_dtype
from flambeau.amp._setting import OFF, current

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flambeau.plans.entry import Entry

__all__ = ["MISSED", "Repeat", "fits", "narrowing"]

MISSED: Any = object()
"""What is given for a call of another kind, which nothing was done for."""


def narrowing() -> object:
    """What of mixed precision holds here: None where it is off."""
    setting = current()
    return None if setting is OFF else (*setting.on.items(), setting.caching)


class Repeat:
    """Repeats a plan for calls that are like the last one, with the same parameters.

    Its tests are those of a kind of calls, in one function without tables: what it takes is a
    part of what a small plan does.

    Attributes:
        plan: the plan.
        takes, count: the parameters of `repeat`, and how many there are.
        repeat: does a call, or gives MISSED for one of another kind.
    """

    def __init__(
        self,
        plan: Entry,
        function: Callable[..., Any],
        given: Sequence[Any],
        paths: Sequence[str] | None = None,
        held: Sequence[Any] = (),
    ) -> None:
        """Be of the kind of a call.

        Args:
            plan: of that kind, which only gives tensors.
            function: of which the plan is, for gradients of gradients.
            given: the arguments, which `fits` says can be told apart.
            paths: what the function reads of a module ``m``, which comes before them.
            held: what it read there.
        """
        self.plan = plan
        self.space: dict[str, Any] = {
            "stack": function_modes.stack,
            "dispatch": dispatch,
            "watchers": watchers,
            "journals": open_journals,
            "recording": recording,
            "records": recording(),
            "dtype": get_default_dtype,
            "default": get_default_dtype(),
            "device": default_device,
            "place": default_device(),
            "setting": current,
            "narrowing": narrowing,
            "OFF": OFF,
            "narrow": narrowing(),
            "MISSED": MISSED,
            "plan": plan,
            "ready": plan.ready,
            "replay": plan.replay,
            "made": plan.made,
            "of_plan": plan.recorded,
            "be": plan.be,
            "kernels": plan.kernels,
            "function": function,
            "partial": partial,
        }
        self.lines: list[str] = []
        self.arrays: list[str] = []
        self.tensors: list[str] = []
        self.names: list[tuple[str, str]] = []
        self._parameters(paths or (), held)
        self.hold(held)
        for at, value in enumerate(given):
            self._argument(f"x{at}", value)
        others = [f"x{at}" for at in range(len(given))]
        self._all_apart([t for t in self.tensors if t[0] == "x"])
        names = others if paths is None else ["m", *others]
        self.takes, self.count = ", ".join(names), len(names)
        body = "\n    ".join(self.lines)
        tensors = f"({''.join(f'{t}, ' for t in self.tensors)})"
        ready = "if (state := ready()) is None: return MISSED"
        state = [*self.arrays, "*state"]
        if plan.free:
            ready, state = "if be.kernels is not kernels: return MISSED", self.arrays
        result = f"return made(found, {tensors})"
        if plan.records_only:
            again = ["function", *(f"h{at}" for at in range(len(held))), *others]
            result = f"""given = {tensors}
    result, ends = made(found, given)
    of_plan(given, found, ends, partial({", ".join(again)}))
    return result"""
        text = f"""
def repeat({self.takes}):
    if (
        stack.modes or dispatch.modes or watchers or dispatch.captures or journals
        or recording() is not records
        or dtype() is not default
        or ((now := device()) is not place and now != place)
        or (setting() is not OFF if narrow is None else narrowing() != narrow)
    ):
        return MISSED
    {body}
    {ready}
    found = replay({", ".join(state)})
    {result}
"""
        exec(compile(text, "<repeated>", "exec"), self.space)
        self.repeat: Callable[..., Any] = self.space["repeat"]

    def hold(self, held: Sequence[Any]) -> None:
        """Take other parameters of the same kind; none are let go of what was held."""
        for (name, array), value in zip(self.names, held, strict=False):
            self.space[name] = value
            if array:
                self.space[array] = value._a

    def forget(self) -> None:
        """Hold no parameters."""
        for name, array in self.names:
            self.space[name] = None
            if array:
                self.space[array] = None

    def _parameters(self, paths: Sequence[str], held: Sequence[Any]) -> None:
        """Tests whether what the module has is something else."""
        before = ""
        for at, (path, value) in enumerate(zip(paths, held, strict=True)):
            of, bracket, rest = path.rpartition("[")
            if bracket and of != before:
                self.lines.append(f"table = {of}")
                before = of
            self.lines.append(f"h{at} = table[{rest}" if bracket else f"h{at} = {path}")
            if type(value) not in dispatch.PLAIN:
                self.names.append((f"H{at}", ""))
                self._argument(f"h{at}", value)
                continue
            self.arrays.append(f"b{at}")
            self.tensors.append(f"h{at}")
            wants = self._wants(f"h{at}", value)
            self._miss(f"h{at} is not H{at} or (b{at} := h{at}._a) is not A{at}{wants}")
            self.names.append((f"H{at}", f"A{at}"))

    def _argument(self, name: str, value: Any) -> None:
        """A test whether an argument is of another kind."""
        if type(value) in dispatch.PLAIN:
            array = value._a
            facts = type(value), value.dtype, array.shape, array.strides
            self.space |= {f"{fact}_{name}": it for fact, it in zip("TDSU", facts, strict=True)}
            self.arrays.append(f"a_{name}")
            self.tensors.append(name)
            self._miss(
                f"type({name}) is not T_{name} or {name}._be is not be "
                f"or {name}.dtype is not D_{name} or (a_{name} := {name}._a).shape != S_{name} "
                f"or a_{name}.strides != U_{name}{self._wants(name, value)}"
            )
        elif type(value) in (tuple, list):
            parts = [f"{name}_{at}" for at in range(len(value))]
            self._miss(f"type({name}) is not {type(value).__name__} or len({name}) != {len(value)}")
            if parts:
                self.lines.append(f"{', '.join(parts)}, = {name}")
            for part, each in zip(parts, value, strict=True):
                self._argument(part, each)
        elif value is None:
            self._miss(f"{name} is not None")
        else:
            self.space |= {f"K_{name}": type(value), f"V_{name}": value}
            self._miss(f"type({name}) is not K_{name} or {name} != V_{name}")

    def _all_apart(self, names: Sequence[str]) -> None:
        """A test whether a tensor is given twice, which the function may ask."""
        if len(names) > 4:
            self._miss(f"len({{*map(id, ({', '.join(names)}))}}) != {len(names)}")
        elif len(names) > 1:
            self._miss(" or ".join([f"{one} is {other}" for one, other in combinations(names, 2)]))

    def _wants(self, name: str, value: Any) -> str:
        return f" or {name}._rg is not {value._rg}"

    def _miss(self, test: str) -> None:
        self.lines.append(f"if {test}: return MISSED")


def fits(values: Sequence[Any], plan: Entry) -> bool:
    """Whether values are such as a `Repeat` tells apart, on the device of the plan.

    That has arrays which know their strides.
    """
    for value in values:
        if type(value) in dispatch.PLAIN:
            # A flag that is no bool is that of a view, which may have a history by its base.
            if value._be is not plan.be or type(value._rg) is not bool:
                return False
        elif type(value) in (tuple, list):
            if not fits(value, plan):
                return False
        elif type(value) is float:
            if value == 0 or value != value:  # zeros have signs
                return False
        elif value is not None and type(value) not in (int, bool, str):
            return False
    return True
