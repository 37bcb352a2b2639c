"""Programs: calls as instructions on registers, and the kernel that runs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from flambeau.plugin import bool_
from flambeau.plugin.plan import Slot, Step
from flambeau_native.extension import native
from flambeau_native.fusion.calls import Before, Call, Reader
from flambeau_numpy.extending import THRESHOLD, TO_NUMPY, empty

__all__ = ["TooLongError", "outline", "program"]

# The limits of program.h.
_ARRAYS, _REGISTERS, _LINES, _RANK = 32, 96, 256, 8
_BY_ROW = {"add", "sub", "mul", "div", "maximum", "minimum"}  # with the value of the row as operand


class TooLongError(Exception):
    """More than a program can hold."""


class _Value:
    """What a line gives or an operand is, before it has a register."""

    __slots__ = ("is_row", "last", "register")

    def __init__(self, is_row: bool = False, register: int | None = None) -> None:
        self.is_row = is_row
        self.register = register
        self.last = -1  # the line that reads it last


def program(reader: Reader, calls: Sequence[Call], wanted: Sequence[int]) -> Step:
    """One step that does what these calls do and gives the slots `wanted`.

    Raises:
        TooLongError: there is no program so long.
    """
    return _Builder(reader, calls, wanted).step()


def outline(reader: Reader, calls: Sequence[Call], wanted: Sequence[int]) -> tuple[Any, list[int]]:
    """What programs of the same kernel have in common, and the slots of this one in order."""
    places: dict[int, int] = {}
    values, specs = reader.values, reader.plan.specs
    parts: list[Any] = []
    for call in calls:
        parts += call.shape, call.reduces, repr(call.parts) if call.parts else None
        for name, operands, numbers in call.lines:
            parts.append(name)
            for x in operands:
                kind = type(x)
                if kind is Slot and x not in values:
                    parts.append(places.setdefault(x, len(places)))
                elif kind is Before:
                    parts.append(-1 - x)
                else:
                    parts.append(repr(values[x] if kind is Slot else float(x)))
            if numbers:
                parts.append(repr(numbers))
        parts.append(places.setdefault(call.step.results, len(places)))
    parts.append(None)
    parts += [places[slot] for slot in wanted]
    slots = list(places)
    return (*parts, *[specs[slot] for slot in slots]), slots


class _Builder:
    def __init__(self, reader: Reader, calls: Sequence[Call], wanted: Sequence[int]) -> None:
        self.reader = reader
        self.wanted = wanted
        self.calls = calls
        shapes = [call.shape for call in calls]
        self.shape = max(shapes, key=prod)
        self.inputs: list[int] = []
        self.outputs: list[tuple[int, int | None]] = []  # slot, and which part of it
        self.values: dict[Any, _Value] = {}  # by slot, and numbers by their value
        self.numbers: list[float] = []
        self.lines: list[tuple[str, bool, _Value, list[_Value], tuple[float, ...]]] = []
        self.expanded: dict[_Value, _Value] = {}
        for call in calls:
            self._take(call)
        if len(self.shape) > _RANK or len(self.lines) > _LINES:
            raise TooLongError

    def _take(self, call: Call) -> None:
        is_row = call.shape != self.shape
        before: list[_Value] = []
        for name, operands, numbers in call.lines:
            given = [self._operand(x, before) for x in operands]
            if not is_row:
                name, given = self._spread(name, given)
            made = _Value(is_row or call.reduces)
            self._write(name, is_row, made, given, numbers)
            before.append(made)
            if call.parts:
                made.register = len(self.outputs)
                self.outputs.append((call.step.results, len(before) - 1))
        if not call.parts:
            self.values[call.step.results] = before[-1]
            if call.step.results in self.wanted:
                before[-1].register = len(self.outputs)
                self.outputs.append((call.step.results, None))

    def _operand(self, x: Any, before: Sequence[_Value]) -> _Value:
        if type(x) is Before:
            return before[x]
        number = x if type(x) is not Slot else self.reader.values.get(x)
        if number is not None:
            key = ("number", np.float32(number).tobytes())
            if key not in self.values:
                self.values[key] = _Value(register=len(self.numbers))
                self.numbers.append(number)
            return self.values[key]
        if x not in self.values:
            self.values[x] = _Value(register=len(self.inputs))
            self.inputs.append(x)
        return self.values[x]

    def _spread(self, name: str, given: list[_Value]) -> tuple[str, list[_Value]]:
        """What goes element by element: its name and operands, some of which may be a row's."""
        rows = [x.is_row for x in given]
        if True not in rows:
            return name, given
        if name in _BY_ROW and False in rows:
            return f"rows_{name}" if rows[0] else f"{name}_rows", given
        return name, [self._expanded(x) if x.is_row else x for x in given]

    def _expanded(self, value: _Value) -> _Value:
        if value not in self.expanded:
            self.expanded[value] = _Value()
            self._write("expand", False, self.expanded[value], [value], ())
        return self.expanded[value]

    def _write(
        self, name: str, is_row: bool, made: _Value, given: list[_Value], numbers: tuple[float, ...]
    ) -> None:
        for value in given:
            value.last = len(self.lines)
        self.lines.append((name, is_row, made, given, numbers))

    def step(self) -> Step:
        """The step."""
        first_output, first_number = len(self.inputs), len(self.inputs) + len(self.outputs)
        first_free = first_number + len(self.numbers)
        if first_number > _ARRAYS:
            raise TooLongError
        read = ["0"] * len(self.outputs)
        place = {}  # of inputs and numbers, whose values stay where they are
        inputs = set(self.inputs)
        for key, value in self.values.items():
            if type(key) is tuple:
                place[value] = first_number + (value.register or 0)
            elif key in inputs:
                place[value] = value.register
        free: list[int] = []
        top, code = first_free, []
        for i, (name, is_row, made, given, numbers) in enumerate(self.lines):
            if made.register is not None:
                place[made] = first_output + made.register
                if made.last >= 0:
                    read[made.register] = "1"
            elif free:
                place[made] = free.pop()
            else:
                place[made], top = top, top + 1
            a, b, c = (*(place[x] for x in given), *[place[given[0]]] * (3 - len(given)))
            code.append((name, is_row, place[made], a, b, c, *numbers, *[0.0] * (3 - len(numbers))))
            done = {x for x in (*given, made) if x.last <= i and place[x] >= first_free}
            free += sorted(place[x] for x in done)
        if top > _REGISTERS:
            raise TooLongError
        specs = self.reader.plan.specs
        kinds = ["b" if specs[slot][1] is bool_ else "f" for slot in self.inputs]
        for slot, part in self.outputs:
            is_row = part is None and self.values[slot].is_row
            kinds.append("R" if is_row else "b" if specs[slot][1] is bool_ else "f")
        text = (
            self.shape,
            "".join(kinds),
            len(self.inputs),
            "".join(read),
            tuple(self.numbers),
            top - first_free,
            tuple(code),
        )
        made = list(dict.fromkeys(slot for slot, _ in self.outputs))
        parts = {call.step.results: call.parts for call in self.calls}
        targets = [
            (made.index(slot), None if part is None else parts[slot][part])
            for slot, part in self.outputs
        ]
        key = repr((text, [specs[slot] for slot in made], targets))
        if (kernel := _kernels.get(key)) is None:
            kernel = _kernel(native.program(*text), [specs[slot] for slot in made], targets)
            _kernels[key] = kernel
        results = Slot(made[0]) if len(made) == 1 else tuple(map(Slot, made))
        return Step("fused", kernel, tuple(map(Slot, self.inputs)), results)


_kernels: WeakValueDictionary[str, Callable[..., Any]] = WeakValueDictionary()
"""The kernels in use, by their programs: layers that are alike share them."""


def _kernel(
    run: Callable[..., None],
    made: Sequence[tuple[tuple[int, ...], Any]],
    targets: Sequence[tuple[int, tuple[slice, ...] | None]],
) -> Callable[..., Any]:
    """The function that makes the results and runs the program.

    Args:
        run: the program.
        made: shapes and dtypes of the results.
        targets: for each array that it writes the number of the result, and which part of that.
    """

    def starts(shape: tuple[int, ...], part: tuple[slice, ...] | None) -> tuple[int, ...]:
        if part is None:
            return ()
        return (*[x.start or 0 for x in part], *[0] * (len(shape) - len(part)))

    return native.fused(
        run,
        tuple([(shape, TO_NUMPY[dtype]) for shape, dtype in made]),
        tuple([(i, starts(made[i][0], part)) for i, part in targets]),
        empty,
        THRESHOLD,
    )
