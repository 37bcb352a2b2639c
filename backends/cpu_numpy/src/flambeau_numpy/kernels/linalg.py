"""Matrix products.

BLAS knows float32, float64 and complex numbers.  float16 and bfloat16 are multiplied in float32 and
rounded once.  Integers go through NumPy's own loops.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flambeau_numpy.allocator import empty
from flambeau_numpy.kernels._pointwise import is_half, wide
from flambeau_numpy.products import multiply, product
from flambeau_numpy.silence import quiet, silent

Array = np.ndarray[Any, Any]


@quiet
def _half_matmul(a: Array, b: Array) -> Any:
    return np.matmul(wide(a), wide(b)).astype(a.dtype)


@quiet
def _large_matmul(a: Array, b: Array) -> Array:
    if a.ndim == b.ndim == 2:
        return product(a, b)
    if a.ndim == b.ndim and a.shape[:-2] == b.shape[:-2]:
        return multiply(a, b, empty((*a.shape[:-1], b.shape[-1]), a.dtype))
    if b.ndim == 2 and a.ndim > 2 and a.flags.c_contiguous:
        # One product of all rows instead of one per matrix.
        out = empty((*a.shape[:-1], b.shape[1]), a.dtype)
        multiply(a.reshape(-1, a.shape[-1]), b, out.reshape(-1, b.shape[1]))
        return out
    return np.matmul(a, b)


def _make_matmul() -> Any:
    # Of two arrays of up to 64 × 64, OpenBLAS makes the product in the calling thread.
    small, large, half, limit = np.matmul, _large_matmul, _half_matmul, 4097

    def matmul(a: Array, b: Array) -> Any:
        """The matrix product, with the array API's rules for vectors and batches."""
        if a.dtype.itemsize == 2 and a.dtype.kind not in "iu":
            return half(a, b)
        try:
            return small(a, b) if a.size < limit and b.size < limit else large(a, b)
        except FloatingPointError:
            return large(a, b)

    return silent(matmul)


matmul = _make_matmul()


def _times_transposed(x: Array, weight: Array, out: Array) -> None:
    """Write x @ weightᵀ to `out`, all three matrices.

    For few rows OpenBLAS is up to 1.8 times faster on the product weight @ xᵀ; transposing that
    costs less where the depth is not small.
    """
    rows, depth = x.shape
    if rows <= 128 and depth >= 128 and weight.shape[0] > rows:
        turned = empty((weight.shape[0], rows), x.dtype)
        multiply(weight, x.T, turned)
        np.copyto(out, turned.T)
    else:
        multiply(x, weight.T, out)


@quiet
def addmm(bias: Array, a: Array, b: Array, beta: Any, alpha: Any) -> Array:
    """beta·bias + alpha·(a @ b); with beta 0, NaN in `bias` does not count."""
    dtype = a.dtype
    left, right, shift = wide(a), wide(b), wide(bias)
    out = empty((a.shape[0], b.shape[1]), left.dtype)
    if right.flags.f_contiguous:
        _times_transposed(left, right.T, out)
    else:
        multiply(left, right, out)
    if alpha != 1:
        out *= np.asarray(alpha).astype(out.dtype)
    if beta != 0:
        out += shift if beta == 1 else shift * np.asarray(beta).astype(out.dtype)
    return out if out.dtype == dtype else out.astype(dtype)


@quiet
def _any_linear(x: Array, weight: Array, bias: Array | None) -> Array:
    if is_half(x.dtype):
        shift = None if bias is None else wide(bias)
        return linear(wide(x), wide(weight), shift).astype(x.dtype)
    if weight.ndim == 1:
        out = np.asarray(np.matmul(x, weight))
    else:
        out = empty((*x.shape[:-1], weight.shape[0]), x.dtype)
        rows, (features, depth) = prod(x.shape[:-1]), weight.shape
        _times_transposed(x.reshape(rows, depth), weight, out.reshape(rows, features))
    if bias is not None:
        out += bias
    return out


def _make_linear() -> Any:
    product, general, limit = np.matmul, _any_linear, 4097

    def linear(x: Array, weight: Array, bias: Array | None) -> Array:
        """x @ weightᵀ + bias, over the last dimension of `x`."""
        if (
            x.ndim == 2 == weight.ndim
            and x.size < limit
            and weight.size < limit
            and x.shape[1] < 128  # beyond, see `_times_transposed`
            and x.dtype.itemsize > 2
        ):
            try:
                out = product(x, weight.T)
                if bias is not None:
                    out += bias
                return out
            except FloatingPointError:
                pass
        return general(x, weight, bias)

    return silent(linear)


linear = _make_linear()


KERNELS = {"matmul": matmul, "addmm": addmm, "linear": linear}
