"""Singular values, eigenvalues and their vectors by LAPACK.

Where an iteration does not converge, which is so for matrices that are not finite, the matrix has
NaN as its result; core makes an error of it where PyTorch does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau_numpy.kernels.factorization import columns_first, each
from flambeau_numpy.silence import quiet

Array = np.ndarray[Any, Any]
Solver = Callable[[Array], Any]


def _all(solve: Solver, a: Array) -> tuple[Array, ...]:
    """`solve` of a batch; matrix by matrix if one of them fails."""
    try:
        return _several(solve(a))
    except np.linalg.LinAlgError:
        shapes = [(r.shape, r.dtype) for r in _several(solve(np.zeros(a.shape[-2:], a.dtype)))]
        found = tuple(np.full((*a.shape[:-2], *shape), np.nan, dtype) for shape, dtype in shapes)
        for i in each(a):
            try:
                parts = _several(solve(a[i]))
            except np.linalg.LinAlgError:
                continue
            for whole, part in zip(found, parts, strict=True):
                whole[i] = part
        return found


def _several(results: Any) -> tuple[Array, ...]:
    return (results,) if isinstance(results, np.ndarray) else tuple(results)


@quiet
def svd(a: Array, full: bool) -> tuple[Array, ...]:
    """U, S and Vᴴ."""
    u, s, vh = _all(lambda x: np.linalg.svd(x, full), a)
    return columns_first(u), s, columns_first(vh)


@quiet
def svdvals(a: Array) -> Array:
    """The singular values, falling."""
    return _all(lambda x: np.linalg.svd(x, compute_uv=False), a)[0]


@quiet
def eigh(a: Array, upper: bool) -> tuple[Array, ...]:
    """Rising eigenvalues and the eigenvectors, from one triangle."""
    values, vectors = _all(lambda x: np.linalg.eigh(x, "U" if upper else "L"), a)
    return values, columns_first(vectors)


@quiet
def eigvalsh(a: Array, upper: bool) -> Array:
    """The rising eigenvalues, from one triangle."""
    return _all(lambda x: np.linalg.eigvalsh(x, "U" if upper else "L"), a)[0]


@quiet
def eig(a: Array) -> tuple[Array, ...]:
    """Complex eigenvalues and eigenvectors of length 1."""
    dtype = np.result_type(a.dtype, np.complex64)
    values, vectors = (r.astype(dtype, copy=False) for r in _all(np.linalg.eig, a))
    return values, columns_first(vectors)


KERNELS = {"svd": svd, "svdvals": svdvals, "eigh": eigh, "eigvalsh": eigvalsh, "eig": eig}
