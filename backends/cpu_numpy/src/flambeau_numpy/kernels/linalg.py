"""Matrix products.

BLAS knows float32, float64 and complex numbers.  float16 and bfloat16 are multiplied in float32 and
rounded once.  Integers go through NumPy's own loops.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flambeau_numpy.allocator import empty
from flambeau_numpy.casts import is_half, narrow, wide
from flambeau_numpy.pointwise import Kernel
from flambeau_numpy.products import multiply, offered, product
from flambeau_numpy.silence import quiet, silent

Array = np.ndarray[Any, Any]

SMALL = 4097
"""Of arrays of fewer elements NumPy makes products best: nothing is decided or divided."""

DEEP = 32
"""Terms of an element up to which products are offered as those of few numbers."""


@quiet
def half_matmul(a: Array, b: Array) -> Any:
    """The product of arrays of 16-bit floats, computed in float32."""
    return narrow(np.matmul(wide(a), wide(b)), a.dtype)


@quiet
def large_matmul(a: Array, b: Array) -> Array:
    """The product of arrays of which one is large, on several threads."""
    if a.ndim > 1 < b.ndim and a.shape[-1] == b.shape[-2] == 1:  # NumPy would not ask BLAS
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        return np.multiply(a, b, empty((*batch, a.shape[-2], b.shape[-1]), a.dtype))
    if a.ndim == b.ndim == 2:
        return product(a, b)
    if a.ndim == b.ndim > 2 and a.shape[:-2] == b.shape[:-2]:
        return multiply(a, b, empty((*a.shape[:-1], b.shape[-1]), a.dtype))
    if b.ndim == 2 and a.ndim > 2 and a.flags.c_contiguous:
        # One product of all rows instead of one per matrix.
        out = empty((*a.shape[:-1], b.shape[1]), a.dtype)
        multiply(a.reshape(-1, a.shape[-1]), b, out.reshape(-1, b.shape[1]))
        return out
    return np.matmul(a, b)


def is_left(rows: int, work: int, turned: bool) -> bool:
    """Whether every `large` of `make_matmul` asks what is offered as `matrices` before others.

    Plans call that at once.

    Args:
        rows: how many the float32 product has.
        work: how many multiplications.
        turned: whether the second operand is stored column by column.
    """
    if rows >= (16 if turned else 64):
        return True
    return work < (1 << 20 if rows <= 8 else 1 << 22)


def make_matmul(large: Kernel, half: Kernel) -> Kernel:
    """The kernel: `half` for 16-bit floats, NumPy for two small arrays, `large` for the rest.

    What is offered for pairs of small matrices comes first.
    """
    # Of two arrays of up to 64 × 64, OpenBLAS makes the product in the calling thread.
    small, limit, deep, others = np.matmul, SMALL, DEEP, offered

    def matmul(a: Array, b: Array) -> object:
        """The matrix product, with the array API's rules for vectors and batches."""
        if a.dtype.itemsize == 2 and a.dtype.kind not in "iu":
            return half(a, b)
        if (pair := others.pair) is not None and (out := pair(a, b)) is not None:
            return out
        # Of two matrices no more is asked: a product of small ones is over by then.
        if a.ndim + b.ndim > 4 and (few := others.few) is not None and a.shape[-1] <= deep:
            out = few(a, b)
            if out is not None:
                return out
        try:
            # A product of depth 1, an outer one, is large however small its factors are.
            if a.size < limit and b.size < limit and a.shape[-1] != 1:
                return small(a, b)
            return large(a, b)
        except FloatingPointError:
            return large(a, b)

    return silent(matmul)


matmul = make_matmul(large_matmul, half_matmul)


def _times_transposed(x: Array, weight: Array, out: Array) -> None:
    """Write x @ weightᵀ to `out`, all three matrices.

    For few rows OpenBLAS is up to 1.8 times faster on the product weight @ xᵀ; transposing that
    costs less where the depth is not small.
    """
    rows, depth = x.shape
    if depth == 1 == weight.shape[1]:
        np.multiply(x, weight.T, out)
    elif rows <= 128 and depth >= 128 and weight.shape[0] > rows:
        turned = empty((weight.shape[0], rows), x.dtype)
        multiply(weight, x.T, turned)
        np.copyto(out, turned.T)
    else:
        multiply(x, weight.T, out)


@quiet
def any_addmm(bias: Array, a: Array, b: Array, beta: object, alpha: object) -> Array:
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
    return narrow(out, dtype)


def make_addmm(general: Kernel) -> Kernel:
    """The kernel: what is offered as `matrices` where it takes the arguments; else `general`."""
    others = offered

    def addmm(bias: Array, a: Array, b: Array, beta: object, alpha: object) -> Array:
        """beta·bias + alpha·(a @ b); with beta 0, NaN in `bias` does not count."""
        ask = others.matrices
        if ask is not None and 1 == alpha == beta and a.ndim == 2 and bias.shape == b.shape[1:]:
            rows, columns, turned = len(a), b.shape[1], not b.flags.c_contiguous
            if max(a.size, b.size) >= SMALL and is_left(rows, a.size * columns, turned):
                out = empty((rows, columns), a.dtype)
                if ask(a, b, out, bias):
                    return out
        return general(bias, a, b, beta, alpha)

    return addmm


addmm = make_addmm(any_addmm)


@quiet
def any_linear(x: Array, weight: Array, bias: Array | None) -> Array:
    """x @ weightᵀ + bias; a weight of one dimension is one row."""
    if is_half(x.dtype):
        shift = None if bias is None else wide(bias)
        return narrow(any_linear(wide(x), wide(weight), shift), x.dtype)
    if weight.ndim == 1:
        out = np.asarray(np.matmul(x, weight))
    else:
        out = empty((*x.shape[:-1], weight.shape[0]), x.dtype)
        rows, (features, depth) = prod(x.shape[:-1]), weight.shape
        _times_transposed(x.reshape(rows, depth), weight, out.reshape(rows, features))
    if bias is not None:
        out += bias
    return out


def make_linear(general: Kernel) -> Kernel:
    """The kernel: what is offered, if it has one for the arguments; else NumPy for few and
    shallow rows of a small weight, and `general` for the rest.
    """
    product, limit, others = np.matmul, SMALL, offered

    def linear(x: Array, weight: Array, bias: Array | None) -> Array:
        """x @ weightᵀ + bias, over the last dimension of `x`."""
        if (compiled := others.linear) is not None:
            out = compiled(x, weight, bias)
            if out is not None:
                return out
        if (
            x.ndim == 2 == weight.ndim
            and x.size < limit
            and weight.size < limit
            and 1 < x.shape[1] < 128  # `large_matmul` and `_times_transposed` say why
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


linear = make_linear(any_linear)


KERNELS = {"matmul": matmul, "addmm": addmm, "linear": linear}
