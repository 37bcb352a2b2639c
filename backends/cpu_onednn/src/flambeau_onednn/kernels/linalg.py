"""Matrix products, where oneDNN is faster than NumPy's BLAS.

Matrices of float32 go through its function for BLAS's `sgemm`: it reads either order of rows and
columns, and needs no plan for a shape. bfloat16 and float16 go through primitives, or through
float32 where the processor has no instructions for them (AMX, AVX-512 FP16). Small products,
products of vectors, batches of float32, and other dtypes are left to the NumPy kernels. So is all
on other processors than x86-64, for which oneDNN's `sgemm` has no code of its own.

Large products are cut, and every part runs in one thread: OpenMP's threads meet within a product,
which on a busy machine costs more than the product. The threads are those of flambeau-native,
which multiplies some rows by a weight itself (its `sgemm.c`), or without it Python's.
"""

from __future__ import annotations

import platform
import signal
from collections.abc import Callable
from ctypes import PyDLL, create_string_buffer
from math import prod
from typing import Any

import numpy as np

from flambeau.plugin.host import host
from flambeau_numpy.casts import FLOAT32, is_half, narrow, wide
from flambeau_numpy.extending import KERNELS as NUMPY
from flambeau_numpy.extending import empty, offered, parts, quiet, spread
from flambeau_onednn.library import onednn
from flambeau_onednn.primitives import Product
from flambeau_onednn.runs import LIMIT, Array, Plans, address
from flambeau_onednn.threads import get_num_threads, limited

LEAST = 1 << 22
"""Multiplications of a float32 product from which on a call of oneDNN is worth its price."""

FEW = 8
"""Up to so many rows NumPy's BLAS is slow: a quarter of the multiplications are enough."""

WIDE = 1 << 19
"""Elements of a left operand, stored by columns, from which on NumPy's BLAS reads it faster."""

LEAST_HALF = 1 << 15
"""Elements of the operands from which on a primitive is worth it for 16-bit floats."""

_DIMENSIONS = 12  # at most, in oneDNN

_relu_ = NUMPY["relu_"]
plans = Plans(LIMIT)


def _operand(a: Array) -> tuple[Array, bytes, int]:
    """A matrix as BLAS takes it: an array, whether it is transposed, elements between its lines."""
    down, right = a.strides
    rows, columns = a.shape
    if not (down | right) & 3 and a.flags.aligned:
        if right == 4 and down >= 4 * columns:
            return a, b"N", down >> 2
        if down == 4 and right >= 4 * rows:
            return a, b"T", right >> 2
    return np.ascontiguousarray(a), b"N", columns


def _unmasked(*_: object) -> None:
    """Where no system has signals that come at any time."""


# A signal that is delivered within oneDNN's product was seen to corrupt the heap, unless it had a
# stack of its own: none is delivered meanwhile but those of faults.
_MASK = 128  # bytes, what a set of signals has at most
_HELD = create_string_buffer(_MASK)
_SETMASK = 0
_mask: Callable[..., object] = _unmasked
if hasattr(signal, "pthread_sigmask"):
    _SETMASK = int(signal.SIG_SETMASK)
    _process = PyDLL(None)
    _mask = _process.pthread_sigmask
    _process.sigfillset(_HELD)
    for _fault in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL):
        _process.sigdelset(_HELD, int(_fault))


def _gemm(a: Array, b: Array, out: Array, alpha: float = 1.0, beta: float = 0.0) -> None:
    """alpha·(a @ b) + beta·out of three matrices, written to `out`, in this thread."""
    library = onednn()
    assert library is not None  # the plugin offers these kernels only where there is one
    left, of_left, left_step = _operand(a)
    right, of_right, right_step = _operand(b)
    (rows, columns), depth = out.shape, a.shape[1]
    before = create_string_buffer(_MASK)
    with limited(1):
        try:
            _mask(_SETMASK, _HELD, before)
            status = library.sgemm(
                *(of_left, of_right, rows, columns, depth),
                *(alpha, address(left), left_step, address(right), right_step),
                *(beta, address(out), out.strides[0] >> 2),
            )
        finally:
            _mask(_SETMASK, before, None)
    library.check(status, "dnnl_sgemm")


def _suits(a: Array, b: Array) -> bool:
    """Whether oneDNN is faster for the product of two matrices: of float32, of shapes that fit."""
    (rows, depth), columns = a.shape, b.shape[1]
    if rows * depth * columns < (LEAST >> 2 if rows <= FEW else LEAST) or depth != b.shape[0]:
        return False
    if not a.dtype == b.dtype == FLOAT32:  # it gets addresses, and would read others as float32
        return False
    if min(rows, columns, depth) < 2:  # nothing, vectors, or their outer product
        return False
    return a.size < WIDE or a.strides[1] == 4


@quiet
def _large_matmul(a: Array, b: Array) -> Array:
    matrices = a.ndim > 1 and b.ndim == 2 and a.size * b.shape[1] >= LEAST >> 2
    if matrices and a.dtype == b.dtype == FLOAT32:
        rows = _rows(a)
        if _suits(rows, b):
            return _sum(rows, b, None, 0, 1, a.shape[:-1])
    return parts.large_matmul(a, b)


def _rows(a: Array) -> Array:
    """All rows of several matrices as one: one product instead of one for each."""
    return a if a.ndim == 2 else a.reshape(prod(a.shape[:-1]), a.shape[-1])


def _sum(
    a: Array,
    b: Array,
    added: Array | None,
    beta: object,
    alpha: Any,
    outer: tuple[int, ...],
    *,
    relu: bool = False,
) -> Array:
    """beta·added + alpha·(a @ b) of matrices; without `added` only the product.

    `outer` is the shape of the rows: the result shares its memory with no other array, also where
    they are several matrices, so that it may become a gradient as it is.
    """
    whole = empty((*outer, b.shape[1]), FLOAT32)
    out = _rows(whole)
    line, factor = None, float(alpha)
    if added is not None and beta == 1 and added.shape == out.shape[1:] and added.dtype == FLOAT32:
        line = np.ascontiguousarray(added)
    ask = offered.matrices
    if ask is not None and factor == 1 and (added is None or line is not None):
        work, turned = a.size * b.shape[1], not b.flags.c_contiguous
        if parts.is_left(len(a), work, turned) and ask(a, b, out, line, relu):
            return whole
    kept = 0.0 if added is None else 1.0
    if added is not None and (line is None or offered.sgemm is None):
        line = None
        if beta == 1:
            np.copyto(out, added)
        else:
            np.multiply(added, np.asarray(beta).astype(FLOAT32), out)
    if offered.sgemm is not None:
        _compiled(a, b, line, out, factor, kept, relu)
        return whole

    def run(a: Array, b: Array, out: Array) -> None:
        _gemm(a, b, out, factor, kept)

    spread(run, a, b, out, get_num_threads())
    if relu:
        _relu_(out)
    return whole


def _compiled(
    a: Array, b: Array, line: Array | None, out: Array, alpha: float, beta: float, relu: bool
) -> None:
    """The same as `_gemm` on several threads, after each line of `out` was made `line`."""
    library = onednn()
    assert library is not None
    assert offered.sgemm is not None
    left, of_left, left_step = _operand(a)
    right, of_right, right_step = _operand(b)
    offered.sgemm(
        *library.addresses,
        *(address(out), address(left), address(right), line),
        *(*out.shape, a.shape[1], out.strides[0] >> 2, left_step, right_step),
        *(of_left == b"T", of_right == b"T", relu, alpha, beta),
    )


def _stored(a: Array) -> tuple[Array, bool]:
    """An array without gaps in memory, and whether its matrices are stored column by column."""
    if not a.flags.c_contiguous and a.swapaxes(-1, -2).flags.c_contiguous:
        return a, True
    return np.ascontiguousarray(a), False


def _planned(a: Array, b: Array, bias: Array | None, out: Array) -> bool:
    """Write a @ b + bias to `out`, all of as many dimensions; False if nothing fast is known.

    The bias is float32, which is what there is for both kinds of 16-bit floats.
    """
    (left, of_left), (right, of_right) = _stored(a), _stored(b)
    key = (left.shape, right.shape, of_left, of_right, bias is None, out.dtype)

    def make() -> Product:
        library = onednn()
        assert library is not None
        return Product(
            library, left.shape, right.shape, (of_left, of_right), bias is not None, out.dtype
        )

    with limited(1):
        plan = plans.find(key, make)
        if plan is None:
            return False
        plan.run(out, (left, right) if bias is None else (left, right, bias))
    return True


def _by_plan(a: Array, b: Array, bias: Array | None) -> Array | None:
    """a @ b + bias of matrices or batches, or None if oneDNN has nothing fast for it."""
    dimensions = max(a.ndim, b.ndim)
    if dimensions > _DIMENSIONS:
        return None
    left = a.reshape(*(1,) * (dimensions - a.ndim), *a.shape)
    right = b.reshape(*(1,) * (dimensions - b.ndim), *b.shape)
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    out = empty((*batch, a.shape[-2], b.shape[-1]), a.dtype)
    served: list[bool] = []

    def run(a: Array, b: Array, out: Array) -> None:
        served.append(_planned(a, b, bias, out))

    spread(run, left, right, out, get_num_threads(), whole_rows=True)
    return out if all(served) else None


def _half_product(a: Array, b: Array, bias: Array | None = None) -> Array | None:
    """a @ b + bias in 16-bit floats, or None if it is not for oneDNN."""
    dtype = a.dtype
    if not (is_half(dtype) and dtype == b.dtype and a.size and b.size):
        return None
    if a.size + b.size < LEAST_HALF or a.ndim == b.ndim == 1:
        return None
    depth = a.shape[-1]
    if depth == 1 or depth != (b.shape[0] if b.ndim == 1 else b.shape[-2]):  # NumPy raises
        return None
    if bias is not None:
        bias = np.ascontiguousarray(np.broadcast_to(wide(bias), b.shape[-1:]))
    if a.ndim == 1:
        out = _by_plan(a[None], b, bias)
        return None if out is None else out.reshape(*out.shape[:-2], out.shape[-1])
    if b.ndim == 1:
        out = _by_plan(a.reshape(-1, a.shape[-1]), b[:, None], None)
        return None if out is None else out.reshape(a.shape[:-1])
    if b.ndim == 2 < a.ndim:  # one product of all rows
        out = _by_plan(a.reshape(-1, a.shape[-1]), b, bias)
        return None if out is None else out.reshape(*a.shape[:-1], b.shape[1])
    return _by_plan(a, b, bias)


@quiet
def _half_matmul(a: Array, b: Array) -> np.ndarray:
    out = _half_product(a, b)
    return narrow(matmul(wide(a), wide(b)), a.dtype) if out is None else out


matmul = parts.make_matmul(_large_matmul, _half_matmul)


@quiet
def _any_addmm(bias: Array, a: Array, b: Array, beta: object, alpha: object) -> Array:
    """beta·bias + alpha·(a @ b); with beta 0, NaN in `bias` does not count."""
    dtype = a.dtype
    if dtype == FLOAT32 and alpha != 0 and _suits(a, b):  # NumPy's 0·NaN is NaN
        return _sum(a, b, None if beta == 0 else bias, beta, alpha, a.shape[:1])
    if dtype.itemsize == 2 and alpha == 1:
        if beta == 0 and (out := _half_product(a, b)) is not None:
            return out
        if beta == 1 and bias.ndim < 2 and (out := _half_product(a, b, bias)) is not None:
            return out
        if is_half(dtype):
            return narrow(addmm(wide(bias), wide(a), wide(b), beta, alpha), dtype)
    return parts.any_addmm(bias, a, b, beta, alpha)


addmm = parts.make_addmm(_any_addmm)


@quiet
def _any_linear(x: Array, weight: Array, bias: Array | None) -> Array:
    dtype = x.dtype
    if weight.ndim == 2 and x.ndim:
        if dtype == FLOAT32:
            rows = _rows(x)
            if _suits(rows, weight.T):
                return _sum(rows, weight.T, bias, 1, 1, x.shape[:-1])
        elif is_half(dtype):
            out = _half_product(x, weight.T, bias)
            if out is None:
                shift = None if bias is None else wide(bias)
                out = narrow(linear(wide(x), wide(weight), shift), dtype)
            return out
    return parts.any_linear(x, weight, bias)


linear = parts.make_linear(_any_linear)


def _fused(x: Array, weight: Array, bias: Array | None, activation: str, saves: bool) -> bool:
    """Whether an activation costs less with the product than after it."""
    if activation != "relu" or offered.sgemm is None or x.ndim < 2 or weight.ndim != 2:
        return False
    return x.dtype == FLOAT32 and _suits(_rows(x), weight.T)


@quiet
def linear_activation(
    x: Array, weight: Array, bias: Array | None, activation: str, saves: bool
) -> tuple[Array, Array]:
    """The activation of `linear`, and what it was applied to if that is asked for."""
    nothing = empty((0,), x.dtype)
    if _fused(x, weight, bias, activation, saves):
        return _sum(_rows(x), weight.T, bias, 1, 1, x.shape[:-1], relu=True), nothing
    z = linear(x, weight, bias)
    if activation == "relu":
        _relu_(z)
        return z, nothing
    gelu = host.activate("cpu").kernels["gelu"]  # which may be another package's
    return gelu(z, "tanh"), z if saves else nothing


linear_activation.takes = _fused  # type: ignore[attr-defined] - see `Composite.taken`

KERNELS: dict[str, Any] = {}
if platform.machine().lower() in ("x86_64", "amd64"):
    KERNELS = {
        "matmul": matmul,
        "addmm": addmm,
        "linear": linear,
        "linear_activation": linear_activation,
    }
