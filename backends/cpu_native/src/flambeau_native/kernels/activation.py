"""Activation functions and their gradients; softmax and log_softmax over the last dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau_native.kernels._common import (
    Array,
    Kernel,
    binary,
    compiled,
    made_like,
    otherwise,
    unary,
)


def _forward(name: str) -> Kernel:
    functions, general = compiled(name), otherwise(name)

    def forward(a: Array, dim: int) -> Any:
        function = functions.get(a.dtype)
        if function is None or dim != a.ndim - 1 or not a.flags.c_contiguous or not a.size:
            return general(a, dim)
        out = made_like(a)
        n = a.shape[-1]
        function(out, a, a.size // n, n)
        return out

    return forward


def _backward(name: str) -> Kernel:
    functions, general = compiled(name), otherwise(name)

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

    def gelu(a: Array, approximate: str) -> Any:
        return tanh(a) if approximate == "tanh" else exact(a)

    return gelu


def _make_gelu_backward() -> Kernel:
    exact = _form(binary, "gelu_backward", "gelu_backward", "none")
    tanh = _form(binary, "gelu_backward", "gelu_tanh_backward", "tanh")

    def gelu_backward(grad: Array, a: Array, approximate: str) -> Any:
        return tanh(grad, a) if approximate == "tanh" else exact(grad, a)

    return gelu_backward


KERNELS: dict[str, Kernel] = {
    "relu": unary("relu", smallest=2048),
    "leaky_relu": unary("leaky_relu"),
    "leaky_relu_backward": binary("leaky_relu_backward"),
    "threshold_backward": binary("threshold_backward"),
    "sigmoid": unary("sigmoid"),
    "silu": unary("silu"),
    "softplus": unary("softplus"),
    "gelu": _make_gelu(),
    "gelu_backward": _make_gelu_backward(),
    "softmax": _forward("softmax"),
    "log_softmax": _forward("log_softmax"),
    "softmax_backward": _backward("softmax_backward"),
    "log_softmax_backward": _backward("log_softmax_backward"),
}
