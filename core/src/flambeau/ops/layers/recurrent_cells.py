"""Single steps of recurrent layers, as sequences of one step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import need_tensor
from flambeau._tensor.tensor import Tensor
from flambeau.ops.declaration.public import public
from flambeau.ops.layers.recurrent import (
    Direction,
    States,
    gru_direction,
    lstm_direction,
    relu_direction,
    tanh_direction,
)


def _cell(
    direction: Direction, input: Tensor, states: States, params: tuple[Any, ...], gates: int
) -> States:
    for name, given in (("input", input), ("hx", states[0]), ("w_ih", params[0])):
        need_tensor(given, "recurrent cell", name)
    for name, bias in zip(("b_ih", "b_hh"), params[2:], strict=True):
        if bias is not None:
            need_tensor(bias, "recurrent cell", name)
    x, h, w_hh = input, states[0], need_tensor(params[1], "recurrent cell", "w_hh")
    if x.shape[-1] != params[0].shape[1]:
        raise RuntimeError(
            f"input has inconsistent input_size: got {x.shape[-1]} expected {params[0].shape[1]}"
        )
    if h.shape[-1] != w_hh.shape[1] or w_hh.shape[0] != gates * w_hh.shape[1]:
        raise RuntimeError(
            f"hidden0 has inconsistent hidden_size: got {h.shape[-1]}, expected {w_hh.shape[1]}"
        )
    if h.shape[0] != x.shape[0]:
        raise RuntimeError(
            f"Input batch size {x.shape[0]} doesn't match hidden0 batch size {h.shape[0]}"
        )
    return direction(x, states, (*params, None), (x.shape[0],), False)[1]


@public(method=False)
@takes_as_annotated
def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One step of an LSTM: the next h and c.

    Shapes: input (B, in), `hx` a pair (B, H), w_ih (4H, in), w_hh (4H, H), biases (4H).

    Raises:
        RuntimeError: sizes that do not fit.

    >>> import flambeau as fb
    >>> h = fb.zeros(2, 3)
    >>> fb.lstm_cell(fb.zeros(2, 4), (h, h), fb.ones(12, 4), fb.ones(12, 3))[0].shape
    torch.Size([2, 3])
    """
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    h, c = _cell(lstm_direction, input, tuple(hx), (w_ih, w_hh, b_ih, b_hh), 4)
    return h, c


@public(method=False)
def gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of a GRU: the next h.

    Shapes: input (B, in), hx (B, H), w_ih (3H, in), w_hh (3H, H), biases (3H).

    Raises:
        RuntimeError: sizes that do not fit.

    >>> import flambeau as fb
    >>> fb.gru_cell(fb.zeros(2, 4), fb.zeros(2, 3), fb.ones(9, 4), fb.ones(9, 3)).shape
    torch.Size([2, 3])
    """
    need_tensor(input, "gru_cell", "input")
    need_tensor(hx, "gru_cell", "hx")
    need_tensor(w_ih, "gru_cell", "w_ih")
    need_tensor(w_hh, "gru_cell", "w_hh")
    return _cell(gru_direction, input, (hx,), (w_ih, w_hh, b_ih, b_hh), 3)[0]


@public(method=False)
def rnn_tanh_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of a plain RNN: tanh(x·w_ihᵀ + b_ih + h·w_hhᵀ + b_hh).

    Shapes: input (B, in), hx (B, H), w_ih (H, in), w_hh (H, H), biases (H).

    Raises:
        RuntimeError: sizes that do not fit.

    >>> import flambeau as fb
    >>> fb.rnn_tanh_cell(fb.zeros(2, 4), fb.zeros(2, 3), fb.ones(3, 4), fb.ones(3, 3)).shape
    torch.Size([2, 3])
    """
    need_tensor(input, "rnn_tanh_cell", "input")
    need_tensor(hx, "rnn_tanh_cell", "hx")
    need_tensor(w_ih, "rnn_tanh_cell", "w_ih")
    need_tensor(w_hh, "rnn_tanh_cell", "w_hh")
    return _cell(tanh_direction, input, (hx,), (w_ih, w_hh, b_ih, b_hh), 1)[0]


@public(method=False)
def rnn_relu_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """As `rnn_tanh_cell`, with relu.

    >>> import flambeau as fb
    >>> fb.rnn_relu_cell(fb.zeros(2, 4), fb.zeros(2, 3), fb.ones(3, 4), fb.ones(3, 3)).shape
    torch.Size([2, 3])
    """
    need_tensor(input, "rnn_relu_cell", "input")
    need_tensor(hx, "rnn_relu_cell", "hx")
    need_tensor(w_ih, "rnn_relu_cell", "w_ih")
    need_tensor(w_hh, "rnn_relu_cell", "w_hh")
    return _cell(relu_direction, input, (hx,), (w_ih, w_hh, b_ih, b_hh), 1)[0]
