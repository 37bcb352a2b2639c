"""Pooling of images, and its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import numpy as np

from flambeau_native.kernels._common import INT64, Array, Kernel, compiled, made, otherwise
from flambeau_numpy.extending.parts import out_size

Pair = tuple[int, int]
Sizes = tuple[int, ...]
_LARGEST = 1 << 31  # positions in a plane are counted in 32 bits


@lru_cache(maxsize=256)  # a network pools the same few shapes over and over
def _plane(
    h: int, w: int, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, ceil_mode: bool
) -> tuple[int, int, int, int]:
    """The sizes of a plane, and the numbers of windows down and across it."""
    how = zip((h, w), kernel, stride, padding, dilation, strict=True)
    oh, ow = [out_size(*one, ceil_mode) for one in how]
    return h, w, oh, ow


def _make_max_pool2d() -> Kernel:
    general, find = otherwise("max_pool2d"), compiled("max_pool2d").get

    def max_pool2d(
        x: Array, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, ceil_mode: bool
    ) -> tuple[np.ndarray, ...]:
        run = find(x.dtype)
        h, w = x.shape[-2:]
        if run is None or not x.flags.c_contiguous or not 0 < h * w < _LARGEST:
            return general(x, kernel, stride, padding, dilation, ceil_mode)
        sizes = _plane(h, w, kernel, stride, padding, dilation, ceil_mode)
        shape = (*x.shape[:-2], *sizes[2:])
        values, places = made(shape, x.dtype), made(shape, INT64)
        steps = (*kernel, *stride, *padding, *dilation)
        run(values, places, x, x.size // (h * w), *sizes, *steps)
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


def _largest(
    run: Kernel, x: Array, dims: Sequence[tuple[Array, Array]], steps: Sizes
) -> tuple[np.ndarray, ...]:
    """The maxima of windows of planes or volumes, and their places there."""
    rank = len(dims)
    sizes, counts = x.shape[-rank:], tuple([first.size for first, _ in dims])
    shape = (*x.shape[:-rank], *counts)
    values, places = made(shape, x.dtype), made(shape, INT64)
    if rank == 2:
        dims, sizes, counts = [_shares(1, 1), *dims], (1, *sizes), (1, *counts)
    arrays = [array for pair in dims for array in pair]
    run(values, places, x, *arrays, x.size // prod(sizes), *sizes, *counts, *steps)
    return values, places


def _make_max_pool3d() -> Kernel:
    general, find = otherwise("max_pool3d"), compiled("max_boxes").get

    def max_pool3d(
        x: Array, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool
    ) -> tuple[np.ndarray, ...]:
        run = find(x.dtype)
        if run is None or not x.flags.c_contiguous or not x.size:
            return general(x, kernel, stride, padding, dilation, ceil_mode)
        how = zip(x.shape[-3:], kernel, stride, padding, dilation, strict=True)
        return _largest(run, x, [_windows(*one, ceil_mode) for one in how], dilation)

    return max_pool3d


def _make_adaptive_max_pool(name: str) -> Kernel:
    general, find = otherwise(name), compiled("max_boxes").get

    def adaptive_max_pool(x: Array, counts: Sizes) -> object:
        run = find(x.dtype)
        if run is None or not x.flags.c_contiguous or not x.size:
            return general(x, counts)
        sizes = x.shape[-len(counts) :]
        dims = [_shares(size, count) for size, count in zip(sizes, counts, strict=True)]
        return _largest(run, x, dims, (1, 1, 1))

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
    ) -> np.ndarray:
        run = find(x.dtype)
        h, w = x.shape[-2:]
        if run is None or not x.flags.c_contiguous or not h * w or len(kernel) != 2:
            options = (ceil_mode, count_include_pad, divisor_override)
            return general(x, kernel, stride, padding, *options)
        sizes = _plane(h, w, kernel, stride, padding, (1, 1), ceil_mode)
        out = made((*x.shape[:-2], *sizes[2:]), x.dtype)
        steps = (*kernel, *stride, *padding, count_include_pad, divisor_override or 0)
        run(out, x, x.size // (h * w), *sizes, *steps)
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
