"""Which calls of a plan become one program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from flambeau.plugin import bool_
from flambeau.plugin.plan import Plan, Slot, Step
from flambeau_native.fusion.calls import Call, Reader
from flambeau_native.fusion.program import TooLongError, outline, program

__all__ = ["fused"]


class _Group:
    """Calls that wait to be one program, in order.

    Attributes:
        shape: that of the elements that they go through.
        calls: the calls by their place in the plan.
        made: the slots that they fill.
        read: the slots that they read.
        rows: those of `made` that hold a value for each row.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.calls: dict[int, Call] = {}
        self.made: set[int] = set()
        self.read: set[int] = set()
        self.rows: set[int] = set()

    def add(self, place: int, call: Call) -> None:
        """Take a call."""
        self.calls[place] = call
        self.made.add(call.step.results)
        self.read.update(call.step.reads)
        if call.reduces or call.shape != self.shape:
            self.rows.add(call.step.results)

    def join(self, other: _Group) -> None:
        """Take the calls of a group of the same shape."""
        self.calls = dict(sorted({**self.calls, **other.calls}.items()))
        self.made |= other.made
        self.read |= other.read
        self.rows |= other.rows

    def takes(self, call: Call, reader: Reader) -> bool:
        """Whether a call that reads results of this group can be part of it."""
        reads = self.made & set(call.step.reads)
        if call.shape == self.shape:
            specs, row = reader.plan.specs, (*self.shape[:-1], 1)
            if call.reduces or call.parts:
                return not reads & self.rows
            return all(specs[slot][0] == row for slot in reads & self.rows)
        if call.reduces or call.parts or not self.rows or call.shape != (*self.shape[:-1], 1):
            return False
        # Instructions by row have two operands, and their results are numbers.
        is_bool = reader.plan.specs[call.step.results][1] is bool_
        if is_bool or any(len(operands) == 3 for _, operands, _ in call.lines):
            return False
        # A value a row, of such values and numbers alone.
        others = {slot for line in call.lines for slot in line[1] if type(slot) is Slot}
        return others <= self.rows | reader.values.keys()


def fused(plan: Plan, steps: Sequence[Step], constants: dict[int, Any]) -> Sequence[Step]:
    """Steps of `plan`, with `constants`, with programs for neighbouring ones.

    A group waits until somebody else needs what it makes, so that it takes all calls up to there;
    groups that a call joins become one.  Nothing waits past a call that may write.
    """
    writer = _Writer(plan, steps, constants)
    for i, step in enumerate(steps):
        writer.take(i, step)
    writer.close(writer.open)
    return writer.steps


def _uses(steps: Sequence[Step]) -> Counter[int]:
    """How often each slot is read."""
    return Counter([slot for step in steps for slot in step.reads])


class _Writer:
    """The steps so far, and the groups that are open."""

    def __init__(self, plan: Plan, steps: Sequence[Step], constants: dict[int, Any]) -> None:
        self.reader = Reader(plan, constants)
        self.uses = _uses(steps)
        self.kept = frozenset(plan.outputs)
        self.steps: list[Step] = []
        self.open: list[_Group] = []
        self.known: dict[Any, tuple[Step, list[int]]] = {}  # programs and their slots, by outline

    def take(self, place: int, step: Step) -> None:
        """Give a step to a group, or write it down after those that it needs."""
        reads = step.reads
        needed = [group for group in self.open if not group.made.isdisjoint(reads)]
        call = None if step.effect else self.reader.read(step)
        if call is None:
            if needed or step.effect:
                self.close(self.open if step.effect else needed)
            self.steps.append(step)
            return
        joined = [group for group in needed if group.takes(call, self.reader)]
        if len(joined) < len(needed):
            self.close([group for group in needed if group not in joined])
        if not joined:
            joined = [
                g for g in self.open if g.shape == call.shape and not g.read.isdisjoint(reads)
            ][:1]
        if joined:
            group = joined[0]
            for other in joined[1:]:
                group.join(other)
                self.open.remove(other)
        else:
            group = _Group(call.shape)
            self.open.append(group)
        group.add(place, call)

    def close(self, groups: Sequence[_Group]) -> None:
        """Write groups down."""
        for group in list(groups):
            self.open.remove(group)
            self._write(list(group.calls.items()))

    def _write(self, calls: list[tuple[int, Call]]) -> None:
        if len(calls) > 1 or any(call.parts for _, call in calls):
            here = _uses([call.step for _, call in calls])
            wanted = [
                slot
                for slot in [call.step.results for _, call in calls]
                if slot in self.kept or here[slot] != self.uses[slot]
            ]
            try:
                step = self._program([call for _, call in calls], wanted)
            except TooLongError:
                if len(calls) == 1:
                    self.steps.append(calls[0][1].step)
                    return
                half = len(calls) // 2
                self._write(calls[:half])
                self._write(calls[half:])
                return
            self.steps.append(step)
        else:
            self.steps += [call.step for _, call in calls]

    def _program(self, calls: Sequence[Call], wanted: Sequence[int]) -> Step:
        """A program; of layers and steps of loops that are alike one is made."""
        key, slots = outline(self.reader, calls, wanted)
        if (known := self.known.get(key)) is None:
            step = program(self.reader, calls, wanted)
            self.known[key] = step, slots
            return step
        like, its_slots = known
        now = dict(zip(its_slots, map(Slot, slots), strict=True))
        results = like.results
        results = now[results] if type(results) is Slot else tuple([now[s] for s in results])
        return Step(like.op, like.kernel, tuple([now[s] for s in like.args]), results)
