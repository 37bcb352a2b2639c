"""LSTM and GRU over whole sequences: one compiled call.

With many rows, or a projection, it is a product by BLAS and a compiled pass per step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from flambeau_native.kernels._common import Array, Kernel, compiled, made, otherwise
from flambeau_numpy.extending import multiply, product
from flambeau_numpy.extending.parts import states_before, steps_of

Sizes = tuple[int, ...]

_pack, _packed_product = compiled("pack"), compiled("packed_product")
_FEW = 128  # rows, beyond which a product by BLAS spends little time on packing
_PANEL = 16  # columns to which packed weights are filled up at most


def _packed(weight: Array) -> tuple[Array, int]:
    """A weight as compiled products read it, and to how many columns it is filled up."""
    columns, depth = weight.shape
    if not (weight.flags.c_contiguous or weight.T.flags.c_contiguous):
        weight = np.ascontiguousarray(weight)
    memory = weight if weight.flags.c_contiguous else weight.T
    right, down = (step // weight.itemsize for step in weight.strides)
    filled = (columns + _PANEL - 1) // _PANEL * _PANEL
    packed = made((filled * depth,), weight.dtype)
    _pack[weight.dtype](packed, memory, columns, depth, right, down)
    return packed, filled


def _multiplier(weight: Array, batch: int) -> Callable[[Array, Array], object]:
    """A function ``(x, out)`` that puts x @ weightᵀ into `out`, for up to `batch` rows."""
    if batch > _FEW:
        return lambda x, out: multiply(x, weight.T, out)
    columns, depth = weight.shape
    packed, _ = _packed(weight)
    run = _packed_product[weight.dtype]
    return lambda x, out: run(out, x, packed, len(x), depth, columns)


@lru_cache(64)
def _listed(sizes: Sizes, reverse: bool) -> Array:
    """First row and number of rows of each step, as compiled code reads them."""
    steps = [(rows.start, n) for rows, n in steps_of(sizes, reverse)]
    listed = np.array(steps, np.int64).reshape(len(steps), 2)
    listed.flags.writeable = False
    return listed


def _rows(a: Array | None) -> Array | None:
    """Row-major: a gradient may be an expanded one."""
    return None if a is None else np.ascontiguousarray(a)


def _state(grad: Array | None, like: Array) -> Array:
    """The gradient of a last state, to be carried on in place."""
    if grad is None:
        return np.zeros(like.shape, like.dtype)
    return np.array(grad, order="C")


def _make_lstm_sequence() -> Kernel:
    general, find = otherwise("lstm_sequence"), compiled("lstm_step").get
    at_once = compiled("lstm_sequence")

    def lstm_sequence(
        x: Array,
        hx: Array,
        cx: Array,
        weight: Array,
        projection: Array | None,
        sizes: Sizes,
        reverse: bool,
    ) -> tuple[Array, ...]:
        run = find(x.dtype)
        if run is None or not x.size:
            return general(x, hx, cx, weight, projection, sizes, reverse)
        total, width = x.shape
        kind, size, x = x.dtype, width // 4, np.ascontiguousarray(x)
        gates, cells = made((total, width), kind), made((total, size), kind)
        output = made((total, hx.shape[1]), kind)
        h, c = hx.copy("C"), cx.copy("C")
        if projection is None and len(hx) <= _FEW:
            packed, filled = _packed(weight)
            steps = _listed(sizes, reverse)
            arrays = gates, cells, c, h, output, x, packed, steps
            at_once[kind](*arrays, total, len(hx), size, len(steps), filled)
            return output, h, c, cells, gates
        times = _multiplier(weight, len(hx))
        inner = output if projection is None else np.empty((len(hx), size), kind)
        for rows, n in steps_of(sizes, reverse):
            start = rows.start
            times(h[:n], gates[rows])
            run(gates, cells, c, inner, x, start, n, size, start if projection is None else 0)
            if projection is not None:
                np.matmul(inner[:n], projection.T, output[rows])
            h[:n] = output[rows]
        return output, h, c, cells, gates

    return lstm_sequence


def _make_lstm_sequence_backward() -> Kernel:
    general, find = otherwise("lstm_sequence_backward"), compiled("lstm_step_backward").get
    at_once = compiled("lstm_sequence_backward")

    def lstm_sequence_backward(
        grad_output: Array | None,
        grad_hidden: Array | None,
        grad_cell: Array | None,
        grad_cells: Array | None,
        grad_gates: Array | None,
        hx: Array,
        cx: Array,
        weight: Array,
        projection: Array | None,
        output: Array,
        cells: Array,
        gates: Array,
        sizes: Sizes,
        reverse: bool,
    ) -> tuple[Array, ...]:
        run = find(cells.dtype)
        if run is None or not cells.size:
            grads = grad_output, grad_hidden, grad_cell, grad_cells, grad_gates
            saved = hx, cx, weight, projection, output, cells, gates
            return general(*grads, *saved, sizes, reverse)
        (total, size), kind = cells.shape, cells.dtype
        cells, gates = np.ascontiguousarray(cells), np.ascontiguousarray(gates)
        before = states_before(cx, cells, sizes, reverse)
        over_h, over_c = _state(grad_hidden, hx), _state(grad_cell, cx)
        grad = made((total, 4 * size), kind)
        outputs, others = _rows(grad_output), (_rows(grad_cells), _rows(grad_gates))
        saved = gates, cells, before
        if projection is None and len(hx) <= _FEW:
            packed, filled = _packed(weight.T)
            steps = _listed(sizes, not reverse)
            arrays = grad, over_c, over_h, outputs, *others, *saved, packed, steps
            at_once[kind](*arrays, total, len(hx), size, len(steps), filled)
            over_weight = product(grad.T, states_before(hx, output, sizes, reverse))
            return grad, over_h, over_c, over_weight, np.zeros((0,), kind)
        times = _multiplier(weight.T, len(hx))
        over_output = None if projection is None else made(output.shape, kind)
        for rows, n in steps_of(sizes, not reverse):
            if projection is None or over_output is None:
                over, added = over_h, outputs
            else:
                if outputs is not None:
                    over_h[:n] += outputs[rows]
                over_output[rows] = over_h[:n]
                over, added = over_h[:n] @ projection, None
            run(grad, over_c, over, added, *others, *saved, rows.start, n, size)
            times(grad[rows], over_h[:n])
        over_weight = product(grad.T, states_before(hx, output, sizes, reverse))
        if over_output is None:
            over_projection = np.zeros((0,), kind)
        else:
            over_projection = over_output.T @ (np.tanh(cells) * gates[:, 3 * size :])
        return grad, over_h, over_c, over_weight, over_projection

    return lstm_sequence_backward


def _make_gru_sequence() -> Kernel:
    general, find = otherwise("gru_sequence"), compiled("gru_step").get
    at_once = compiled("gru_sequence")

    def gru_sequence(
        x: Array, hx: Array, weight: Array, bias: Array | None, sizes: Sizes, reverse: bool
    ) -> tuple[Array, ...]:
        run = find(x.dtype)
        if run is None or not x.size:
            return general(x, hx, weight, bias, sizes, reverse)
        total, size = len(x), hx.shape[1]
        kind, x, bias = x.dtype, np.ascontiguousarray(x), _rows(bias)
        gates, output = made((total, 4 * size), kind), made((total, size), kind)
        h = hx.copy("C")
        inner = np.empty((len(hx), 3 * size), kind)
        if len(hx) <= _FEW:
            packed, filled = _packed(weight)
            steps = _listed(sizes, reverse)
            arrays = gates, h, output, inner, x, bias, packed, steps
            at_once[kind](*arrays, total, len(hx), size, len(steps), filled)
            return output, h, gates
        times = _multiplier(weight, len(hx))
        for rows, n in steps_of(sizes, reverse):
            times(h[:n], inner[:n])
            run(gates, h, output, inner, x, bias, rows.start, n, size)
        return output, h, gates

    return gru_sequence


def _make_gru_sequence_backward() -> Kernel:
    general, find = otherwise("gru_sequence_backward"), compiled("gru_step_backward").get
    at_once = compiled("gru_sequence_backward")

    def gru_sequence_backward(
        grad_output: Array | None,
        grad_hidden: Array | None,
        grad_gates: Array | None,
        hx: Array,
        weight: Array,
        output: Array,
        gates: Array,
        sizes: Sizes,
        reverse: bool,
    ) -> tuple[Array, ...]:
        run = find(output.dtype)
        if run is None or not output.size:
            grads = grad_output, grad_hidden, grad_gates
            return general(*grads, hx, weight, output, gates, sizes, reverse)
        (total, size), kind = output.shape, output.dtype
        gates, before = np.ascontiguousarray(gates), states_before(hx, output, sizes, reverse)
        over_h = _state(grad_hidden, hx)
        outer, inner = made((total, 3 * size), kind), made((total, 3 * size), kind)
        grads = _rows(grad_output), _rows(grad_gates)
        passed = np.empty(hx.shape, kind)
        if len(hx) <= _FEW:
            packed, filled = _packed(weight.T)
            steps = _listed(sizes, not reverse)
            arrays = outer, inner, over_h, passed, *grads, gates, before, packed, steps
            at_once[kind](*arrays, total, len(hx), size, len(steps), filled)
            return outer, over_h, product(inner.T, before), inner.sum(0)
        times = _multiplier(weight.T, len(hx))
        for rows, n in steps_of(sizes, not reverse):
            run(outer, inner, over_h, *grads, gates, before, rows.start, n, size)
            times(inner[rows], passed[:n])
            over_h[:n] += passed[:n]
        return outer, over_h, product(inner.T, before), inner.sum(0)

    return gru_sequence_backward


KERNELS: dict[str, Kernel] = {
    "lstm_sequence": _make_lstm_sequence(),
    "lstm_sequence_backward": _make_lstm_sequence_backward(),
    "gru_sequence": _make_gru_sequence(),
    "gru_sequence_backward": _make_gru_sequence_backward(),
}
