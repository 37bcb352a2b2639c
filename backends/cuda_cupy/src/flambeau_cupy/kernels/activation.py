"""Activation functions and their gradients; softmax and log_softmax along any dimension."""

from __future__ import annotations

from functools import partial
from math import prod

import numpy as np

from flambeau_cupy.device.array_module import Array, Kernel
from flambeau_cupy.device.launch import blocks_for, rows_for
from flambeau_cupy.fusion.chains import Fusion
from flambeau_cupy.layer import Layer

ELEMENTWISE = ("silu", "softplus", "leaky_relu", "leaky_relu_backward", "elu")


def relu(layer: Layer, a: Array) -> Array:
    return layer.held(layer.xp.maximum(a, layer.xp.zeros((), a.dtype)))


def sigmoid(layer: Layer, a: Array) -> Array:
    one = layer.xp.ones((), a.dtype)  # complex
    return layer.held(one / (one + layer.xp.exp(-a)))


def threshold(layer: Layer, a: Array, limit: float, value: float) -> Array:
    return layer.held(layer.xp.where(a <= limit, layer.xp.full((), value).astype(a.dtype), a))


def threshold_backward(layer: Layer, grad: Array, a: Array, limit: float) -> Array:
    return layer.held(layer.xp.where(a <= limit, layer.xp.zeros((), grad.dtype), grad))


PLAIN: dict[str, Kernel] = {
    "relu": relu,
    "sigmoid": sigmoid,
    "threshold": threshold,
    "threshold_backward": threshold_backward,
}
"""What serves the dtypes for which no kernel is generated."""


def approximated(fusion: Fusion, step: str) -> Kernel:
    """A kernel whose last argument chooses the exact form or that with tanh."""
    exact, tanh = fusion.kernel(step), fusion.kernel(step.replace("gelu", "gelu_tanh"))

    def run(*args: object) -> Array:
        return (tanh if args[-1] == "tanh" else exact)(*args[:-1])

    def late(*args: object) -> object:
        return (tanh if args[-1] == "tanh" else exact).late(*args[:-1])  # type: ignore[attr-defined]

    run.late = late  # type: ignore[attr-defined]
    return run


def along(layer: Layer, kernel: str, dim: int, *arrays: Array) -> Array:
    arrays = tuple([layer.dense(a) for a in arrays])
    first = arrays[0]
    out = layer.xp.empty(first.shape, first.dtype)
    if not first.size:
        return out
    columns = first.shape[dim] if first.ndim else 1
    inner, rows = prod(first.shape[dim + 1 :]), first.size // columns
    grid = rows_for(rows, columns) if inner == 1 else blocks_for(rows, 1)
    sizes = np.int64(rows), np.int64(columns), np.int64(inner)
    layer.launched(first.dtype, kernel, *grid, out, *arrays, *sizes)
    return out


def softmax(layer: Layer, a: Array, dim: int) -> Array:
    return along(layer, "softmax_forward", dim, a)


def log_softmax(layer: Layer, a: Array, dim: int) -> Array:
    return along(layer, "log_softmax_forward", dim, a)


def softmax_backward(layer: Layer, grad: Array, result: Array, dim: int) -> Array:
    result = result.astype(grad.dtype, copy=False)
    return along(layer, "softmax_backward", dim, grad, result)


def log_softmax_backward(layer: Layer, grad: Array, result: Array, dim: int) -> Array:
    result = result.astype(grad.dtype, copy=False)
    return along(layer, "log_softmax_backward", dim, grad, result)


LAUNCHED: dict[str, Kernel] = {
    "softmax": softmax,
    "log_softmax": log_softmax,
    "softmax_backward": softmax_backward,
    "log_softmax_backward": log_softmax_backward,
}


def make(layer: Layer) -> dict[str, Kernel]:
    """The kernels of this family: those that are generated, and `LAUNCHED`."""
    fusion = layer.fusion
    assert fusion is not None
    plain = {name: partial(f, layer) for name, f in PLAIN.items()}
    made = {name: fusion.kernel(name, plain.get(name)) for name in (*PLAIN, *ELEMENTWISE)}
    made |= {name: approximated(fusion, name) for name in ("gelu", "gelu_backward")}
    return {name: layer.quiet(kernel) for name, kernel in made.items()} | layer.bound(LAUNCHED)
