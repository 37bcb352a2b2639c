"""Recurrent sequences step by step, on tensors: what `layers.recurrent` decomposes into.

Rows stand step by step, ``batch_sizes[t]`` of them at step t (decreasing).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from flambeau._autograd.modes import enable_grad
from flambeau._dispatch.dispatch import cast, wrap
from flambeau._tensor.tensor import Tensor
from flambeau.ops.layers.activation import wide
from flambeau.ops.shapes.movement import cat

if TYPE_CHECKING:
    from flambeau._types.dtype import dtype as DType


Results = tuple[Tensor, ...]


def walk(batch_sizes: tuple[int, ...], reverse: bool) -> list[slice]:
    """The rows of each step, in the order in which the recurrence visits them."""
    rows, start = [], 0
    for size in batch_sizes:
        rows.append(slice(start, start + size))
        start += size
    return rows[::-1] if reverse else rows


def _count(rows: slice) -> int:
    return rows.stop - rows.start


def _renewed(state: Tensor, live: Tensor) -> Tensor:
    """`state` with its first rows replaced by `live`."""
    n = live.shape[0]
    return live if n == state.shape[0] else cat([live, state[n:]])


def _in_order(parts: list[Tensor], reverse: bool) -> Tensor:
    return cat(parts[::-1] if reverse else parts)


def previous(first: Tensor, states: Tensor, batch_sizes: tuple[int, ...], reverse: bool) -> Tensor:
    """For each row the state before it: of the step visited before, or of `first`."""
    parts, before = [], None
    for rows in walk(batch_sizes, reverse):
        n = _count(rows)
        if before is None:
            parts.append(first[:n])
        elif (m := _count(before)) >= n:
            parts.append(states[before.start : before.start + n])
        else:  # in reverse, sequences that begin here
            parts.append(cat([states[before], first[m:n]]))
        before = rows
    return _in_order(parts, reverse)


def _wide(*tensors: Tensor | None) -> Iterator[Any]:
    return (None if t is None else wide(t) for t in tensors)


def _as(dtype: DType, *tensors: Tensor) -> Results:
    return tuple(cast(t, dtype) for t in tensors)


def _plus(a: Tensor, b: Tensor | None, rows: slice) -> Tensor:
    return a if b is None else a + b[rows]


def _start(grad: Tensor | None, state: Tensor) -> Tensor:
    return state.new_zeros(tuple(state.shape)) if grad is None else grad


def lstm_steps(
    input: Tensor,
    hx: Tensor,
    cx: Tensor,
    weight: Tensor,
    projection: Tensor | None,
    batch_sizes: tuple[int, ...],
    reverse: bool,
) -> Results:
    """Outputs, final hidden and cell state, and of every step the cells and gates i, f, g, o."""
    dtype = input.dtype
    x, h, c, w, p = _wide(input, hx, cx, weight, projection)
    turned = w.mT
    outputs, cells, gates = [], [], []
    for rows in walk(batch_sizes, reverse):
        n = _count(rows)
        i, f, g, o = (x[rows] + h[:n] @ turned).chunk(4, 1)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        cell = f * c[:n] + i * g
        out = o * cell.tanh()
        if p is not None:
            out = out @ p.mT
        outputs.append(out)
        cells.append(cell)
        gates.append(cat([i, f, g, o], 1))
        h, c = _renewed(h, out), _renewed(c, cell)
    ordered = (_in_order(parts, reverse) for parts in (outputs, cells, gates))
    output, cell, gate = ordered
    return _as(dtype, output, h, c, cell, gate)


def lstm_backward_steps(
    grad_output: Tensor | None,
    grad_hidden: Tensor | None,
    grad_cell: Tensor | None,
    grad_cells: Tensor | None,
    grad_gates: Tensor | None,
    hx: Tensor,
    cx: Tensor,
    weight: Tensor,
    projection: Tensor | None,
    output: Tensor,
    cells: Tensor,
    gates: Tensor,
    batch_sizes: tuple[int, ...],
    reverse: bool,
) -> Results:
    """The gradients of `lstm_steps` in input, hx, cx, weight and projection (or an empty one)."""
    dtype = weight.dtype
    grad_output, grad_hidden, grad_cell, grad_cells, grad_gates = _wide(
        grad_output, grad_hidden, grad_cell, grad_cells, grad_gates
    )
    hx, cx, w, p, output, cells, gates = _wide(hx, cx, weight, projection, output, cells, gates)
    before = previous(cx, cells, batch_sizes, reverse)
    i, f, g, o = gates.chunk(4, 1)
    squashed = cells.tanh()
    slope = cat([i * (1 - i), f * (1 - f), 1 - g * g, o * (1 - o)], 1)
    opening = o * (1 - squashed * squashed)
    over_h, over_c = _start(grad_hidden, hx), _start(grad_cell, cx)
    over_input, over_output = [], []
    for rows in walk(batch_sizes, not reverse):
        n = _count(rows)
        over = _plus(over_h[:n], grad_output, rows)
        if p is not None:
            over_output.append(over)
            over = over @ p
        over_cell = _plus(over_c[:n] + over * opening[rows], grad_cells, rows)
        over_gates = cat(
            [over_cell * t for t in (g[rows], before[rows], i[rows])] + [over * squashed[rows]], 1
        )
        over_gates = _plus(over_gates, grad_gates, rows) * slope[rows]
        over_input.append(over_gates)
        over_h, over_c = _renewed(over_h, over_gates @ w), _renewed(over_c, over_cell * f[rows])
    grad_input = _in_order(over_input, not reverse)
    grad_weight = grad_input.mT @ previous(hx, output, batch_sizes, reverse)
    if p is None:
        grad_projection = w.new_zeros((0,))
    else:
        grad_projection = _in_order(over_output, not reverse).mT @ (o * squashed)
    return _as(dtype, grad_input, over_h, over_c, grad_weight, grad_projection)


def gru_steps(
    input: Tensor,
    hx: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    batch_sizes: tuple[int, ...],
    reverse: bool,
) -> Results:
    """Outputs, final state, and of every step the gates r, z, n and q, n's share of the state."""
    dtype = input.dtype
    x, h, w, b = _wide(input, hx, weight, bias)
    turned = w.mT
    outputs, gates = [], []
    for rows in walk(batch_sizes, reverse):
        live = h[: _count(rows)]
        inner = live @ turned if b is None else live @ turned + b
        (x_r, x_z, x_n), (h_r, h_z, q) = x[rows].chunk(3, 1), inner.chunk(3, 1)
        r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
        n = (x_n + r * q).tanh()
        out = n + z * (live - n)
        outputs.append(out)
        gates.append(cat([r, z, n, q], 1))
        h = _renewed(h, out)
    return _as(dtype, _in_order(outputs, reverse), h, _in_order(gates, reverse))


def gru_backward_steps(
    grad_output: Tensor | None,
    grad_hidden: Tensor | None,
    grad_gates: Tensor | None,
    hx: Tensor,
    weight: Tensor,
    output: Tensor,
    gates: Tensor,
    batch_sizes: tuple[int, ...],
    reverse: bool,
) -> Results:
    """The gradients of `gru_steps` in input, hx, weight and bias."""
    dtype = weight.dtype
    grad_output, grad_hidden, grad_gates = _wide(grad_output, grad_hidden, grad_gates)
    hx, w, output, gates = _wide(hx, weight, output, gates)
    before = previous(hx, output, batch_sizes, reverse)
    r, z, n, q = gates.chunk(4, 1)
    over_h = _start(grad_hidden, hx)
    over_input, over_inner = [], []
    for rows in walk(batch_sizes, not reverse):
        over = _plus(over_h[: _count(rows)], grad_output, rows)
        extra = None if grad_gates is None else grad_gates[rows].chunk(4, 1)
        r_t, z_t, n_t = r[rows], z[rows], n[rows]
        over_n = over * (1 - z_t)
        over_z = over * (before[rows] - n_t)
        if extra is not None:
            over_n, over_z = over_n + extra[2], over_z + extra[1]
        over_n = over_n * (1 - n_t * n_t)
        over_r, over_q = over_n * q[rows], over_n * r_t
        if extra is not None:
            over_r, over_q = over_r + extra[0], over_q + extra[3]
        shared = cat([over_r * r_t * (1 - r_t), over_z * z_t * (1 - z_t)], 1)
        inner = cat([shared, over_q], 1)
        over_input.append(cat([shared, over_n], 1))
        over_inner.append(inner)
        over_h = _renewed(over_h, over * z_t + inner @ w)
    inner = _in_order(over_inner, not reverse)
    return _as(dtype, _in_order(over_input, not reverse), over_h, inner.mT @ before, inner.sum(0))


def rnn_steps(
    input: Tensor,
    hx: Tensor,
    weight: Tensor,
    nonlinearity: str,
    batch_sizes: tuple[int, ...],
    reverse: bool,
) -> Results:
    """Outputs and final state."""
    dtype = input.dtype
    x, h, w = _wide(input, hx, weight)
    turned = w.mT
    outputs = []
    for rows in walk(batch_sizes, reverse):
        inner = x[rows] + h[: _count(rows)] @ turned
        out = inner.tanh() if nonlinearity == "tanh" else inner.relu()
        outputs.append(out)
        h = _renewed(h, out)
    return _as(dtype, _in_order(outputs, reverse), h)


def rnn_backward_steps(
    grad_output: Tensor | None,
    grad_hidden: Tensor | None,
    hx: Tensor,
    weight: Tensor,
    output: Tensor,
    nonlinearity: str,
    batch_sizes: tuple[int, ...],
    reverse: bool,
) -> Results:
    """The gradients of `rnn_steps` in input, hx and weight."""
    dtype = weight.dtype
    grad_output, grad_hidden, hx, w, output = _wide(grad_output, grad_hidden, hx, weight, output)
    slope = 1 - output * output if nonlinearity == "tanh" else cast(output > 0, output.dtype)
    over_h = _start(grad_hidden, hx)
    over_input = []
    for rows in walk(batch_sizes, not reverse):
        over = _plus(over_h[: _count(rows)], grad_output, rows) * slope[rows]
        over_input.append(over)
        over_h = _renewed(over_h, over @ w)
    grad_input = _in_order(over_input, not reverse)
    before = previous(hx, output, batch_sizes, reverse)
    return _as(dtype, grad_input, over_h, grad_input.mT @ before)


def through(F: Any, body: Callable[..., Results], g: Any, args: tuple[Any, ...]) -> list[Any]:
    """The gradients of ``body(*args)`` in its tensors, found by recording it.

    `F` says what `args` and the gradients `g` of the results hold: native arrays, or tensors whose
    gradient is recorded again.
    """
    from flambeau.autograd import grad  # made of ops

    def fresh(a: Tensor) -> object:
        if F.native and isinstance(a, F.array):
            return wrap(F.home, a, F.dtype_of(a)).requires_grad_()
        # An alias, so that the search ends here and not at what `a` was computed from.
        return a.view_as(a) if isinstance(a, Tensor) and a.requires_grad else a

    with enable_grad():
        given = [fresh(a) for a in args]
        results = body(*given)
        wanted = [a for a in given if isinstance(a, Tensor) and a.requires_grad]
        seeds = [
            (r, wrap(F.home, s, F.dtype_of(s)) if F.native else s)
            for r, s in zip(results, g, strict=False)
            if s is not None and r.requires_grad
        ]
        found = iter(
            grad(
                [r for r, _ in seeds],
                wanted,
                [s for _, s in seeds],
                create_graph=not F.native,
                allow_unused=True,
            )
            if seeds
            else [None] * len(wanted)
        )
    found = [next(found) if isinstance(a, Tensor) and a.requires_grad else None for a in given]
    return [t._a if F.native and t is not None else t for t in found]
