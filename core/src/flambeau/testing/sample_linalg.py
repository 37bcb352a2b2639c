"""Samples of the decompositions, solutions and functions of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._types.dtype import COMPLEX, float32, float64, int32
from flambeau._types.dtype import dtype as DType
from flambeau.testing.sample_arrays import Arr, Sample

# Written out, so that eigenvalues, singular values and pivots keep their distance.
_POSITIVE = (4.0, 1.0, 0.5, 1.0, 3.0, -0.75, 0.5, -0.75, 2.0)
_REAL_VALUES = (1.0, 0.5, 0.25, -0.25, 3.0, 0.5, 0.125, -0.5, -2.0)
_MORE = (0.5, -1.25, 2.0, 1.75, 0.75, -0.5)
_TRIANGLE = (2.0, -0.5, 0.75, 0.25, 1.5, -0.25, -0.75, 0.5, 1.25)


def _literal(shape: tuple[int, ...], *numbers: float, fixed: bool = False) -> Arr:
    return Arr(shape, kind="literal", literal=numbers, fixed=fixed)


_SPD = _literal((3, 3), *_POSITIVE)
_SPD_BATCH = _literal((2, 3, 3), *_POSITIVE, *(2 * x for x in _POSITIVE))
_SQUARE, _BATCH = Arr((3, 3), seed=3), Arr((2, 2, 2), seed=1)
_TALL, _WIDE = Arr((3, 2), seed=2), Arr((2, 3), seed=4)
_NONE, _EMPTY = _literal((0, 2, 2), 1.0), _literal((0, 0), 1.0)
_SINGULAR = _literal((2, 2), 1.0, 2.0, 2.0, 4.0)
_THREE, _COLUMNS = _literal((3, 3), *_TRIANGLE), _literal((3, 2), *_MORE)

_SQUARES = [
    Sample((_SQUARE,), "one", True),
    Sample((_BATCH,), "batch", True),
    Sample((_NONE,), "no matrices"),
    Sample((_EMPTY,), "no rows"),
]


def _hermitian(*more: object) -> list[Sample]:
    return [
        Sample((_SPD, *more), "one", True),
        Sample((_SPD_BATCH, *more), "batch", True),
        Sample((_NONE, *more), "no matrices"),
    ]


def _rectangles(*more: object, tall: bool = True) -> list[Sample]:
    return [
        Sample((_SQUARE, *more), "square", True),
        Sample((_TALL, *more), "tall", tall),
        Sample((_WIDE, *more), "wide", True),
        Sample((_BATCH, *more), "batch", True),
        Sample((_NONE, *more), "no matrices"),
    ]


_LOW, _HIGH = _literal((), 0.0, fixed=True), _literal((), 2.0**-16, fixed=True)
_PIVOTS = Arr((2, 3), int32, kind="literal", literal=(3, 2, 3, 1, 3, 3))

_INDEFINITE = _literal((3, 3), 0.0, 1.0, 2.0, 1.0, 0.0, 3.0, 2.0, 3.0, 0.0)
_LD = _literal((3, 3), 0.5, 0.0, 0.0, 2.0, 0.25, 0.0, 1.5, 0.5, -3.0)
_BLOCKS = Arr((3,), int32, kind="literal", literal=(-3, -3, 3))

FACTORIZATION = {
    "cholesky_ex": _hermitian(),
    "lu_factor_ex": [
        *_rectangles(True),
        Sample((_SPD, False), "without pivoting", True),
        Sample((_SINGULAR, True), "singular"),
    ],
    "lu_permutation": [Sample((_PIVOTS, 3), "square"), Sample((_PIVOTS, 4), "taller")],
    "ldl_factor_ex": [
        *(Sample((_SPD, way), f"positive definite {way}", True) for way in (False, True)),
        *(Sample((_INDEFINITE, way), f"indefinite {way}") for way in (False, True)),
        Sample((_SPD_BATCH, False), "batch"),
        Sample((_SINGULAR, False), "singular"),
        Sample((_NONE, False), "no matrices"),
    ],
    "geqrf": _rectangles(),
    "householder_product": [
        Sample((_THREE, _literal((3,), 0.5, 1.25, -0.75)), "square", True),
        Sample((_TALL, _literal((1,), 0.75)), "fewer reflectors", True),
        Sample((_literal((2, 3, 2), *_MORE, *_TRIANGLE), _literal((2, 2), *_MORE)), "batch", True),
    ],
    "qr": [
        *_rectangles(False),
        Sample((_SQUARE, True), "complete square", True),
        Sample((_WIDE, True), "complete wide", True),
    ],
}

EIGENVALUES = {
    "svd": [
        *_rectangles(False),
        *[Sample(s.args, f"full {s.name}", s.grad) for s in _rectangles(True, tall=False)],
    ],
    "svdvals": _rectangles(),
    "eigh": [*_hermitian(False), Sample((_THREE, True), "upper triangle", True)],
    "eigvalsh": [*_hermitian(False), Sample((_THREE, True), "upper triangle", True)],
    "eig": [
        Sample((_literal((3, 3), *_REAL_VALUES),), "real eigenvalues", True),
        Sample((_literal((2, 2), 1.0, -2.0, 1.5, 0.5),), "conjugates", True),
        Sample((_BATCH,), "batch", True),
        Sample((_NONE,), "no matrices"),
    ],
}

SOLVING = {
    "triangular_solve": [
        Sample((_THREE, _COLUMNS, upper, unit), name, True)
        for upper, unit, name in (
            (False, False, "lower"),
            (True, False, "upper"),
            (False, True, "unit lower"),
            (True, True, "unit upper"),
        )
    ],
    "ldl_solve": [
        *(
            Sample((_LD, _BLOCKS, _COLUMNS, way), f"a block of two {way}", True)
            for way in (False, True)
        ),
        Sample((_LD, Arr((3,), int32, kind="literal", literal=(2, 3, 3)), _COLUMNS, False), "rows"),
    ],
    "solve_ex": [
        Sample((_SQUARE, _COLUMNS), "one", True),
        Sample((_BATCH, _literal((2, 2, 1), *_MORE)), "batch", True),
        Sample((_NONE, _literal((0, 2, 1), 1.0)), "no matrices"),
    ],
    "inv_ex": _SQUARES,
    "pinv": [
        *_rectangles(_LOW, _HIGH, False),
        Sample((_SPD, _LOW, _HIGH, True), "hermitian"),
    ],
    "determinant": [*_SQUARES, Sample((_SINGULAR,), "singular")],
    "cofactor": [*_SQUARES[:3], Sample((_SINGULAR,), "singular")],
    "slogdet": _SQUARES,
    "matrix_exponential": _SQUARES,
}

DECOMPOSITIONS: dict[str, list[Sample]] = {**FACTORIZATION, **EIGENVALUES, **SOLVING}

DECOMPOSED_DTYPES: tuple[DType, ...] = (float32, float64, *COMPLEX)
"""What LAPACK knows, and hence what core asks decompositions for."""

Results = tuple[Any, ...]


def _turn(columns: Any) -> Any:
    """Factors that make the largest component of each column positive."""
    component = columns.gather(-2, columns.detach().abs().argmax(-2, True))
    return component.abs().to(component.dtype) / component


def _svd_turned(u: Any, s: Any, vh: Any) -> Results:
    if not u.numel():
        return u, s, vh
    k = s.shape[-1]
    turn = _turn(u[..., :k])
    return u[..., :k] * turn, s, (vh[..., :k, :].mT / turn).mT


def _vectors_turned(w: object, v: Any) -> Results:
    return (w, v * _turn(v)) if v.numel() else (w, v)


def _eig_sorted(w: Any, v: Any) -> Results:
    if not v.numel():
        return w, v
    order = (w.detach().real * 64 + w.detach().imag).argsort(-1)
    return _vectors_turned(w.gather(-1, order), v.gather(-1, order.unsqueeze(-2).expand(*v.shape)))


COMPARABLE: dict[str, Callable[..., Results]] = {
    "svd": _svd_turned,
    "eigh": _vectors_turned,
    "eig": _eig_sorted,
}
"""What is left to choose of these ops' results (signs, order) put into one form; the vectors of a
full decomposition that belong to no singular value are left out."""
