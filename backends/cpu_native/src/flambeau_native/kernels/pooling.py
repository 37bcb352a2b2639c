"""Pooling of images, and its gradients."""

from __future__ import annotations

from math import prod
from typing import Any

from flambeau_native.kernels._common import INT64, Array, Kernel, compiled, made, otherwise
from flambeau_numpy.extending.parts import out_size

Pair = tuple[int, int]
_LARGEST = 1 << 31  # positions in a plane are counted in 32 bits


def _make_max_pool2d() -> Kernel:
    general, find = otherwise("max_pool2d"), compiled("max_pool2d").get

    def max_pool2d(
        x: Array, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, ceil_mode: bool
    ) -> Any:
        run = find(x.dtype)
        h, w = x.shape[-2:]
        if run is None or not x.flags.c_contiguous or not 0 < h * w < _LARGEST:
            return general(x, kernel, stride, padding, dilation, ceil_mode)
        oh = out_size(h, kernel[0], stride[0], padding[0], dilation[0], ceil_mode)
        ow = out_size(w, kernel[1], stride[1], padding[1], dilation[1], ceil_mode)
        shape = (*x.shape[:-2], oh, ow)
        values, places = made(shape, x.dtype), made(shape, INT64)
        sizes = (h, w, oh, ow, *kernel, *stride, *padding, *dilation)
        run(values, places, x, x.size // (h * w), *sizes)
        return values, places

    return max_pool2d


def _make_max_pool2d_backward() -> Kernel:
    general, find = otherwise("max_pool2d_backward"), compiled("max_pool2d_backward").get

    def max_pool2d_backward(grad: Array, indices: Array, input_shape: tuple[int, ...]) -> Any:
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
    ) -> Any:
        run = find(x.dtype)
        h, w = x.shape[-2:]
        if run is None or not x.flags.c_contiguous or not h * w or len(kernel) != 2:
            options = (ceil_mode, count_include_pad, divisor_override)
            return general(x, kernel, stride, padding, *options)
        oh = out_size(h, kernel[0], stride[0], padding[0], 1, ceil_mode)
        ow = out_size(w, kernel[1], stride[1], padding[1], 1, ceil_mode)
        out = made((*x.shape[:-2], oh, ow), x.dtype)
        sizes = (h, w, oh, ow, *kernel, *stride, *padding, count_include_pad)
        run(out, x, x.size // (h * w), *sizes, divisor_override or 0)
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
    ) -> Any:
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
    "avg_pool2d": _make_avg_pool2d(),
    "avg_pool2d_backward": _make_avg_pool2d_backward(),
}
