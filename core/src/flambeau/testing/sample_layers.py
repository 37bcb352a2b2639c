"""Samples of the ops behind layers: convolution, pooling, normalisation and losses."""

from __future__ import annotations

from flambeau._types.dtype import int64
from flambeau.testing.sample_arrays import Arr, Sample
from flambeau.testing.sample_primitives import indices
from flambeau.testing.sample_windows import WINDOWS, Average, Convolution, averages, convolutions

_MATRIX = Arr((2, 3))
_SHARES = Arr((2, 3), low=0.125, high=0.875)
_IMAGE = Arr((2, 4, 5, 5))
_PLAIN = (1, 1), (0, 0), (1, 1), 1
_CONVOLUTIONS: list[Convolution] = [
    ("plain", (2, 4, 5, 5), (3, 4, 3, 3), (2, 3, 3, 3), _PLAIN),
    ("strided, padded", (1, 2, 5, 6), (2, 2, 3, 2), (1, 2, 3, 4), ((2, 2), (1, 1), (1, 1), 1)),
    ("dilated", (1, 1, 6, 6), (2, 1, 3, 2), (1, 2, 2, 4), ((1, 1), (0, 0), (2, 2), 1)),
    ("grouped", (1, 4, 4, 4), (6, 2, 2, 2), (1, 6, 3, 3), ((1, 1), (0, 0), (1, 1), 2)),
    ("depthwise", (2, 3, 4, 4), (3, 1, 3, 3), (2, 3, 4, 4), ((1, 1), (1, 1), (1, 1), 3)),
]

CONVOLUTION = convolutions(
    "conv2d",
    _CONVOLUTIONS,
    Sample((Arr((1, 2, 3, 3)), Arr((2, 2, 2, 2), seed=1), None, *_PLAIN), "no bias", True),
    Sample((Arr((0, 2, 3, 3)), Arr((2, 2, 2, 2), seed=1), None, *_PLAIN), "no images"),
)

_DISTINCT_IMAGE = Arr((2, 2, 5, 6), kind="distinct", low=-4, high=4)
_AVERAGES: list[Average] = [
    ("plain", (2, 2, 4, 6), (2, 2, 2, 3), ((2, 2), (2, 2), (0, 0), False, True, None)),
    ("padded", (1, 2, 5, 5), (1, 2, 3, 3), ((3, 3), (2, 2), (1, 1), False, True, None)),
    (
        "padding not counted",
        (1, 2, 5, 5),
        (1, 2, 3, 3),
        ((3, 3), (2, 2), (1, 1), False, False, None),
    ),
    ("ceil mode", (1, 1, 5, 6), (1, 1, 3, 3), ((2, 2), (2, 2), (0, 0), True, True, None)),
    ("own divisor", (1, 1, 4, 4), (1, 1, 3, 3), ((2, 2), (1, 1), (0, 0), False, True, 3)),
    ("another divisor", (1, 1, 3, 2), (1, 1, 2, 1), ((2, 2), (1, 1), (0, 0), False, True, 5)),
]

POOLING = {
    "max_pool2d": [
        Sample((_DISTINCT_IMAGE, (2, 2), (2, 2), (0, 0), (1, 1), False), "plain", True),
        Sample(
            (_DISTINCT_IMAGE, (3, 3), (2, 2), (1, 1), (1, 1), False), "overlapping, padded", True
        ),
        Sample((_DISTINCT_IMAGE, (2, 2), (2, 2), (0, 0), (1, 1), True), "ceil mode", True),
        Sample((_DISTINCT_IMAGE, (2, 2), (1, 2), (0, 0), (2, 3), False), "dilated", True),
        Sample((Arr((1, 1, 4, 4), low=0, high=1), (2, 2), (2, 2), (0, 0), (1, 1), False), "ties"),
    ],
    "max_pool2d_backward": [
        Sample((Arr((2, 2, 2, 3)), indices((2, 2, 2, 3), 30), (2, 2, 5, 6)), "repeated", True),
        Sample((Arr((1, 1, 1, 1)), indices((1, 1, 1, 1), 4), (1, 1, 2, 2)), "one", True),
    ],
    **averages("avg_pool2d", _AVERAGES),
}

_BATCH = Arr((4, 3, 2, 2))
_ROWS = Arr((5, 3))
_PER_CHANNEL = Arr((3,), low=0.5, high=1.5, seed=1)
_BIAS = Arr((3,), seed=2)
_MEAN = Arr((3,), low=-0.5, high=0.5, seed=3)
_INVSTD = Arr((3,), low=0.5, high=1.5, seed=4)

NORMALIZATION = {
    "batch_norm": [
        Sample((_BATCH, _PER_CHANNEL, _BIAS, _MEAN, _INVSTD), "images", True),
        Sample((_ROWS, _PER_CHANNEL, _BIAS, _MEAN, _INVSTD), "rows", True),
        Sample((_ROWS, None, None, _MEAN, _INVSTD), "not affine", True),
    ],
    "batch_norm_train": [
        Sample((_BATCH, _PER_CHANNEL, _BIAS, 1e-5), "images", True),
        Sample((_ROWS, _PER_CHANNEL, _BIAS, 1e-3), "rows", True),
        Sample((_ROWS, None, None, 1e-5), "not affine", True),
    ],
    "batch_norm_backward": [
        Sample((Arr((4, 3, 2, 2), seed=5), _BATCH, _PER_CHANNEL, _MEAN, _INVSTD), "images", True),
        Sample((Arr((5, 3), seed=5), _ROWS, _PER_CHANNEL, _MEAN, _INVSTD), "rows", True),
        Sample((Arr((5, 3), seed=5), _ROWS, None, _MEAN, _INVSTD), "not affine", True),
    ],
}

_NORMALIZED_BACK = Arr((2, 3, 2), seed=5), Arr((2, 3, 2)), Arr((3, 2), low=0.5, high=1.5, seed=1)
_PER_ROW = Arr((2, 1, 1), seed=3, low=-0.5, high=0.5), Arr((2, 1, 1), low=0.5, high=1.5, seed=4)

NORMALIZATION |= {
    "layer_norm": [
        Sample((_ROWS, _PER_CHANNEL, _BIAS, (3,), 1e-5), "last", True),
        Sample((Arr((2, 3, 2)), Arr((3, 2), seed=1), Arr((3, 2)), (3, 2), 1e-3), "two", True),
        Sample((_ROWS, None, None, (3,), 1e-5), "not affine", True),
    ],
    "layer_norm_backward": [
        Sample((*_NORMALIZED_BACK, *_PER_ROW, (3, 2)), "two", True),
        Sample(
            (
                *(Arr((5, 3), seed=5), _ROWS, None),
                *(Arr((5, 1), seed=3), Arr((5, 1), low=0.5, high=1.5, seed=4), (3,)),
            ),
            "not affine",
            True,
        ),
    ],
}

_GROUPED_BACK = Arr((2, 6, 2), seed=5), Arr((2, 6, 2)), Arr((6,), low=0.5, high=1.5, seed=1)
_PER_GROUP = Arr((2, 3), seed=3, low=-0.5, high=0.5), Arr((2, 3), low=0.5, high=1.5, seed=4)

NORMALIZATION |= {
    "group_norm": [
        Sample((Arr((2, 6, 2)), Arr((6,), seed=1), Arr((6,), seed=2), 3, 1e-3), "rows", True),
        Sample((Arr((2, 4, 2, 3)), Arr((4,), seed=1), Arr((4,), seed=2), 1, 1e-5), "one", True),
        Sample((Arr((3, 6)), None, None, 2, 1e-5), "not affine", True),
    ],
    "group_norm_backward": [
        Sample((*_GROUPED_BACK, *_PER_GROUP, 3), "rows", True),
        Sample((*_GROUPED_BACK[:2], None, *_PER_GROUP, 3), "not affine", True),
    ],
}

_LOG_PROBS = Arr((4, 3), low=-3, high=-0.25)
_TARGET = Arr((4,), int64, kind="literal", literal=(2, 0, 1, 2))
_IGNORING = Arr((4,), int64, kind="literal", literal=(2, -100, 1, -100))
_PLANES = Arr((2, 2, 3), low=-3, high=-0.25)
_OF_PLANES = Arr((2, 2), int64, kind="literal", literal=(2, -100, 1, 0))
_CLASS_WEIGHT = Arr((3,), low=0.5, high=2, seed=8, fixed=True)
_ONE = Arr((), kind="literal", literal=(1.0,), fixed=True)
_FOUR = Arr((), kind="literal", literal=(4.0,), fixed=True)
_THREE = Arr((), kind="literal", literal=(3.0,), fixed=True)
_TWO = Arr((), kind="literal", literal=(2.0,), fixed=True)

LOSS = {
    "nll_loss": [
        Sample((_LOG_PROBS, _TARGET, None, "mean", -100), "mean", True),
        Sample((_LOG_PROBS, _TARGET, _CLASS_WEIGHT, "mean", -100), "weighted mean", True),
        Sample((_LOG_PROBS, _IGNORING, _CLASS_WEIGHT, "sum", -100), "ignoring, sum", True),
        Sample((_LOG_PROBS, _IGNORING, None, "none", -100), "each", True),
        Sample((_LOG_PROBS, _TARGET, None, "mean", 1), "ignoring a class", True),
        Sample((_PLANES, _OF_PLANES, _CLASS_WEIGHT, "none", -100), "planes", True),
        Sample(
            (Arr((3,), low=-3, high=-0.25), indices((), 3), None, "mean", -100), "one row", True
        ),
    ],
    "nll_loss_backward": [
        Sample((Arr(()), (4, 3), _TARGET, None, "mean", -100, _FOUR), "mean", True),
        Sample((Arr(()), (2, 2, 3), _OF_PLANES, None, "mean", -100, _THREE), "planes", True),
        Sample((Arr(()), (4, 3), _IGNORING, None, "mean", -100, _TWO), "ignoring", True),
        Sample((Arr(()), (4, 3), _TARGET, _CLASS_WEIGHT, "sum", -100, _FOUR), "weighted sum", True),
        Sample((Arr((4,)), (4, 3), _IGNORING, None, "none", -100, _TWO), "each", True),
        Sample((Arr(()), (4, 3), _TARGET, None, "mean", 1, _THREE), "ignoring a class", True),
        Sample((Arr(()), (3,), indices((), 3), None, "mean", -100, _ONE), "one row", True),
    ],
    "cross_entropy": [
        Sample((Arr((4, 3)), _TARGET, -100), "mean", True),
        Sample((Arr((4, 3)), _IGNORING, -100), "ignoring", True),
        Sample((Arr((4, 3)), _TARGET, 1), "ignoring a class", True),
    ],
    "cross_entropy_backward": [
        Sample((Arr(()), _LOG_PROBS, _TARGET, -100, _FOUR), "mean", True),
        Sample((Arr(()), _LOG_PROBS, _IGNORING, -100, _TWO), "ignoring", True),
        Sample((Arr(()), _LOG_PROBS, _TARGET, 1, _THREE), "ignoring a class", True),
    ],
    "mse_loss": [
        Sample((_MATRIX, Arr((2, 3), seed=1), reduction), reduction, True)
        for reduction in ("mean", "sum", "none")
    ],
    **{
        name: [
            Sample((_MATRIX, Arr((2, 3), seed=1), reduction, knee), f"{reduction} {knee}", True)
            for reduction, knee in (("mean", 1.0), ("sum", 0.25), ("none", 0.75))
        ]
        for name in ("smooth_l1_loss", "huber_loss")
    },
    "binary_cross_entropy": [
        Sample((_SHARES, Arr((2, 3), seed=1, low=0.0, high=1.0)), "probabilities", True)
    ],
}

LAYERS: dict[str, list[Sample]] = {**CONVOLUTION, **POOLING, **WINDOWS, **NORMALIZATION, **LOSS}
