"""The loss of sequences of unknown alignment, and its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau_native.kernels._common import (
    FLOAT64,
    INT64,
    Array,
    Kernel,
    compiled,
    dense,
    made,
    otherwise,
)

Lengths = tuple[int, ...]

_VECTOR = 8  # states that are computed together


def _laid_out(y: Array) -> tuple[Array, bool]:
    """Rows of classes without gaps, by time or, where they lie so, one sequence after the other."""
    if not y.flags.c_contiguous and (turned := y.transpose(1, 0, 2)).flags.c_contiguous:
        return turned, True
    return dense(y), False


def _given(
    y: Array, targets: Array, inputs: Lengths, labels: Lengths, blank: int, rows: int
) -> tuple[Array, bool, tuple[Any, ...]] | None:
    """Log-probabilities, how they lie, and what both functions take of a call behind the first
    arrays; None of nothing and of what is not compiled.  `rows` of α are kept."""
    time, count, classes = y.shape
    longest = targets.shape[1]
    if not y.size or targets.dtype != INT64 or not len(inputs) == len(labels) == count:
        return None
    laid, by_sequence = _laid_out(y)
    room = (rows + 6) * ((2 * longest + _VECTOR) // _VECTOR * _VECTOR + 2) + classes
    lengths = np.array(inputs, INT64), np.array(labels, INT64)
    sizes = time, count, classes, longest, blank, by_sequence, room
    return laid, by_sequence, (laid, dense(targets), *lengths, *sizes)


def _make_ctc_loss() -> Kernel:
    general, find = otherwise("ctc_loss"), compiled("ctc_loss").get

    def ctc_loss(
        y: Array, targets: Array, inputs: Lengths, labels: Lengths, blank: int, zero_infinity: bool
    ) -> Array:
        run = find(y.dtype)
        given = None if run is None else _given(y, targets, inputs, labels, blank, 2)
        if run is None or given is None:
            return general(y, targets, inputs, labels, blank, zero_infinity)
        out = made((y.shape[1],), y.dtype)
        run(out, made((y.shape[1], given[2][-1]), FLOAT64), *given[2])
        return out

    return ctc_loss


def _make_ctc_loss_backward() -> Kernel:
    general, find = otherwise("ctc_loss_backward"), compiled("ctc_loss_backward").get

    def ctc_loss_backward(
        grad: Array,
        y: Array,
        targets: Array,
        inputs: Lengths,
        labels: Lengths,
        blank: int,
        zero_infinity: bool,
    ) -> Array:
        run = find(y.dtype) if grad.dtype == y.dtype else None
        given = None if run is None else _given(y, targets, inputs, labels, blank, y.shape[0])
        if run is None or given is None:
            return general(grad, y, targets, inputs, labels, blank, zero_infinity)
        laid, by_sequence, rest = given
        out = made(laid.shape, y.dtype)
        scratch = made((y.shape[1], rest[-1]), FLOAT64)
        run(out, scratch, dense(grad), *rest, zero_infinity)
        return out.transpose(1, 0, 2) if by_sequence else out

    return ctc_loss_backward


KERNELS: dict[str, Kernel] = {
    "ctc_loss": _make_ctc_loss(),
    "ctc_loss_backward": _make_ctc_loss_backward(),
}
