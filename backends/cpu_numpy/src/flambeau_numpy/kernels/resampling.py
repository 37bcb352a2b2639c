"""Resampling along one dimension as a product with a sparse matrix of outputs × inputs."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from flambeau_numpy.allocator import empty
from flambeau_numpy.casts import FLOAT32, is_half
from flambeau_numpy.pointwise import Array
from flambeau_numpy.silence import quiet

Places = tuple[tuple[int, ...], ...]
Weights = tuple[tuple[float, ...], ...] | None

NARROW = 16  # rows shorter than this are not worth a product of their own


@lru_cache(maxsize=64)
def _matrix(size: int, places: Places, weights: Weights, dtype: np.dtype, transposed: bool) -> Any:
    taps, count = len(places), len(places[0])
    data = np.ones(taps * count, dtype)
    if weights is not None:
        data = np.array(weights, dtype).T.reshape(-1)
    columns = np.array(places).T.reshape(-1)
    # Zero weights stay: an infinite element times 0 is nan in every tap.
    rows = np.arange(0, taps * count + 1, taps)
    matrix = csr_array((data, columns, rows), shape=(count, size))
    return matrix.T.tocsr() if transposed else matrix


def _applied(matrix: Any, x: Array, dim: int) -> Array:
    """The matrix times every vector along `dim`."""
    lead, inner = x.shape[:dim], x.shape[dim + 1 :]
    width = prod(inner)
    result = empty((*lead, matrix.shape[0], *inner), x.dtype)
    planes = np.ascontiguousarray(x).reshape(prod(lead), x.shape[dim], width)
    out = result.reshape(len(planes), matrix.shape[0], width)
    if not out.size:
        return result
    if width >= NARROW:
        for plane, target in zip(planes, out, strict=True):
            target[...] = matrix @ plane
        return result
    columns = np.ascontiguousarray(planes.transpose(1, 0, 2)).reshape(x.shape[dim], -1)
    out[...] = (matrix @ columns).reshape(-1, len(planes), width).transpose(1, 0, 2)
    return result


@quiet
def resample(x: Array, dim: int, places: Places, weights: Weights) -> Array:
    """Σ_t weights[t][i] · x[places[t][i]] along `dim`; without weights the one tap itself."""
    if weights is None:
        return np.take(x, np.array(places[0]), axis=dim)
    work = FLOAT32 if is_half(x.dtype) else x.dtype
    matrix = _matrix(x.shape[dim], places, weights, work, False)
    return _applied(matrix, x.astype(work, copy=False), dim).astype(x.dtype, copy=False)


@quiet
def resample_backward(grad: Array, dim: int, size: int, places: Places, weights: Weights) -> Array:
    """The adjoint of `resample`."""
    work = FLOAT32 if is_half(grad.dtype) else grad.dtype
    matrix = _matrix(size, places, weights, work, True)
    return _applied(matrix, grad.astype(work, copy=False), dim).astype(grad.dtype, copy=False)


KERNELS = {"resample": resample, "resample_backward": resample_backward}
