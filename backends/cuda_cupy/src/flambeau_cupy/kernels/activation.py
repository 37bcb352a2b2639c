"""Activation functions and their gradients; softmax and log_softmax along any dimension."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flambeau_cupy.array_module import Array, Kernel
from flambeau_cupy.device.launch import blocks_for, rows_for
from flambeau_cupy.layer import Layer

ELEMENTWISE = ("silu", "softplus", "leaky_relu", "leaky_relu_backward", "elu")


def make(layer: Layer) -> dict[str, Kernel]:
    """The kernels of this family."""
    xp, launch, fusion = layer.xp, layer.launch, layer.fusion
    assert launch is not None and fusion is not None

    def relu(a: Array) -> Array:
        return layer.held(xp.maximum(a, xp.zeros((), a.dtype)))

    def sigmoid(a: Array) -> Array:
        one = xp.ones((), a.dtype)  # complex
        return layer.held(one / (one + xp.exp(-a)))

    def threshold(a: Array, limit: float, value: float) -> Array:
        return layer.held(xp.where(a <= limit, xp.full((), value).astype(a.dtype), a))

    def threshold_backward(grad: Array, a: Array, limit: float) -> Array:
        return layer.held(xp.where(a <= limit, xp.zeros((), grad.dtype), grad))

    def approximated(step: str) -> Kernel:
        """A kernel whose last argument chooses the exact form or that with tanh."""
        exact, tanh = fusion.kernel(step), fusion.kernel(step.replace("gelu", "gelu_tanh"))

        def run(*args: Any) -> Array:
            return (tanh if args[-1] == "tanh" else exact)(*args[:-1])

        def late(*args: Any) -> Any:
            return (tanh if args[-1] == "tanh" else exact).late(*args[:-1])  # type: ignore[attr-defined]

        run.late = late  # type: ignore[attr-defined]
        return run

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
        "relu": fusion.kernel("relu", relu),
        "sigmoid": fusion.kernel("sigmoid", sigmoid),
        "gelu": approximated("gelu"),
        "gelu_backward": approximated("gelu_backward"),
        "threshold": fusion.kernel("threshold", threshold),
        "threshold_backward": fusion.kernel("threshold_backward", threshold_backward),
        **{name: fusion.kernel(name) for name in ELEMENTWISE},
        "softmax": forward_along("softmax_forward"),
        "log_softmax": forward_along("log_softmax_forward"),
        "softmax_backward": backward_along("softmax_backward"),
        "log_softmax_backward": backward_along("log_softmax_backward"),
    }
    return {name: layer.quiet(kernel) for name, kernel in made.items()}
