"""Decisions of a plan: what is computed for one alone, and asked for its truth, as one call.

A decision is a call ``decide(condition, before)``, which raises where the truth of the condition is
not what it was before.  What leads to the condition from few numbers has no other use mostly: sums
and extrema of whole arrays, arithmetic with them, comparisons.  csrc/decision.c computes these as
their kernels do, to the bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from flambeau.plugin import bool_, float32, float64, int64
from flambeau.plugin.plan import Plan, Slot, Step
from flambeau_native.extension import native
from flambeau_native.fusion.calls import is_row_major
from flambeau_native.kernels import KERNELS
from flambeau_numpy.extending import KERNELS as NUMPY

if TYPE_CHECKING:
    from flambeau_numpy.extending import Array

__all__ = ["with_decisions"]

# The limits of decision.c.
_LEAVES, _NUMBERS, _LINES, _MOST = 8, 8, 32, 8192
_KINDS = {float32: "f", float64: "d", int64: "q", bool_: "b"}
_COMPARISONS = frozenset("eq ne lt le gt ge".split())
_LINES_OF = {
    **dict.fromkeys(_COMPARISONS, "fdq"),
    **dict.fromkeys("add sub mul div abs neg".split(), "fd"),
    **dict.fromkeys("bitwise_and bitwise_or".split(), "b"),
}
_LEAVES_OF = {
    **dict.fromkeys("sum mean norm2".split(), "fd"),
    **dict.fromkeys("amax amin".split(), "fdq"),
    **dict.fromkeys("any all".split(), "b"),
}


class _UnfitError(Exception):
    """A condition of which too much would have to be computed."""


def with_decisions(plan: Plan, steps: Sequence[Step], constants: dict[int, Any]) -> Sequence[Step]:
    """Steps of `plan`, with `constants`, whose decisions compute what only they ask for."""
    if not any(step.op == "decide" for step in steps):
        return steps
    uses = Counter([slot for step in steps for slot in step.reads])
    uses.update(plan.outputs)
    makers: dict[int, tuple[int, Step]] = {}  # of calls since the last that may have written
    found: dict[int, Step] = {}
    needless: set[int] = set()
    for i, step in enumerate(steps):
        if step.op == "decide":
            decision = _Decision(plan, constants, makers, uses)
            try:
                found[i] = decision.step(step)
                needless |= decision.taken
            except _UnfitError:
                pass
        elif step.effect:
            makers.clear()
        elif type(step.results) is Slot:
            makers[step.results] = i, step
    return [found.get(i, step) for i, step in enumerate(steps) if i not in needless]


class _Decision:
    """The parts of one decision; `taken` are the places of the calls that it makes needless."""

    def __init__(
        self,
        plan: Plan,
        constants: dict[int, Any],
        makers: dict[int, tuple[int, Step]],
        uses: Counter[int],
    ) -> None:
        self.plan, self.constants, self.makers, self.uses = plan, constants, makers, uses
        self.taken: set[int] = set()
        self.leaves: dict[tuple[int, str], int] = {}  # by slot and what is taken of it
        self.numbers: dict[tuple[str, str], tuple[int, float | int]] = {}
        self.lines: list[tuple[str, str, Any, Any]] = []

    def step(self, step: Step) -> Step:
        """The call in the place of `step`."""
        condition, before = step.args
        answer = self._register(condition)
        if not self.taken or len(self.lines) > _LINES:
            raise _UnfitError
        if len(self.leaves) > _LEAVES or len(self.numbers) > _NUMBERS or not self.leaves:
            raise _UnfitError
        if not self.lines and (answer != ("leaf", len(self.leaves) - 1) or self.numbers):
            raise _UnfitError
        first = {"leaf": 0, "number": len(self.leaves)}
        first["line"] = first["number"] + len(self.numbers)
        places = [
            (name, kind, first[a[0]] + a[1], first[b[0]] + b[1]) for name, kind, a, b in self.lines
        ]
        leaves = tuple(
            [(self._kind(slot), how, prod(self.plan.specs[slot][0])) for slot, how in self.leaves]
        )
        numbers = tuple([number for _, number in self.numbers.values()])
        run = native.decision(leaves, numbers, tuple(places))
        kernel = _unless(run, before, step.kernel)
        return Step(
            "decide", kernel, tuple([Slot(slot) for slot, _ in self.leaves]), None, effect=True
        )

    def _register(self, slot: Slot) -> tuple[str, int]:
        """Where the value of an array of one element is."""
        if slot in self.constants:
            return self._number(slot)
        if (known := self.makers.get(slot)) is not None and self.uses[slot] == 1:
            place, step = known
            if (made := self._line(step) or self._reduced(step)) is not None:
                self.taken.add(place)
                return made
        return self._leaf(slot, "first")

    def _line(self, step: Step) -> tuple[str, int] | None:
        """A call of numbers as a line, and whatever it reads; None where it is none."""
        if not self._is_own(step, _LINES_OF):
            return None
        kinds = {self._kind(slot) for slot in step.args if type(slot) is Slot}
        if len(kinds) != 1 or any(type(slot) is not Slot for slot in step.args):
            return None
        (kind,) = kinds
        if kind not in _LINES_OF[step.op] or any(map(self._is_many, step.args)):
            return None
        given = [self._register(slot) for slot in step.args]
        self.lines.append((step.op, kind, given[0], given[-1]))
        return "line", len(self.lines) - 1

    def _reduced(self, step: Step) -> tuple[str, int] | None:
        """A reduction of a whole array as a leaf; None where it is none."""
        if not self._is_own(step, _LEAVES_OF):
            return None
        slot, dims, _ = step.args
        shape = self.plan.specs[slot][0]
        if len(dims) != len(shape) or not 0 < prod(shape) <= _MOST:
            return None
        if self._kind(slot) not in _LEAVES_OF[step.op] or not is_row_major(self.plan, slot):
            return None
        return self._leaf(slot, step.op)

    def _is_own(self, step: Step, known: dict[str, str]) -> bool:
        op = step.op
        return op in known and step.kernel is KERNELS.get(op, NUMPY.get(op))

    def _leaf(self, slot: Slot, how: str) -> tuple[str, int]:
        self._kind(slot)
        return "leaf", self.leaves.setdefault((slot, how), len(self.leaves))

    def _number(self, slot: Slot) -> tuple[str, int]:
        kind, number = self._kind(slot), self.constants[slot].item()
        number = int(number) if kind == "q" else float(number)
        place, _ = self.numbers.setdefault((kind, repr(number)), (len(self.numbers), number))
        return "number", place

    def _kind(self, slot: int) -> str:
        kind = _KINDS.get(self.plan.specs[slot][1])
        if kind is None:
            raise _UnfitError
        return kind

    def _is_many(self, slot: Slot) -> bool:
        return prod(self.plan.specs[slot][0]) != 1


def _unless(
    run: Callable[..., bool], before: bool, decide: Callable[[Any, bool], None]
) -> Callable[..., None]:
    """The kernel of a decision: `decide` of another truth says so."""

    def decided(*arrays: Array) -> None:
        if run(*arrays) is not before:
            decide(np.asarray(not before), before)

    return decided
