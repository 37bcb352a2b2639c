"""Samples of the rows of tables, of padding, and of losses of sequences."""

from __future__ import annotations

from flambeau._types.dtype import int64
from flambeau.testing.sample_arrays import Arr, Sample

_TABLE = Arr((4, 3))
_PLACES = Arr((2, 3), int64, kind="literal", literal=(2, 0, 2, 3, 1, 2))

_LOG_PROBS = Arr((4, 2, 3), low=-3, high=-0.25)
_LABELS = Arr((2, 2), int64, kind="literal", literal=(1, 1, 2, 0))
_OTHERS = Arr((2, 2), int64, kind="literal", literal=(0, 2, 2, 0))

EMBEDDING = {
    "embedding": [
        Sample((_TABLE, _PLACES, -1, False), "repeated rows", True),
        Sample((_TABLE, _PLACES, 2, False), "padding"),
        Sample(
            (_TABLE, Arr((2,), int64, kind="literal", literal=(3, 1)), -1, True), "scaled", True
        ),
        Sample((_TABLE, Arr((), int64, kind="literal", literal=(3,)), -1, False), "one row", True),
        Sample((_TABLE, Arr((0,), int64), -1, True), "no rows"),
    ],
    "embedding_backward": [
        Sample((Arr((2, 3, 3)), _PLACES, 4), "repeated rows", True),
        Sample((Arr((3,)), Arr((), int64, kind="literal", literal=(3,)), 4), "one row", True),
        Sample((Arr((0, 3)), Arr((0,), int64), 4), "no rows"),
        Sample((Arr((2, 3, 3)), _PLACES, 6), "rows without places", True),
    ],
    "constant_pad_nd": [
        Sample((Arr((2, 3)), ((0, 0), (1, 2)), 0), "last", True),
        Sample((Arr((2, 3)), ((2, 0), (-1, 1)), 0.5), "padded and cropped", True),
        Sample((Arr((2, 3)), ((0, 0), (0, 0)), 1), "nothing", True),
        Sample((Arr(()), (), 1), "scalar", True),
        Sample((Arr((0, 3)), ((1, 0), (0, 0)), -2), "empty"),
    ],
    "ctc_loss": [
        Sample((_LOG_PROBS, _LABELS, (4, 3), (2, 1), 0, False), "padded targets"),
        Sample((_LOG_PROBS, _LABELS, (4, 0), (0, 1), 0, True), "nothing said, nothing heard"),
        Sample((_LOG_PROBS, _LABELS, (1, 3), (2, 0), 0, True), "impossible, taken for 0"),
        Sample((_LOG_PROBS, _LABELS, (1, 3), (2, 0), 0, False), "impossible"),
        Sample((_LOG_PROBS, _OTHERS, (4, 3), (2, 1), 1, False), "another blank"),
        Sample((_LOG_PROBS, Arr((2, 0), int64), (4, 2), (0, 0), 1, True), "no labels"),
    ],
    "ctc_loss_backward": [
        Sample((Arr((2,)), _LOG_PROBS, _LABELS, (4, 3), (2, 1), 0, False), "padded targets"),
        Sample((Arr((2,)), _LOG_PROBS, _LABELS, (1, 3), (2, 0), 0, True), "impossible"),
        Sample((Arr((2,)), _LOG_PROBS, _OTHERS, (4, 3), (2, 1), 1, False), "another blank"),
    ],
}
