"""Layer normalisation of rows, and batch normalisation of channels of planes."""

from __future__ import annotations

from math import prod

import numpy as np

from flambeau_native.kernels._common import (
    Array,
    Kernel,
    alike,
    compiled,
    halves_by,
    made,
    made_like,
    otherwise,
)

BLOCKS = 32  # at most so many partial sums of the gradients of weight and bias
SMALLEST_PLANE = 8  # elements; many tinier ones are the NumPy kernel's business, which turns them
FEW = 4096  # elements in all


def _make_layer_norm() -> Kernel:
    general = halves_by(lambda: layer_norm, otherwise("layer_norm"))
    find = compiled("layer_norm").get

    def layer_norm(
        x: Array,
        weight: Array | None,
        bias: Array | None,
        normalized_shape: tuple[int, ...],
        eps: float,
    ) -> tuple[np.ndarray, ...]:
        run = find(x.dtype)
        if run is None or not x.size or not alike(x, weight, bias):
            return general(x, weight, bias, normalized_shape, eps)
        columns, lead = prod(normalized_shape), x.shape[: x.ndim - len(normalized_shape)]
        kept = (*lead, *[1] * len(normalized_shape))
        out, mean, invstd = made_like(x), np.empty(kept, x.dtype), np.empty(kept, x.dtype)
        run(out, mean, invstd, x, weight, bias, x.size // columns, columns, eps)
        return out, mean, invstd

    return layer_norm


def _make_layer_norm_backward() -> Kernel:
    general = halves_by(lambda: layer_norm_backward, otherwise("layer_norm_backward"))
    find = compiled("layer_norm_backward").get

    def layer_norm_backward(
        grad: Array,
        x: Array,
        weight: Array | None,
        mean: Array,
        invstd: Array,
        normalized_shape: tuple[int, ...],
    ) -> tuple[np.ndarray, ...]:
        run = find(x.dtype)
        if run is None or not x.size or not alike(x, grad, weight, mean, invstd):
            return general(grad, x, weight, mean, invstd, normalized_shape)
        columns = prod(normalized_shape)
        rows = x.size // columns
        block = max(8, -(-rows // BLOCKS))
        out = made_like(x)
        over_weight, over_bias = (np.empty(normalized_shape, x.dtype) for _ in "wb")
        parts = made((-(-rows // block), 2, columns), x.dtype)
        arrays = (out, over_weight, over_bias, parts, grad, x, weight, mean, invstd)
        run(*arrays, rows, columns, block)
        return out, over_weight, over_bias

    return layer_norm_backward


def _planes(x: Array) -> tuple[int, int, int] | None:
    """Images, channels and elements of a plane; None if there are no planes worth it."""
    shape = x.shape
    size = prod(shape[2:])
    worth = size >= SMALLEST_PLANE or x.size <= FEW
    return (shape[0], shape[1], size) if worth and x.size else None


def _make_batch_norm() -> Kernel:
    general, find = otherwise("batch_norm"), compiled("batch_norm").get

    def batch_norm(
        x: Array, weight: Array | None, bias: Array | None, mean: Array, invstd: Array
    ) -> np.ndarray:
        run, sizes = find(x.dtype), _planes(x)
        if run is None or sizes is None or not alike(x, weight, bias, mean, invstd):
            return general(x, weight, bias, mean, invstd)
        out = made_like(x)
        run(out, x, weight, bias, mean, invstd, *sizes)
        return out

    return batch_norm


def _make_batch_norm_train() -> Kernel:
    general, find = otherwise("batch_norm_train"), compiled("batch_norm_train").get

    def batch_norm_train(
        x: Array, weight: Array | None, bias: Array | None, eps: float
    ) -> tuple[np.ndarray, ...]:
        run, sizes = find(x.dtype), _planes(x)
        if run is None or sizes is None or not alike(x, weight, bias):
            return general(x, weight, bias, eps)
        out, mean, invstd = made_like(x), np.empty(sizes[1], x.dtype), np.empty(sizes[1], x.dtype)
        run(out, mean, invstd, x, weight, bias, *sizes, eps)
        return out, mean, invstd

    return batch_norm_train


def _make_batch_norm_backward() -> Kernel:
    general, find = otherwise("batch_norm_backward"), compiled("batch_norm_backward").get

    def batch_norm_backward(
        grad: Array, x: Array, weight: Array | None, mean: Array, invstd: Array
    ) -> tuple[np.ndarray, ...]:
        run, sizes = find(x.dtype), _planes(x)
        if run is None or sizes is None or not alike(x, grad, weight, mean, invstd):
            return general(grad, x, weight, mean, invstd)
        out = made_like(x)
        over_weight, over_bias = np.empty(sizes[1], x.dtype), np.empty(sizes[1], x.dtype)
        run(out, over_weight, over_bias, grad, x, weight, mean, invstd, *sizes)
        return out, over_weight, over_bias

    return batch_norm_backward


KERNELS: dict[str, Kernel] = {
    "layer_norm": _make_layer_norm(),
    "layer_norm_backward": _make_layer_norm_backward(),
    "batch_norm": _make_batch_norm(),
    "batch_norm_train": _make_batch_norm_train(),
    "batch_norm_backward": _make_batch_norm_backward(),
}
