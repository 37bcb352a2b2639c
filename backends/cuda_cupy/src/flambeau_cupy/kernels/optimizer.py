"""Optimiser steps: one launch for up to 64 parameters of a group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flambeau_cupy.array_module import Array, Kernel
from flambeau_cupy.device.launch import Struct, blocks_for
from flambeau_cupy.dtypes import FLOATS
from flambeau_cupy.layer import Layer

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
        arrays: by role, None for one that is not used; the gradient is role 1.
        scalars: numbers of the parameter by role: 0-d arrays of one dtype, or floats. The last is
            how many steps were made, or, if a float, the number of the step that is made.
        back: pairs of an array and the copy that stands for it.
    """

    arrays: list[Any]
    scalars: dict[int, Array | float] = field(default_factory=dict)
    back: list[tuple[Array, Array]] = field(default_factory=list)

    @property
    def form(self) -> int:
        """What the scalars are."""
        count = self.scalars.get(STEP, 0.0)
        if isinstance(count, (int, float)):
            return _NUMBER
        return _DOUBLE if count.dtype == np.float64 else _FLOAT


def make(layer: Layer) -> dict[str, Kernel]:
    """The kernels of this family."""
    launch = layer.launch
    assert launch is not None

    def row_of(given: list[Array | None], scalars: dict[int, Array | float]) -> _Row:
        kind = given[0].dtype  # type: ignore[union-attr]
        row = _Row(_in_memory_order(given), scalars)
        for role, a in enumerate(row.arrays):
            if a is not None and (a.dtype != kind or not a.flags.c_contiguous):
                row.arrays[role] = a.astype(kind).copy("C")
                if role != 1:
                    row.back.append((a, row.arrays[role]))
        if kind in _REAL:
            real = _REAL[kind]
            row.arrays = [None if a is None else a.reshape(-1).view(real) for a in row.arrays]
        elif kind not in FLOATS:
            raise TypeError(f"optimiser steps are for floats, got {kind}")
        if (form := row.form) != _NUMBER:
            wanted = np.dtype(np.float64 if form == _DOUBLE else np.float32)
            for role, a in scalars.items():
                array: Any = a
                if array.dtype != wanted:
                    scalars[role] = array.astype(wanted)
                    row.back.append((array, scalars[role]))
        return row

    def tables(rows: list[_Row]) -> Iterator[tuple[np.dtype, int, Struct, int, int, int]]:
        """Dtype, form of the scalars, table, its length, blocks and threads of each launch."""
        groups: dict[tuple[np.dtype, int], list[_Row]] = {}
        for row in rows:
            groups.setdefault((row.arrays[0].dtype, row.form), []).append(row)
        for (kind, form), group in groups.items():
            for start in range(0, len(group), ROWS):
                some = group[start : start + ROWS]
                table = np.zeros((), TABLE)
                at, size = table["at"], table["size"]
                for i, row in enumerate(some):
                    size[i] = row.arrays[0].size
                    for role, a in enumerate(row.arrays):
                        at[role, i] = 0 if a is None else layer.address(a)
                    for role, value in row.scalars.items():
                        if form == _NUMBER:
                            at[role, i] = np.float64(value).view(np.uint64)
                        else:
                            at[role, i] = layer.address(value)
                blocks, block = blocks_for(int(size.max()), block=128)
                yield kind, form, Struct(table), len(some), blocks, block

    def step(
        kernel: str,
        lists: Sequence[Arrays],
        numbers: Sequence[float],
        flags: Sequence[bool],
        steps: Sequence[Array | float] | None = None,
        *,
        scalars: dict[int, Sequence[Array | float]] | None = None,
        counts: bool = True,
        count: tuple[str, tuple[float, ...]] = ("count_steps", ()),
        count_after: bool = False,
    ) -> None:
        """Launch a step for all parameters.

        Args:
            kernel: its name.
            lists: parameters, gradients and state, by role; lists that are not used are empty.
            numbers: what it is told.
            flags: what it is told after that.
            steps: the counts of steps, if there are any.
            scalars: other lists of numbers, by role.
            counts: whether it is told the form of the scalars.
            count: the kernel that counts steps on the device, and the numbers it is told.
            count_after: whether that is launched after the step.
        """
        rows = []
        for i in range(len(lists[0])):
            of_row = {role: some[i] for role, some in (scalars or {}).items()}
            if steps is not None:
                of_row[STEP] = steps[i]
            rows.append(row_of([some[i] if some else None for some in lists], of_row))
        told = [np.float64(v) for v in numbers] + [np.int32(v) for v in flags]
        for kind, form, table, length, blocks, block in tables(rows):
            first = [np.int32(form)] if steps is not None and counts else []

            def advance(
                kind: Any = kind, table: Any = table, length: int = length, form: int = form
            ) -> None:
                if steps is not None and form != _NUMBER:
                    values = [np.float64(v) for v in count[1]]
                    launch(kind, count[0], 1, 64, table, np.int32(length), np.int32(form), *values)

            if not count_after:
                advance()
            launch(kind, kernel, (blocks, length), block, table, *first, *told)
            if count_after:
                advance()
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
        step("sgd_step", lists, (lr, momentum, dampening, weight_decay), (nesterov, maximize))

    def asgd_step_(
        params: Arrays,
        grads: Arrays,
        averages: Arrays,
        etas: Any,
        mus: Any,
        steps: Sequence[Array | float],
        lr: float,
        lambd: float,
        alpha: float,
        t0: float,
        weight_decay: float,
        maximize: bool,
    ) -> None:
        step(
            "asgd_step",
            (params, grads, averages),
            (lambd, weight_decay),
            (maximize,),
            steps,
            scalars={3: etas, 4: mus},
            count=("asgd_count", (lr, lambd, alpha, t0)),
            count_after=True,
        )
        for i, count in enumerate(steps):
            if isinstance(count, (int, float)):
                etas[i] = lr / (1 + lambd * lr * count) ** alpha
                mus[i] = 1 / max(1, count - t0)

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
        numbers = lr, beta1, beta2, eps, weight_decay
        step("adam_step", lists, numbers, (decoupled, amsgrad, maximize), steps)

    def rmsprop_step_(
        params: Arrays,
        grads: Arrays,
        square_avgs: Arrays,
        grad_avgs: Arrays,
        momentum_buffers: Arrays,
        steps: Sequence[Array | float],
        lr: float,
        alpha: float,
        eps: float,
        weight_decay: float,
        momentum: float,
        centered: bool,
        maximize: bool,
    ) -> None:
        state = square_avgs, grad_avgs, momentum_buffers
        numbers = lr, alpha, eps, weight_decay, momentum
        lists = (params, grads, *state)
        step("rmsprop_step", lists, numbers, (centered, maximize), steps, counts=False)

    def adagrad_step_(
        params: Arrays,
        grads: Arrays,
        sums: Arrays,
        steps: Sequence[Array | float],
        lr: float,
        lr_decay: float,
        eps: float,
        weight_decay: float,
        maximize: bool,
    ) -> None:
        numbers = lr, lr_decay, eps, weight_decay
        step("adagrad_step", (params, grads, sums), numbers, (maximize,), steps)

    def adadelta_step_(
        params: Arrays,
        grads: Arrays,
        square_avgs: Arrays,
        acc_deltas: Arrays,
        steps: Sequence[Array | float],
        lr: float,
        rho: float,
        eps: float,
        weight_decay: float,
        maximize: bool,
    ) -> None:
        lists = params, grads, square_avgs, acc_deltas
        numbers = lr, rho, eps, weight_decay
        step("adadelta_step", lists, numbers, (maximize,), steps, counts=False)

    def adamax_step_(
        params: Arrays,
        grads: Arrays,
        exp_avgs: Arrays,
        exp_infs: Arrays,
        steps: Sequence[Array | float],
        lr: float,
        beta1: float,
        beta2: float,
        eps: float,
        weight_decay: float,
        maximize: bool,
    ) -> None:
        numbers = lr, beta1, beta2, eps, weight_decay
        step("adamax_step", (params, grads, exp_avgs, exp_infs), numbers, (maximize,), steps)

    def nadam_step_(
        params: Arrays,
        grads: Arrays,
        exp_avgs: Arrays,
        exp_avg_sqs: Arrays,
        mu_products: Any,
        steps: Sequence[Array | float],
        lr: float,
        beta1: float,
        beta2: float,
        eps: float,
        weight_decay: float,
        momentum_decay: float,
        decoupled: bool,
        maximize: bool,
    ) -> None:
        for i, count in enumerate(steps):
            if isinstance(count, (int, float)):
                mu_products[i] *= beta1 * (1.0 - 0.5 * 0.96 ** (count * momentum_decay))
        step(
            "nadam_step",
            (params, grads, exp_avgs, exp_avg_sqs),
            (lr, beta1, beta2, eps, weight_decay, momentum_decay),
            (decoupled, maximize),
            steps,
            scalars={4: mu_products},
            count=("nadam_count", (beta1, momentum_decay)),
        )

    def radam_step_(
        params: Arrays,
        grads: Arrays,
        exp_avgs: Arrays,
        exp_avg_sqs: Arrays,
        steps: Sequence[Array | float],
        lr: float,
        beta1: float,
        beta2: float,
        eps: float,
        weight_decay: float,
        decoupled: bool,
        maximize: bool,
    ) -> None:
        lists = params, grads, exp_avgs, exp_avg_sqs
        numbers = lr, beta1, beta2, eps, weight_decay
        step("radam_step", lists, numbers, (decoupled, maximize), steps)

    def rprop_step_(
        params: Arrays,
        grads: Arrays,
        prevs: Arrays,
        step_sizes: Arrays,
        steps: Sequence[Array | float],
        shrink: float,
        grow: float,
        smallest: float,
        largest: float,
        maximize: bool,
    ) -> None:
        lists = params, grads, prevs, step_sizes
        numbers = shrink, grow, smallest, largest
        step("rprop_step", lists, numbers, (maximize,), steps, counts=False)

    steps_made = (
        *(sgd_step_, asgd_step_, adam_step_, rmsprop_step_, adagrad_step_),
        *(adadelta_step_, adamax_step_, nadam_step_, radam_step_, rprop_step_),
    )
    return {kernel.__name__: layer.quiet(kernel) for kernel in steps_made}


def _in_memory_order(arrays: list[Array | None]) -> list[Array | None]:
    """The arrays, or all of them transposed where that makes them row-major."""
    if all(a is None or a.flags.c_contiguous for a in arrays):
        return arrays
    turned = [None if a is None else a.T for a in arrays]
    return turned if all(a is None or a.flags.c_contiguous for a in turned) else arrays
