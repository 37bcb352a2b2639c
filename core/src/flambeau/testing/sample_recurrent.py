"""Samples of the ops over whole sequences: LSTM, GRU and plain RNN."""

from __future__ import annotations

from typing import Any

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


def _lstm_forward(sizes: tuple[int, ...], reverse: bool, projected: bool = False) -> Any:
    rows, _, size, _, parts = _lstm(sizes, projected)
    return _arr(rows, 4 * size), *parts, sizes, reverse


def _lstm_backward(
    sizes: tuple[int, ...], reverse: bool, projected: bool = False, given: str = "ohcag"
) -> Any:
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


def _gru_backward(sizes: tuple[int, ...], reverse: bool, given: str = "ohg") -> Any:
    rows, batch = sum(sizes), sizes[0]
    shapes = {"o": (rows, 3), "h": (batch, 3), "g": (rows, 12)}
    grads = [
        _arr(*s, seed=5 + i) if k in given else None for i, (k, s) in enumerate(shapes.items())
    ]
    parts = _arr(batch, 3, seed=1), _arr(9, 3, seed=2), _arr(rows, 3, seed=11), _gates(rows, 12)
    return *grads, *parts, sizes, reverse


def _rnn_backward(kind: str, sizes: tuple[int, ...], reverse: bool, given: str = "oh") -> Any:
    rows, batch = sum(sizes), sizes[0]
    shapes = {"o": (rows, 3), "h": (batch, 3)}
    grads = [
        _arr(*s, seed=5 + i) if k in given else None for i, (k, s) in enumerate(shapes.items())
    ]
    output = Arr((rows, 3), kind="nonzero", low=0.125, high=0.875, seed=11)
    return *grads, _arr(batch, 3, seed=1), _arr(3, 3, seed=2), output, kind, sizes, reverse


def _gru_forward(sizes: tuple[int, ...], reverse: bool, biased: bool = True) -> Any:
    parts = _arr(sum(sizes), 9), _arr(sizes[0], 3, seed=1), _arr(9, 3, seed=2)
    return *parts, _arr(9, seed=3) if biased else None, sizes, reverse


def _rnn_forward(kind: str, sizes: tuple[int, ...], reverse: bool) -> Any:
    parts = _arr(sum(sizes), 3), _arr(sizes[0], 3, seed=1), _arr(3, 3, seed=2)
    return *parts, kind, sizes, reverse


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
}
