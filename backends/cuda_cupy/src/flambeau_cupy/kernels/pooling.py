"""Pooling of images and volumes; integers are pooled as int64."""

from __future__ import annotations

from math import prod

import numpy as np

from flambeau.plugin import numerics
from flambeau_cupy.device.array_module import Array, Kernel
from flambeau_cupy.device.launch import Struct, blocks_for
from flambeau_cupy.dtypes import FLOATS, INT64, accumulator
from flambeau_cupy.layer import Layer

Sizes = tuple[int, ...]
WINDOWS = np.dtype([("at", np.int64, (6, 3))])


def windows_along(n: int, k: int, s: int, p: int, d: int, ceil_mode: bool) -> int:
    """The number of windows along a dimension; the last starts inside or in the left padding."""
    room = n + 2 * p - d * (k - 1) - 1
    count = (-(-room // s) if ceil_mode else room // s) + 1
    return count - 1 if ceil_mode and (count - 1) * s >= n + p else count


def geometry(
    shape: Sizes,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    ceil: bool,
) -> tuple[Sizes, Struct]:
    """The sizes of a result, and what the kernels are told; an image is a flat volume."""
    rank = len(kernel)
    size = shape[-rank:]
    dims = zip(size, kernel, stride, padding, dilation, strict=True)
    out = tuple([windows_along(*dim, ceil) for dim in dims])
    made = np.zeros((), WINDOWS)
    neutral = (1, 1, 1, 1, 0, 1)
    given = (size, out, kernel, stride, padding, dilation)
    for row, fill, values in zip(made["at"], neutral, given, strict=True):
        row[:] = (*(fill,) * (3 - rank), *values)
    return out, Struct(made)


def element(kind: np.dtype) -> np.dtype:
    return kind if kind in FLOATS else INT64


def max_pool(
    layer: Layer,
    x: Array,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
) -> tuple[Array, Array]:
    kind = element(x.dtype)
    size, windows = geometry(x.shape, kernel, stride, padding, dilation, ceil_mode)
    shape = (*x.shape[: -len(kernel)], *size)
    values, places = layer.xp.empty(shape, kind), layer.xp.empty(shape, np.int64)
    if values.size:
        given = layer.dense(x.astype(kind, copy=False)), windows, np.int64(values.size)
        layer.launched(kind, "max_pool", *blocks_for(values.size, 1), values, places, *given)
    return values.astype(x.dtype, copy=False), places


def max_pool2d_backward(layer: Layer, grad: Array, indices: Array, shape: Sizes) -> Array:
    kind = grad.dtype
    out = layer.xp.zeros(shape, accumulator(kind))
    if grad.size and out.size:
        grad, indices = layer.dense(grad), layer.dense(indices)
        plane, windows = prod(shape[-2:]), prod(grad.shape[-2:])
        sizes = np.int64(plane), np.int64(windows)
        if numerics.deterministic:
            planes = grad.size // windows
            name, count, grid = "max_pool_backward_in_order", planes, blocks_for(planes, 1, 32)
        else:
            name, count, grid = "max_pool_backward", grad.size, blocks_for(grad.size)
        layer.launched(kind, name, *grid, out, grad, indices, *sizes, np.int64(count))
    return out.astype(kind, copy=False)


def avg_pool(
    layer: Layer,
    x: Array,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> Array:
    kind, ones = element(x.dtype), (1,) * len(kernel)
    size, windows = geometry(x.shape, kernel, stride, padding, ones, ceil_mode)
    out = layer.xp.empty((*x.shape[: -len(kernel)], *size), kind)
    if out.size:
        how = np.int32(count_include_pad), np.int64(divisor or 0), np.int64(out.size)
        given = layer.dense(x.astype(kind, copy=False)), windows
        layer.launched(kind, "avg_pool", *blocks_for(out.size, 1), out, *given, *how)
    return out.astype(x.dtype, copy=False)


def avg_pool_backward(
    layer: Layer,
    grad: Array,
    shape: Sizes,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> Array:
    kind, ones = grad.dtype, (1,) * len(kernel)
    _, windows = geometry(shape, kernel, stride, padding, ones, ceil_mode)
    out = layer.xp.empty(shape, kind)
    if out.size:
        how = np.int32(count_include_pad), np.int64(divisor or 0), np.int64(out.size)
        grid = blocks_for(out.size, 1)
        layer.launched(kind, "avg_pool_backward", *grid, out, layer.dense(grad), windows, *how)
    return out


KERNELS: dict[str, Kernel] = {
    "max_pool2d": max_pool,
    "max_pool3d": max_pool,
    "max_pool2d_backward": max_pool2d_backward,
    "avg_pool2d": avg_pool,
    "avg_pool2d_backward": avg_pool_backward,
    "avg_pool3d": avg_pool,
    "avg_pool3d_backward": avg_pool_backward,
}
"""Functions of a layer and what the op of their name is given."""
