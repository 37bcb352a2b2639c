"""Activation functions and their gradients, in one pass over memory even if of several steps."""

from __future__ import annotations

from math import pi, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from flambeau_numpy.allocator import THRESHOLD, empty
from flambeau_numpy.casts import is_half, narrow, wide
from flambeau_numpy.dtypes import TO_NUMPY
from flambeau_numpy.kernels.elementwise import erf_block, where
from flambeau_numpy.kernels.piecewise_activation import PIECEWISE
from flambeau_numpy.kernels.reduction import SMALL, maximum_over, ones, sum_along
from flambeau_numpy.pointwise import BLOCK, Array, binary, blockwise
from flambeau_numpy.silence import quiet, silent

if TYPE_CHECKING:
    from collections.abc import Callable


ZERO = {d: np.zeros((), d) for d in TO_NUMPY.values()}


def _make_relu() -> Callable[..., Any]:
    maximum, large, zero, limit = np.maximum, binary(np.maximum), ZERO, THRESHOLD

    def relu(a: Array) -> object:
        """max(a, 0); NaN stays NaN."""
        return maximum(a, zero[a.dtype]) if a.nbytes < limit else large(a, zero[a.dtype])

    return silent(relu)


def relu_(a: Array) -> None:
    """max(a, 0) into `a`."""
    np.maximum(a, ZERO[a.dtype], out=a)


def threshold_backward(grad: Array, a: Array, threshold: float) -> np.ndarray:
    """`grad` where `a` exceeds `threshold` (or is NaN), else 0."""
    kind = a.dtype
    level = np.asarray(threshold, kind) if threshold else ZERO[kind]
    return (_above if kind.itemsize > 2 else _above_quietly)(grad, a, level)


def _above(grad: Array, a: Array, level: Array) -> np.ndarray:
    if grad.size < _MASKED_FROM and grad.shape == a.shape:
        out = grad.copy()
        np.putmask(out, np.less_equal(a, level), ZERO[grad.dtype])
        return out
    if grad.shape != a.shape or not grad.flags.c_contiguous or not a.flags.c_contiguous:
        return np.where(np.less_equal(a, level), ZERO[grad.dtype], grad)
    return _masked(grad, a, level)


_above_quietly = quiet(_above)  # comparing NaN warns in bfloat16 only


_MASKED_FROM = 8192  # elements; below, setting up blocks costs more than np.where does


def _masked(grad: Array, a: Array, threshold: Array) -> Array:
    out = empty(grad.shape, grad.dtype)
    word = {2: np.int16, 4: np.int32, 8: np.int64}[grad.dtype.itemsize]
    flat, g, x = out.reshape(-1).view(word), grad.reshape(-1).view(word), a.reshape(-1)
    keep, above = np.empty(BLOCK, word), np.empty(BLOCK, np.bool_)
    for start in range(0, flat.size, BLOCK):
        part = x[start : start + BLOCK]
        count = part.size
        np.less_equal(part, threshold, above[:count])
        np.logical_not(above[:count], keep[:count], casting="unsafe")
        # The bits of the gradient times 1 or 0: unlike a float product, infinity times 0 is 0.
        np.multiply(g[start : start + BLOCK], keep[:count], flat[start : start + BLOCK])
    return out


def _sigmoid_block(out: Array, x: Array) -> None:
    np.negative(x, out)
    np.exp(out, out)
    out += 1
    np.reciprocal(out, out)


def _silu_block(out: Array, x: Array, t: Array) -> None:
    _sigmoid_block(t, x)
    np.multiply(x, t, out)


_silu = blockwise(_silu_block, scratch=1)
_sigmoid_real = blockwise(_sigmoid_block)


@quiet
def sigmoid(a: Array) -> np.ndarray:
    """1 / (1 + exp(-a))."""
    return _sigmoid_real(a)


def sigmoid_(a: Array) -> None:
    """1 / (1 + exp(-a)) into `a`."""
    a[...] = sigmoid(a)


def silu(a: Array) -> np.ndarray:
    """a · sigmoid(a)."""
    return _silu(a)


def _sigmoid_backward_block(out: Array, g: Array, y: Array, t: Array) -> None:
    np.subtract(1, y, t)
    np.multiply(g, t, out)
    out *= y


def _tanh_backward_block(out: Array, g: Array, y: Array, t: Array) -> None:
    np.multiply(y, y, t)
    np.subtract(1, t, t)
    np.multiply(g, t, out)


def _silu_backward_block(out: Array, g: Array, x: Array, s: Array, t: Array) -> None:
    _sigmoid_block(s, x)
    np.subtract(1, s, t)
    t *= x
    t += 1
    t *= s
    np.multiply(g, t, out)


_sigmoid_backward = blockwise(_sigmoid_backward_block, scratch=1)
_tanh_backward = blockwise(_tanh_backward_block, scratch=1)
_silu_backward = blockwise(_silu_backward_block, scratch=2)


def sigmoid_backward(grad: Array, result: Array) -> np.ndarray:
    """grad · (1 - result) · result."""
    return _sigmoid_backward(grad, result)


def tanh_backward(grad: Array, result: Array) -> np.ndarray:
    """grad · (1 - result²)."""
    return _tanh_backward(grad, result)


def silu_backward(grad: Array, a: Array) -> np.ndarray:
    """grad · s · (1 + a·(1 - s)) with s = sigmoid(a)."""
    return _silu_backward(grad, a)


@quiet
def log_sigmoid(a: Array) -> np.ndarray:
    """min(a, 0) - log(1 + exp(-abs(a)))."""
    x = wide(a)
    soft = np.log1p(np.exp(-np.abs(x)))
    return np.asarray(np.minimum(x, 0) - soft).astype(a.dtype, copy=False)


@quiet
def log_sigmoid_backward(grad: Array, a: Array) -> np.ndarray:
    """grad / (1 + exp(a))."""
    return np.asarray(wide(grad) / (1 + np.exp(wide(a)))).astype(grad.dtype, copy=False)


@quiet
def softplus(a: Array, beta: float, threshold: float) -> np.ndarray:
    """log(1 + exp(beta·a)) / beta; `a` itself where beta·a exceeds `threshold`."""
    x = wide(a)
    scaled = x * x.dtype.type(beta)
    soft = np.log1p(np.exp(scaled)) / x.dtype.type(beta)
    return np.where(scaled > threshold, x, soft).astype(a.dtype, copy=False)


@quiet
def softplus_backward(grad: Array, a: Array, beta: float, threshold: float) -> np.ndarray:
    """grad / (1 + exp(-beta·a)); `grad` itself where beta·a exceeds `threshold`."""
    g, x = wide(grad), wide(a)
    scaled = x * x.dtype.type(beta)
    found = np.where(scaled > threshold, g, g / (1 + np.exp(-scaled)))
    return found.astype(grad.dtype, copy=False)


@quiet
def leaky_relu(a: Array, negative_slope: float) -> np.ndarray:
    """`a` where positive, negative_slope·a elsewhere."""
    x = wide(a)
    low = x * x.dtype.type(negative_slope)
    if 0 <= negative_slope <= 1:
        result = np.maximum(x, low)
    else:
        result = np.where(x > 0, x, low)
    return np.asarray(result).astype(a.dtype, copy=False)


@quiet
def leaky_relu_backward(grad: Array, a: Array, negative_slope: float) -> np.ndarray:
    """`grad` where `a` is positive, negative_slope·grad elsewhere."""
    g = wide(grad)
    return where(a > 0, g, np.asarray(g * g.dtype.type(negative_slope))).astype(
        grad.dtype, copy=False
    )


def _gelu_block(out: Array, x: Array, t: Array, r: Array, e: Array) -> None:
    np.multiply(x, np.float32(sqrt(0.5)), e)
    erf_block(e, e, t, r)
    e += 1
    np.multiply(x, np.float32(0.5), out)
    out *= e


def _gelu_backward_block(out: Array, g: Array, x: Array, t: Array, r: Array, e: Array) -> None:
    np.multiply(x, np.float32(sqrt(0.5)), e)
    erf_block(e, e, t, r)
    e += 1
    e *= np.float32(0.5)
    np.multiply(x, x, t)
    t *= np.float32(-0.5)
    np.exp(t, t)
    t *= np.float32(1 / sqrt(2 * pi))
    t *= x
    e += t
    np.multiply(g, e, out)


def _tanh_inner(x: Array, t: Array) -> None:
    # tanh(√(2/π)·(x + 0.044715·x³)) into t
    np.multiply(x, x, t)
    t *= x.dtype.type(0.044715 * sqrt(2 / pi))
    t += x.dtype.type(sqrt(2 / pi))
    t *= x
    np.tanh(t, t)


def _gelu_tanh_block(out: Array, x: Array, t: Array) -> None:
    _tanh_inner(x, t)
    t += 1
    t *= x.dtype.type(0.5)
    np.multiply(x, t, out)


def _gelu_tanh_backward_block(out: Array, g: Array, x: Array, t: Array, u: Array, v: Array) -> None:
    number = x.dtype.type
    _tanh_inner(x, t)
    np.multiply(x, x, u)  # inner derivative √(2/π)·(1 + 3·0.044715·x²), times x
    u *= number(3 * 0.044715 * sqrt(2 / pi))
    u += number(sqrt(2 / pi))
    u *= x
    np.multiply(t, t, v)
    np.subtract(number(1), v, v)
    u *= v
    u += t
    u += 1
    u *= number(0.5)
    np.multiply(g, u, out)


def _gelu64_block(out: Array, x: Array) -> None:
    out[...] = 0.5 * x * (1 + special.erf(x * sqrt(0.5)))


def _gelu64_backward_block(out: Array, g: Array, x: Array) -> None:
    density = np.exp(-0.5 * x * x) / sqrt(2 * pi)
    out[...] = g * (0.5 * (1 + special.erf(x * sqrt(0.5))) + x * density)


_gelu = blockwise(_gelu_block, scratch=3)
_gelu_backward = blockwise(_gelu_backward_block, scratch=3)
_gelu64, _gelu64_backward = blockwise(_gelu64_block), blockwise(_gelu64_backward_block)
_gelu_tanh = blockwise(_gelu_tanh_block, scratch=1)
_gelu_tanh_backward = blockwise(_gelu_tanh_backward_block, scratch=3)


def gelu(a: Array, approximate: str) -> np.ndarray:
    """a·Φ(a), Φ the normal distribution function; or its form with tanh."""
    if approximate == "tanh":
        return _gelu_tanh(a)
    return _gelu64(a) if a.dtype == np.float64 else _gelu(a)


def gelu_backward(grad: Array, a: Array, approximate: str) -> np.ndarray:
    """grad·(Φ(a) + a·φ(a))."""
    if approximate == "tanh":
        return _gelu_tanh_backward(grad, a)
    return _gelu64_backward(grad, a) if a.dtype == np.float64 else _gelu_backward(grad, a)


ROWS = 65536  # elements of a block of rows: input, output and their sums stay in the cache


def _rowwise(formula: Any, result: Array, *operands: Array, dim: int) -> Array:
    """Apply a formula on (out, *operands) matrices to the rows along `dim`, a block at a time."""
    rank, columns = result.ndim, result.shape[dim]
    if dim != rank - 1:
        order = (*(d for d in range(rank) if d != dim), dim)
        moved = [np.ascontiguousarray(o.transpose(order)) for o in operands]
        out = _rowwise(formula, empty(moved[0].shape, result.dtype), *moved, dim=rank - 1)
        back = [0] * rank
        for place, d in enumerate(order):
            back[d] = place
        np.copyto(result, out.transpose(back))
        return result
    flat = result.reshape(-1, columns)
    tables = [np.ascontiguousarray(o).reshape(-1, columns) for o in operands]
    step = max(1, ROWS // columns)
    for start in range(0, flat.shape[0], step):
        piece = slice(start, start + step)
        formula(flat[piece], *(t[piece] for t in tables))
    return result


def _row_sum(x: Array) -> Array:
    return (x @ ones(x.shape[1], x.dtype))[:, None]


def _softmax_rows(out: Array, x: Array) -> None:
    np.subtract(x, maximum_over(x, 1, None, None, True), out)
    np.exp(out, out)
    out *= np.reciprocal(_row_sum(out))


def _log_softmax_rows(out: Array, x: Array) -> None:
    np.subtract(x, maximum_over(x, 1, None, None, True), out)
    out -= np.log(_row_sum(np.exp(out)))


def _softmax_backward_rows(out: Array, grad: Array, result: Array) -> None:
    total = np.einsum("ij,ij->i", grad, result)[:, None]
    np.subtract(grad, total, out)
    out *= result


def _log_softmax_backward_rows(out: Array, grad: Array, result: Array) -> None:
    np.exp(result, out)
    out *= _row_sum(grad)
    np.subtract(grad, out, out)


def _along(formula: object, dim: int, *operands: Array) -> Array:
    first = operands[0]
    if not first.ndim:
        return _along(formula, 0, *(o.reshape(1) for o in operands)).reshape(())
    if is_half(first.dtype):
        return narrow(_along(formula, dim, *(wide(o) for o in operands)), first.dtype)
    out = empty(first.shape, first.dtype)
    return _rowwise(formula, out, *operands, dim=dim) if first.size else out


@quiet
def softmax(a: Array, dim: int) -> Any:
    """exp(a) / Σ exp(a) along `dim`."""
    if 0 < a.size < SMALL and a.ndim and a.dtype.itemsize > 2:
        e = np.subtract(a, maximum_over(a, dim, None, None, True), order="C")
        np.exp(e, e)
        e /= sum_along(e, dim, None, None, True)
        return e
    return _along(_softmax_rows, dim, a)


@quiet
def softmax_backward(grad: Array, result: Array, dim: int) -> Array:
    """result·(grad - Σ grad·result)."""
    return _along(_softmax_backward_rows, dim, grad, result)


@quiet
def log_softmax(a: Array, dim: int) -> np.ndarray:
    """a - log Σ exp(a) along `dim`."""
    if 0 < a.size < SMALL and a.ndim and a.dtype.itemsize > 2:
        shifted = np.subtract(a, maximum_over(a, dim, None, None, True), order="C")
        shifted -= np.log(sum_along(np.exp(shifted), dim, None, None, True))
        return shifted
    return _along(_log_softmax_rows, dim, a)


@quiet
def log_softmax_backward(grad: Array, result: Array, dim: int) -> Array:
    """grad - exp(result)·Σ grad."""
    return _along(_log_softmax_backward_rows, dim, grad, result)


KERNELS = {
    **PIECEWISE,
    "relu": _make_relu(),
    "relu_": relu_,
    "threshold_backward": threshold_backward,
    "sigmoid": sigmoid,
    "sigmoid_": sigmoid_,
    "sigmoid_backward": sigmoid_backward,
    "tanh_backward": tanh_backward,
    "silu": silu,
    "silu_backward": silu_backward,
    "log_sigmoid": log_sigmoid,
    "log_sigmoid_backward": log_sigmoid_backward,
    "softplus": softplus,
    "softplus_backward": softplus_backward,
    "leaky_relu": leaky_relu,
    "leaky_relu_backward": leaky_relu_backward,
    "gelu": gelu,
    "gelu_backward": gelu_backward,
    "softmax": softmax,
    "softmax_backward": softmax_backward,
    "log_softmax": log_softmax,
    "log_softmax_backward": log_softmax_backward,
}
