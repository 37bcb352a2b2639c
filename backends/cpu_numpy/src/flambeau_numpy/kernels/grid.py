"""Weighted sums of elements at given places, image by image: products with sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau_numpy.allocator import empty, zeros
from flambeau_numpy.casts import is_half, narrow, wide
from flambeau_numpy.kernels.indexing import sparse_rows
from flambeau_numpy.pointwise import Array
from flambeau_numpy.silence import quiet


def _matrix(index: Array, weight: Array, size: int) -> Any:
    """The matrix (points, elements) of one image from its taps (T, Q)."""
    taps, points = index.shape
    data = np.ascontiguousarray(weight.T).reshape(-1)
    columns = np.ascontiguousarray(index.T).reshape(-1)
    return sparse_rows(data, columns, np.arange(0, taps * points + 1, taps), (points, size))


@quiet
def tap_sum(planes: Array, index: Array, weight: Array) -> Array:
    """out[n, c, q] = Σ_t weight[n, t, q] · planes[n, c, index[n, t, q]]."""
    if is_half(planes.dtype):
        return narrow(tap_sum(wide(planes), index, wide(weight)), planes.dtype)
    n, c, size = planes.shape
    out = empty((n, c, index.shape[2]), planes.dtype)
    for k in range(n if out.size else 0):
        columns = np.ascontiguousarray(planes[k].T)
        out[k] = (_matrix(index[k], weight[k], size) @ columns).T
    return out


@quiet
def tap_spread(grad: Array, index: Array, weight: Array, size: int) -> Array:
    """The adjoint of `tap_sum` in its planes."""
    if is_half(grad.dtype):
        return narrow(tap_spread(wide(grad), index, wide(weight), size), grad.dtype)
    n, c, points = grad.shape
    out = zeros((n, c, size), grad.dtype)
    for k in range(n if points else 0):
        columns = np.ascontiguousarray(grad[k].T)
        out[k] = (_matrix(index[k], weight[k], size).T @ columns).T
    return out


@quiet
def tap_dot(grad: Array, planes: Array, index: Array) -> Array:
    """The adjoint of `tap_sum` in its weights."""
    if is_half(grad.dtype):
        return narrow(tap_dot(wide(grad), wide(planes), index), grad.dtype)
    out = empty(index.shape, grad.dtype)
    for k in range(len(out)):
        rows = np.ascontiguousarray(planes[k].T)
        g = np.ascontiguousarray(grad[k].T)
        for t, places in enumerate(index[k]):
            np.einsum("qc,qc->q", g, rows[places], out=out[k, t])
    return out


KERNELS = {"tap_sum": tap_sum, "tap_spread": tap_spread, "tap_dot": tap_dot}
