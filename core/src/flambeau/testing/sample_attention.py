"""Samples of attention."""

from __future__ import annotations

from flambeau.testing.sample_arrays import Arr, Sample

_QUERY, _KEY, _VALUE = Arr((2, 3, 4)), Arr((2, 5, 4), seed=1), Arr((2, 5, 2), seed=2)
_CLOSED = Arr(
    (2, 3), kind="literal", literal=(0.0, float("-inf"), 0.5, *[float("-inf")] * 3), fixed=True
)

_Q, _K, _V = Arr((2, 4, 3, 8)), Arr((2, 4, 5, 8), seed=1), Arr((2, 4, 5, 6), seed=2)
_FEW_K, _FEW_V = Arr((2, 2, 5, 8), seed=1), Arr((2, 2, 5, 6), seed=2)
_BIAS = Arr((1, 4, 3, 5), seed=3)
_SAVED = Arr((2, 4, 3, 6), seed=4), Arr((2, 4, 3, 1), low=1, high=2, seed=5)
_OVER = Arr((2, 4, 3, 6), seed=6), Arr((2, 4, 3, 1), seed=7)
_MASK = Arr(
    (1, 1, 3, 3),
    kind="literal",
    literal=(0.0, float("-inf"), 0.5, *[float("-inf")] * 3, 0.25, 1.0, 0.0),
    fixed=True,
)

ATTENTION: dict[str, list[Sample]] = {
    "attention": [
        Sample((_QUERY, _KEY, _VALUE, None, 0.5), "batch", True),
        Sample((_QUERY, _KEY, _VALUE, Arr((3, 5), seed=3), 0.5), "bias", True),
        Sample((Arr((3, 4)), _KEY, _VALUE, None, 0.25), "broadcast queries", True),
        Sample(
            (Arr((2, 4)), Arr((3, 4), seed=1), Arr((3, 2), seed=2), _CLOSED, 1.0),
            "closed keys",
            True,
        ),
        Sample((Arr((0, 4)), Arr((3, 4)), Arr((3, 2)), None, 1.0), "no queries"),
    ],
    "fused_attention": [
        Sample((_Q, _K, _V, None, False, 0.5), "heads", True),
        Sample((_Q, _K, _V, None, True, 0.25), "causal", True),
        Sample((_Q, _K, _V, _BIAS, False, 0.5), "bias", True),
        Sample((_Q, _FEW_K, _FEW_V, None, True, 0.5), "fewer heads of keys", True),
        Sample((_Q, *[Arr((2, 4, 3, 8), seed=i) for i in (1, 2)], _MASK, False, 0.5), "closed row"),
        Sample((Arr((2, 4, 0, 8)), _K, _V, None, False, 1.0), "no queries"),
        Sample((Arr((0, 4, 3, 8)), *[Arr((0, 4, 5, 8))] * 2, None, False, 1.0), "no batch"),
    ],
    "fused_attention_backward": [
        Sample((*_OVER, _Q, _K, _V, None, *_SAVED, False, 0.5, False), "heads", True),
        Sample((_OVER[0], None, _Q, _K, _V, None, *_SAVED, True, 0.5, False), "causal", True),
        Sample((_OVER[0], None, _Q, _K, _V, _BIAS, *_SAVED, False, 0.5, True), "bias", True),
        Sample((_OVER[0], None, _Q, _K, _V, _BIAS, *_SAVED, False, 0.5, False), "fixed bias"),
        Sample((None, _OVER[1], _Q, _K, _V, None, *_SAVED, False, 0.5, False), "sums only", True),
        Sample(
            (_OVER[0], None, _Q, _FEW_K, _FEW_V, None, *_SAVED, False, 0.5, False),
            "fewer heads of keys",
            True,
        ),
    ],
}
