"""The shortest way to a plan: one generated function that knows the kind of the last call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau._autograd.engine import watchers
from flambeau._autograd.modes import recording
from flambeau._dispatch import dispatch
from flambeau._tensor import function_modes
from flambeau._types.device import default_device
from flambeau._types.dtype import get_default_dtype
from flambeau.plans.compiled import narrowing
from flambeau.plans.entry import of_form

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flambeau.plans.entry import Entry

MISSED: Any = object()
"""What is given for a call of another kind, which nothing was done for."""


class Repeat:
    """Repeats a plan for calls that are like the last one, with the same parameters.

    Its tests are those of a kind of calls, in one function without tables: what it takes is a
    part of what a small plan does.

    Attributes:
        run: the result of a call, or `MISSED`.
    """

    def __init__(
        self, plan: Entry, paths: Sequence[str], held: Sequence[Any], given: Sequence[Any]
    ) -> None:
        """Be of the kind of a call.

        Args:
            plan: of that kind.
            paths: expressions for what is read of the module ``m``.
            held: what they gave.
            given: the other arguments.
        """
        records = recording()
        self.space: dict[str, Any] = {
            "stack": function_modes.stack,
            "dispatch": dispatch,
            "watchers": watchers,
            "recording": recording,
            "records": records,
            "dtype": get_default_dtype,
            "default": get_default_dtype(),
            "device": default_device,
            "place": default_device(),
            "narrowing": narrowing,
            "narrow": narrowing(),
            "MISSED": MISSED,
            "plan": plan,
            "ready": plan.ready,
            "replay": plan.replay,
            "give": of_form(plan.form, plan.be),
            "be": plan.be,
        }
        lines: list[str] = []
        arrays: list[str] = []
        self.names: list[tuple[str, str]] = []
        for at, (path, value) in enumerate(zip(paths, held, strict=True)):
            lines.append(f"h{at} = {path}")
            if type(value) in dispatch.PLAIN:
                arrays.append(f"b{at}")
                test = f"h{at} is not H{at} or (b{at} := h{at}._a) is not A{at}"
                lines.append(_miss(test + (f" or h{at}._rg" if records else "")))
                self.names.append((f"H{at}", f"A{at}"))
            else:
                self.names.append((f"H{at}", ""))
                lines.append(_miss(self._plain(f"h{at}", value)))
        for at, value in enumerate(given):
            if type(value) in dispatch.PLAIN:
                arrays.append(f"a{at}")
                lines.append(_miss(self._tensor(at, value) + (f" or x{at}._rg" * records)))
            else:
                lines.append(_miss(self._plain(f"x{at}", value)))
        names = [*(["m"] if paths else []), *(f"x{at}" for at in range(len(given)))]
        body = "\n    ".join(lines)
        text = f"""
def repeat({", ".join(names)}):
    if (
        stack.modes or dispatch.modes or watchers
        or recording() is not records
        or dtype() is not default
        or ((now := device()) is not place and now != place)
        or ((now := narrowing()) is not narrow and now != narrow)
    ):
        return MISSED
    {body}
    if (state := ready()) is None:
        return MISSED
    plan.runs += 1
    return give(replay({", ".join(arrays)}, *state))
"""
        exec(compile(text, "<repeated>", "exec"), self.space)
        self.run: Callable[..., Any] = self.space["repeat"]
        self.hold(held)

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

    def _tensor(self, at: int, value: Any) -> str:
        """A test whether an argument is of another kind than a tensor."""
        array = value._a
        facts = type(value), value.dtype, array.shape, array.strides
        self.space |= {f"{name}{at}": fact for name, fact in zip("TDSU", facts, strict=True)}
        return (
            f"type(x{at}) is not T{at} or x{at}._be is not be or x{at}.dtype is not D{at} "
            f"or (a{at} := x{at}._a).shape != S{at} or a{at}.strides != U{at}"
        )

    def _plain(self, name: str, value: object | None) -> str:
        """A test whether a number, a text or None is another."""
        if value is None:
            return f"{name} is not None"
        self.space |= {f"K{name}": type(value), f"V{name}": value}
        return f"type({name}) is not K{name} or {name} != V{name}"


def fits(values: Sequence[Any], plan: Entry) -> bool:
    """Whether values are such as a `Repeat` tells apart, on the device of the plan."""
    return all(
        value._be is plan.be
        if type(value) in dispatch.PLAIN
        else value is None or type(value) in (int, bool, str)
        for value in values
    )


def _miss(test: str) -> str:
    return f"if {test}: return MISSED"
