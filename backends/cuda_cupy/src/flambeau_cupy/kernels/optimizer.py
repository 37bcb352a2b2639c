"""Optimiser steps: one launch for up to 64 parameters of a group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from flambeau_cupy.dtypes import FLOATS
from flambeau_cupy.launch import Struct, blocks_for
from flambeau_cupy.layer import Array, Kernel, Layer

Arrays = Sequence[Array]
ROWS, STEP = 64, 5
TABLE = np.dtype([("at", np.uint64, (STEP + 1, ROWS)), ("size", np.int64, ROWS)])
_REAL = {
    np.dtype(np.complex64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.float64),
}
_FLOAT, _DOUBLE, _NUMBER = range(3)  # what the count of a parameter's steps is


@dataclass
class _Row:
    """A parameter, its gradient and its state, as row-major arrays of one dtype.

    Attributes:
        arrays: by role; the gradient is role 1.
        count: how many steps were made: a 0-d array, or, of counts on the host, the number of the
            step that is made.
        back: pairs of an array and the copy that stands for it.
    """

    arrays: list[Array]
    count: Array | float = 0.0
    back: list[tuple[Array, Array]] = field(default_factory=list)

    @property
    def form(self) -> int:
        """What `count` is."""
        if isinstance(self.count, (int, float)):
            return _NUMBER
        return _DOUBLE if self.count.dtype == np.float64 else _FLOAT


def make(layer: Layer) -> dict[str, Kernel]:
    """The kernels of this family."""
    launch = layer.launch
    assert launch is not None

    def row_of(given: list[Array], count: Array | float = 0.0) -> _Row:
        kind = given[0].dtype
        row = _Row(_in_memory_order(given), count)
        for role, a in enumerate(row.arrays):
            if a.dtype != kind or not a.flags.c_contiguous:
                row.arrays[role] = a.astype(kind).copy("C")
                if role != 1:
                    row.back.append((a, row.arrays[role]))
        if kind in _REAL:
            row.arrays = [a.reshape(-1).view(_REAL[kind]) for a in row.arrays]
        elif kind not in FLOATS:
            raise TypeError(f"optimiser steps are for floats, got {kind}")
        if row.form == _FLOAT and count.dtype != np.float32:  # type: ignore[union-attr]
            row.count = count.astype(np.float32)  # type: ignore[union-attr]
            row.back.append((count, row.count))
        return row

    def tables(rows: list[_Row]) -> Iterator[tuple[np.dtype, int, Struct, int, int, int]]:
        """Dtype, form of the counts, table, its length, blocks and threads of each launch."""
        groups: dict[tuple[np.dtype, int], list[_Row]] = {}
        for row in rows:
            if row.arrays[0].size:
                groups.setdefault((row.arrays[0].dtype, row.form), []).append(row)
        for (kind, form), group in groups.items():
            for start in range(0, len(group), ROWS):
                some = group[start : start + ROWS]
                table = np.zeros((), TABLE)
                at, size = table["at"], table["size"]
                for i, row in enumerate(some):
                    size[i] = row.arrays[0].size
                    for role, a in enumerate(row.arrays):
                        at[role, i] = layer.address(a)
                    if form == _NUMBER:
                        at[STEP, i] = np.float64(row.count).view(np.uint64)
                    else:
                        at[STEP, i] = layer.address(row.count)
                blocks, block = blocks_for(int(size.max()), block=128)
                yield kind, form, Struct(table), len(some), blocks, block

    def finish(rows: list[_Row]) -> None:
        for row in rows:
            for a, written in row.back:
                a[...] = written

    def sgd_step_(
        params: Arrays,
        grads: Arrays,
        momentum_buffers: Arrays,
        lr: float,
        momentum: float,
        dampening: float,
        weight_decay: float,
        nesterov: bool,
        maximize: bool,
    ) -> None:
        lists = [params, grads, *([momentum_buffers] if momentum else [])]
        rows = [row_of(list(given)) for given in zip(*lists, strict=True)]
        numbers = [np.float64(v) for v in (lr, momentum, dampening, weight_decay)]
        flags = np.int32(nesterov), np.int32(maximize)
        for kind, _, table, count, blocks, block in tables(rows):
            launch(kind, "sgd_step", (blocks, count), block, table, *numbers, *flags)
        finish(rows)

    def adam_step_(
        params: Arrays,
        grads: Arrays,
        exp_avgs: Arrays,
        exp_avg_sqs: Arrays,
        max_exp_avg_sqs: Arrays,
        steps: Sequence[Array | float],
        lr: float,
        beta1: float,
        beta2: float,
        eps: float,
        weight_decay: float,
        decoupled: bool,
        amsgrad: bool,
        maximize: bool,
    ) -> None:
        lists = [params, grads, exp_avgs, exp_avg_sqs, *([max_exp_avg_sqs] if amsgrad else [])]
        parts = zip(zip(*lists, strict=True), steps, strict=True)
        rows = [row_of(list(given), count) for given, count in parts]
        numbers = [np.float64(v) for v in (lr, beta1, beta2, eps, weight_decay)]
        flags = [np.int32(v) for v in (decoupled, amsgrad, maximize)]
        for kind, form, table, count, blocks, block in tables(rows):
            if form != _NUMBER:
                launch(kind, "count_steps", 1, 64, table, np.int32(count), np.int32(form))
            options = np.int32(form), *numbers, *flags
            launch(kind, "adam_step", (blocks, count), block, table, *options)
        for row in rows:
            if row.form != _NUMBER and not row.arrays[0].size:
                row.count += 1  # type: ignore[operator]
        finish(rows)

    made = {"sgd_step_": sgd_step_, "adam_step_": adam_step_}
    return {name: layer.quiet(kernel) for name, kernel in made.items()}


def _in_memory_order(arrays: list[Array]) -> list[Array]:
    """The arrays, or all of them transposed where that makes them row-major."""
    if all(a.flags.c_contiguous for a in arrays):
        return arrays
    turned = [a.T for a in arrays]
    return turned if all(a.flags.c_contiguous for a in turned) else arrays
