"""Recurrent layers: one operator for each layer and all its steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flambeau as fb
from flambeau.onnx._export.errors import UnsupportedOperatorError
from flambeau.onnx._export.graph import Graph, Value
from flambeau.onnx._export.symbolic.elementwise import dropout
from flambeau.onnx._export.symbolic.packing import packed, padded
from flambeau.onnx._export.table import symbolic

ORDER = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}
"""Where ONNX has each gate: PyTorch's are i f g o, and r z n."""


def _reordered(g: Graph, weight: Value, kind: str, hidden: int) -> Value:
    order = ORDER[kind]
    if order == tuple(range(len(order))):
        return weight
    gates = g.split(weight, [hidden] * len(order), 0)
    made = g.op("Concat", *(gates[at] for at in order), axis_i=0)
    made.shape = weight.shape
    return made


def _stacked(g: Graph, parts: list[Value]) -> Value:
    wide = [g.unsqueeze(part, [0]) for part in parts]
    return wide[0] if len(wide) == 1 else g.op("Concat", *wide, axis_i=0)


def layers(
    g: Graph,
    kind: str,
    x: Value,
    states: Sequence[Value | None],
    params: list[Value],
    has_biases: bool,
    num_layers: int,
    dropout_p: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
    lengths: Value | None = None,
    **more: Any,
) -> tuple[Value, ...]:
    """The output of the last layer and the last states of all."""
    single = x.rank == 2
    if single:
        x = g.unsqueeze(x, [1])
        states = [None if s is None else g.unsqueeze(s, [1]) for s in states]
    elif batch_first:
        x = g.swap(x, 0, 1)
    ways = 2 if bidirectional else 1
    each = len(params) // (num_layers * ways)
    if each != (4 if has_biases else 2):
        raise UnsupportedOperatorError("an LSTM with projections")
    if lengths is not None:
        lengths = g.cast(lengths, fb.int32)
    if "activations_s" in more:
        more["activations_s"] = more["activations_s"] * ways
    last: list[list[Value]] = [[] for _ in states]
    for layer in range(num_layers):
        if layer and train and dropout_p:
            x = dropout(g, x, dropout_p, True)
        groups = [
            params[(layer * ways + way) * each : (layer * ways + way + 1) * each]
            for way in range(ways)
        ]
        hidden = groups[0][1].static(1)
        weight = _stacked(g, [_reordered(g, p[0], kind, hidden) for p in groups])
        recurrence = _stacked(g, [_reordered(g, p[1], kind, hidden) for p in groups])
        bias = None
        if has_biases:
            rows = []
            for p in groups:
                both = [_reordered(g, b, kind, hidden) for b in p[2:4]]
                rows.append(g.op("Concat", *both, axis_i=0))
                rows[-1].shape = (None,)
            bias = _stacked(g, rows)
        first = layer * ways
        initial = [
            s if s is None or num_layers == 1 else g.slice(s, [first], [first + ways], [0])
            for s in states
        ]
        direction = "bidirectional" if bidirectional else "forward"
        made = g.op(
            kind,
            x,
            weight,
            recurrence,
            bias,
            lengths,
            *initial,
            hidden_size_i=hidden,
            direction_s=direction,
            outputs=1 + len(states),
            **more,
        )
        out, *ends = made
        # Steps, ways, batch, features: the ways' features stand side by side.
        if ways == 1:
            x = g.squeeze(out, [1])
            x.shape = (None,) * 3
        else:
            out.shape = (None,) * 4
            x = g.op("Reshape", g.transpose(out, [0, 2, 1, 3]), g.ints([0, 0, -1]))
            x.shape = (None, None, 2 * hidden)
        x.dtype = out.dtype
        for kept, end in zip(last, ends, strict=True):
            kept.append(end)
    joined = [kept[0] if len(kept) == 1 else g.op("Concat", *kept, axis_i=0) for kept in last]
    if single:
        x = g.squeeze(x, [1])
        joined = [g.squeeze(state, [1]) for state in joined]
    elif batch_first:
        x = g.swap(x, 0, 1)
    return x, *joined


def _is_zero(state: object) -> bool:
    """Whether a state is known to be the one that operators start with."""
    if not isinstance(state, Value) or state.tensor is None:
        return False
    return not bool(state.tensor.any())


def _layer(names: tuple[str, ...], kind: str, **more: object) -> None:
    @symbolic(*names)
    def write(
        g: Graph,
        params: list[Value],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        input: Value | None = None,
        hx: Value | list[Value] | None = None,
        batch_first: bool = False,
        data: Value | None = None,
        batch_sizes: Value | None = None,
    ) -> tuple[Value, ...]:
        states = list(hx) if isinstance(hx, list | tuple) else [hx]
        lengths = None
        x = input
        if data is not None:
            x, lengths = padded(g, data, batch_sizes)
            states = [None if _is_zero(s) else s for s in states]
        assert x is not None
        made = layers(
            g,
            kind,
            x,
            states,
            params,
            has_biases,
            num_layers,
            dropout,
            train,
            bidirectional,
            batch_first,
            lengths,
            **more,
        )
        if lengths is None:
            return made
        return packed(g, made[0], lengths), *made[1:]


_layer(("lstm",), "LSTM")
_layer(("gru",), "GRU", linear_before_reset_i=1)
_layer(("rnn_tanh",), "RNN", activations_s=["Tanh"])
_layer(("rnn_relu",), "RNN", activations_s=["Relu"])


def _cell(names: tuple[str, ...], kind: str, **more: Any) -> None:
    @symbolic(*names)
    def write(
        g: Graph,
        input: Value,
        hx: Any,
        w_ih: Value,
        w_hh: Value,
        b_ih: Value | None = None,
        b_hh: Value | None = None,
    ) -> Any:
        states = list(hx) if isinstance(hx, list | tuple) else [hx]
        single = input.rank == 1
        step = g.unsqueeze(input, [0, 1] if single else [0])
        params = [w_ih, w_hh] if b_ih is None or b_hh is None else [w_ih, w_hh, b_ih, b_hh]
        start = [g.unsqueeze(s, [0, 1] if single else [0]) for s in states]
        _, *ends = layers(
            g, kind, step, start, params, len(params) == 4, 1, 0.0, False, False, False, **more
        )
        made = [g.squeeze(e, [0, 1] if single else [0]) for e in ends]
        return tuple(made) if len(made) > 1 else made[0]


_cell(("lstm_cell",), "LSTM")
_cell(("gru_cell",), "GRU", linear_before_reset_i=1)
_cell(("rnn_tanh_cell",), "RNN", activations_s=["Tanh"])
_cell(("rnn_relu_cell",), "RNN", activations_s=["Relu"])
