"""Pooling of images, and its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from flambeau_native.kernels._common import (
    INT64,
    Array,
    Kernel,
    compiled,
    form,
    otherwise,
    prepared,
)
from flambeau_numpy.extending.parts import out_size

Pair = tuple[int, int]
Sizes = tuple[int, ...]
Numbers = tuple[int, ...]
_LARGEST = 1 << 31  # positions in a plane are counted in 32 bits
_FAR = 64  # sizes of a plane


def _planes(
    shape: Sizes, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, ceil_mode: bool
) -> tuple[Sizes, Numbers]:
    """The shape of the result; how many planes there are, their sizes, and the windows of one.

    Empty where windows reach far beyond a plane, to places that the compiled loops may not count.
    """
    far = max(*stride, *padding, *dilation) >= _LARGEST
    if far or any(k > _FAR * n for k, n in zip(kernel, shape[-2:], strict=True)):
        return (), ()
    how = zip(shape[-2:], kernel, stride, padding, dilation, strict=True)
    counts = [out_size(*one, ceil_mode) for one in how]
    return (*shape[:-2], *counts), (prod(shape[:-2]), *shape[-2:], *counts)


def _images(
    shape: Sizes, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, ceil_mode: bool
) -> tuple[Sizes, Numbers]:
    """The same of images (N, H, W, C); the number of channels comes after the others."""
    n, h, w, c = shape
    found, numbers = _planes((n, h, w), kernel, stride, padding, dilation, ceil_mode)
    return (*found, c), (*numbers, c) if numbers else ()


def _make_max_pool2d() -> Kernel:
    find, find_of_pixels = compiled("max_pool2d").get, compiled("max_pool2d_pixels").get

    def prepare(
        x: Array, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, ceil_mode: bool
    ) -> object:
        run = find(x.dtype)
        if run is None or not 0 < x.shape[-2] * x.shape[-1] < _LARGEST:
            return None
        shape, numbers = _planes(x.shape, kernel, stride, padding, dilation, ceil_mode)
        if not numbers:
            return None
        forms = form(shape, x.dtype), form(shape, INT64)
        return run, forms, (*numbers, *kernel, *stride, *padding, *dilation)

    def prepare_pixels(
        x: Array, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, ceil_mode: bool
    ) -> object:
        run = find_of_pixels(x.dtype)
        if run is None or not x.size or x.ndim != 4 or x.shape[1] * x.shape[2] >= _LARGEST:
            return None
        shape, numbers = _images(x.shape, kernel, stride, padding, dilation, ceil_mode)
        if not numbers:
            return None
        forms = form(shape, x.dtype), form(shape, INT64)
        return run, forms, (*numbers, *kernel, *stride, *padding, *dilation)

    general = otherwise("max_pool2d")
    return prepared("max_pool2d", "asssss", prepare, general, pixels=prepare_pixels)


def _windows(size: int, k: int, s: int, p: int, d: int, ceil_mode: bool) -> tuple[Array, Array]:
    """First element and end of each window along a dimension, inside of it."""
    starts = np.arange(out_size(size, k, s, p, d, ceil_mode)) * s - p
    ends = np.minimum(starts + (k - 1) * d + 1, size)
    return np.where(starts < 0, starts + -(starts // d) * d, starts), ends


def _shares(size: int, count: int) -> tuple[Array, Array]:
    """First element and end of windows that cover a dimension."""
    i = np.arange(count)
    return i * size // count, -(-(i + 1) * size // count)


def _boxes(run: Kernel, x: Array, dims: Sequence[tuple[Array, Array]], steps: Sizes) -> object:
    """How the maxima of windows of planes or volumes, and their places there, are found.

    Args:
        dims: first elements and ends of the windows along each dimension.
        steps: what lies between two elements of a window.
    """
    rank, shape = len(dims), x.shape
    sizes, counts = shape[-rank:], tuple([first.size for first, _ in dims])
    result, volumes = (*shape[:-rank], *counts), prod(shape[:-rank])
    if rank == 2:
        dims, sizes, counts = [_shares(1, 1), *dims], (1, *sizes), (1, *counts)
    bounds = [a for pair in dims for a in pair]
    forms = form(result, x.dtype), form(result, INT64)
    return run, forms, (*bounds, volumes, *sizes, *counts, *steps)


def _volumes(
    shape: Sizes,
    windows: Sequence[tuple[Array, Array]],
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
) -> Numbers:
    """How many volumes there are, their sizes, and their windows, to be taken a line at once.

    Empty where windows are wider than such a line, reach far, or have no elements.
    """
    counts, sizes = tuple([first.size for first, _ in windows]), shape[-3:]
    far = max(*stride, *padding, *dilation) >= _LARGEST or prod(sizes) >= _LARGEST
    if far or any(k > _FAR * n for k, n in zip(kernel, sizes, strict=True)):
        return ()
    if not all((first < end).all() for first, end in windows) or 2 * counts[2] <= kernel[2]:
        return ()
    if stride[2] > 2 and counts[2] < 2 * kernel[2]:
        return ()
    return prod(shape[:-3]), *sizes, *counts, *kernel, *stride, *padding, *dilation


def _make_max_pool3d() -> Kernel:
    find, find_of_lines = compiled("max_boxes").get, compiled("max_pool3d").get

    def prepare(
        x: Array, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool
    ) -> object:
        run = find(x.dtype)
        if run is None or not x.size:
            return None
        how = zip(x.shape[-3:], kernel, stride, padding, dilation, strict=True)
        windows = [_windows(*one, ceil_mode) for one in how]
        if numbers := _volumes(x.shape, windows, kernel, stride, padding, dilation):
            shape = (*x.shape[:-3], *numbers[4:7])
            return find_of_lines(x.dtype), (form(shape, x.dtype), form(shape, INT64)), numbers
        return _boxes(run, x, windows, dilation)

    return prepared("max_pool3d", "asssss", prepare, otherwise("max_pool3d"))


def _make_adaptive_max_pool(name: str) -> Kernel:
    find, find_of_pixels = compiled("max_boxes").get, compiled("max_boxes_pixels").get

    def prepare(x: Array, counts: Sizes) -> object:
        run = find(x.dtype)
        if run is None or not x.size:
            return None
        sizes = x.shape[-len(counts) :]
        dims = [_shares(size, count) for size, count in zip(sizes, counts, strict=True)]
        return _boxes(run, x, dims, (1, 1, 1))

    def prepare_pixels(x: Array, counts: Sizes) -> object:
        run = find_of_pixels(x.dtype)
        if run is None or not x.size or x.ndim != 4 or x.shape[1] * x.shape[2] >= _LARGEST:
            return None
        n, h, w, c = x.shape
        bounds = [
            a for size, count in zip((h, w), counts, strict=True) for a in _shares(size, count)
        ]
        shape = (n, *counts, c)
        forms = form(shape, x.dtype), form(shape, INT64)
        return run, forms, (*bounds, n, h, w, *counts, c)

    return prepared(name, "as", prepare, otherwise(name), pixels=prepare_pixels)


def _make_max_pool2d_backward() -> Kernel:
    find = compiled("max_pool2d_backward").get
    find_of_pixels = compiled("max_pool2d_pixels_backward").get

    def prepare(grad: Array, indices: Array, input_shape: Sizes) -> object:
        run = find(grad.dtype)
        if run is None or not grad.size or indices.dtype != INT64:
            return None
        size, planes = prod(input_shape[-2:]), prod(input_shape[:-2])
        return run, (form(input_shape, grad.dtype),), (planes, size, grad.size // planes)

    def prepare_pixels(grad: Array, indices: Array, input_shape: Sizes) -> object:
        run = find_of_pixels(grad.dtype)
        if run is None or not grad.size or grad.ndim != 4 or indices.dtype != INT64:
            return None
        n, c, h, w = input_shape
        numbers = n, h * w, grad.shape[1] * grad.shape[2], c
        return run, (form((n, h, w, c), grad.dtype),), numbers

    general = otherwise("max_pool2d_backward")
    return prepared(
        "max_pool2d_backward", "aas", prepare, general, True, pixels=prepare_pixels, images=2
    )


def _make_avg_pool2d() -> Kernel:
    find, find_of_pixels = compiled("avg_pool2d").get, compiled("avg_pool2d_pixels").get

    def prepare(
        x: Array,
        kernel: Pair,
        stride: Pair,
        padding: Pair,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> object:
        run = find(x.dtype)
        if run is None or 0 in x.shape[-2:] or len(kernel) != 2:
            return None
        shape, numbers = _planes(x.shape, kernel, stride, padding, (1, 1), ceil_mode)
        if not numbers:
            return None
        steps = (*kernel, *stride, *padding, count_include_pad, divisor_override or 0)
        return run, (form(shape, x.dtype),), (*numbers, *steps)

    def prepare_pixels(
        x: Array,
        kernel: Pair,
        stride: Pair,
        padding: Pair,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> object:
        run = find_of_pixels(x.dtype)
        if run is None or not x.size or x.ndim != 4:
            return None
        shape, numbers = _images(x.shape, kernel, stride, padding, (1, 1), ceil_mode)
        if not numbers:
            return None
        steps = (*kernel, *stride, *padding, count_include_pad, divisor_override or 0)
        return run, (form(shape, x.dtype),), (*numbers, *steps)

    general = otherwise("avg_pool2d")
    return prepared("avg_pool2d", "assssss", prepare, general, pixels=prepare_pixels)


def _make_avg_pool2d_backward() -> Kernel:
    find = compiled("avg_pool2d_backward").get
    find_of_pixels = compiled("avg_pool2d_pixels_backward").get

    def prepare(
        grad: Array,
        input_shape: Sizes,
        kernel: Pair,
        stride: Pair,
        padding: Pair,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> object:
        run = find(grad.dtype)
        if run is None or not grad.size or len(kernel) != 2:
            return None
        sizes = (*input_shape[-2:], *grad.shape[-2:], *kernel, *stride, *padding)
        rest = (prod(input_shape[:-2]), *sizes, count_include_pad, divisor_override or 0)
        return run, (form(input_shape, grad.dtype),), rest

    def prepare_pixels(
        grad: Array,
        input_shape: Sizes,
        kernel: Pair,
        stride: Pair,
        padding: Pair,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> object:
        run = find_of_pixels(grad.dtype)
        if run is None or not grad.size or grad.ndim != 4:
            return None
        n, c, h, w = input_shape
        how = (*kernel, *stride, *padding, count_include_pad, divisor_override or 0)
        return run, (form((n, h, w, c), grad.dtype),), (n, h, w, *grad.shape[1:], *how)

    general = otherwise("avg_pool2d_backward")
    return prepared(
        "avg_pool2d_backward", "asssssss", prepare, general, True, pixels=prepare_pixels
    )


KERNELS: dict[str, Kernel] = {
    "max_pool2d": _make_max_pool2d(),
    "max_pool2d_backward": _make_max_pool2d_backward(),
    "max_pool3d": _make_max_pool3d(),
    "adaptive_max_pool2d": _make_adaptive_max_pool("adaptive_max_pool2d"),
    "adaptive_max_pool3d": _make_adaptive_max_pool("adaptive_max_pool3d"),
    "avg_pool2d": _make_avg_pool2d(),
    "avg_pool2d_backward": _make_avg_pool2d_backward(),
}
