"""Samples of the primitives, by family."""

from __future__ import annotations

import math

from flambeau._types.dtype import bool_, float32, float64, int8, int64
from flambeau.testing.sample_arrays import DTYPE, Arr, Sample

A = Arr((2, 3), seed=1)
B = Arr((2, 3), seed=2)
CUBE = Arr((2, 3, 4), seed=3)
DISTINCT = Arr((3, 4), kind="distinct")


def indices(shape: tuple[int, ...], length: int, seed: int = 0) -> Arr:
    """Index array with entries below `length`."""
    return Arr(shape, int64, 0, length - 1, seed=seed)


def _unary(low: float = -2.0, high: float = 2.0, kind: str = "uniform") -> list[Sample]:
    """Samples whose values lie where the function is smooth."""
    return [
        Sample((Arr((2, 3), low=low, high=high, kind=kind),), "matrix", True),
        Sample((Arr((), low=low, high=high, kind=kind, seed=5),), "scalar", True),
        Sample((Arr((0, 3)),), "empty"),
        Sample((Arr((2, 1, 5), low=low, high=high, kind=kind, seed=6),), "three dimensions", True),
    ]


def _binary(a: Arr = A, b: Arr = B, *, grad: bool = True) -> list[Sample]:
    """Samples of equal and of broadcast shapes, with the ranges of `a` and `b`."""

    def pair(left: tuple[int, ...], right: tuple[int, ...], name: str) -> Sample:
        return Sample((_reshaped(a, left), _reshaped(b, right)), name, grad)

    return [
        pair((2, 3), (2, 3), "equal shapes"),
        pair((2, 3), (3,), "row"),
        pair((2, 1), (1, 3), "outer"),
        pair((), (4,), "scalar left"),
        pair((4,), (), "scalar right"),
        Sample((_reshaped(a, (2, 0)), _reshaped(b, (1, 1))), "empty"),
    ]


def _reshaped(a: Arr, shape: tuple[int, ...]) -> Arr:
    return Arr(shape, a.dtype, a.low, a.high, a.kind, a.seed, a.literal)


_STEPS = Arr((2, 3), kind="nonzero", low=0.25, high=0.75)  # away from the jumps at integers
_MIXED = (1.0, math.inf, 0.0, -2.0, 3.0, -math.inf)
_DIVISOR = Arr((2, 3), kind="nonzero", low=0.5, high=3, seed=2)
# In whatever shapes they meet, no element of the first equals one of the second (as floats).
_UNEQUAL = Arr((2, 3), kind="distinct"), Arr((2, 3), kind="distinct", low=-1.9, high=2.1)

CREATION = {
    "full": [
        Sample(((2, 3), 1.5, DTYPE), "matrix"),
        Sample(((), 3, DTYPE), "scalar"),
        Sample(((0, 2), 1, DTYPE), "empty"),
        Sample(((2,), True, DTYPE), "from bool"),
    ],
    "arange": [
        Sample((0, 1, 5, DTYPE), "integers"),
        Sample((1, 2, 0, DTYPE), "empty"),
        Sample((0.5, 0.25, 6, float64), "floats"),
        Sample((5, -2, 3, int64), "downwards"),
        Sample((0.0, 0.1, 11, float32), "rounded once"),
    ],
}

ELEMENTWISE = {
    "cast": [
        Sample((A, float64), "to double", True),
        Sample((A, int64), "to integer"),
        Sample((Arr((6,), kind="nonzero", low=1, high=2), int8), "to narrow integer"),
        Sample((Arr((6,)), bool_), "to bool"),
        Sample((Arr(()), float32), "scalar"),
        Sample((Arr((0, 2)), float32), "empty"),
    ],
    "clone": _unary(),
    "neg": _unary(),
    "abs": _unary(0.25, 2, "nonzero"),
    "sign": _unary(0.25, 2, "nonzero"),
    "exp": _unary(),
    "expm1": _unary(),
    "log": _unary(0.25, 3),
    "log1p": _unary(-0.5, 2),
    "sin": _unary(),
    "cos": _unary(),
    "tan": _unary(-1, 1),
    "asin": _unary(-0.9, 0.9),
    "acos": _unary(-0.9, 0.9),
    "atan": _unary(-0.9, 0.9),
    "sinh": _unary(),
    "cosh": _unary(),
    "tanh": _unary(-1, 1),
    "sqrt": _unary(0.25, 3),
    "rsqrt": _unary(0.25, 3),
    "reciprocal": _unary(0.5, 3, "nonzero"),
    "erf": _unary(),
    "floor": _unary(0.25, 0.75, "nonzero"),
    "ceil": _unary(0.25, 0.75, "nonzero"),
    "trunc": _unary(0.25, 0.75, "nonzero"),
    "round": _unary(0.125, 0.375, "nonzero"),
    "isfinite": [
        Sample((A,), "matrix"),
        Sample((Arr((2, 3), float32, kind="literal", literal=_MIXED),), "mixed"),
        Sample((Arr(()),), "scalar"),
        Sample((Arr((0,)),), "empty"),
    ],
    "bitwise_not": [
        Sample((A,), "matrix"),
        Sample((Arr(()),), "scalar"),
        Sample((Arr((0,)),), "empty"),
    ],
    "add": _binary(),
    "sub": _binary(),
    "mul": _binary(),
    "div": _binary(b=_DIVISOR),
    "pow": _binary(Arr((2, 3), low=0.5, high=2), Arr((2, 3), low=-1, high=2, seed=2)),
    "remainder": _binary(_STEPS, Arr((2, 3), low=1, high=3, seed=2)),
    "fmod": _binary(_STEPS, Arr((2, 3), low=1, high=3, seed=2)),
    "floor_divide": _binary(_STEPS, Arr((2, 3), low=1, high=3, seed=2), grad=False),
    "atan2": _binary(b=_DIVISOR),
    "maximum": _binary(*_UNEQUAL),
    "minimum": _binary(*_UNEQUAL),
    **{name: _binary(grad=False) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{name: _binary(grad=False) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    "where": [
        Sample((Arr((2, 3), bool_), A, B), "equal shapes", True),
        Sample((Arr((2, 1), bool_), Arr((3,)), Arr(())), "broadcast", True),
        Sample((Arr((), bool_), Arr(()), Arr((), seed=1)), "scalar", True),
        Sample((Arr((0, 3), bool_), Arr((3,)), Arr(())), "empty"),
    ],
}


def _reduction(kind: str = "uniform", low: float = -2.0, *, grad: bool = True) -> list[Sample]:
    cube = Arr((2, 3, 4), low=low, kind=kind)
    return [
        Sample((Arr((2, 3), low=low, kind=kind), (0, 1), False), "all dimensions", grad),
        Sample((Arr((2, 3), low=low, kind=kind), (0,), False), "first", grad),
        Sample((cube, (1,), False), "middle", grad),
        Sample((cube, (0, 2), True), "two kept", grad),
        Sample((Arr((), low=low), (), False), "scalar", grad),
        Sample((Arr((0, 3)), (1,), False), "empty result"),
    ]


_EMPTY_REDUCED = Sample((Arr((2, 0)), (1,), False), "over nothing")


def _masks() -> list[Sample]:
    return [
        Sample((Arr((2, 3), bool_), (0, 1), False), "all dimensions"),
        Sample((Arr((2, 3), bool_), (0,), False), "first"),
        Sample((Arr((2, 3, 4), bool_), (1,), False), "middle"),
        Sample((Arr((2, 3, 4), bool_), (0, 2), True), "two kept"),
        Sample((Arr((), bool_), (), False), "scalar"),
        Sample((Arr((2, 0), bool_), (1,), False), "over nothing"),
    ]


def _arg_extremes() -> list[Sample]:
    return [
        Sample((DISTINCT, 1, False), "last"),
        Sample((DISTINCT, 0, True), "kept"),
        Sample((Arr((4, 5), low=0, high=2, seed=4), 1, False), "ties"),
        Sample((Arr(()), 0, False), "scalar"),
        Sample((Arr((0, 3)), 1, False), "empty result"),
    ]


def _running(low: float = -2.0) -> list[Sample]:
    return [
        Sample((Arr((2, 3), low=low), 0), "first", True),
        Sample((Arr((2, 3, 4), low=low), 1), "middle", True),
        Sample((Arr((), low=low), 0), "scalar", True),
        Sample((Arr((2, 0)), 1), "empty"),
    ]


REDUCTION = {
    "sum": [*_reduction(), _EMPTY_REDUCED],
    "prod": [*_reduction("nonzero", 0.5), _EMPTY_REDUCED],
    "amax": _reduction("distinct"),
    "amin": _reduction("distinct"),
    "all": _masks(),
    "any": _masks(),
    "argmax": _arg_extremes(),
    "argmin": _arg_extremes(),
    "cumsum": _running(),
    "cumprod": _running(0.5),
}

LINALG = {
    "matmul": [
        Sample((A, Arr((3, 4), seed=6)), "matrices", True),
        Sample((Arr((3,)), Arr((3,), seed=2)), "vectors", True),
        Sample((A, Arr((3,))), "matrix and vector", True),
        Sample((Arr((3,)), Arr((3, 2))), "vector and matrix", True),
        Sample((CUBE, Arr((2, 4, 2), seed=4)), "batch", True),
        Sample((Arr((2, 1, 2, 3)), Arr((3, 3, 2), seed=4)), "broadcast batch", True),
        Sample((Arr((3,)), Arr((2, 3, 2), seed=4)), "vector and batch", True),
        Sample((Arr((2, 0)), Arr((0, 3))), "empty inner"),
        Sample((Arr((0, 2)), Arr((2, 3))), "no rows"),
    ],
}

MOVEMENT = {
    "cat": [
        Sample(([A, Arr((1, 3), seed=2), B], 0), "rows", True),
        Sample(([A, Arr((2, 2), seed=2)], 1), "columns", True),
        Sample(([Arr((2, 0)), A], 1), "with an empty one", True),
        Sample(([Arr((3,))], 0), "one", True),
    ],
    "flip": [
        Sample((CUBE, (0, 2)), "two", True),
        Sample((A, (1,)), "last", True),
        Sample((Arr((4,)), (0,)), "vector", True),
        Sample((Arr(()), ()), "scalar", True),
        Sample((Arr((0, 2)), (0,)), "empty"),
    ],
    "slice": [
        Sample((CUBE, (1, slice(0, 3, 2), slice(1, 4, 1))), "int and slices", True),
        Sample((A, (None, slice(0, 2, 1), None, 2)), "new dimensions", True),
        Sample((Arr((5,)), (slice(1, 5, 3),)), "step", True),
        Sample((Arr((5,)), (slice(3, 3, 1),)), "nothing"),
        Sample((Arr((0, 3)), (slice(0, 0, 1), 1)), "of nothing"),
        Sample((Arr(()), (None,)), "scalar", True),
    ],
    "permute": [
        Sample((CUBE, (2, 0, 1)), "cycle", True),
        Sample((A, (1, 0)), "transpose", True),
        Sample((Arr(()), ()), "scalar", True),
        Sample((Arr((0, 2)), (1, 0)), "empty"),
    ],
    "view": [
        Sample((CUBE, (6, 4)), "merge", True),
        Sample((Arr((6,)), (2, 1, 3)), "split", True),
        Sample((Arr(()), (1, 1)), "scalar", True),
        Sample((Arr((0, 2)), (4, 0)), "empty"),
    ],
    "expand": [
        Sample((Arr((3, 1)), (2, 3, 4)), "both ways", True),
        Sample((Arr(()), (2, 2)), "scalar", True),
        Sample((A, (2, 3)), "same", True),
        Sample((Arr((1, 3)), (0, 3)), "to nothing"),
    ],
    "diagonal": [
        Sample((Arr((3, 4)), 0, 0, 1), "main", True),
        Sample((Arr((3, 4)), 2, 0, 1), "above", True),
        Sample((CUBE, -1, 2, 0), "swapped, below", True),
        Sample((Arr((3, 4)), 7, 0, 1), "outside"),
    ],
}

# Within a line of `dim` no position occurs twice, so that the order of writing does not show.
_SCATTER_ROWS = Arr((2, 3), int64, kind="literal", literal=(0, 1, 2, 2, 0, 1))
_SCATTER_COLUMNS = Arr((2, 2), int64, kind="literal", literal=(3, 0, 1, 2))

INDEXING = {
    "index": [
        Sample((Arr((4, 3)), (indices((5,), 4),)), "rows", True),
        Sample((CUBE, (None, indices((2, 2), 3))), "middle", True),
        Sample((CUBE, (indices((2, 1), 2), indices((3,), 3, 1))), "two neighbours", True),
        Sample((CUBE, (indices((3,), 2), None, indices((3,), 4, 1))), "two apart", True),
        Sample(
            (Arr((2, 3, 4, 2)), (None, indices((5,), 3), None, indices((5,), 2, 1))),
            "two apart behind a slice",
            True,
        ),
        Sample((CUBE, (None, indices((), 3), None)), "scalar index", True),
        Sample((Arr((4,)), (indices((), 4),)), "one element", True),
        Sample((Arr((4, 3)), (indices((0,), 4),)), "nothing"),
    ],
    "index_put": [
        Sample(
            (
                Arr((4, 3)),
                (Arr((2,), int64, kind="literal", literal=(3, 0)),),
                Arr((2, 3), seed=1),
                False,
            ),
            "rows",
            True,
        ),
        Sample((Arr((4, 3)), (indices((6,), 4),), Arr((6, 3), seed=1), True), "added twice", True),
        Sample((CUBE, (None, indices((5,), 3)), Arr((5, 1), seed=1), True), "middle", True),
        Sample((CUBE, (indices((3,), 2), None, indices((3,), 4)), Arr(()), True), "apart", True),
        Sample(
            (
                Arr((2, 3, 4, 2)),
                (None, indices((5,), 3), None, indices((5,), 2, 1)),
                Arr((5, 2, 4), seed=1),
                True,
            ),
            "apart behind a slice",
            True,
        ),
        Sample((Arr((4,)), (indices((0,), 4),), Arr(()), False), "nothing", True),
    ],
    "gather": [
        Sample((Arr((3, 4)), 0, indices((2, 4), 3)), "rows", True),
        Sample((Arr((3, 4)), 1, indices((2, 6), 4)), "longer", True),
        Sample((CUBE, 1, indices((2, 5, 3), 3)), "middle", True),
        Sample((Arr(()), 0, indices((), 1)), "scalar", True),
        Sample((Arr((3, 4)), 1, indices((3, 0), 4)), "nothing"),
    ],
    "scatter": [
        Sample((Arr((3, 3)), 1, _SCATTER_ROWS, Arr((2, 3), seed=1)), "rows", True),
        Sample((Arr((4, 2)), 0, _SCATTER_COLUMNS, Arr((3, 2), seed=1)), "longer source", True),
        Sample((Arr(()), 0, indices((), 1), Arr((), seed=1)), "scalar", True),
        Sample((Arr((3, 3)), 1, indices((0, 3), 3), Arr((0, 3))), "nothing", True),
    ],
    "scatter_add": [
        Sample((Arr((3, 3)), 1, indices((3, 5), 3), Arr((3, 5), seed=1)), "repeated", True),
        Sample((Arr((4, 2)), 0, _SCATTER_COLUMNS, Arr((3, 2), seed=1)), "longer source", True),
        Sample((Arr(()), 0, indices((), 1), Arr((), seed=1)), "scalar", True),
        Sample((Arr((3, 3)), 1, indices((0, 3), 3), Arr((0, 3))), "nothing", True),
    ],
    "nonzero": [
        Sample((Arr((3, 4), low=-1, high=1, seed=2),), "matrix"),
        Sample((Arr((), low=1),), "scalar"),
        Sample((Arr((3,), kind="literal", literal=(0,)),), "none"),
        Sample((Arr((0, 2)),), "empty"),
    ],
    "sort": [
        Sample((DISTINCT, 1, False, True), "ascending", True),
        Sample((DISTINCT, 0, True, True), "descending", True),
        Sample((Arr((3, 8), low=0, high=2), 1, True, True), "ties"),
        Sample((Arr(()), 0, False, True), "scalar", True),
        Sample((Arr((2, 0)), 1, False, True), "empty"),
    ],
}

PRIMITIVES: dict[str, list[Sample]] = {
    **CREATION,
    **ELEMENTWISE,
    **REDUCTION,
    **LINALG,
    **MOVEMENT,
    **INDEXING,
}
