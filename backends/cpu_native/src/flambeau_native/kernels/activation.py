"""Activation functions and their gradients; softmax and log_softmax over the last dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau_native.kernels._common import (
    Array,
    Kernel,
    binary,
    compiled,
    halves_by,
    in_place,
    made,
    made_like,
    otherwise,
    unary,
)
from flambeau_numpy.casts import compared
from flambeau_numpy.extending import silent
from flambeau_numpy.extending.parts import ZERO

FEW_RELU = 2048  # elements, below which NumPy's maximum is relu


def _make_relu() -> Kernel:
    large, maximum, zero, few = unary("relu"), np.maximum, ZERO, FEW_RELU

    def relu(a: Array) -> np.ndarray:
        return maximum(a, zero[a.dtype]) if a.size < few else large(a)

    return silent(relu)


def _forward(name: str) -> Kernel:
    find, general = compiled(name).get, halves_by(lambda: forward, otherwise(name))

    def forward(a: Array, dim: int) -> Any:
        function = find(a.dtype)
        if (
            function is None
            or dim != a.ndim - 1
            or not a.flags.c_contiguous
            or not (size := a.size)
        ):
            return general(a, dim)
        out = a.copy() if size < 64 else made_like(a)  # which is sooner made than an empty array
        n = a.shape[-1]
        function(out, a, size // n, n)
        return out

    return forward


def _backward(name: str) -> Kernel:
    functions, general = compiled(name), halves_by(lambda: backward, otherwise(name))

    def backward(grad: Array, result: Array, dim: int) -> Any:
        function = functions.get(result.dtype)
        if (
            function is None
            or dim != result.ndim - 1
            or grad.dtype != result.dtype
            or grad.shape != result.shape
            or not result.size
            or not (result.flags.c_contiguous and grad.flags.c_contiguous)
        ):
            return general(grad, result, dim)
        out = made_like(result)
        n = result.shape[-1]
        function(out, grad, result, result.size // n, n)
        return out

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
    functions, general = compiled("logsumexp"), otherwise("logsumexp")

    def logsumexp(a: Array, dims: tuple[int, ...], keepdim: bool) -> np.ndarray:
        function, rank = functions.get(a.dtype), a.ndim
        last = sorted(dims) == list(range(rank - len(dims), rank))
        if function is None or not last or not a.flags.c_contiguous or not a.size:
            return general(a, dims, keepdim)
        left = a.shape[: rank - len(dims)]
        out = made((*left, *[1] * len(dims)) if keepdim else left, a.dtype)
        function(out, a, out.size, a.size // out.size)
        return out

    return logsumexp


KERNELS: dict[str, Kernel] = {
    "relu": _make_relu(),
    "leaky_relu": unary("leaky_relu"),
    "leaky_relu_backward": binary("leaky_relu_backward"),
    "threshold_backward": binary("threshold_backward"),
    "sigmoid": unary("sigmoid"),
    "sigmoid_backward": binary("sigmoid_backward"),
    "tanh_backward": binary("tanh_backward"),
    "silu": unary("silu"),
    "silu_backward": binary("silu_backward"),
    "softplus": unary("softplus"),
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

_IN_PLACE = "sigmoid leaky_relu silu elu hardsigmoid hardswish"
KERNELS |= {f"{name}_": in_place(name, KERNELS[name]) for name in _IN_PLACE.split()}
KERNELS["relu_"] = in_place("relu", KERNELS["relu"], 8 * FEW_RELU)
KERNELS["hardtanh_"] = in_place("clamp", KERNELS["hardtanh"])
