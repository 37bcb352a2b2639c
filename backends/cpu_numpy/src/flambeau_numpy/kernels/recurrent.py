"""Recurrent layers over whole sequences: one matrix product and a few passes per step.

Everything that is not part of the recurrence is done for all steps at once: the slopes of the
gates, tanh of the cells, and the gradients of the weights.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flambeau_numpy import products
from flambeau_numpy.allocator import empty
from flambeau_numpy.casts import is_half, narrow, wide
from flambeau_numpy.pointwise import Array
from flambeau_numpy.silence import quiet

Sizes = tuple[int, ...]


def steps_of(sizes: Sizes, reverse: bool) -> list[tuple[slice, int]]:
    """The rows of each step and their number, in the order of the recurrence."""
    steps, start = [], 0
    for n in sizes:
        steps.append((slice(start, start + n), n))
        start += n
    return steps[::-1] if reverse else steps


def states_before(first: Array, states: Array, sizes: Sizes, reverse: bool) -> Array:
    """For each row the state of the step visited before it, or of `first`."""
    out = empty(states.shape, states.dtype)
    batch = sizes[0]
    if sizes[-1] == batch:  # all of one length: a shift by one step
        if reverse:
            out[:-batch], out[len(out) - batch :] = states[batch:], first
        else:
            out[:batch], out[batch:] = first, states[: len(out) - batch]
        return out
    last: slice | None = None
    for rows, n in steps_of(sizes, reverse):
        out[rows] = first[:n]
        if last is not None:
            common = min(n, last.stop - last.start)
            out[rows.start : rows.start + common] = states[last.start : last.start + common]
        last = rows
    return out


def _in_float32(kernel: Callable[..., tuple[Array, ...]]) -> Callable[..., tuple[Array, ...]]:
    """`kernel`, computing float16 and bfloat16 in float32."""

    def run(*args: object) -> tuple[Array, ...]:
        dtype = next(a.dtype for a in args if isinstance(a, np.ndarray))
        if not is_half(dtype):
            return kernel(*args)
        given = [wide(a) if isinstance(a, np.ndarray) else a for a in args]
        return tuple(narrow(r, dtype) for r in kernel(*given))

    run.__doc__ = kernel.__doc__
    return quiet(run)


def _sigmoid(x: Array) -> None:
    np.negative(x, x)
    np.exp(x, x)
    x += 1
    np.reciprocal(x, x)


def product_into(x: Array, weight: Array, out: Array, spare: Array | None) -> None:
    """x @ weightᵀ into `out`; by way of weight @ xᵀ in `spare`, faster for few rows, if given."""
    if spare is None:
        products.multiply(x, weight.T, out)
    else:
        n = len(x)
        turned = spare[:, :n] if n != spare.shape[1] else spare
        products.multiply(weight, x.T, turned)
        np.copyto(out, turned.T)


def spare_for(weight: Array, batch: int) -> Array | None:
    """Room for `product_into` with up to `batch` rows, where it pays."""
    rows, depth = weight.shape
    return np.empty((rows, batch), weight.dtype) if batch <= 128 <= depth else None


@_in_float32
def lstm_sequence(
    x: Array,
    hx: Array,
    cx: Array,
    weight: Array,
    projection: Array | None,
    sizes: Sizes,
    reverse: bool,
) -> tuple[Array, ...]:
    """Outputs, final h and c, cells and gates (i, f, g, o)."""
    total, width = x.shape
    size = width // 4
    gates, cells = empty((total, width), x.dtype), empty((total, size), x.dtype)
    output = empty((total, hx.shape[1]), x.dtype)
    h, c = hx.copy(), cx.copy()
    spare, product = spare_for(weight, len(hx)), np.empty((len(hx), size), x.dtype)
    for rows, n in steps_of(sizes, reverse):
        z, live, p, cell = gates[rows], c[:n], product[:n], cells[rows]
        product_into(h[:n], weight, z, spare)
        z += x[rows]
        _sigmoid(z[:, : 2 * size])
        g, o = z[:, 2 * size : 3 * size], z[:, 3 * size :]
        np.tanh(g, g)
        _sigmoid(o)
        np.multiply(live, z[:, size : 2 * size], live)
        np.multiply(z[:, :size], g, p)
        live += p
        cell[...] = live
        np.tanh(live, p)
        out = output[rows]
        if projection is None:
            np.multiply(p, o, out)
        else:
            p *= o
            np.matmul(p, projection.T, out)
        h[:n] = out
    return output, h, c, cells, gates


@_in_float32
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
    """The gradients of input, hx, cx, weight and projection."""
    total, size = cells.shape
    kind = gates.dtype
    i, f, g, o = (gates[:, k * size : (k + 1) * size] for k in range(4))
    squashed = np.tanh(cells)
    opening = squashed * squashed  # becomes d(o·tanh c) / dc
    np.subtract(1, opening, opening)
    opening *= o
    # What the gradient of the cell (for o: of the output) is multiplied by, gate by gate.
    factors = empty(gates.shape, kind)
    np.subtract(1, gates, factors)
    factors *= gates
    inner = factors[:, 2 * size : 3 * size]
    np.multiply(g, g, inner)
    np.subtract(1, inner, inner)
    over_gates = None if grad_gates is None else grad_gates * factors
    factors[:, :size] *= g
    factors[:, size : 2 * size] *= states_before(cx, cells, sizes, reverse)
    inner *= i
    factors[:, 3 * size :] *= squashed
    parts = factors.reshape(total, 4, size)

    over_h = np.zeros(hx.shape, kind) if grad_hidden is None else grad_hidden.copy()
    over_c = np.zeros(cx.shape, kind) if grad_cell is None else grad_cell.copy()
    grad_input = parts  # in place: each factor is read once
    over_output = None if projection is None else empty(output.shape, kind)
    product = np.empty(cx.shape, kind)
    back = spare_for(weight.T, len(hx))
    for rows, n in steps_of(sizes, not reverse):
        over, over_cell, p = over_h[:n], over_c[:n], product[:n]
        if grad_output is not None:
            over += grad_output[rows]
        if projection is None or over_output is None:
            over_m = over
        else:
            over_output[rows] = over
            over_m = over @ projection
        np.multiply(over_m, opening[rows], p)
        over_cell += p
        if grad_cells is not None:
            over_cell += grad_cells[rows]
        z = grad_input[rows]
        z[:, :3] *= over_cell[:, None]
        z[:, 3] *= over_m
        if over_gates is not None:
            z += over_gates[rows].reshape(n, 4, size)
        product_into(z.reshape(n, 4 * size), weight.T, over, back)
        over_cell *= f[rows]
    flat = factors
    over_weight = products.product(flat.T, states_before(hx, output, sizes, reverse))
    if over_output is None:
        over_projection = np.zeros((0,), kind)
    else:
        over_projection = over_output.T @ (squashed * o)
    return flat, over_h, over_c, over_weight, over_projection


@_in_float32
def gru_sequence(
    x: Array, hx: Array, weight: Array, bias: Array | None, sizes: Sizes, reverse: bool
) -> tuple[Array, ...]:
    """Outputs, final h and gates (r, z, n, q)."""
    total, size = len(x), hx.shape[1]
    gates, output = empty((total, 4 * size), x.dtype), empty((total, size), x.dtype)
    h = hx.copy()
    spare, product = spare_for(weight, len(hx)), np.empty((len(hx), 3 * size), x.dtype)
    for rows, n in steps_of(sizes, reverse):
        inner, live, part, gate, out = product[:n], h[:n], x[rows], gates[rows], output[rows]
        product_into(live, weight, inner, spare)
        if bias is not None:
            inner += bias
        both, new, q = gate[:, : 2 * size], gate[:, 2 * size : 3 * size], gate[:, 3 * size :]
        np.add(inner[:, : 2 * size], part[:, : 2 * size], both)
        _sigmoid(both)
        np.copyto(q, inner[:, 2 * size :])
        np.multiply(gate[:, :size], q, new)
        new += part[:, 2 * size :]
        np.tanh(new, new)
        live -= new
        live *= gate[:, size : 2 * size]
        live += new
        out[...] = live
    return output, h, gates


@_in_float32
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
    """The gradients of input, hx, weight and bias."""
    total, size = output.shape
    kind = gates.dtype
    r, z, new, q = (gates[:, k * size : (k + 1) * size] for k in range(4))
    before = states_before(hx, output, sizes, reverse)
    slope_n = 1 - new * new
    by_n = (1 - z) * slope_n  # d n's inside / dh', and so on
    by_z = (before - new) * z * (1 - z)
    by_r = q * r * (1 - r)
    extra = None
    if grad_gates is not None:
        extra = grad_gates.copy()
        extra[:, :size] *= r * (1 - r)
        extra[:, size : 2 * size] *= z * (1 - z)
        extra[:, 2 * size : 3 * size] *= slope_n
    over_h = np.zeros(hx.shape, kind) if grad_hidden is None else grad_hidden.copy()
    grad_input, grad_inner = (empty((total, 3 * size), kind) for _ in range(2))
    product = np.empty(hx.shape, kind)
    back = spare_for(weight.T, len(hx))
    for rows, n in steps_of(sizes, not reverse):
        over, p = over_h[:n], product[:n]
        if grad_output is not None:
            over += grad_output[rows]
        outer, inner = grad_input[rows], grad_inner[rows]
        over_n = outer[:, 2 * size :]
        np.multiply(over, by_n[rows], over_n)
        np.multiply(over, by_z[rows], inner[:, size : 2 * size])
        if extra is not None:
            over_n += extra[rows, 2 * size : 3 * size]
            inner[:, size : 2 * size] += extra[rows, size : 2 * size]
        np.multiply(over_n, by_r[rows], inner[:, :size])
        np.multiply(over_n, r[rows], inner[:, 2 * size :])
        if extra is not None:
            inner[:, :size] += extra[rows, :size]
            inner[:, 2 * size :] += extra[rows, 3 * size :]
        product_into(inner, weight.T, p, back)
        over *= z[rows]
        over += p
    grad_input[:, : 2 * size] = grad_inner[:, : 2 * size]
    return grad_input, over_h, products.product(grad_inner.T, before), grad_inner.sum(0)


@_in_float32
def rnn_sequence(
    x: Array, hx: Array, weight: Array, nonlinearity: str, sizes: Sizes, reverse: bool
) -> tuple[Array, ...]:
    """Outputs and final h."""
    output, h = empty((len(x), hx.shape[1]), x.dtype), hx.copy()
    spare = spare_for(weight, len(hx))
    for rows, n in steps_of(sizes, reverse):
        out = output[rows]
        product_into(h[:n], weight, out, spare)
        out += x[rows]
        if nonlinearity == "tanh":
            np.tanh(out, out)
        else:
            np.maximum(out, out.dtype.type(0), out=out)
        h[:n] = out
    return output, h


@_in_float32
def rnn_sequence_backward(
    grad_output: Array | None,
    grad_hidden: Array | None,
    hx: Array,
    weight: Array,
    output: Array,
    nonlinearity: str,
    sizes: Sizes,
    reverse: bool,
) -> tuple[Array, ...]:
    """The gradients of input, hx and weight."""
    kind = output.dtype
    slope = 1 - output * output if nonlinearity == "tanh" else (output > 0).astype(kind)
    over_h = np.zeros(hx.shape, kind) if grad_hidden is None else grad_hidden.copy()
    grad_input = empty(output.shape, kind)
    back = spare_for(weight.T, len(hx))
    for rows, n in steps_of(sizes, not reverse):
        over = over_h[:n]
        if grad_output is not None:
            over += grad_output[rows]
        np.multiply(over, slope[rows], grad_input[rows])
        product_into(grad_input[rows], weight.T, over, back)
    over_weight = products.product(grad_input.T, states_before(hx, output, sizes, reverse))
    return grad_input, over_h, over_weight


KERNELS = {
    "lstm_sequence": lstm_sequence,
    "lstm_sequence_backward": lstm_sequence_backward,
    "gru_sequence": gru_sequence,
    "gru_sequence_backward": gru_sequence_backward,
    "rnn_sequence": rnn_sequence,
    "rnn_sequence_backward": rnn_sequence_backward,
}
