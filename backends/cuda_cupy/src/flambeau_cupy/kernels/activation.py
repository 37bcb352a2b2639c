"""Activation functions and their gradients; softmax and log_softmax along any dimension."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flambeau_cupy.dtypes import FLOATS
from flambeau_cupy.launch import blocks_for, rows_for
from flambeau_cupy.layer import Array, Kernel, Layer

RELU, SIGMOID, SILU, GELU, GELU_TANH, SOFTPLUS, LEAKY_RELU, ELU, THRESHOLD = range(9)


def make(layer: Layer) -> dict[str, Kernel]:
    """The kernels of this family."""
    xp, launch = layer.xp, layer.launch
    assert launch is not None

    def forward(which: int, a: Array, p: float = 0.0, q: float = 0.0, r: float = 0.0) -> Array:
        a = layer.dense(a)
        out = xp.empty(a.shape, a.dtype)
        if a.size:
            numbers = np.float64(p), np.float64(q), np.float64(r), np.int64(a.size)
            launch(
                a.dtype,
                "activation_forward",
                *blocks_for(a.size),
                out,
                a,
                np.int32(which),
                *numbers,
            )
        return out

    def backward(which: int, grad: Array, a: Array, p: float = 0.0) -> Array:
        shape = np.broadcast_shapes(grad.shape, a.shape)
        grad = layer.dense(xp.broadcast_to(grad, shape))
        a = layer.dense(xp.broadcast_to(a, shape).astype(grad.dtype, copy=False))
        out = xp.empty(shape, grad.dtype)
        if out.size:
            numbers = np.int32(which), np.float64(p), np.int64(out.size)
            launch(grad.dtype, "activation_backward", *blocks_for(out.size), out, grad, a, *numbers)
        return out

    def relu(a: Array) -> Array:
        if a.dtype in FLOATS:
            return forward(RELU, a)
        return layer.held(xp.maximum(a, xp.zeros((), a.dtype)))

    def sigmoid(a: Array) -> Array:
        if a.dtype in FLOATS:
            return forward(SIGMOID, a)
        one = xp.ones((), a.dtype)  # complex
        return layer.held(one / (one + xp.exp(-a)))

    def threshold(a: Array, limit: float, value: float) -> Array:
        if a.dtype in FLOATS:
            return forward(THRESHOLD, a, limit, value)
        return layer.held(xp.where(a <= limit, xp.asarray(value).astype(a.dtype), a))

    def threshold_backward(grad: Array, a: Array, limit: float) -> Array:
        if grad.dtype in FLOATS and a.dtype in FLOATS:
            return backward(THRESHOLD, grad, a, limit)
        return layer.held(xp.where(a <= limit, xp.zeros((), grad.dtype), grad))

    def gelu(a: Array, approximate: str) -> Array:
        return forward(GELU_TANH if approximate == "tanh" else GELU, a)

    def gelu_backward(grad: Array, a: Array, approximate: str) -> Array:
        return backward(GELU_TANH if approximate == "tanh" else GELU, grad, a)

    def along(kernel: str, dim: int, *arrays: Array) -> Array:
        arrays = tuple([layer.dense(a) for a in arrays])
        first = arrays[0]
        out = xp.empty(first.shape, first.dtype)
        if not first.size:
            return out
        columns = first.shape[dim] if first.ndim else 1
        inner, rows = prod(first.shape[dim + 1 :]), first.size // columns
        grid = rows_for(rows, columns) if inner == 1 else blocks_for(rows, 1)
        sizes = np.int64(rows), np.int64(columns), np.int64(inner)
        launch(first.dtype, kernel, *grid, out, *arrays, *sizes)
        return out

    def forward_along(kernel: str) -> Kernel:
        return lambda a, dim: along(kernel, dim, a)

    def backward_along(kernel: str) -> Kernel:
        def run(grad: Array, result: Array, dim: int) -> Array:
            return along(kernel, dim, grad, result.astype(grad.dtype, copy=False))

        return run

    made: dict[str, Any] = {
        "relu": relu,
        "sigmoid": sigmoid,
        "silu": lambda a: forward(SILU, a),
        "gelu": gelu,
        "gelu_backward": gelu_backward,
        "softplus": lambda a, beta, limit: forward(SOFTPLUS, a, beta, limit),
        "leaky_relu": lambda a, slope: forward(LEAKY_RELU, a, slope),
        "leaky_relu_backward": lambda grad, a, slope: backward(LEAKY_RELU, grad, a, slope),
        "elu": lambda a, alpha, scale, input_scale: forward(ELU, a, alpha, scale, input_scale),
        "threshold": threshold,
        "threshold_backward": threshold_backward,
        "softmax": forward_along("softmax_forward"),
        "log_softmax": forward_along("log_softmax_forward"),
        "softmax_backward": backward_along("softmax_backward"),
        "log_softmax_backward": backward_along("log_softmax_backward"),
    }
    return {name: layer.quiet(kernel) for name, kernel in made.items()}
