"""Recurrent layers one upon the other: LSTM, GRU and plain RNN.

They are run direction by direction, by the ops of `flambeau.ops.layers.recurrent`; or, where a
device has one kernel for a whole stack, by the canonical op of this page.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from flambeau._autograd.modes import enable_grad, recording
from flambeau._dispatch.arguments import need_number
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.ops.declaration.table import composite
from flambeau.ops.layers import recurrent_rules as _rules
from flambeau.ops.layers.activation import dropout as drop
from flambeau.ops.layers.recurrent_steps import through
from flambeau.ops.shapes.movement import cat, stack

Sizes = tuple[int, ...]
States = tuple[Tensor, ...]


@composite(results=4)
def _recurrent_layers(
    input: Tensor,
    hx: Tensor,
    cx: Tensor | None,
    params: list[Tensor],
    mode: str,
    num_layers: int,
    bidirectional: bool,
    batch_sizes: Sizes,
    saves: bool,
) -> tuple[Tensor, ...]:
    """(outputs (N, D·P), last h (L·D, B, P), last c (L·D, B, H), bytes) of packed rows (N, in).

    `mode` is ``"lstm"``, ``"gru"``, ``"tanh"`` or ``"relu"``; only an LSTM has `cx`, the others
    give an empty c.  `params` has for each layer and direction w_ih, w_hh, with biases b_ih and
    b_hh, and perhaps an LSTM's projection.  The bytes are what a kernel keeps for the gradient, of
    no meaning to others: there may be none, and are none unless `saves`.
    """
    states = (hx,) if cx is None else (hx, cx)
    output, finals = _by_direction(
        mode, input, batch_sizes, states, params, num_layers, bidirectional
    )
    cell = input.new_zeros((0,)) if cx is None else finals[1]
    return output, finals[0], cell, input.new_zeros((0,), dtype=D.uint8)


_recurrent_layers.demand(_rules.recurrent_layers)


@_recurrent_layers.gradient
def _(F, g, input, hx, cx, params, result0, result3, mode, num_layers, bidirectional, batch_sizes):
    saved = input, hx, cx, tuple(params), result0, result3
    settings = mode, num_layers, bidirectional, batch_sizes
    *grads, over_params = F.recurrent_layers_backward(*g[:3], *saved, *settings)
    pieces, start = [], 0
    for p in params:
        end = start + prod(p.shape)
        pieces.append(F.reshape(F.slice(over_params, (slice(start, end, 1),)), tuple(p.shape)))
        start = end
    return *grads[:2], None if cx is None else grads[2], pieces


@composite(results=4)
def _recurrent_layers_backward(
    grad_output: Tensor | None,
    grad_hidden: Tensor | None,
    grad_cell: Tensor | None,
    input: Tensor,
    hx: Tensor,
    cx: Tensor | None,
    params: list[Tensor],
    output: Tensor,
    reserve: Tensor,
    mode: str,
    num_layers: int,
    bidirectional: bool,
    batch_sizes: Sizes,
) -> tuple[Tensor, ...]:
    """The gradients of `recurrent_layers` in input, hx, cx (or empty), and all params in a row.

    `output` and `reserve`, the bytes, are what the forward pass gave.
    """
    from flambeau.autograd import grad  # made of ops

    again = recording()
    with enable_grad():
        operands = input, hx, *(() if cx is None else (cx,)), *params
        # An alias of what is recorded already, so that the search ends here.
        leaves = [
            t.view_as(t) if t.requires_grad else t.detach().requires_grad_() for t in operands
        ]
        states, weights = leaves[1 : len(leaves) - len(params)], leaves[len(leaves) - len(params) :]
        found, finals = _by_direction(
            mode, leaves[0], batch_sizes, tuple(states), weights, num_layers, bidirectional
        )
        seeds = [
            (t, over)
            for t, over in zip(
                (found, *finals), (grad_output, grad_hidden, grad_cell), strict=False
            )
            if over is not None
        ]
        roots, overs = [t for t, _ in seeds], [over for _, over in seeds]
        grads = grad(roots, leaves, overs, create_graph=again, allow_unused=True) if seeds else ()
    whole = [
        t.new_zeros(tuple(t.shape)) if over is None else over
        for t, over in zip(leaves, grads or [None] * len(leaves), strict=True)
    ]
    last = cat([t.reshape(-1) for t in whole[len(leaves) - len(params) :]])
    return whole[0], whole[1], input.new_zeros((0,)) if cx is None else whole[2], last


_recurrent_layers_backward.demand(_rules.recurrent_layers_backward)


@_recurrent_layers_backward.gradient
def _(
    F,
    g,
    grad_output,
    grad_hidden,
    grad_cell,
    input,
    hx,
    cx,
    params,
    mode,
    num_layers,
    bidirectional,
    batch_sizes,
):
    def run(*args: object) -> Any:
        settings = None, None, mode, num_layers, bidirectional, batch_sizes
        return _recurrent_layers_backward.body(*args[:6], args[6:], *settings)

    args = grad_output, grad_hidden, grad_cell, input, hx, cx, *params
    found = through(F, run, g, args)
    return *found[:6], found[6:], None, None


def all_layers(
    mode: str,
    x: Tensor,
    sizes: Sizes,
    states: States,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Tensor, States]:
    """Layers on packed rows: the last layer's output and the final states of all."""
    directions = 2 if bidirectional else 1
    need_number(num_layers, mode, "num_layers")
    _rules.check_counts(mode, states, params, num_layers * directions)
    each = len(params) // (num_layers * directions)
    between = dropout if train and num_layers > 1 else 0.0
    at_once = 1 if between else num_layers
    saves = recording() and any(t.requires_grad for t in (x, *states, *params))

    def arguments(x: Tensor, first: int) -> tuple[Any, ...]:
        rows = slice(first * directions, (first + at_once) * directions)
        own = states if at_once == num_layers else [s[rows] for s in states]
        weights = params[rows.start * each : rows.stop * each]
        cx = own[1] if mode == "lstm" else None
        return x, own[0], cx, weights, mode, at_once, bidirectional, sizes, saves

    known = each == (4 if has_biases else 2) + (mode == "lstm" and each % 2)
    if not known or not _recurrent_layers.taken(*arguments(x, 0)):
        return _by_direction(
            mode, x, sizes, states, params, num_layers, bidirectional, has_biases, between
        )
    finals = []
    for first in range(0, num_layers, at_once):
        x, *final, _ = _recurrent_layers(*arguments(x, first))
        finals.append(final[: len(states)])
        if first + at_once < num_layers:
            x = drop(x, between, True)
    return x, tuple(
        parts[0] if len(parts) == 1 else cat(list(parts)) for parts in zip(*finals, strict=True)
    )


def _by_direction(
    mode: str,
    x: Tensor,
    sizes: Sizes,
    states: States,
    params: Sequence[Tensor],
    num_layers: int,
    bidirectional: bool,
    has_biases: bool | None = None,
    between: float = 0.0,
) -> tuple[Tensor, States]:
    from flambeau.ops.layers.recurrent import DIRECTIONS  # each calls this for a stack

    direction = DIRECTIONS[mode]
    directions = 2 if bidirectional else 1
    each = len(params) // (num_layers * directions)
    if has_biases is None:
        has_biases = each >= 4
    plain = 4 if has_biases else 2
    finals = []
    for layer in range(num_layers):
        outputs = []
        for d in range(directions):
            k = layer * directions + d
            given: list[Any] = list(params[k * each : (k + 1) * each])
            weights = given[:plain] if has_biases else [*given[:2], None, None]
            weights.append(given[plain] if each > plain else None)
            own = tuple(s[k] for s in states)
            output, final = direction(x, own, weights, sizes, d == 1)
            outputs.append(output)
            finals.append(final)
        x = outputs[0] if directions == 1 else cat(outputs, 1)
        if between and layer < num_layers - 1:
            x = drop(x, between, True)
    return x, tuple(stack(parts) for parts in zip(*finals, strict=True))
