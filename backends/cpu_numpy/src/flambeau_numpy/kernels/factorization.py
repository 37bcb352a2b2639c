"""Cholesky, LU and QR factors by LAPACK; NumPy's batched calls where it has them."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from flambeau_numpy.silence import quiet

Array = np.ndarray[Any, Any]
_FEW = 64  # matrices whose rows are exchanged one after the other


@functools.lru_cache(maxsize=64)
def lapack(name: str, dtype: np.dtype[Any]) -> Any:
    """A LAPACK routine for a dtype; importing SciPy's is put off until it is needed."""
    from scipy.linalg import get_blas_funcs, get_lapack_funcs

    find = get_blas_funcs if name == "trsm" else get_lapack_funcs
    return find(name, (np.empty(0, dtype),))


def each(a: Array) -> Iterator[tuple[int, ...]]:
    """The places of the matrices of a batch."""
    return np.ndindex(a.shape[:-2])


def columns_first(a: Array) -> Array:
    """`a`, its matrices stored column by column, as LAPACK leaves them and PyTorch returns them."""
    turned = a.swapaxes(-1, -2)
    return a if turned.flags.c_contiguous else np.ascontiguousarray(turned).swapaxes(-1, -2)


@quiet
def cholesky_ex(a: Array) -> tuple[Array, Array]:
    """The lower factor, and the order of the first minor that is not positive, or 0."""
    info = np.zeros(a.shape[:-2], np.int32)
    try:
        factor = np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        factor = np.empty_like(a, order="C")
        potrf = lapack("potrf", a.dtype)
        for i in each(a):
            factor[i], info[i] = potrf(a[i], lower=True, clean=True)
    none = np.isnan(factor.diagonal(0, -2, -1))  # LAPACK of BLAS libraries goes on with NaN
    if none.any():
        first = np.where(none.any(-1), none.argmax(-1) + 1, 0)
        info = np.where(info == 0, first, info).astype(np.int32)
    return columns_first(factor), info


@quiet
def lu_factor_ex(a: Array, pivot: bool) -> tuple[Array, Array, Array]:
    """Packed factors, pivots from 1, and the place of the first zero pivot or 0."""
    m, n = a.shape[-2:]
    k = min(m, n)
    packed = np.array(a, order="C")
    pivots = np.empty((*a.shape[:-2], k), np.int32)
    info = np.zeros(a.shape[:-2], np.int32)
    if not pivot:
        return _unpivoted(packed, pivots, info)
    if k:
        getrf = lapack("getrf", a.dtype)
        for i in each(a):
            packed[i], found, info[i] = getrf(a[i])
            pivots[i] = found + 1
    return columns_first(packed), pivots, info


def _unpivoted(packed: Array, pivots: Array, info: Array) -> tuple[Array, Array, Array]:
    k = pivots.shape[-1]
    pivots[...] = np.arange(1, k + 1)
    for j in range(k):
        top = packed[..., j : j + 1, j : j + 1]
        zero = top == 0
        info[(info == 0) & zero.reshape(info.shape)] = j + 1
        below = packed[..., j + 1 :, j : j + 1]
        below /= np.where(zero, 1, top)
        packed[..., j + 1 :, j + 1 :] -= below * packed[..., j : j + 1, j + 1 :]
    return columns_first(packed), pivots, info


def lu_permutation(pivots: Array, size: int) -> Array:
    """Which row of A stands in each row of L U."""
    order = np.empty((*pivots.shape[:-1], size), np.int64)
    order[...] = np.arange(size)
    if prod(pivots.shape[:-1]) <= _FEW:
        for place in each(pivots[..., None]):
            line = list(range(size))
            for i, pivot in enumerate(pivots[place].tolist()):
                line[i], line[pivot - 1] = line[pivot - 1], line[i]
            order[place] = line
        return order
    for i in range(pivots.shape[-1]):
        other = pivots[..., i : i + 1].astype(np.int64) - 1
        here = order[..., i : i + 1].copy()
        order[..., i : i + 1] = np.take_along_axis(order, other, -1)
        np.put_along_axis(order, other, here, -1)
    return order


@quiet
def ldl_factor_ex(a: Array, hermitian: bool) -> tuple[Array, Array, Array]:
    """D and what is below its blocks of L, interchanges from 1, and the place of a zero pivot."""
    packed = np.zeros_like(a, order="C")
    pivots, info = np.zeros(a.shape[:-1], np.int32), np.zeros(a.shape[:-2], np.int32)
    if packed.size:
        trf = lapack("hetrf" if hermitian and a.dtype.kind == "c" else "sytrf", a.dtype)
        for i in each(a):
            found, pivots[i], info[i] = trf(a[i], lower=1)
            packed[i] = np.tril(found)
    return columns_first(packed), pivots, info


@quiet
def geqrf(a: Array) -> tuple[Array, Array]:
    """R and the reflectors below it, and their factors."""
    if a.size == 0:
        return a.copy(), np.zeros((*a.shape[:-2], min(a.shape[-2:])), a.dtype)
    packed, tau = np.linalg.qr(a, "raw")
    return columns_first(np.swapaxes(packed, -1, -2)), tau


@quiet
def householder_product(a: Array, tau: Array) -> Array:
    """The first columns of the product of reflectors."""
    if 0 in (*a.shape, tau.shape[-1]):
        one = np.eye(*a.shape[-2:], dtype=a.dtype)
        return np.broadcast_to(one, a.shape).copy()
    result = np.empty_like(a, order="C")
    orgqr = lapack("ungqr" if a.dtype.kind == "c" else "orgqr", a.dtype)
    for i in each(a):
        result[i] = orgqr(a[i], tau[i])[0]
    return columns_first(result)


@quiet
def qr(a: Array, complete: bool) -> tuple[Array, Array]:
    """Q and R, reduced or with a square Q."""
    q, r = np.linalg.qr(a, "complete" if complete else "reduced")
    return columns_first(q), columns_first(r)


KERNELS = {
    "cholesky_ex": cholesky_ex,
    "lu_factor_ex": lu_factor_ex,
    "lu_permutation": lu_permutation,
    "ldl_factor_ex": ldl_factor_ex,
    "geqrf": geqrf,
    "householder_product": householder_product,
    "qr": qr,
}
