"""Samples of the ops over whole sequences: LSTM, GRU and plain RNN."""

from __future__ import annotations

from typing import Any

from flambeau._types.dtype import uint8
from flambeau.testing.sample_arrays import Arr, Sample

_EVEN, _RAGGED = (2, 2), (2, 2, 1)
_WALKS: list[tuple[str, tuple[int, ...], bool]] = [
    ("even", _EVEN, False),
    ("ragged", _RAGGED, False),
    ("ragged in reverse", _RAGGED, True),
    ("one step", (2,), False),
]


def _arr(*shape: int, seed: int = 0) -> Arr:
    return Arr(shape, low=-1, high=1, seed=seed)


def _lstm(sizes: tuple[int, ...], projected: bool) -> tuple[Any, ...]:
    rows, batch, size, out = sum(sizes), sizes[0], 3, 2 if projected else 3
    projection = _arr(out, size, seed=4) if projected else None
    state = _arr(batch, out, seed=1), _arr(batch, size, seed=2)
    return rows, batch, size, out, (*state, _arr(4 * size, out, seed=3), projection)


def _lstm_forward(
    sizes: tuple[int, ...], reverse: bool, projected: bool = False
) -> tuple[Any, ...]:
    rows, _, size, _, parts = _lstm(sizes, projected)
    return _arr(rows, 4 * size), *parts, sizes, reverse


def _lstm_backward(
    sizes: tuple[int, ...], reverse: bool, projected: bool = False, given: str = "ohcag"
) -> tuple[Any, ...]:
    rows, batch, size, out, parts = _lstm(sizes, projected)
    shapes = {
        "o": (rows, out),
        "h": (batch, out),
        "c": (batch, size),
        "a": (rows, size),
        "g": (rows, 4 * size),
    }
    grads = [
        _arr(*s, seed=5 + i) if k in given else None for i, (k, s) in enumerate(shapes.items())
    ]
    saved = _arr(rows, out, seed=11), _arr(rows, size, seed=12), _gates(rows, 4 * size)
    return *grads, *parts, *saved, sizes, reverse


def _gates(rows: int, columns: int) -> Arr:
    return Arr((rows, columns), low=0.125, high=0.875, seed=13)


def _gru_backward(sizes: tuple[int, ...], reverse: bool, given: str = "ohg") -> tuple[Any, ...]:
    rows, batch = sum(sizes), sizes[0]
    shapes = {"o": (rows, 3), "h": (batch, 3), "g": (rows, 12)}
    grads = [
        _arr(*s, seed=5 + i) if k in given else None for i, (k, s) in enumerate(shapes.items())
    ]
    parts = _arr(batch, 3, seed=1), _arr(9, 3, seed=2), _arr(rows, 3, seed=11), _gates(rows, 12)
    return *grads, *parts, sizes, reverse


def _rnn_backward(
    kind: str, sizes: tuple[int, ...], reverse: bool, given: str = "oh"
) -> tuple[Any, ...]:
    rows, batch = sum(sizes), sizes[0]
    shapes = {"o": (rows, 3), "h": (batch, 3)}
    grads = [
        _arr(*s, seed=5 + i) if k in given else None for i, (k, s) in enumerate(shapes.items())
    ]
    output = Arr((rows, 3), kind="nonzero", low=0.125, high=0.875, seed=11)
    return *grads, _arr(batch, 3, seed=1), _arr(3, 3, seed=2), output, kind, sizes, reverse


def _gru_forward(sizes: tuple[int, ...], reverse: bool, biased: bool = True) -> tuple[Any, ...]:
    parts = _arr(sum(sizes), 9), _arr(sizes[0], 3, seed=1), _arr(9, 3, seed=2)
    return *parts, _arr(9, seed=3) if biased else None, sizes, reverse


def _rnn_forward(kind: str, sizes: tuple[int, ...], reverse: bool) -> tuple[Any, ...]:
    parts = _arr(sum(sizes), 3), _arr(sizes[0], 3, seed=1), _arr(3, 3, seed=2)
    return *parts, kind, sizes, reverse


_GATES = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}
# Mode, layers, whether both ways, parameters of a layer and direction.
_STACKS: dict[str, tuple[str, int, bool, int]] = {
    "lstm": ("lstm", 1, False, 4),
    "two lstm both ways": ("lstm", 2, True, 4),
    "projected lstm without biases": ("lstm", 2, False, 3),
    "projected lstm both ways": ("lstm", 1, True, 5),
    "gru both ways": ("gru", 2, True, 4),
    "gru without biases": ("gru", 1, False, 2),
    "tanh": ("tanh", 2, False, 4),
}


def _stack(
    mode: str, layers: int, both: bool, each: int, sizes: tuple[int, ...]
) -> tuple[Any, ...]:
    """The tensors of a stack on rows of 3 numbers: input, hx, cx or None, and the parameters."""
    gates, directions, size = _GATES[mode], 2 if both else 1, 3
    out, seeds = 2 if each % 2 else size, iter(range(2, 99))
    params: list[Arr] = []
    for i in range(layers * directions):
        width = 3 if i < directions else out * directions
        shapes: list[tuple[int, ...]] = [(gates * size, width), (gates * size, out)]
        shapes += [(gates * size,)] * 2 if each >= 4 else []
        shapes += [(out, size)] if each % 2 else []
        params += [_arr(*shape, seed=next(seeds)) for shape in shapes]
    states = (layers * directions, sizes[0])
    cx = _arr(*states, size, seed=1) if mode == "lstm" else None
    return _arr(sum(sizes), 3), _arr(*states, out, seed=100), cx, params


def _layers(
    mode: str, layers: int, both: bool, each: int, sizes: tuple[int, ...] = _RAGGED
) -> tuple[Any, ...]:
    return *_stack(mode, layers, both, each, sizes), mode, layers, both, sizes, False


def _layers_backward(
    mode: str, layers: int, both: bool, each: int, given: str = "ohc"
) -> tuple[Any, ...]:
    operands = _stack(mode, layers, both, each, _RAGGED)
    out, states = operands[1].shape[2] * (2 if both else 1), operands[1].shape
    shapes = {"o": (sum(_RAGGED), out), "h": states, "c": (*states[:2], 3)}
    grads = [
        _arr(*s, seed=101 + i) if k in given and (k != "c" or mode == "lstm") else None
        for i, (k, s) in enumerate(shapes.items())
    ]
    saved = _arr(sum(_RAGGED), out, seed=104), Arr((0,), dtype=uint8, fixed=True)
    return *grads, *operands, *saved, mode, layers, both, _RAGGED


RECURRENT: dict[str, list[Sample]] = {
    "lstm_sequence": [
        *[Sample(_lstm_forward(s, r), name, True) for name, s, r in _WALKS],
        Sample(_lstm_forward(_RAGGED, True, True), "projected", True),
        Sample(_lstm_forward((0, 0), False), "no sequences"),
    ],
    "lstm_sequence_backward": [
        *[Sample(_lstm_backward(s, r), name, True) for name, s, r in _WALKS],
        Sample(_lstm_backward(_RAGGED, False, True), "projected", True),
        Sample(_lstm_backward(_EVEN, False, given="o"), "outputs only", True),
        Sample(_lstm_backward(_RAGGED, True, given="hc"), "final states only", True),
    ],
    "gru_sequence": [
        *[Sample(_gru_forward(s, r), name, True) for name, s, r in _WALKS],
        Sample(_gru_forward(_EVEN, True, False), "no bias", True),
        Sample(_gru_forward((0, 0), False), "no sequences"),
    ],
    "gru_sequence_backward": [
        *[Sample(_gru_backward(s, r), name, True) for name, s, r in _WALKS],
        Sample(_gru_backward(_EVEN, False, "o"), "outputs only", True),
        Sample(_gru_backward(_RAGGED, True, "h"), "final state only", True),
    ],
    "rnn_sequence": [
        *[Sample(_rnn_forward("tanh", s, r), name, True) for name, s, r in _WALKS],
        Sample(_rnn_forward("relu", _RAGGED, False), "relu", True),
        Sample(_rnn_forward("tanh", (0, 0), False), "no sequences"),
    ],
    "rnn_sequence_backward": [
        *[Sample(_rnn_backward("tanh", s, r), name, True) for name, s, r in _WALKS],
        Sample(_rnn_backward("relu", _RAGGED, False), "relu", True),
        Sample(_rnn_backward("tanh", _EVEN, False, "o"), "outputs only", True),
        Sample(_rnn_backward("tanh", _RAGGED, True, "h"), "final state only", True),
    ],
    "recurrent_layers": [
        *[Sample(_layers(*stack), name, True) for name, stack in _STACKS.items()],
        Sample(_layers("relu", 1, False, 4, _EVEN), "relu", True),
    ],
    "recurrent_layers_backward": [
        *[Sample(_layers_backward(*stack), name, True) for name, stack in _STACKS.items()],
        Sample(_layers_backward("lstm", 1, True, 4, "o"), "outputs only", True),
        Sample(_layers_backward("gru", 1, True, 4, "h"), "final states only", True),
    ],
}
