"""Samples at the corners: special numbers, and a sample for each promise that others do not touch.

What a promise is stands in `reference.meanings`; a backend that breaks one shall fail here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from flambeau._types.dtype import (
    COMPLEX,
    FLOATING,
    bfloat16,
    bool_,
    complex64,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from flambeau.testing.sample_arrays import DTYPE, GENERATOR, Arr, Sample

if TYPE_CHECKING:
    from flambeau._types.dtype import dtype as DType


FLOAT_UNARY = (
    *("exp", "expm1", "log", "log1p", "sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "sqrt", "rsqrt", "reciprocal"),
)
REAL_UNARY = ("floor", "ceil", "trunc", "round")
ORDERINGS = ("lt", "le", "gt", "ge")
BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")
DIVISIONS = ("remainder", "fmod", "floor_divide")

# Longer than any processor's vectors, and no multiple of them: the ends of loops differ.
LONG = 83

_CORNERS = Arr((16,), kind="special")
_MANY = Arr((LONG,), kind="special")
_LEFT = Arr((16, 1), kind="special")
_RIGHT = Arr((1, 16), kind="special")
_DIVISOR = Arr((1, 16), kind="divisor")
_ROWS = Arr((4, 4), kind="special")
_TIES = (1, 0, 0, 1, 0, 1, 1)


def _literal(*numbers: object, dtype: DType | None = None, shape: tuple[int, ...] = ()) -> Arr:
    return Arr(shape or (len(numbers),), dtype, kind="literal", literal=numbers)


def _unary(name: str) -> list[Sample]:
    found = [Sample((_CORNERS,), "corners"), Sample((_MANY,), "many")]
    if name in FLOAT_UNARY or name == "erf":
        found.append(Sample((Arr((19,), kind="fine"),), "near zero and far from it"))
    if name in REAL_UNARY:
        halves = (0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.5, 0.25, -0.25, -0.75, 0.0, -0.0, 7.5)
        found.append(Sample((_literal(*halves),), "halves"))
    return found


def _pairs(name: str) -> list[Sample]:
    right = _DIVISOR if name in (*DIVISIONS, "div") else _RIGHT
    return [
        Sample((_LEFT, right), "pairs of corners"),
        Sample((_MANY, Arr((LONG,), kind="nonzero", low=1, high=2)), "many"),
    ]


_LONG_INTEGERS = (2**24 + 1, 2**53 + 1, -(2**53) - 1, 2**61 + 2**37 + 1, 2**62 + 1, -(2**63))

_CONVERSIONS = {
    "cast": [
        *[
            Sample((_CORNERS, target), f"corners to {target.name}")
            for target in (bool_, *FLOATING, *COMPLEX)
        ],
        Sample((_MANY, float64), "many"),
        *[
            Sample(
                (_literal(300, -129, 255, 128, -1, 65543, 2**40 + 5, dtype=int64), target),
                f"wraps to {target.name}",
            )
            for target in (int8, uint8, int16, int32)
        ],
        *[
            Sample(
                (_literal(*_LONG_INTEGERS, dtype=int64), target), f"long integers to {target.name}"
            )
            for target in (float16, bfloat16, float32, float64)
        ],
        *[
            Sample(
                (_literal(1.5 + 2j, -2.5 - 1j, 3j, 0j, dtype=complex64), target),
                f"parts to {target.name}",
            )
            for target in (bool_, int64, float32)
        ],
    ],
    "full": [
        *[Sample(((3,), value, float32), f"{value}") for value in (math.nan, -math.inf, -0.0)],
        Sample(((3,), 2**62 + 1, int64), "long integer"),
    ],
    "arange": [
        Sample((2**53 + 1, 1, 4, int64), "beyond doubles"),
        Sample((-(2**53) - 1, -2, 4, int64), "below doubles"),
        Sample((0, 1, LONG, DTYPE), "many"),
        Sample((-1.5, 0.25, LONG, float64), "many floats"),
    ],
}

_CHOICES = {
    "clamp_within": [
        Sample((_LEFT, _RIGHT, Arr((16, 16), kind="wild", seed=2)), "pairs of corners"),
        Sample((_LEFT, _RIGHT, None), "corners from below"),
    ],
    "where": [
        Sample((Arr((16,), bool_), _CORNERS, Arr((16,))), "corners"),
        Sample((Arr((LONG,), bool_), _MANY, Arr((LONG,), kind="special", seed=1)), "many"),
    ],
    "isfinite": [
        *_unary("isfinite"),
        Sample(
            (
                _literal(
                    *(complex(math.inf, 0), complex(1, math.nan), 1 + 1j, complex(0, -math.inf)),
                    dtype=complex64,
                ),
            ),
            "parts",
        ),
    ],
    "nonzero": [
        Sample((_CORNERS,), "corners"),
        Sample((_literal(1j, 0j, 1 + 0j, -2j, dtype=complex64),), "parts"),
        Sample((_literal(*_TIES, shape=(5, 17)),), "many"),
    ],
}


def _reduction(name: str) -> list[Sample]:
    # Positive numbers, so that what is summed in another order does not cancel; products of 1 and
    # -1, whose order does not show.
    product = name == "prod"
    kind, low, high = ("nonzero", 1, 1) if product else ("uniform", 1, 2)
    rows, columns = (
        Arr(shape, kind=kind, low=low, high=high, seed=3) for shape in ((3, LONG), (LONG, 3))
    )
    return [
        Sample((_ROWS, (1,), False), "corners in rows"),
        Sample((_ROWS, (0,), True), "corners in columns"),
        Sample((_literal(*[0] * (LONG - 1), 1), (0,), False), "last of many"),
        Sample((rows, (1,), False), "long rows"),
        Sample((columns, (0,), False), "long columns"),
        Sample((columns, (0, 1), True), "all of many"),
    ]


def _place(name: str) -> list[Sample]:
    return [
        Sample((_ROWS, 1, False), "corners in rows"),
        Sample((Arr((3, LONG), kind="special"), 1, True), "first of several nan"),
        Sample((_literal(0.0, -0.0, 0.0, -0.0), 0, False), "zeros are equal"),
        Sample((_literal(*_TIES, shape=(3, 40)), 1, False), "ties in rows"),
        Sample((_literal(*_TIES, shape=(40, 3)), 0, False), "ties in columns"),
    ]


def _running(name: str) -> list[Sample]:
    kind, low, high = ("nonzero", 1, 1) if name == "cumprod" else ("uniform", 1, 2)
    return [
        Sample((_ROWS, 1), "corners in rows"),
        Sample((Arr((2, LONG), kind=kind, low=low, high=high), 1), "long rows"),
        Sample((Arr((LONG, 2), kind=kind, low=low, high=high), 0), "long columns"),
    ]


_MASK = (1,) * 40

_REDUCTIONS = {
    **{name: _reduction(name) for name in ("sum", "prod", "amax", "amin")},
    **{name: _place(name) for name in ("argmax", "argmin")},
    **{name: _running(name) for name in ("cumsum", "cumprod")},
    "all": [
        Sample((_literal(*_MASK, 0, dtype=bool_), (0,), False), "last of many"),
        Sample((_literal(*_MASK, 1, dtype=bool_), (0,), False), "all of many"),
    ],
    "any": [Sample((_literal(*[0] * 40, 1, dtype=bool_), (0,), False), "last of many")],
}

_PRODUCTS = {
    "matmul": [
        Sample((_LEFT, _RIGHT), "products of corners"),  # sums of one: no order
        Sample((Arr((2, 2, 3), low=1), Arr((3,), low=1)), "batch and vector"),
        Sample((Arr((5, LONG), low=1), Arr((LONG, 7), low=1)), "long inner"),
        Sample((Arr((LONG,), low=1), Arr((LONG,), low=1)), "long vectors"),
        Sample((_literal(2**53 + 1, dtype=int64), _literal(3, dtype=int64)), "beyond doubles"),
    ],
}

_ORDERS = {
    "sort": [
        Sample((_CORNERS, 0, False, True), "corners ascending"),
        Sample((_CORNERS, 0, True, True), "corners descending"),
        # Libraries sort a few elements by insertion, which is stable by accident.
        Sample((_literal(*_TIES, shape=(2, LONG)), 1, False, True), "many ties"),
        Sample((_literal(*_TIES, shape=(2, LONG)), 1, True, True), "many ties descending"),
        Sample((_literal(*_TIES, shape=(LONG, 2)), 0, False, False), "ties not asked to be stable"),
        Sample((_literal(*_TIES, shape=(LONG, 2)), 0, True, False), "falling, not asked"),
        Sample((Arr((LONG,), kind="special"), 0, False, True), "several nan and zeros"),
        Sample((Arr((LONG,), kind="special"), 0, True, True), "several nan and zeros, falling"),
    ],
}

_AGAIN = (2, 0, 1, 2, 3, 1, 1, 0, 3, 2, 2)


def _again(*shape: int) -> Arr:
    return Arr(shape, int64, kind="literal", literal=_AGAIN)


_BOTH = (_again(40), Arr((40,), int64, 0, 2, seed=3))

_WRITES = {
    "index_put": [
        Sample((Arr((4, 3)), (_again(40),), Arr((40, 3), seed=1), False), "last of several stays"),
        Sample((Arr((4, 3)), _BOTH, Arr((40,), seed=1), False), "last of several elements"),
        Sample((Arr((3, 4)), (None, _again(3, 7)), Arr((3, 3, 7), seed=1), False), "last in rows"),
        Sample((Arr((4, 3), low=1), (_again(40),), Arr((40, 3), low=1), True), "added often"),
        Sample((Arr((4,)), (_again(2),), Arr((), seed=1), False), "scalar value"),
        Sample((_MANY, (Arr((16,), int64, 0, 40),), _CORNERS, False), "corners"),
    ],
    "scatter": [
        Sample((_MANY, 0, Arr((3,), int64, 0, 40), _CORNERS), "corners"),
        Sample((Arr((3, 4)), 1, _again(3, 40), Arr((3, 40), seed=1)), "last of a row stays"),
        Sample((Arr((4, 3)), 0, _again(40, 3), Arr((40, 3), seed=1)), "last of a column stays"),
    ],
    "scatter_add": [
        Sample((_MANY, 0, Arr((3,), int64, 0, 40), Arr((3,))), "corners"),
        Sample((Arr((3, 4), low=1), 1, _again(3, 40), Arr((3, 40), low=1)), "all of a row"),
        Sample((Arr((4, 3), low=1), 0, _again(40, 3), Arr((40, 3), low=1)), "all of a column"),
    ],
    "index": [
        Sample((_MANY, (Arr((LONG,), int64, 0, LONG - 1),)), "corners"),
        Sample((Arr((4, 3, 5)), (*_BOTH, Arr((40,), int64, 0, 4, seed=5))), "all dimensions"),
    ],
    "gather": [
        Sample((_MANY, 0, Arr((LONG,), int64, 0, LONG - 1)), "corners"),
        Sample((Arr((4, 3)), 0, _again(40, 2)), "often, fewer columns"),
    ],
    "cat": [Sample(([_MANY, _CORNERS], 0), "corners")],
    "flip": [Sample((_MANY, (0,)), "corners")],
}

PRIMITIVES: dict[str, list[Sample]] = {
    **{
        name: _unary(name)
        for name in ("clone", *FLOAT_UNARY, *REAL_UNARY, "neg", "abs", "sign", "erf", "bitwise_not")
    },
    **{
        name: _pairs(name)
        for name in (
            *("add", "sub", "mul", "div", "pow", "maximum", "minimum", "eq", "ne", "atan2"),
            *(*ORDERINGS, *BITWISE, *DIVISIONS),
        )
    },
    **_CONVERSIONS,
    **_CHOICES,
    **_REDUCTIONS,
    **_PRODUCTS,
    **_ORDERS,
    **_WRITES,
}

_LONG = Arr((3, LONG), low=1)
_LONG_ROWS: dict[str, list[Sample]] = {
    **{
        name: [Sample((_LONG, (1,), False), "long rows")] for name in ("mean", "logsumexp", "norm2")
    },
    "var": [Sample((_LONG, (1,), 1, False), "long rows")],
    **{name: [Sample((_LONG, 1), "long rows")] for name in ("softmax", "log_softmax")},
    "linear": [Sample((_LONG, Arr((5, LONG), low=1, seed=1), Arr((5,))), "long rows")],
    "layer_norm": [Sample((_LONG, Arr((LONG,)), Arr((LONG,)), (LONG,), 1e-5), "long rows")],
}

# Where a special number goes is left to the algorithm: what it adds first, where it multiplies by
# the zeros of a padding, in which order it eliminates.  That NaN is not lost can be said of these.
_OPEN = frozenset(
    [
        *(
            "batch_norm",
            "batch_norm_train",
            "batch_norm_backward",
            "conv2d",
            "conv2d_input_grad",
            "conv2d_weight_grad",
        ),
        *("conv3d", "conv3d_input_grad", "conv3d_weight_grad", "ctc_loss", "ctc_loss_backward"),
        *("gru_sequence_backward", "lstm_sequence_backward", "rnn_sequence_backward"),
        *("grid_slopes", "grid_spread", "grid_values", "tap_dot", "tap_spread", "tap_sum"),
        *("complex", "imag", "sgn", "fft_c2r"),
        *(
            "determinant",
            "inv_ex",
            "matrix_exponential",
            "solve_ex",
            "triangular_solve",
        ),  # where i meets the NaN of a real number
        *("i0", "i1"),  # at infinities, where PyTorch has NaN
    ]
)


def of_composites(
    samples: Mapping[str, list[Sample]], left_out: frozenset[str], any_shape: frozenset[str]
) -> dict[str, list[Sample]]:
    """The samples of composites again, with special numbers for those of floating arrays.

    In others of them the first array has NaN alone, which must not be lost; where the algorithm
    decides, there are only these.  Those in `left_out` have neither, for they may refuse NaN.  Ops
    in `any_shape` get long arrays.
    """
    found: dict[str, list[Sample]] = {}
    for name, ordinary in samples.items():
        if name in PRIMITIVES or name.endswith("_"):
            continue
        if any(GENERATOR in sample.args for sample in ordinary):
            continue
        corners = list(_LONG_ROWS.get(name, ()))
        if name in any_shape:
            corners.append(Sample(_long(ordinary[0].args), "many"))
        if name not in left_out or name in _OPEN:
            corners += [Sample(_lost(s.args, [0]), f"NaN first, {s.name}") for s in ordinary]
        if name not in left_out and name not in _OPEN:
            corners += [Sample(_wild(s.args, [0]), f"corners, {s.name}") for s in ordinary]
            if name in any_shape:
                corners.append(Sample(_wild(_long(ordinary[0].args), [0]), "many corners"))
        if corners:
            found[name] = corners
    return found


def _lost(value: object | None, count: list[int]) -> Any:
    """The arguments with nothing but NaN in the first floating array."""
    if isinstance(value, Arr) and value.dtype is None and not value.fixed:
        count[0] += 1
        return replace(value, kind="nan") if count[0] == 1 else value
    if isinstance(value, (tuple, list)):
        return type(value)([_lost(item, count) for item in value])
    return value


def _wild(value: object | None, count: list[int]) -> Any:
    if isinstance(value, Arr):
        if value.dtype is not None or value.fixed:
            return value
        count[0] += 1
        return replace(value, kind="wild", seed=count[0])
    if isinstance(value, (tuple, list)):
        return type(value)([_wild(item, count) for item in value])
    return value


def _long(value: object) -> Any:
    if isinstance(value, Arr):
        return replace(value, shape=(LONG,))
    return type(value)(map(_long, value)) if isinstance(value, (tuple, list)) else value
