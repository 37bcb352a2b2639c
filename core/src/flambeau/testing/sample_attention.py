"""Samples of attention."""

from __future__ import annotations

from flambeau.testing.sample_arrays import Arr, Sample

_QUERY, _KEY, _VALUE = Arr((2, 3, 4)), Arr((2, 5, 4), seed=1), Arr((2, 5, 2), seed=2)
_CLOSED = Arr(
    (2, 3), kind="literal", literal=(0.0, float("-inf"), 0.5, *[float("-inf")] * 3), fixed=True
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
}
