"""Samples of the ops on windows of volumes, and of windows as columns."""

from __future__ import annotations

from typing import Any

from flambeau._types.dtype import bool_, complex64
from flambeau.testing.sample_arrays import Arr, Sample
from flambeau.testing.sample_primitives import indices

Shape = tuple[int, ...]
Convolution = tuple[str, Shape, Shape, Shape, tuple[Any, ...]]
"""Name, input, weight and output shapes, then stride, padding, dilation, groups."""

Average = tuple[str, Shape, Shape, tuple[Any, ...]]
"""Name, input and output shapes, kernel, stride, padding, ceil mode, count padding, divisor."""


def convolutions(name: str, cases: list[Convolution], *more: Sample) -> dict[str, list[Sample]]:
    """Samples of a convolution, which may have more, and of its gradients."""
    return {
        name: [
            *[
                Sample((Arr(i), Arr(w, seed=1), Arr((w[0],), seed=2), *how), case, True)
                for case, i, w, _, how in cases
            ],
            *more,
        ],
        f"{name}_input_grad": [
            Sample((Arr(o), Arr(w, seed=1), i, *how), case, True) for case, i, w, o, how in cases
        ],
        f"{name}_weight_grad": [
            Sample((Arr(o), Arr(i, seed=1), w, *how), case, True) for case, i, w, o, how in cases
        ],
    }


def averages(name: str, cases: list[Average]) -> dict[str, list[Sample]]:
    """Samples of average pooling and of its gradient."""
    return {
        name: [Sample((Arr(i), *how), case, True) for case, i, _, how in cases],
        f"{name}_backward": [Sample((Arr(o), i, *how), case, True) for case, i, o, how in cases],
    }


_CONVOLUTIONS: list[Convolution] = [
    (
        "strided, padded",
        (1, 2, 3, 4, 3),
        (2, 2, 2, 3, 2),
        (1, 2, 2, 4, 1),
        ((2, 1, 2), (1, 1, 0), (1, 1, 1), 1),
    ),
    (
        "grouped, dilated",
        (2, 2, 3, 2, 3),
        (2, 1, 2, 1, 2),
        (2, 2, 1, 2, 2),
        ((1, 1, 1), (0, 0, 0), (2, 1, 1), 2),
    ),
]

_NO_VOLUMES = Sample(
    (
        *(Arr((0, 2, 3, 3, 3)), Arr((2, 2, 2, 2, 2), seed=1), None),
        *((1, 1, 1), (0, 0, 0), (1, 1, 1), 1),
    ),
    "no volumes",
)
CONVOLUTION = convolutions("conv3d", _CONVOLUTIONS, _NO_VOLUMES)

_VOLUME = Arr((1, 2, 4, 3, 5), kind="distinct", low=-4, high=4)
_IMAGES = Arr((2, 1, 4, 5), kind="distinct", low=-4, high=4)
_AVERAGES: list[Average] = [
    (
        "padded, ceil mode",
        (1, 2, 3, 4, 2),
        (1, 2, 2, 3, 1),
        ((2, 3, 2), (2, 2, 1), (1, 1, 0), True, False, None),
    ),
    (
        "own divisor",
        (2, 1, 2, 3, 3),
        (2, 1, 1, 2, 1),
        ((2, 2, 2), (1, 1, 2), (0, 0, 0), False, True, 3),
    ),
    (
        "another divisor",
        (1, 1, 3, 3, 3),
        (1, 1, 2, 2, 2),
        ((2, 2, 2), (1, 1, 1), (0, 0, 0), False, True, 5),
    ),
    (
        "padding counted",
        (1, 1, 3, 4, 2),
        (1, 1, 2, 3, 1),
        ((2, 3, 2), (2, 2, 1), (1, 1, 0), True, True, None),
    ),
]

POOLING = {
    "max_pool3d": [
        Sample((_VOLUME, (2, 2, 2), (2, 1, 2), (0, 1, 0), (1, 1, 2), False), "dilated", True),
        Sample((_VOLUME, (3, 2, 2), (2, 2, 2), (1, 0, 1), (1, 1, 1), True), "ceil mode", True),
    ],
    **averages("avg_pool3d", _AVERAGES),
    "adaptive_max_pool2d": [
        Sample((_IMAGES, (2, 3)), "windows of several lengths", True),
        Sample((_IMAGES, (2, 1)), "windows of one length", True),
    ],
    "adaptive_max_pool3d": [
        Sample((_VOLUME, (2, 2, 3)), "windows of several lengths", True),
        Sample((_VOLUME, (1, 3, 5)), "windows of one length", True),
    ],
}

_COLUMNS: list[tuple[str, Shape, Shape, tuple[Any, ...]]] = [
    # name, shapes of images and columns, then kernel, dilation, padding, stride
    ("plain", (2, 2, 3, 4), (2, 8, 6), ((2, 2), (1, 1), (0, 0), (1, 1))),
    ("dilated, strided", (1, 1, 5, 4), (1, 6, 6), ((3, 2), (1, 2), (1, 0), (2, 1))),
]

FOLD = {
    "im2col": [
        *[Sample((Arr(i), *how), name, True) for name, i, _, how in _COLUMNS],
        *[
            Sample((Arr(i, dtype), *how), f"{name}, {dtype.name}")
            for dtype in (bool_, complex64)
            for name, i, _, how in _COLUMNS
        ],
    ],
    "col2im": [
        *[Sample((Arr(c), i[2:], *how), name, True) for name, i, c, how in _COLUMNS],
        *[
            Sample((Arr(c, dtype), i[2:], *how), f"{name}, {dtype.name}")
            for dtype in (bool_, complex64)
            for name, i, c, how in _COLUMNS
        ],
    ],
}

_READS: list[tuple[str, int, Any, Any]] = [
    # name, dimension, places, weights
    ("one tap", 2, ((0, 0, 1, 3),), None),
    ("two taps", 1, ((0, 1, 2), (1, 2, 2)), ((0.75, 0.5, 1.0), (0.25, 0.5, 0.0))),
]

RESAMPLING = {
    "resample": [Sample((Arr((2, 3, 4)), *how), name, True) for name, *how in _READS],
    "resample_backward": [
        Sample((Arr((2, 3, 4)), dim, size, places, weights), name, True)
        for (name, dim, places, weights), size in zip(_READS, (5, 3), strict=True)
    ],
}

_PLANES = Arr((2, 2, 5))
_TAPS = indices((2, 3, 4), 5)
_FACTORS = Arr((2, 3, 4), seed=1)

GRID = {
    "tap_sum": [Sample((_PLANES, _TAPS, _FACTORS), "repeated", True)],
    "tap_spread": [
        Sample((Arr((2, 2, 4), seed=2), _TAPS, _FACTORS, 5), "repeated", True),
        Sample((Arr((2, 2, 4), seed=2), _TAPS, _FACTORS, 7), "places without taps", True),
    ],
    "tap_dot": [Sample((Arr((2, 2, 4), seed=2), _PLANES, _TAPS), "repeated", True)],
}

WINDOWS: dict[str, list[Sample]] = {**CONVOLUTION, **POOLING, **FOLD, **RESAMPLING, **GRID}
