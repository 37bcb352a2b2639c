"""Activation functions and their gradients; softmax and log_softmax."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from flambeau_native.kernels._common import (
    Array,
    Kernel,
    binary,
    compiled,
    form,
    halves_by,
    in_place,
    otherwise,
    prepared,
    unary,
)
from flambeau_numpy.casts import compared

LEAST_PLANE = 512  # elements of an image by itself, where all have one slope
NARROW = 4  # columns, below which a matrix is turned before its softmax


def _over(name: str, a: Array, dim: int) -> object:
    """The call of a function of softmax's family over `dim` of an array, or None."""
    shape, size = a.shape, a.size
    if not shape or not size:
        return None
    n, inner = shape[dim], prod(shape[dim + 1 :])
    if inner == 1:
        run, sizes = compiled(name).get(a.dtype), (size // n, n)
    elif inner >= NARROW:
        run, sizes = compiled(f"{name}_columns").get(a.dtype), (size // (n * inner), n, inner)
    else:
        return None
    return run and (run, (form(shape, a.dtype),), sizes)


def _forward(name: str) -> Kernel:
    general = halves_by(lambda: forward, otherwise(name))

    def prepare(a: Array, dim: int) -> object:
        return _over(name, a, dim)

    forward = prepared(name, "as", prepare, general)
    return forward


def _backward(name: str) -> Kernel:
    general = halves_by(lambda: backward, otherwise(name))

    def prepare(grad: Array, result: Array, dim: int) -> object:
        if grad.dtype != result.dtype or grad.shape != result.shape:
            return None
        return _over(name, result, dim)

    backward = prepared(name, "aas", prepare, general, packs=True)
    return backward


def _form(make: Callable[..., Kernel], name: str, function: str, approximate: str) -> Kernel:
    general = otherwise(name)
    return make(name, function, general=lambda *arrays: general(*arrays, approximate))


def _make_gelu() -> Kernel:
    exact = _form(unary, "gelu", "gelu", "none")
    tanh = _form(unary, "gelu", "gelu_tanh", "tanh")

    def gelu(a: Array, approximate: str) -> np.ndarray:
        return tanh(a) if approximate == "tanh" else exact(a)

    return gelu


def _make_gelu_backward() -> Kernel:
    exact = _form(binary, "gelu_backward", "gelu_backward", "none")
    tanh = _form(binary, "gelu_backward", "gelu_tanh_backward", "tanh")

    def gelu_backward(grad: Array, a: Array, approximate: str) -> np.ndarray:
        return tanh(grad, a) if approximate == "tanh" else exact(grad, a)

    return gelu_backward


def _make_logsumexp() -> Kernel:
    find = compiled("logsumexp").get

    def prepare(a: Array, dims: tuple[int, ...], keepdim: bool) -> object:
        run, rank = find(a.dtype), a.ndim
        last = sorted(dims) == list(range(rank - len(dims), rank))
        if run is None or not last or not a.size:
            return None
        left = a.shape[: rank - len(dims)]
        out = (*left, *[1] * len(dims)) if keepdim else left
        rows = prod(left)
        return run, (form(out, a.dtype),), (rows, a.size // rows)

    return prepared("logsumexp", "ass", prepare, otherwise("logsumexp"))


def _planes(x: Array, weight: Array) -> tuple[int, int, int] | None:
    """Images, channels and elements of a plane, of which each channel has a weight."""
    shape, rank = x.shape, weight.ndim
    if not x.size or weight.dtype != x.dtype:
        return None
    if weight.size == 1 and rank <= x.ndim:
        each = x.size // shape[0] if shape else 1
        return (shape[0], 1, each) if each >= LEAST_PLANE else (1, 1, x.size)
    if rank and rank == x.ndim - 1 and weight.shape == (shape[1], *[1] * (rank - 1)):
        return shape[0], shape[1], prod(shape[2:])
    return None


def _make_prelu() -> Kernel:
    find = compiled("prelu").get

    def prepare(x: Array, weight: Array) -> object:
        run, sizes = find(x.dtype), _planes(x, weight)
        return run and sizes and (run, (form(x.shape, x.dtype),), sizes)

    return prepared("prelu", "aa", prepare, otherwise("prelu"))


def _make_prelu_gradient(name: str) -> Kernel:
    find = compiled(name).get

    def prepare(grad: Array, x: Array, weight: Array) -> object:
        run, sizes = find(x.dtype), _planes(x, weight)
        if run is None or sizes is None or grad.dtype != x.dtype or grad.shape != x.shape:
            return None
        return run, (form(x.shape, x.dtype),), sizes

    return prepared(name, "aaa", prepare, otherwise(name), packs=True)


KERNELS: dict[str, Kernel] = {
    "prelu": _make_prelu(),
    "prelu_backward": _make_prelu_gradient("prelu_backward"),
    "prelu_weight_grad": _make_prelu_gradient("prelu_weight_grad"),
    "relu": unary("relu"),
    "leaky_relu": unary("leaky_relu"),
    "leaky_relu_backward": binary("leaky_relu_backward"),
    "threshold_backward": binary("threshold_backward"),
    "sigmoid": unary("sigmoid"),
    "sigmoid_backward": binary("sigmoid_backward"),
    "tanh_backward": binary("tanh_backward"),
    "silu": unary("silu"),
    "silu_backward": binary("silu_backward"),
    "softplus": unary("softplus"),
    "softplus_backward": binary("softplus_backward"),
    "log_sigmoid": unary("log_sigmoid"),
    "log_sigmoid_backward": binary("log_sigmoid_backward"),
    "elu": unary("elu"),
    "elu_backward": binary("elu_backward"),
    "hardtanh": unary("hardtanh", "clamp"),
    "hardtanh_backward": binary("hardtanh_backward"),
    "hardsigmoid": unary("hardsigmoid"),
    "hardsigmoid_backward": binary("hardsigmoid_backward"),
    "hardswish": unary("hardswish"),
    "hardswish_backward": binary("hardswish_backward"),
    "hardshrink": compared(unary("hardshrink")),
    "hardshrink_backward": compared(binary("hardshrink_backward")),
    "softshrink": unary("softshrink"),
    "gelu": _make_gelu(),
    "gelu_backward": _make_gelu_backward(),
    "softmax": _forward("softmax"),
    "log_softmax": _forward("log_softmax"),
    "logsumexp": _make_logsumexp(),
    "softmax_backward": _backward("softmax_backward"),
    "log_softmax_backward": _backward("log_softmax_backward"),
}

_IN_PLACE = "relu sigmoid leaky_relu silu elu hardsigmoid hardswish"
KERNELS |= {f"{name}_": in_place(name, KERNELS[name]) for name in _IN_PLACE.split()}
KERNELS["hardtanh_"] = in_place("clamp", KERNELS["hardtanh"])
