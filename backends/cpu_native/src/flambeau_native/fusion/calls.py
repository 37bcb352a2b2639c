"""Which calls of a plan are instructions of a program.

A program computes by the compiled loops, hence a call is taken only where its kernel computes the
same bits: arithmetic anywhere, functions of compiled kernels for row-major arrays, and by loops
that NumPy lends what it computes of small arrays (`exp`, `tanh`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf, prod
from typing import Any

from flambeau.plugin import bool_, float32
from flambeau.plugin.plan import Plan, Slot, Step
from flambeau_native.fusion.borrowed import BORROWED
from flambeau_native.kernels import KERNELS
from flambeau_numpy.extending import KERNELS as NUMPY
from flambeau_numpy.extending import THRESHOLD

__all__ = ["Before", "Call", "Line", "Reader", "is_row_major"]

LONGEST = 4096  # elements of a row that is reduced, MAX_COLUMNS of program.h
_SMALL_SUM = 512  # elements, below which NumPy sums rows

Line = tuple[str, tuple[Any, ...], tuple[float, ...]]
"""An instruction: its name, operands (slots, numbers, or earlier lines as `Before`), numbers."""


class Before(int):
    """The result of an earlier line of the same call."""


@dataclass(eq=False)
class Call:
    """A step as part of a program.

    Attributes:
        step: the step.
        shape: that of the elements that the program goes through.
        lines: the instructions; the last gives the result.
        reduces: whether the result is a value for each row of `shape`.
        parts: where the results of the lines go if the result is an array put together of them.
    """

    step: Step
    shape: tuple[int, ...]
    lines: Sequence[Line]
    reduces: bool = False
    parts: Sequence[tuple[slice, ...]] = ()


_EXACT = {
    **dict.fromkeys("neg abs sqrt square reciprocal floor ceil trunc round".split(), 1),
    **dict.fromkeys("add sub mul div eq ne lt le gt ge".split(), 2),
    "where": 3,
    "multiply_add": 3,
}
_COMPILED = {
    **dict.fromkeys(
        """sigmoid silu erf rsqrt sign softplus clamp leaky_relu gelu elu hardsigmoid hardswish
        hardshrink softshrink""".split(),
        1,
    ),
    **dict.fromkeys(
        """sigmoid_backward tanh_backward silu_backward threshold_backward leaky_relu_backward
        gelu_backward elu_backward hardtanh_backward hardsigmoid_backward hardswish_backward
        hardshrink_backward""".split(),
        2,
    ),
}
_LARGE = {**dict.fromkeys("exp log tanh sin cos".split(), 1), "maximum": 2, "minimum": 2}
_REDUCTIONS = ("sum", "mean", "amax", "amin")
_TAKEN = frozenset(("pow", "relu", "where", *_EXACT, *_COMPILED, *_LARGE, *_REDUCTIONS))
_FLOATS = {float32}
_TANH = {"gelu": "gelu_tanh", "gelu_backward": "gelu_tanh_backward"}


def is_row_major(plan: Plan, slot: int) -> bool:
    """Whether the elements of the array of a slot lie one after the other."""
    return _is_row_major(plan.specs[slot][0], plan.strides[slot])


@lru_cache(1024)  # plans have many arrays of few layouts
def _is_row_major(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return prod(shape) == 0
        expected *= size
    return True


class Reader:
    """Reads the calls of a plan."""

    def __init__(self, plan: Plan, constants: dict[int, Any]) -> None:
        self.plan = plan
        self.values = {
            slot: float(array)
            for slot, array in constants.items()
            if not array.ndim and array.dtype == "f4"
        }

    def read(self, step: Step) -> Call | None:
        """What a program can make of a step, or None."""
        plan, op, args = self.plan, step.op, step.args
        if op == "placed":
            return self._placed(step)
        if op not in _TAKEN or step.effect or type(step.results) is not Slot:
            return None
        if step.kernel is not KERNELS.get(op, NUMPY.get(op)):
            return None
        shape, dtype = plan.specs[step.results]
        if op in _REDUCTIONS:
            return self._reduction(step)
        if not shape or dtype not in (float32, bool_) or not is_row_major(plan, step.results):
            return None
        if dtype is bool_ and op not in ("eq", "ne", "lt", "le", "gt", "ge"):
            return None
        lines = self._lines(op, args, prod(shape) * 4)
        return None if lines is None else Call(step, shape, lines)

    def _lines(self, op: str, args: tuple[Any, ...], size: int) -> Sequence[Line] | None:
        """The instructions of a call whose result has `size` bytes."""
        if op == "pow":
            return self._power(args)
        if op == "relu" and self._all_floats(args):
            return [("relu", args, ())] if self._row_major(args) else None
        if op == "where":
            if not (len(args) == 3 and self._all_floats(args[1:])):
                return None
            is_known = type(args[0]) is Slot and self.plan.specs[args[0]][1] is bool_
            return [("where", args, ())] if is_known else None
        count = _EXACT.get(op) or _COMPILED.get(op) or _LARGE.get(op)
        if count is None or len(args) < count or not self._all_floats(args[:count]):
            return None
        operands, rest = args[:count], args[count:]
        if op in _EXACT:
            return [(op, operands, ())] if not rest else None
        if op in _LARGE:
            if rest:
                return None
            if size >= THRESHOLD:
                return [(op, operands, ())] if self._row_major(operands) else None
            if count == 2:
                return [("latter_" + op, operands, ())]
            return [("small_" + op, operands, ())] if op in BORROWED else None
        if count == 2 and not self._row_major(operands):
            return None
        if op in _TANH:
            if rest not in (("none",), ("tanh",)):
                return None
            return [(_TANH[op] if rest[0] == "tanh" else op, operands, ())]
        if op == "clamp":
            low, high = (
                (-inf if rest[0] is None else rest[0]),
                (inf if rest[1] is None else rest[1]),
            )
            rest = (low, high)
            if not all(type(x) in (int, float) for x in rest) or not low <= high:
                return None
        if len(rest) > 3 or not all(type(x) in (int, float) for x in rest):
            return None
        return [(op, operands, tuple(map(float, rest)))]

    def _power(self, args: tuple[Any, ...]) -> Sequence[Line] | None:
        """Powers that the kernel computes without the function."""
        a, exponent = args[0], self.values.get(args[1]) if type(args[1]) is Slot else None
        if not self._all_floats((a,)):
            return None
        if exponent == 2:
            return [("mul", (a, a), ())]
        if exponent == 3:
            return [("mul", (a, a), ()), ("mul", (Before(0), a), ())]
        if exponent == 4:
            return [("mul", (a, a), ()), ("mul", (Before(0), Before(0)), ())]
        return [("sqrt", (a,), ())] if exponent == 0.5 else None

    def _reduction(self, step: Step) -> Call | None:
        plan, (a, dims, _) = self.plan, step.args
        if type(a) is not Slot or not self._all_floats((a,)):
            return None
        shape: Any = plan.specs[a][0]
        if tuple(dims) != (len(shape) - 1,) or not 1 < shape[-1] <= LONGEST:
            return None
        if not self._row_major((a,)) or not prod(shape):
            return None
        name, divisor = step.op, 1.0
        if name in ("sum", "mean"):
            if name == "sum" and prod(shape) < _SMALL_SUM and len(shape) > 1:
                return None
            name, divisor = "sum", float(shape[-1]) if name == "mean" else 1.0
        return Call(step, shape, [(name, (a,), (divisor,))], reduces=True)

    def _placed(self, step: Step) -> Call | None:
        """Parts of one shape beside each other in a new array."""
        slots, parts = step.args
        shape = self.plan.specs[slots[0]][0]
        if not self._all_floats(slots) or any(self.plan.specs[s][0] != shape for s in slots):
            return None
        lines: list[Line] = [("add", (slot, 0.0), ()) for slot in slots]
        return Call(step, shape, lines, parts=parts)

    def _all_floats(self, operands: Sequence[Any]) -> bool:
        specs = self.plan.specs
        return {specs[x][1] if type(x) is Slot else None for x in operands} <= _FLOATS

    def _row_major(self, operands: Sequence[Any]) -> bool:
        return all(is_row_major(self.plan, x) for x in operands)
