"""Samples of the composites that a backend may override, by family."""

from __future__ import annotations

from flambeau._types.dtype import int64
from flambeau.testing.sample_arrays import DTYPE, GENERATOR, Arr, Sample, pointwise
from flambeau.testing.sample_attention import ATTENTION
from flambeau.testing.sample_layers import LAYERS
from flambeau.testing.sample_optimizer import OPTIMIZER
from flambeau.testing.sample_recurrent import RECURRENT

KINKED = Arr((2, 3), kind="nonzero", low=0.25, high=2)  # away from the kink at zero
GRAD = Arr((2, 3), seed=7)
PROBABILITIES = Arr((2, 3), low=0.125, high=0.5)


def _along(*leading: Arr) -> list[Sample]:
    """The leading arrays are (2, 3); samples for each dimension and for a scalar."""
    scalars = [Arr((), low=a.low, high=a.high, seed=a.seed) for a in leading]
    return [
        Sample((*leading, 1), "last", True),
        Sample((*leading, 0), "first", True),
        Sample((*scalars, 0), "scalar", True),
    ]


ACTIVATION = {
    "relu": pointwise(KINKED),
    "sigmoid": pointwise(Arr((2, 3))),
    "softmax": [*_along(Arr((2, 3))), Sample((Arr((2, 3, 4)), 1), "middle", True)],
    "softmax_backward": _along(GRAD, PROBABILITIES),
    "log_softmax": [*_along(Arr((2, 3))), Sample((Arr((2, 3, 4)), 1), "middle", True)],
    "log_softmax_backward": _along(GRAD, Arr((2, 3), low=-2, high=-0.5)),
    "gelu": [
        *pointwise(Arr((2, 3)), "none"),
        Sample((Arr((2, 3)), "tanh"), "tanh approximation", True),
    ],
    "gelu_backward": [
        Sample((GRAD, Arr((2, 3)), "none"), "exact", True),
        Sample((GRAD, Arr((2, 3)), "tanh"), "tanh approximation", True),
    ],
    "sigmoid_backward": [Sample((GRAD, PROBABILITIES), "matrix", True)],
    "tanh_backward": [Sample((GRAD, Arr((2, 3), low=-0.9375, high=0.9375)), "matrix", True)],
    "silu": pointwise(Arr((2, 3))),
    "silu_backward": [Sample((GRAD, Arr((2, 3))), "matrix", True)],
    "log_sigmoid": pointwise(Arr((2, 3))),
    "log_sigmoid_backward": [Sample((GRAD, Arr((2, 3))), "matrix", True)],
    "softplus": [
        *pointwise(Arr((2, 3)), 1.0, 20.0),
        Sample((KINKED, 2.0, 0.125), "mostly linear", True),
    ],
    "softplus_backward": [
        Sample((GRAD, Arr((2, 3)), 1.0, 20.0), "matrix", True),
        Sample((GRAD, KINKED, 2.0, 0.125), "mostly linear", True),
    ],
    "leaky_relu": [*pointwise(KINKED, 0.01), Sample((KINKED, -0.5), "negative slope", True)],
    "leaky_relu_backward": [
        Sample((GRAD, KINKED, 0.01), "small slope", True),
        Sample((GRAD, KINKED, -0.5), "negative slope", True),
    ],
    "elu": [*pointwise(KINKED, 1.0, 1.0, 1.0), Sample((KINKED, 1.5, 1.25, 0.5), "scaled", True)],
    "elu_backward": [Sample((GRAD, KINKED, 1.5, 1.25, 0.5), "scaled", True)],
    "hardtanh": [*pointwise(KINKED, -1.1, 0.7), Sample((KINKED, 0.0, 6.0), "up to six", True)],
    "hardtanh_backward": [
        Sample((GRAD, KINKED, -1.1, 0.7), "matrix", True),
        Sample((GRAD, KINKED, -0.3, 1.2), "other limits", True),
    ],
    "hardsigmoid": pointwise(KINKED),
    "hardsigmoid_backward": [Sample((GRAD, KINKED), "matrix", True)],
    "hardswish": pointwise(KINKED),
    "hardswish_backward": [Sample((GRAD, KINKED), "matrix", True)],
    "hardshrink": [*pointwise(KINKED, 0.3), Sample((KINKED, 0.0), "by nothing", True)],
    "hardshrink_backward": [Sample((GRAD, KINKED, 0.3), "matrix", True)],
    "softshrink": [*pointwise(KINKED, 0.3), Sample((KINKED, 0.0), "by nothing", True)],
    "prelu": [
        Sample((KINKED, Arr((), low=0.125, high=0.5)), "one slope", True),
        Sample((KINKED, Arr((3,), low=-0.5, high=0.5)), "a slope per channel", True),
        Sample((Arr((2, 3, 2), kind="nonzero"), Arr((3, 1))), "of rows", True),
        Sample((KINKED, Arr((2, 3))), "a slope per element", True),
        Sample((Arr((0, 3)), Arr((3,))), "of nothing"),
        Sample((Arr((), kind="nonzero"), Arr(())), "of a number", True),
    ],
    "prelu_backward": [
        Sample((GRAD, KINKED, Arr(())), "one slope", True),
        Sample((GRAD, KINKED, Arr((3,))), "a slope per channel", True),
    ],
    "rrelu_with_noise": [
        Sample((KINKED, Arr((2, 3), low=0.125, high=0.5, fixed=True)), "drawn slopes", True),
        Sample((Arr((0, 3)), Arr((0, 3))), "of nothing"),
    ],
    "prelu_weight_grad": [
        Sample((GRAD, KINKED, Arr(())), "one slope", True),
        Sample((GRAD, KINKED, Arr((3,))), "a slope per channel", True),
        Sample((GRAD, KINKED, Arr((2, 1))), "a slope per row", True),
    ],
    "threshold": [
        Sample((KINKED, 0.0, -1.0), "at zero", True),
        Sample((Arr((2, 3), low=-1, high=0.375), 0.5, 7.0), "all replaced", True),
    ],
    "threshold_backward": [
        Sample((GRAD, KINKED, 0.0), "relu", True),
        Sample((GRAD, Arr((2, 3), low=0.625, high=2), 0.5), "all pass", True),
        Sample((GRAD, Arr((2, 3), kind="distinct"), 0.5), "some pass"),
    ],
}

_POSITIVE = Arr((2, 3), low=0.25, high=3)

ELEMENTWISE = {
    "contiguous": pointwise(Arr((2, 3))),
    "log2": pointwise(_POSITIVE),
    "log10": pointwise(_POSITIVE),
    "square": pointwise(Arr((2, 3))),
    "clamp": [
        *pointwise(Arr((2, 3), kind="distinct"), -1.1, 1.3),
        Sample((Arr((2, 3), kind="distinct"), None, 0.1), "above", True),
        Sample((Arr((2, 3), kind="distinct"), 0.1, None), "below", True),
    ],
}

_POSITIVE_ARGUMENTS = Arr((2, 3), low=0.25, high=4)
_BELOW_ZERO = Arr((5,), kind="literal", literal=(-0.25, -1.5, -2.75, -3.375, -7.125))

SPECIAL_FUNCTIONS = {
    "erfc": [*pointwise(Arr((2, 3))), Sample((Arr((4,), low=2, high=4),), "tail", True)],
    "erfinv": pointwise(Arr((2, 3), low=-0.9375, high=0.9375)),
    "lgamma": [*pointwise(Arr((2, 3), low=2.5, high=4)), Sample((_BELOW_ZERO,), "negative", True)],
    "digamma": [*pointwise(_POSITIVE_ARGUMENTS), Sample((_BELOW_ZERO,), "negative", True)],
    "polygamma": [
        *pointwise(_POSITIVE_ARGUMENTS, 1),
        Sample((_POSITIVE_ARGUMENTS, 3), "third derivative", True),
        Sample((_BELOW_ZERO, 1), "negative", True),
    ],
}

_FAR = Arr((4,), kind="literal", literal=(20.0, 24.5, 26.0, 30.0))
_AIRY = Arr((8,), kind="literal", literal=(-30.0, -9.5, -8.5, -1.0, 0.0, 0.75, 1.25, 12.0))

BESSEL = {
    "airy_ai": [Sample((_AIRY,))],
    **{name: pointwise(Arr((2, 3))) for name in ("bessel_j0", "bessel_j1", "i0", "i1")},
    **{name: pointwise(KINKED) for name in ("i0e", "i1e")},
    **{
        name: [*pointwise(_POSITIVE_ARGUMENTS), Sample((_FAR,), "far", True)]
        for name in (
            *("bessel_y0", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1"),
            *("scaled_modified_bessel_k0", "scaled_modified_bessel_k1"),
        )
    },
}

_SHAPES = Arr((2, 3), low=0.5, high=4, seed=1, fixed=True)
_MANY = Arr((2, 3), kind="literal", literal=(110.0, 116.0, 124.0), fixed=True)
_AROUND = Arr((2, 3), kind="literal", literal=(104.0, 116.0, 120.0, 128.0, 112.0, 124.0))

INCOMPLETE_GAMMA = {
    **{
        name: [
            Sample((_SHAPES, _POSITIVE_ARGUMENTS), "matrix", True),
            Sample((_MANY, _AROUND), "large", True),
            Sample((Arr((), low=1, high=2, fixed=True), Arr((), low=1, high=2)), "scalar", True),
            Sample((Arr((0, 3), fixed=True), Arr((3,))), "empty"),
        ]
        for name in ("igamma", "igammac")
    },
    "zeta": [
        Sample((Arr((2, 3), low=1.25, high=4, fixed=True), _POSITIVE_ARGUMENTS), "matrix", True),
        Sample((Arr((), low=2, high=4, fixed=True), Arr((), low=1, high=2)), "scalar", True),
        Sample((Arr((0, 3), fixed=True), Arr((3,))), "empty"),
    ],
}

_MATRIX = Arr((2, 3))
_FACTOR = Arr((2, 3), seed=5)  # no row of it adds up to nothing
_RIGHT = Arr((3, 4), seed=1)

LINALG = {
    "addmm": [
        Sample((Arr((2, 4), seed=2), _FACTOR, _RIGHT, 1, 1), "matrix", True),
        Sample((Arr((4,), seed=2), _FACTOR, _RIGHT, 0.5, 2), "row, scaled", True),
        Sample((Arr((4,), seed=2), _FACTOR, _RIGHT, 0, 1), "bias ignored", True),
        Sample((Arr((2, 1), seed=2), Arr((2, 0)), Arr((0, 4)), 1, 1), "empty inner"),
    ],
    "linear": [
        Sample((_MATRIX, Arr((4, 3), seed=1), Arr((4,), seed=2)), "bias", True),
        Sample((_MATRIX, Arr((4, 3), seed=1), None), "no bias", True),
        Sample((Arr((2, 2, 3)), Arr((4, 3), seed=1), Arr((4,), seed=2)), "batch", True),
        Sample((Arr((3,)), Arr((4, 3), seed=1), Arr((4,), seed=2)), "vector", True),
        Sample((Arr((0, 3)), Arr((4, 3), seed=1), Arr((4,), seed=2)), "no rows"),
    ],
    "linear_activation": [
        Sample((*operands, activation, saves), f"{form}, {name}", grad)
        for form, activation, saves in (
            ("relu", "relu", True),
            ("gelu", "gelu_tanh", True),
            ("gelu that keeps nothing", "gelu_tanh", False),
        )
        for name, grad, operands in (
            ("bias", True, (_MATRIX, Arr((8, 3), seed=1), Arr((8,), seed=2))),
            ("no bias", True, (_MATRIX, Arr((8, 3), seed=1), None)),
            ("batch", True, (Arr((2, 2, 3), seed=3), Arr((4, 3), seed=1), Arr((4,), seed=2))),
            ("vector", True, (Arr((3,), seed=3), Arr((4, 3), seed=1), Arr((4,), seed=2))),
            ("no rows", False, (Arr((0, 3)), Arr((4, 3), seed=1), Arr((4,), seed=2))),
            ("no features", False, (Arr((2, 0)), Arr((4, 0)), Arr((4,), seed=2))),
        )
    ],
}


def _reduction(*extra: object) -> list[Sample]:
    """Samples for ops with arguments ``(a, dims, *extra, keepdim)``."""
    return [
        Sample((_MATRIX, (0, 1), *extra, False), "all dimensions", True),
        Sample((_MATRIX, (0,), *extra, False), "first", True),
        Sample((Arr((2, 3, 4)), (1,), *extra, False), "middle", True),
        Sample((Arr((2, 3, 4)), (0, 2), *extra, True), "two kept", True),
        Sample((Arr((0, 3)), (1,), *extra, False), "empty result"),
    ]


REDUCTION = {
    "mean": [*_reduction(), Sample((Arr(()), (), False), "scalar", True)],
    "var": [*_reduction(1), Sample((_MATRIX, (1,), 0, False), "uncorrected", True)],
    "logsumexp": [*_reduction(), Sample((Arr(()), (), False), "scalar", True)],
}


def _triangle() -> list[Sample]:
    return [
        Sample((Arr((3, 3)), 0), "square", True),
        Sample((Arr((2, 4)), 1), "wide, above", True),
        Sample((Arr((2, 4, 2)), -1), "batch, below", True),
        Sample((Arr((0, 3)), 0), "empty"),
    ]


_NONZERO = Arr((2, 3), kind="nonzero", low=0.5, high=2)
_WITH_ZERO = Arr((4,), kind="literal", literal=(1.5, 0.0, -0.5, 2.0))

REDUCTION |= {
    "norm2": [
        *[
            Sample((Arr(shape, kind="nonzero", low=0.5, high=2), dims, keepdim), name, True)
            for shape, dims, keepdim, name in (
                ((2, 3), (0, 1), False, "all dimensions"),
                ((2, 3), (0,), False, "first"),
                ((2, 3, 4), (1,), True, "middle, kept"),
                ((), (), False, "scalar"),
            )
        ],
        Sample((Arr((0, 3)), (1,), False), "empty result"),
    ],
    "prod_of_others": [
        Sample((_NONZERO, (1,)), "rows", True),
        Sample((_NONZERO, (0, 1)), "all dimensions", True),
        Sample((_WITH_ZERO, (0,)), "with a zero", True),
        Sample((Arr((2, 0)), (1,)), "empty"),
    ],
}

STATISTICS = {
    "extremum": [
        Sample((Arr((3, 4), kind="distinct"), 1, False, True), "largest", True),
        Sample((Arr((3, 4), kind="distinct"), 0, True, False), "smallest kept", True),
        Sample((Arr((2, 3, 4), kind="distinct"), 1, False, False), "middle", True),
        Sample((Arr((4, 5), low=0, high=2), 1, False, True), "ties"),
        Sample((Arr((0, 3)), 1, False, True), "empty result"),
    ],
    "topk": [
        Sample((Arr((3, 4), kind="distinct"), 2, 1, True), "largest", True),
        Sample((Arr((4, 3), kind="distinct"), 3, 0, False), "smallest of columns", True),
        Sample((Arr((4, 5), low=0, high=2), 3, 1, True), "ties"),
        Sample((Arr((3,)), 0, 0, True), "none"),
    ],
    "median": [
        Sample((Arr((7,), kind="distinct"), False), "odd count", True),
        Sample((Arr((6,), kind="distinct"), True), "even count", True),
        Sample((Arr((1,)), False), "one element", True),
    ],
}

_PLACES = Arr((2, 3), int64, kind="literal", literal=(2, 0, 1, 2, 3, 1))

INDEXING = {
    "tril": _triangle(),
    "triu": _triangle(),
    "scatter_extremum": [
        Sample(
            (Arr((4, 3), kind="distinct"), 0, _PLACES, Arr((2, 3), low=-3, high=3.5), True),
            "largest",
            True,
        ),
        Sample(
            (Arr((2, 4), kind="distinct"), 1, _PLACES, Arr((2, 3), low=-3, high=3.5), False),
            "smallest",
            True,
        ),
        Sample((Arr((2, 3)), 0, Arr((0, 3), int64), Arr((0, 3)), True), "nothing"),
    ],
}

_TRANSPOSED = ("permute", ((1, 0),), (3, 4), "transpose")
_ROWS_OF = ("slice", ((slice(1, 4, 2),),), (4, 3), "rows")
# Shape of the base; shape, stride and offset of the region; stride and offset of the base.
_OVERLAPPING = (4,), (3, 2), (1, 1), 0, (1,), 0
_WINDOWS = ("unfold", (0, 2, 2), (4, 3), "Unfold")
_INSIDE = (2, 3), (2, 2), (3, 1), 1, (3, 1), 0
_BASE_TRANSPOSED = (2, 3), (3,), (1,), 1, (1, 2), 0

MOVEMENT = {
    "stack": [
        Sample(([Arr((2, 3)), Arr((2, 3), seed=1)], 0), "first", True),
        Sample(([Arr((2, 3)), Arr((2, 3), seed=1), Arr((2, 3), seed=2)], 1), "middle", True),
        Sample(([Arr((2, 3))], 2), "last", True),
        Sample(([Arr(()), Arr((), seed=1)], 0), "scalars", True),
        Sample(([Arr((0, 3)), Arr((0, 3))], 1), "empty"),
    ],
    "slice_backward": [
        Sample((Arr((2, 2)), (4, 2), (slice(1, 4, 2),)), "rows", True),
        Sample((Arr((4,)), (4, 3), (slice(0, 4, 1), 1)), "column", True),
        Sample((Arr((1, 2)), (2, 3), (None, 1, slice(0, 2, 1))), "new dimension", True),
        Sample((Arr((0,)), (3,), (slice(2, 2, 1),)), "nothing"),
    ],
    "diagonal_backward": [
        Sample((Arr((3,)), (3, 4), 0, 0, 1), "main", True),
        Sample((Arr((3, 2)), (2, 3, 4), -1, 2, 0), "swapped, below", True),
        Sample((Arr((0,)), (3, 4), 7, 0, 1), "outside"),
    ],
    "as_strided_region": [
        Sample((Arr((4,)), *_OVERLAPPING), "overlapping", True),
        Sample((Arr((2, 3)), *_INSIDE), "inside", True),
        Sample((Arr((2, 3)), *_BASE_TRANSPOSED), "base transposed", True),
    ],
    "as_strided_backward": [
        Sample((Arr((3, 2)), *_OVERLAPPING), "overlapping", True),
        Sample((Arr((2, 2)), *_INSIDE), "inside", True),
        Sample((Arr((3,)), *_BASE_TRANSPOSED), "base transposed", True),
    ],
    "view_put": [
        Sample((Arr((3, 4)), Arr((4, 3), seed=1), (_TRANSPOSED,)), "all", True),
        Sample((Arr((3, 4)), Arr((2, 3), seed=1), (_TRANSPOSED, _ROWS_OF)), "columns", True),
        Sample((Arr(()), Arr((), seed=1), ()), "scalar", True),
        Sample((Arr((4, 3)), Arr((2, 3, 2), seed=1), (_WINDOWS,)), "windows", True),
        *(
            Sample(
                (Arr((2, 3)), Arr(how[1], seed=1), (("as_strided", how[1:], how[0], ""),)),
                what,
                True,
            )
            for how, what in ((_INSIDE, "inside"), (_BASE_TRANSPOSED, "base transposed"))
        ),
        Sample(
            (
                *(Arr((2, 3)), Arr((2,), seed=1)),
                (("as_strided", _INSIDE[1:], (2, 3), ""), ("diagonal", (0, 0, 1), (2, 2), "")),
            ),
            "diagonal of a region",
            True,
        ),
        Sample(
            (Arr((2, 3)), Arr((), seed=1), (("as_strided", ((), (), 2, (3, 1), 0), (2, 3), ""),)),
            "one element",
            True,
        ),
    ],
}

RANDOM = {
    "uniform": [
        Sample(((2, 3), -1.0, 1.0, DTYPE, GENERATOR)),
        Sample(((0,), 0.0, 1.0, DTYPE, GENERATOR), "empty"),
    ],
    "normal": [
        Sample(((3, 6), 0.5, 2.0, DTYPE, GENERATOR)),
        Sample(((3,), 0.0, 1.0, DTYPE, GENERATOR), "few"),
    ],
    "normal_serial": [
        Sample(((3, 2), 0.5, 2.0, DTYPE, GENERATOR)),
        Sample(((), 0.0, 1.0, DTYPE, GENERATOR), "scalar"),
    ],
    "multinomial": [
        Sample((Arr((5,), low=0.125, high=1), 3, False, GENERATOR), "without replacement"),
        Sample((Arr((2, 4), low=0.125, high=1), 6, True, GENERATOR), "with replacement, rows"),
        Sample((Arr((3,), kind="literal", literal=(0.0, 1.0, 0.0)), 1, False, GENERATOR), "one"),
    ],
    "bernoulli": [
        Sample((Arr((2, 3), low=0, high=1), GENERATOR)),
        Sample((Arr((0,)), GENERATOR), "empty"),
    ],
    "poisson": [
        Sample((Arr((2, 3), low=0, high=4), GENERATOR)),
        Sample((Arr((3,), kind="literal", literal=(10.0, 24.0, 60.0)), GENERATOR), "large"),
        Sample((Arr((0,)), GENERATOR), "empty"),
    ],
    "standard_gamma": [
        Sample((Arr((2, 3), low=0.25, high=2), False, GENERATOR)),
        Sample((Arr((3,), kind="literal", literal=(0.0, 24.0, 1024.0)), False, GENERATOR), "edges"),
        Sample((Arr((0,)), False, GENERATOR), "empty"),
    ],
    "sample_dirichlet": [
        Sample((Arr((2, 3), low=0.25, high=2), GENERATOR)),
        Sample((Arr((2, 41), low=0.25, high=2), GENERATOR), "long rows"),
        Sample((Arr((), low=0.25, high=2), GENERATOR), "scalar"),
        Sample((Arr((2, 0)), GENERATOR), "empty"),
    ],
    "binomial": [
        Sample((Arr((2, 3), low=1, high=4), Arr((2, 3), low=0, high=1), GENERATOR)),
        Sample(
            (
                Arr((4,), kind="literal", literal=(64.0, 200.0, 1024.0, 16.0)),
                Arr((4,), kind="literal", literal=(0.5, 0.75, 0.25, 1.0)),
                GENERATOR,
            ),
            "large",
        ),
        Sample((Arr((0,)), Arr((0,)), GENERATOR), "empty"),
    ],
    "dropout": [
        Sample((Arr((2, 3), low=1, high=2), 0.5, GENERATOR)),
        Sample((Arr((0,)), 0.25, GENERATOR), "empty"),
    ],
    "bernoulli_scalar": [
        Sample(((2, 3), 0.5, DTYPE, GENERATOR)),
        Sample(((4,), 0.0, DTYPE, GENERATOR), "never"),
    ],
    "randint": [
        Sample((-3, 5, (2, 3), DTYPE, GENERATOR)),
        Sample((0, 2, (), DTYPE, GENERATOR), "scalar"),
    ],
    "randperm": [Sample((7, int64, GENERATOR)), Sample((0, int64, GENERATOR), "empty")],
    "random_full": [
        Sample(((2, 3), DTYPE, GENERATOR)),
        Sample(((0,), DTYPE, GENERATOR), "empty"),
    ],
    "cauchy": [
        Sample(((2, 3), 0.5, 2.0, DTYPE, GENERATOR)),
        Sample(((), 0.0, 1.0, DTYPE, GENERATOR), "scalar"),
    ],
    "log_normal": [
        Sample(((3, 6), 0.5, 0.25, DTYPE, GENERATOR)),
        Sample(((3,), 0.0, 1.0, DTYPE, GENERATOR), "few"),
    ],
    "geometric": [
        Sample(((2, 3), 0.5, DTYPE, GENERATOR)),
        Sample(((), 0.25, DTYPE, GENERATOR), "scalar"),
    ],
    "exponential": [
        Sample(((2, 3), 1.5, DTYPE, GENERATOR)),
        Sample(((), 1.0, DTYPE, GENERATOR), "scalar"),
    ],
}


COMPOSITES: dict[str, list[Sample]] = {
    **ELEMENTWISE,
    **SPECIAL_FUNCTIONS,
    **BESSEL,
    **INCOMPLETE_GAMMA,
    **ACTIVATION,
    **LINALG,
    **REDUCTION,
    **STATISTICS,
    **INDEXING,
    **MOVEMENT,
    **LAYERS,
    **RECURRENT,
    **ATTENTION,
    **RANDOM,
    **OPTIMIZER,
}
