"""Expressions run on arrays of any strides, broadcast, in one launch each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from flambeau_cupy.device.array_module import Array, ArrayModule
from flambeau_cupy.device.launch import Program, Struct, blocks_for
from flambeau_cupy.fusion.expressions import Expression
from flambeau_cupy.fusion.steps import TYPES

DIMS = 12  # of a layout, once neighbouring dimensions are joined


@dataclass
class _Plan:
    """How an expression runs on arrays of given shapes and strides."""

    program: Program
    layout: Struct
    grid: tuple[int, int]
    n: int
    memory: tuple[int, ...]
    turn: tuple[int, ...] | None


class Elementwise:
    """Runs expressions.

    Args:
        layer: the array module, whose `launch` is there.
    """

    def __init__(self, layer: ArrayModule) -> None:
        self.layer = layer
        assert layer.launch is not None
        self._launch = layer.launch
        self._plans: dict[Any, _Plan] = {}

    def run(
        self, expression: Expression, given: Sequence[Any], out: Array | None = None
    ) -> tuple[Array, ...]:
        """The outputs, fresh unless there is one and `out` is where it goes.

        Args:
            expression: what to compute.
            given: arrays, and floats where an input is `NUMBER`.
            out: an array of the broadcast shape.
        """
        xp, array = self.layer.xp, self.layer.array
        if out is not None:
            given = [a if type(a) is not array else self._apart(a, out) for a in given]
        key = (
            expression,
            *[(a.shape, a.strides) if type(a) is array else None for a in given],
            None if out is None else (out.shape, out.strides),
        )
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plan(expression, given, out)
            if plan is None:  # too many dimensions of too many kinds: row-major copies have one
                shape = np.broadcast_shapes(*[a.shape for a in given if type(a) is array])
                dense = [
                    xp.broadcast_to(a, shape).copy("C") if type(a) is array else a for a in given
                ]
                results = self.run(expression, dense)
                if out is not None:
                    out[...] = results[0]
                return results
            if len(self._plans) >= 4096:
                self._plans.clear()
            self._plans[key] = plan
        if out is None:
            made = []
            for _, kind in expression.outputs:
                memory = xp.empty(plan.memory, _DTYPES[kind])
                made.append(memory if plan.turn is None else memory.transpose(plan.turn))
        else:
            made = [out]
        if plan.n:
            arguments = [a if type(a) is array else np.float64(a) for a in given]
            self._launch.program(plan.program, *plan.grid, plan.layout, *made, *arguments)
        return tuple(made)

    def _apart(self, a: Array, out: Array) -> Array:
        """`a`, or a copy where writing to `out` would change what is still to be read."""
        if a.strides == out.strides and a.shape == out.shape:
            if self.layer.address(a) == self.layer.address(out) and a.itemsize == out.itemsize:
                return a
        (low, high), (first, last) = self._reach(a), self._reach(out)
        return a.copy("K") if low < last and first < high else a

    def _reach(self, a: Array) -> tuple[int, int]:
        start = self.layer.address(a)
        if not a.size:
            return start, start
        steps = [s * (n - 1) for s, n in zip(a.strides, a.shape, strict=True)]
        low, high = sum(s for s in steps if s < 0), sum(s for s in steps if s > 0)
        return start + low, start + high + a.itemsize

    def _plan(
        self, expression: Expression, given: Sequence[Any], out: Array | None
    ) -> _Plan | None:
        array = self.layer.array
        arrays = [a for a in given if type(a) is array]
        shape = np.broadcast_shapes(*[a.shape for a in arrays])
        if out is not None:
            if np.broadcast_shapes(shape, out.shape) != out.shape:
                raise ValueError(f"a result of shape {shape} does not fit into {out.shape}")
            shape = out.shape
        rank, n = len(shape), prod(shape)
        steps = [_steps(a, rank, shape) for a in arrays]
        fixed = [] if out is None else [_steps(out, rank, shape)]
        order = _order(shape, [*fixed, *steps])
        memory = tuple([shape[d] for d in order])
        dense = [0] * rank
        size = 1
        for d in reversed(order):
            dense[d] = size
            size *= shape[d]
        outputs = fixed or [dense] * len(expression.outputs)
        rows = [[row[d] for d in order if shape[d] != 1] for row in (*outputs, *steps)]
        sizes, rows = _joined([s for s in memory if s != 1], rows)
        layout = np.zeros((), _layout_type(len(rows)))
        layout["n"] = n
        per_thread = 8
        if len(sizes) <= 1 and all((row or [1])[0] in (0, 1) for row in rows):
            for k, row in enumerate(rows):
                layout["step"][k, 0] = row[0] if row else 1
        elif len(sizes) > DIMS:
            return None
        else:
            layout["dims"] = len(sizes)
            layout["size"][: len(sizes)] = sizes
            for k, row in enumerate(rows):
                layout["step"][k, : len(sizes)] = row
            per_thread = 2
        turn = None
        if out is None and order != list(range(rank)):
            turn = tuple(order.index(d) for d in range(rank))
        return _Plan(
            expression.program,
            Struct(layout),
            blocks_for(n, per_thread, 128 if n > 4096 else 32),
            n,
            memory,
            turn,
        )


_DTYPES = {name: kind for kind, name in TYPES.items()}
_LAYOUTS: dict[int, np.dtype] = {}


def _layout_type(operands: int) -> np.dtype:
    if operands not in _LAYOUTS:
        fields = [("n", np.int64), ("dims", np.int64), ("size", np.int64, DIMS)]
        _LAYOUTS[operands] = np.dtype([*fields, ("step", np.int64, (operands, DIMS))])
    return _LAYOUTS[operands]


def _steps(a: Array, rank: int, shape: tuple[int, ...]) -> list[int]:
    """The steps of `a`, broadcast, in elements."""
    lead = rank - a.ndim
    return [0] * lead + [
        0 if n == 1 else s // a.itemsize for s, n in zip(a.strides, a.shape, strict=True)
    ]


def _order(shape: tuple[int, ...], rows: list[list[int]]) -> list[int]:
    """The dimensions from the outermost in memory to the innermost, as most operands have them.

    Of two dimensions the first operand that tells them apart decides; one that repeats along
    either of them says nothing.
    """
    order = list(range(len(shape)))
    for i in range(1, len(order)):
        for j in range(i, 0, -1):
            outer, inner = order[j - 1], order[j]
            told = 0
            for row in rows:
                a, b = abs(row[outer]), abs(row[inner])
                if a and b and a != b:
                    told = 1 if a > b else -1
                    break
            if told >= 0:
                break
            order[j - 1], order[j] = inner, outer
    return order


def _joined(sizes: list[int], rows: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """Neighbouring dimensions made one where all operands go on from one into the other."""
    if not sizes:
        return [], [[] for _ in rows]
    out, steps = [sizes[-1]], [[row[-1]] for row in rows]
    for d in range(len(sizes) - 2, -1, -1):
        if all(row[d] == made[0] * out[0] for row, made in zip(rows, steps, strict=True)):
            out[0] *= sizes[d]
        else:
            out.insert(0, sizes[d])
            for row, made in zip(rows, steps, strict=True):
                made.insert(0, row[d])
    return out, steps
