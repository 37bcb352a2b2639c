"""Recurrent layers: LSTM, GRU and plain RNN over sequences.

The canonical ops run one direction of one layer over a whole batch of sequences.  What does not
depend on the step before, x·W_ihᵀ + b_ih, is one product for all steps and comes in as `input`.
Sequences are packed: rows stand step by step, ``batch_sizes[t]`` of them at step t (decreasing).
A sequence whose steps are over keeps its state; in reverse, one whose steps have not begun keeps
the initial one.  With h, c the state before the step and σ the logistic function:

    LSTM  i, f, o = σ(x_i + h·W_i), ...; g = tanh(x_g + h·W_g); c' = f·c + i·g; h' = o·tanh(c')
    GRU   r, z = σ(x_r + h·W_r + b_r), ...; q = h·W_q + b_q; n = tanh(x_n + r·q)
          h' = n + z·(h - n)
    RNN   h' = tanh(x + h·W), or relu

An LSTM's h' may be projected to fewer numbers.  The gradient of a whole sequence is one op as
well; the gradient of that op is taken through its steps.

Sources: Hochreiter & Schmidhuber (1997), Gers, Schmidhuber & Cummins (2000), Cho et al. (2014),
Sak, Senior & Beaufays (2014) for the projection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flambeau._dispatch.arguments import need_tensor, need_tensors
from flambeau._tensor.tensor import Tensor
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.layers import recurrent_rules as _rules
from flambeau.ops.layers import recurrent_steps as _recurrence
from flambeau.ops.layers.recurrent_layers import all_layers
from flambeau.ops.matrices.linalg import linear

Sizes = tuple[int, ...]


@composite(results=5)
def _lstm_sequence(
    input: Tensor,
    hx: Tensor,
    cx: Tensor,
    weight: Tensor,
    projection: Tensor | None,
    batch_sizes: Sizes,
    reverse: bool,
) -> tuple[Tensor, ...]:
    """(outputs (N, P), last h (B, P), last c (B, H), cells (N, H), gates i, f, g, o (N, 4H))."""
    return _recurrence.lstm_steps(input, hx, cx, weight, projection, batch_sizes, reverse)


_lstm_sequence.demand(_rules.lstm_sequence)


@_lstm_sequence.gradient
def _(F, g, hx, cx, weight, projection, batch_sizes, reverse, result0, result3, result4):
    saved = hx, cx, weight, projection, result0, result3, result4
    *grads, over_projection = F.lstm_sequence_backward(*g[:5], *saved, batch_sizes, reverse)
    return *grads, None if projection is None else over_projection


@composite(results=5)
def _lstm_sequence_backward(
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
    batch_sizes: Sizes,
    reverse: bool,
) -> tuple[Tensor, ...]:
    """The gradients of `lstm_sequence`; without a projection the last is empty."""
    grads = grad_output, grad_hidden, grad_cell, grad_cells, grad_gates
    saved = hx, cx, weight, projection, output, cells, gates
    return _recurrence.lstm_backward_steps(*grads, *saved, batch_sizes, reverse)


_lstm_sequence_backward.demand(_rules.lstm_sequence_backward)


@_lstm_sequence_backward.gradient
def _(
    F,
    g,
    grad_output,
    grad_hidden,
    grad_cell,
    grad_cells,
    grad_gates,
    hx,
    cx,
    weight,
    projection,
    output,
    cells,
    gates,
    batch_sizes,
    reverse,
):
    grads = grad_output, grad_hidden, grad_cell, grad_cells, grad_gates
    saved = hx, cx, weight, projection, output, cells, gates
    args = *grads, *saved, batch_sizes, reverse
    return _recurrence.through(F, _recurrence.lstm_backward_steps, g, args)[:12]


@composite(results=3)
def _gru_sequence(
    input: Tensor,
    hx: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    batch_sizes: Sizes,
    reverse: bool,
) -> tuple[Tensor, ...]:
    """(outputs (N, H), last h (B, H), gates r, z, n, q (N, 4H))."""
    return _recurrence.gru_steps(input, hx, weight, bias, batch_sizes, reverse)


_gru_sequence.demand(_rules.gru_sequence)


@_gru_sequence.gradient
def _(F, g, hx, weight, bias_shape, batch_sizes, reverse, result0, result2):
    *grads, over_bias = F.gru_sequence_backward(
        *g[:3], hx, weight, result0, result2, batch_sizes, reverse
    )
    return *grads, None if bias_shape is None else over_bias


@composite(results=4)
def _gru_sequence_backward(
    grad_output: Tensor | None,
    grad_hidden: Tensor | None,
    grad_gates: Tensor | None,
    hx: Tensor,
    weight: Tensor,
    output: Tensor,
    gates: Tensor,
    batch_sizes: Sizes,
    reverse: bool,
) -> tuple[Tensor, ...]:
    """The gradients of `gru_sequence`."""
    grads = grad_output, grad_hidden, grad_gates
    return _recurrence.gru_backward_steps(*grads, hx, weight, output, gates, batch_sizes, reverse)


_gru_sequence_backward.demand(_rules.gru_sequence_backward)


@_gru_sequence_backward.gradient
def _(
    F,
    g,
    grad_output,
    grad_hidden,
    grad_gates,
    hx,
    weight,
    output,
    gates,
    batch_sizes,
    reverse,
):
    grads = grad_output, grad_hidden, grad_gates
    args = *grads, hx, weight, output, gates, batch_sizes, reverse
    return _recurrence.through(F, _recurrence.gru_backward_steps, g, args)[:7]


@composite(results=2)
def _rnn_sequence(
    input: Tensor,
    hx: Tensor,
    weight: Tensor,
    nonlinearity: str,
    batch_sizes: Sizes,
    reverse: bool,
) -> tuple[Tensor, ...]:
    """(outputs (N, H), last h (B, H)); `nonlinearity` is ``"tanh"`` or ``"relu"``."""
    return _recurrence.rnn_steps(input, hx, weight, nonlinearity, batch_sizes, reverse)


_rnn_sequence.demand(_rules.rnn_sequence)


@_rnn_sequence.gradient
def _(F, g, hx, weight, nonlinearity, batch_sizes, reverse, result0):
    return F.rnn_sequence_backward(*g[:2], hx, weight, result0, nonlinearity, batch_sizes, reverse)


@composite(results=3)
def _rnn_sequence_backward(
    grad_output: Tensor | None,
    grad_hidden: Tensor | None,
    hx: Tensor,
    weight: Tensor,
    output: Tensor,
    nonlinearity: str,
    batch_sizes: Sizes,
    reverse: bool,
) -> tuple[Tensor, ...]:
    """The gradients of `rnn_sequence`."""
    return _recurrence.rnn_backward_steps(
        grad_output, grad_hidden, hx, weight, output, nonlinearity, batch_sizes, reverse
    )


_rnn_sequence_backward.demand(_rules.rnn_sequence_backward)


@_rnn_sequence_backward.gradient
def _(F, g, grad_output, grad_hidden, hx, weight, output, nonlinearity, batch_sizes, reverse):
    args = grad_output, grad_hidden, hx, weight, output, nonlinearity, batch_sizes, reverse
    return _recurrence.through(F, _recurrence.rnn_backward_steps, g, args)[:5]


States = tuple[Tensor, ...]
Direction = Callable[..., tuple[Tensor, States]]


def _bias(b_ih: Tensor | None, b_hh: Tensor | None) -> Tensor | None:
    if b_ih is None or b_hh is None:
        return b_hh if b_ih is None else b_ih
    return b_ih + b_hh


def lstm_direction(
    x: Tensor, states: States, params: Sequence[Any], sizes: Sizes, reverse: bool
) -> tuple[Tensor, States]:
    """The outputs of an LSTM for every step, and the states after the last."""
    w_ih, w_hh, b_ih, b_hh, w_hr = params
    gates = linear(x, w_ih, _bias(b_ih, b_hh))
    output, h, c, _, _ = _lstm_sequence(gates, *states, w_hh, w_hr, sizes, reverse)
    return output, (h, c)


def gru_direction(
    x: Tensor, states: States, params: Sequence[Any], sizes: Sizes, reverse: bool
) -> tuple[Tensor, States]:
    """The outputs of a GRU for every step, and the state after the last."""
    w_ih, w_hh, b_ih, b_hh, _ = params
    output, h, _ = _gru_sequence(linear(x, w_ih, b_ih), *states, w_hh, b_hh, sizes, reverse)
    return output, (h,)


def _rnn_direction(nonlinearity: str) -> Direction:
    def run(
        x: Tensor, states: States, params: Sequence[Any], sizes: Sizes, reverse: bool
    ) -> tuple[Tensor, States]:
        w_ih, w_hh, b_ih, b_hh, _ = params
        inner = linear(x, w_ih, _bias(b_ih, b_hh))
        output, h = _rnn_sequence(inner, *states, w_hh, nonlinearity, sizes, reverse)
        return output, (h,)

    return run


tanh_direction, relu_direction = _rnn_direction("tanh"), _rnn_direction("relu")


DIRECTIONS: dict[str, Direction] = {
    "lstm": lstm_direction,
    "gru": gru_direction,
    "tanh": tanh_direction,
    "relu": relu_direction,
}


_PADDED = (
    *("hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional"),
    "batch_first",
)
_PACKED = ("batch_sizes", *_PADDED[:-1])


def _run(
    name: str, mode: str, input: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Tensor, States]:
    """Sort out the two forms of the arguments, and run on packed rows."""
    need_tensor(input, name, "input")
    place = 0 if name == "lstm" else 1  # where only the packed form has a tensor
    packed = "batch_sizes" in kwargs or (
        len(args) > place and isinstance(args[0], Tensor) and isinstance(args[place], Tensor)
    )
    names = _PACKED if packed else _PADDED
    given = dict(zip(names, args, strict=False)) | kwargs
    if len(args) > len(names) or set(given) != set(names):
        raise TypeError(
            f"{name}() takes (input, {', '.join(_PADDED)}) or (data, {', '.join(_PACKED)}), "
            f"got {len(args) + 1} positional arguments and the names {sorted(kwargs)}"
        )
    hx = given["hx"]
    states = tuple(hx) if name == "lstm" else (hx,)
    if len(states) != (2 if name == "lstm" else 1):
        raise RuntimeError(f"{name} expects two hidden states")
    settings = [given[k] for k in _PADDED[1:-1]]
    if packed:
        sizes = tuple(int(n) for n in given["batch_sizes"].tolist())
        if input.shape[0] > (total := sum(sizes)):
            input = input[:total]  # the rows beyond are of no step
        need_tensors(states, name)
        return all_layers(mode, input, sizes, states, *settings)
    x = input.transpose(0, 1) if given["batch_first"] else input
    if x.dim() != 3:
        raise RuntimeError(f"{name}: Expected a 3-D input, got {x.dim()}-D")
    steps, batch = x.shape[:2]
    if not steps:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    rows = x.reshape(steps * batch, x.shape[2])
    try:
        output, finals = all_layers(mode, rows, (batch,) * steps, states, *settings)
    except AttributeError:
        need_tensors((*states, *settings[0]), name)
        raise
    output = output.reshape(steps, batch, output.shape[1])
    return output.transpose(0, 1) if given["batch_first"] else output, finals


@public(method=False)
def lstm(input: Tensor, *args: object, **kwargs: object) -> tuple[Tensor, Tensor, Tensor]:
    """Layers of LSTM: the outputs of the last one, and the final h and c of all.

    Called with `hx` (a pair h, c, each (layers·directions, B, ·)), `params` (of every layer and
    direction w_ih (4H, in), w_hh (4H, P), with `has_biases` b_ih and b_hh (4H), perhaps a
    projection (P, H)), `has_biases`, `num_layers`, `dropout` (between layers, in training),
    `train`, `bidirectional` and `batch_first`; or, on packed rows, with `batch_sizes` before `hx`
    and without `batch_first`.

    Shapes: input (T, B, in), or (B, T, in) if `batch_first`, or packed (N, in).

    Raises:
        RuntimeError: a sequence without steps, or sizes that do not fit.
        TypeError: the arguments are of neither form.

    >>> import flambeau as fb
    >>> state, weights = fb.zeros(1, 2, 3), [fb.ones(12, 4), fb.ones(12, 3)]
    >>> fb.lstm(fb.zeros(5, 2, 4), (state, state), weights, False, 1, 0.0, False, False, False)[
    ...     0
    ... ].shape
    torch.Size([5, 2, 3])
    """
    output, (h, c) = _run("lstm", "lstm", input, args, kwargs)
    return output, h, c


@public(method=False)
def gru(input: Tensor, *args: object, **kwargs: object) -> tuple[Tensor, Tensor]:
    """Layers of GRU: the outputs of the last one, and the final h of all.

    The arguments are those of `lstm`, with `hx` one tensor and 3H rows in the weights.

    Raises:
        RuntimeError: a sequence without steps, or sizes that do not fit.
        TypeError: the arguments are of neither form.

    >>> import flambeau as fb
    >>> weights = [fb.ones(9, 4), fb.ones(9, 3)]
    >>> args = (fb.zeros(1, 2, 3), weights, False, 1, 0.0, False, False, False)
    >>> fb.gru(fb.zeros(5, 2, 4), *args)[0].shape
    torch.Size([5, 2, 3])
    """
    output, (h,) = _run("gru", "gru", input, args, kwargs)
    return output, h


@public(method=False)
def rnn_tanh(input: Tensor, *args: object, **kwargs: object) -> tuple[Tensor, Tensor]:
    """Layers of tanh(x·W_ihᵀ + b_ih + h·W_hhᵀ + b_hh): outputs of the last, final h of all.

    The arguments are those of `lstm`, with `hx` one tensor and H rows in the weights.

    Raises:
        RuntimeError: a sequence without steps, or sizes that do not fit.
        TypeError: the arguments are of neither form.

    >>> import flambeau as fb
    >>> weights = [fb.ones(3, 4), fb.ones(3, 3)]
    >>> args = (fb.zeros(1, 2, 3), weights, False, 1, 0.0, False, False, False)
    >>> fb.rnn_tanh(fb.zeros(5, 2, 4), *args)[1].shape
    torch.Size([1, 2, 3])
    """
    output, (h,) = _run("rnn_tanh", "tanh", input, args, kwargs)
    return output, h


@public(method=False)
def rnn_relu(input: Tensor, *args: object, **kwargs: object) -> tuple[Tensor, Tensor]:
    """As `rnn_tanh`, with relu.

    >>> import flambeau as fb
    >>> weights = [fb.ones(3, 4), fb.ones(3, 3)]
    >>> args = (fb.zeros(1, 2, 3), weights, False, 1, 0.0, False, False, False)
    >>> fb.rnn_relu(fb.zeros(5, 2, 4), *args)[1].shape
    torch.Size([1, 2, 3])
    """
    output, (h,) = _run("rnn_relu", "relu", input, args, kwargs)
    return output, h
