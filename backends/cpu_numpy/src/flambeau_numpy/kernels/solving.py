"""Linear systems, inverses, determinants and exponentials by LAPACK."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau_numpy.kernels.factorization import columns_first, each, lapack
from flambeau_numpy.silence import quiet

Array = np.ndarray[Any, Any]


@quiet
def triangular_solve(a: Array, b: Array, upper: bool, unitriangular: bool) -> Array:
    """X with A X = B; zeros on the diagonal give infinities, as division does."""
    result = np.empty_like(b, order="C")
    if result.size:
        trsm = lapack("trsm", b.dtype)
        for i in each(b):
            # BLAS reads columns first: the transpose of a row-major matrix costs no copy.
            result[i] = trsm(1, a[i].T, b[i], lower=bool(upper), trans_a=1, diag=unitriangular)
    return columns_first(result)


@quiet
def solve_ex(a: Array, b: Array) -> tuple[Array, Array]:
    """X with A X = B and 0, or NaN and the place of the first zero pivot."""
    info = np.zeros(a.shape[:-2], np.int32)
    try:
        return columns_first(np.linalg.solve(a, b)), info
    except np.linalg.LinAlgError:
        result = np.full(b.shape, np.nan, b.dtype)
        gesv = lapack("gesv", a.dtype)
        for i in each(a):
            _, _, x, info[i] = gesv(a[i], b[i])
            if not info[i]:
                result[i] = x
        return columns_first(result), info


@quiet
def ldl_solve(a: Array, pivots: Array, b: Array, hermitian: bool) -> Array:
    """X with A X = B from the factors of A."""
    result = np.empty_like(b, order="C")
    if result.size:
        trs = lapack("hetrs" if hermitian and a.dtype.kind == "c" else "sytrs", a.dtype)
        for i in each(b):
            _check_blocks(pivots[i])
            result[i] = trs(a[i], pivots[i], b[i], lower=1)[0]
    return columns_first(result)


def _check_blocks(pivots: Array) -> None:
    """Refuse pivots that no factorisation gives: LAPACK exchanges the rows that they name."""
    places, size = pivots.tolist(), len(pivots)
    outside = [p for p in places if not 1 <= abs(p) <= size]
    if outside:
        raise RuntimeError(f"ldl_solve: pivot {outside[0]} names no row of {size}, counted from 1")
    of_two = False  # whether a row is the second one of a block of two, which is marked by signs
    for p in places:
        if of_two and p > 0:
            break
        of_two = p < 0 and not of_two
    if of_two:
        raise RuntimeError(f"ldl_solve: negative pivots come in pairs, got {places}")


@quiet
def inv_ex(a: Array) -> tuple[Array, Array]:
    """The inverse and 0, or NaN and the place of the first zero pivot."""
    try:
        return columns_first(np.linalg.inv(a)), np.zeros(a.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        one = np.eye(a.shape[-1], dtype=a.dtype)
        return solve_ex(a, np.broadcast_to(one, a.shape))


@quiet
def determinant(a: Array) -> Array:
    """The determinant."""
    return np.linalg.det(a)


@quiet
def slogdet(a: Array) -> tuple[Array, Array]:
    """The determinant's sign and the logarithm of its size."""
    sign, size = np.linalg.slogdet(a)
    return np.asarray(sign), np.asarray(size)


@quiet
def matrix_exponential(a: Array) -> Array:
    """The exponential by Padé approximation, scaling and squaring."""
    from scipy.linalg import expm

    return expm(a) if a.size else a.copy()


KERNELS = {
    "triangular_solve": triangular_solve,
    "solve_ex": solve_ex,
    "ldl_solve": ldl_solve,
    "inv_ex": inv_ex,
    "determinant": determinant,
    "slogdet": slogdet,
    "matrix_exponential": matrix_exponential,
}
