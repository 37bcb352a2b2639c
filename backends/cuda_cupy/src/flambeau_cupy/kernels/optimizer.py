"""Optimiser steps: one launch for up to 64 parameters of a group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from flambeau.plugin.steps import (
    AdadeltaStep,
    AdagradStep,
    AdamaxStep,
    AdamStep,
    AsgdStep,
    NadamStep,
    RadamStep,
    RmspropStep,
    RpropStep,
    SgdStep,
    takes,
)
from flambeau_cupy.device.array_module import Array, Kernel
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


def row_of(given: list[Array | None], scalars: dict[int, Array | float]) -> _Row:
    first: Any = given[0]
    kind = first.dtype
    # The kernel walks all of them by the length of the parameter.
    if any(a is not None and a.shape != first.shape for a in given):
        found = [None if a is None else a.shape for a in given]
        raise RuntimeError(f"optimiser steps are for arrays of one shape, got {found}")
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


def tables(layer: Layer, rows: list[_Row]) -> Iterator[tuple[np.dtype, int, Struct, int, int, int]]:
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
    layer: Layer,
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
    for kind, form, table, length, blocks, block in tables(layer, rows):
        first = [np.int32(form)] if steps is not None and counts else []

        def advance(
            kind: Any = kind, table: Any = table, length: int = length, form: int = form
        ) -> None:
            if steps is not None and form != _NUMBER:
                values = [np.float64(v) for v in count[1]]
                layer.launched(
                    kind, count[0], 1, 64, table, np.int32(length), np.int32(form), *values
                )

        if not count_after:
            advance()
        layer.launched(kind, kernel, (blocks, length), block, table, *first, *told)
        if count_after:
            advance()
    for row in rows:
        for a, written in row.back:
            a[...] = written


def sgd_step_(layer: Layer, s: SgdStep) -> None:
    lists = [s.params, s.grads, *([s.momentum_buffers] if s.momentum else [])]
    step(
        layer,
        "sgd_step",
        lists,
        (s.lr, s.momentum, s.dampening, s.weight_decay),
        (s.nesterov, s.maximize),
    )


def asgd_step_(layer: Layer, s: AsgdStep) -> None:
    step(
        layer,
        "asgd_step",
        (s.params, s.grads, s.averages),
        (s.lambd, s.weight_decay),
        (s.maximize,),
        s.steps,
        scalars={3: s.etas, 4: s.mus},
        count=("asgd_count", (s.lr, s.lambd, s.alpha, s.t0)),
        count_after=True,
    )
    for i, count in enumerate(s.steps):
        if isinstance(count, (int, float)):
            s.etas[i] = s.lr / (1 + s.lambd * s.lr * count) ** s.alpha
            s.mus[i] = 1 / max(1, count - s.t0)


def adam_step_(layer: Layer, s: AdamStep) -> None:
    lists = [
        s.params,
        s.grads,
        s.exp_avgs,
        s.exp_avg_sqs,
        *([s.max_exp_avg_sqs] if s.amsgrad else []),
    ]
    numbers = s.lr, s.beta1, s.beta2, s.eps, s.weight_decay
    step(layer, "adam_step", lists, numbers, (s.decoupled, s.amsgrad, s.maximize), s.steps)


def rmsprop_step_(layer: Layer, s: RmspropStep) -> None:
    state = s.square_avgs, s.grad_avgs, s.momentum_buffers
    numbers = s.lr, s.alpha, s.eps, s.weight_decay, s.momentum
    lists = (s.params, s.grads, *state)
    step(layer, "rmsprop_step", lists, numbers, (s.centered, s.maximize), s.steps, counts=False)


def adagrad_step_(layer: Layer, s: AdagradStep) -> None:
    numbers = s.lr, s.lr_decay, s.eps, s.weight_decay
    step(layer, "adagrad_step", (s.params, s.grads, s.sums), numbers, (s.maximize,), s.steps)


def adadelta_step_(layer: Layer, s: AdadeltaStep) -> None:
    lists = s.params, s.grads, s.square_avgs, s.acc_deltas
    numbers = s.lr, s.rho, s.eps, s.weight_decay
    step(layer, "adadelta_step", lists, numbers, (s.maximize,), s.steps, counts=False)


def adamax_step_(layer: Layer, s: AdamaxStep) -> None:
    numbers = s.lr, s.beta1, s.beta2, s.eps, s.weight_decay
    step(
        layer,
        "adamax_step",
        (s.params, s.grads, s.exp_avgs, s.exp_infs),
        numbers,
        (s.maximize,),
        s.steps,
    )


def nadam_step_(layer: Layer, s: NadamStep) -> None:
    for i, count in enumerate(s.steps):
        if isinstance(count, (int, float)):
            s.mu_products[i] *= s.beta1 * (1.0 - 0.5 * 0.96 ** (count * s.momentum_decay))
    step(
        layer,
        "nadam_step",
        (s.params, s.grads, s.exp_avgs, s.exp_avg_sqs),
        (s.lr, s.beta1, s.beta2, s.eps, s.weight_decay, s.momentum_decay),
        (s.decoupled, s.maximize),
        s.steps,
        scalars={4: s.mu_products},
        count=("nadam_count", (s.beta1, s.momentum_decay)),
    )


def radam_step_(layer: Layer, s: RadamStep) -> None:
    lists = s.params, s.grads, s.exp_avgs, s.exp_avg_sqs
    numbers = s.lr, s.beta1, s.beta2, s.eps, s.weight_decay
    step(layer, "radam_step", lists, numbers, (s.decoupled, s.maximize), s.steps)


def rprop_step_(layer: Layer, s: RpropStep) -> None:
    lists = s.params, s.grads, s.prevs, s.step_sizes
    numbers = s.shrink, s.grow, s.smallest, s.largest
    step(layer, "rprop_step", lists, numbers, (s.maximize,), s.steps, counts=False)


def _in_memory_order(arrays: list[Array | None]) -> list[Array | None]:
    """The arrays, or all of them transposed where that makes them row-major."""
    if all(a is None or a.flags.c_contiguous for a in arrays):
        return arrays
    turned = [None if a is None else a.T for a in arrays]
    return turned if all(a is None or a.flags.c_contiguous for a in turned) else arrays


STEPS: dict[type[Any], Kernel] = {
    SgdStep: sgd_step_,
    AsgdStep: asgd_step_,
    AdamStep: adam_step_,
    RmspropStep: rmsprop_step_,
    AdagradStep: adagrad_step_,
    AdadeltaStep: adadelta_step_,
    AdamaxStep: adamax_step_,
    NadamStep: nadam_step_,
    RadamStep: radam_step_,
    RpropStep: rprop_step_,
}
"""Functions of a layer by what else they take."""


def make(layer: Layer) -> dict[str, Kernel]:
    """The kernels of this family."""
    return {
        function.__name__: layer.quiet(takes(arguments)(partial(function, layer)))
        for arguments, function in STEPS.items()
    }
