"""Pooling of images, and its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from flambeau_native.kernels._common import INT64, Array, Kernel, compiled, made, otherwise
from flambeau_numpy.extending import THRESHOLD, empty
from flambeau_numpy.extending.parts import out_size

Pair = tuple[int, int]
Sizes = tuple[int, ...]
_LARGEST = 1 << 31  # positions in a plane are counted in 32 bits
_FAR = 64  # sizes of a plane


Numbers = tuple[int, ...]


@lru_cache(maxsize=256)  # a network pools the same few shapes over and over
def _planes(
    shape: Sizes, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, ceil_mode: bool
) -> tuple[Sizes, Numbers, bool]:
    """The shape of the result; how many planes there are, their sizes, and the windows of one; and
    whether elements are so few that NumPy makes the array.

    Empty where windows reach far beyond a plane, to places that the compiled loops may not count.
    """
    far = max(*stride, *padding, *dilation) >= _LARGEST
    if far or any(k > _FAR * n for k, n in zip(kernel, shape[-2:], strict=True)):
        return (), (), True
    how = zip(shape[-2:], kernel, stride, padding, dilation, strict=True)
    counts = [out_size(*one, ceil_mode) for one in how]
    result = (*shape[:-2], *counts)
    few = prod(result) * INT64.itemsize < THRESHOLD
    return result, (prod(shape[:-2]), *shape[-2:], *counts), few


@lru_cache(maxsize=256)
def _means(
    shape: Sizes,
    kernel: Pair,
    stride: Pair,
    padding: Pair,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> tuple[Sizes, Numbers, bool]:
    """The shape of the result, the numbers of the compiled kernel and whether elements are few.

    Empty if it takes no such.
    """
    if 0 in shape[-2:] or len(kernel) != 2:
        return (), (), True
    result, numbers, few = _planes(shape, kernel, stride, padding, (1, 1), ceil_mode)
    if not numbers:
        return (), (), True
    steps = (*kernel, *stride, *padding, count_include_pad, divisor_override or 0)
    return result, (*numbers, *steps), few


def _make_max_pool2d() -> Kernel:
    general, find = otherwise("max_pool2d"), compiled("max_pool2d").get

    def max_pool2d(
        x: Array,
        kernel: Pair,
        stride: Pair,
        padding: Pair,
        dilation: Pair,
        ceil_mode: bool,
        _empty: Any = np.empty,
    ) -> tuple[np.ndarray, ...]:
        dtype, shape = x.dtype, x.shape
        run = find(dtype)
        if run is None or not x.flags.c_contiguous or not 0 < shape[-2] * shape[-1] < _LARGEST:
            return general(x, kernel, stride, padding, dilation, ceil_mode)
        shape, numbers, few = _planes(shape, kernel, stride, padding, dilation, ceil_mode)
        if not numbers:
            return general(x, kernel, stride, padding, dilation, ceil_mode)
        make = _empty if few else empty
        values, places = make(shape, dtype), make(shape, INT64)
        run(values, places, x, *numbers, *kernel, *stride, *padding, *dilation)
        return values, places

    return max_pool2d


@lru_cache(maxsize=256)  # a network pools the same few shapes over and over
def _windows(size: int, k: int, s: int, p: int, d: int, ceil_mode: bool) -> tuple[Array, Array]:
    """First element and end of each window along a dimension, inside of it."""
    starts = np.arange(out_size(size, k, s, p, d, ceil_mode)) * s - p
    ends = np.minimum(starts + (k - 1) * d + 1, size)
    return np.where(starts < 0, starts + -(starts // d) * d, starts), ends


@lru_cache(maxsize=256)
def _shares(size: int, count: int) -> tuple[Array, Array]:
    """First element and end of windows that cover a dimension."""
    i = np.arange(count)
    return i * size // count, -(-(i + 1) * size // count)


Boxes = tuple[Sizes, tuple[Array, ...], Numbers]


def _boxes(shape: Sizes, dims: Sequence[tuple[Array, Array]], steps: Sizes) -> Boxes:
    """The shape of the result, the bounds of windows of planes or volumes, and their numbers."""
    rank = len(dims)
    sizes, counts = shape[-rank:], tuple([first.size for first, _ in dims])
    result, volumes = (*shape[:-rank], *counts), prod(shape[:-rank])
    if rank == 2:
        dims, sizes, counts = [_shares(1, 1), *dims], (1, *sizes), (1, *counts)
    return result, tuple([a for pair in dims for a in pair]), (volumes, *sizes, *counts, *steps)


@lru_cache(maxsize=256)
def _boxes_of_windows(
    shape: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool
) -> Boxes:
    how = zip(shape[-3:], kernel, stride, padding, dilation, strict=True)
    return _boxes(shape, [_windows(*one, ceil_mode) for one in how], dilation)


@lru_cache(maxsize=256)
def _boxes_of_shares(shape: Sizes, counts: Sizes) -> Boxes:
    sizes = shape[-len(counts) :]
    dims = [_shares(size, count) for size, count in zip(sizes, counts, strict=True)]
    return _boxes(shape, dims, (1, 1, 1))


def _largest(run: Kernel, x: Array, boxes: Boxes) -> tuple[np.ndarray, ...]:
    """The maxima of windows of planes or volumes, and their places there."""
    shape, bounds, numbers = boxes
    values, places = made(shape, x.dtype), made(shape, INT64)
    run(values, places, x, *bounds, *numbers)
    return values, places


def _make_max_pool3d() -> Kernel:
    general, find = otherwise("max_pool3d"), compiled("max_boxes").get

    def max_pool3d(
        x: Array, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool
    ) -> tuple[np.ndarray, ...]:
        run = find(x.dtype)
        if run is None or not x.flags.c_contiguous or not x.size:
            return general(x, kernel, stride, padding, dilation, ceil_mode)
        how = kernel, stride, padding, dilation, ceil_mode
        return _largest(run, x, _boxes_of_windows(x.shape, *how))

    return max_pool3d


def _make_adaptive_max_pool(name: str) -> Kernel:
    general, find = otherwise(name), compiled("max_boxes").get

    def adaptive_max_pool(x: Array, counts: Sizes) -> object:
        run = find(x.dtype)
        if run is None or not x.flags.c_contiguous or not x.size:
            return general(x, counts)
        return _largest(run, x, _boxes_of_shares(x.shape, counts))

    return adaptive_max_pool


def _make_max_pool2d_backward() -> Kernel:
    general, find = otherwise("max_pool2d_backward"), compiled("max_pool2d_backward").get

    def max_pool2d_backward(grad: Array, indices: Array, input_shape: tuple[int, ...]) -> object:
        run = find(grad.dtype)
        flat = grad.flags.c_contiguous and indices.flags.c_contiguous
        if run is None or not flat or not grad.size or indices.dtype != INT64:
            return general(grad, indices, input_shape)
        out, size = made(input_shape, grad.dtype), prod(input_shape[-2:])
        planes = out.size // size
        run(out, grad, indices, planes, size, grad.size // planes)
        return out

    return max_pool2d_backward


def _make_avg_pool2d() -> Kernel:
    general, find = otherwise("avg_pool2d"), compiled("avg_pool2d").get

    def avg_pool2d(
        x: Array,
        kernel: Pair,
        stride: Pair,
        padding: Pair,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
        _empty: Any = np.empty,
    ) -> np.ndarray:
        dtype = x.dtype
        run = find(dtype)
        shape, numbers, few = _means(
            x.shape, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override
        )
        if run is None or not numbers or not x.flags.c_contiguous:
            options = (ceil_mode, count_include_pad, divisor_override)
            return general(x, kernel, stride, padding, *options)
        out = _empty(shape, dtype) if few else empty(shape, dtype)
        run(out, x, *numbers)
        return out

    return avg_pool2d


def _make_avg_pool2d_backward() -> Kernel:
    general, find = otherwise("avg_pool2d_backward"), compiled("avg_pool2d_backward").get

    def avg_pool2d_backward(
        grad: Array,
        input_shape: tuple[int, ...],
        kernel: Pair,
        stride: Pair,
        padding: Pair,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> object:
        run = find(grad.dtype)
        h, w = input_shape[-2:]
        if run is None or not grad.flags.c_contiguous or not grad.size or len(kernel) != 2:
            options = (ceil_mode, count_include_pad, divisor_override)
            return general(grad, input_shape, kernel, stride, padding, *options)
        out = made(input_shape, grad.dtype)
        sizes = (h, w, *grad.shape[-2:], *kernel, *stride, *padding, count_include_pad)
        run(out, grad, out.size // (h * w), *sizes, divisor_override or 0)
        return out

    return avg_pool2d_backward


KERNELS: dict[str, Kernel] = {
    "max_pool2d": _make_max_pool2d(),
    "max_pool2d_backward": _make_max_pool2d_backward(),
    "max_pool3d": _make_max_pool3d(),
    "adaptive_max_pool2d": _make_adaptive_max_pool("adaptive_max_pool2d"),
    "adaptive_max_pool3d": _make_adaptive_max_pool("adaptive_max_pool3d"),
    "avg_pool2d": _make_avg_pool2d(),
    "avg_pool2d_backward": _make_avg_pool2d_backward(),
}
