"""Pooling over windows of the last dimensions: two of them, and for means also three.

A window is walked tap by tap: the elements at kernel position (i, j) of all windows form one
strided slice, restricted to the windows for which it lies inside the image. So padding is never
written.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from itertools import product
from math import prod
from typing import Any

import numpy as np

from flambeau_numpy.allocator import empty, zeros
from flambeau_numpy.casts import FLOAT32, is_half, narrow, wide
from flambeau_numpy.kernels.indexing import sparse_rows
from flambeau_numpy.pointwise import Array
from flambeau_numpy.silence import quiet

Pair = tuple[int, int]
Sizes = tuple[int, ...]
SMALL = 4096  # elements of all windows, up to which they are copied out at once
BLOCK = 1 << 17  # input elements processed at a time, to stay in the cache


def out_size(size: int, k: int, s: int, p: int, d: int, ceil_mode: bool) -> int:
    """Number of windows along a dimension; the last starts in the image or its left padding."""
    n = (
        -(-(size + 2 * p - d * (k - 1) - 1) // s)
        if ceil_mode
        else (size + 2 * p - d * (k - 1) - 1) // s
    )
    n += 1
    return n - 1 if ceil_mode and (n - 1) * s >= size + p else n


def taps_inside(size: int, out: int, k: int, s: int, p: int, d: int) -> range:
    """The taps along a dimension that some window has inside of the image; never none at all."""
    if k <= size + 1:
        return range(k)
    last = min(k, (size - 1 + p) // d + 1)
    return range(min(max(0, -(((out - 1) * s - p) // d)), max(last - 1, 0)), max(last, 1))


def _inside(size: int, out: int, s: int, offset: int) -> tuple[slice, slice]:
    """Windows whose element at `offset` from their start lies in the image, and these elements."""
    first = max(0, -(offset // s))
    last = min(out, (size - 1 - offset) // s + 1)
    last = max(first, last)
    start = first * s + offset
    return slice(first, last), slice(start, start + s * (last - first), s)


@lru_cache(maxsize=256)  # a network pools the same few shapes over and over
def _taps(
    size: Sizes, out: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
) -> list[tuple[int, tuple[Any, ...], tuple[Any, ...]]]:
    """Per tap: its number, the region of windows that have it, and the pixels it is in them."""
    dims, taps = list(zip(size, out, stride, dilation, padding, strict=True)), []
    ranges = map(taps_inside, size, out, kernel, stride, padding, dilation)
    for tap, at in enumerate(product(*ranges)):
        found = [_inside(n, o, s, i * d - p) for i, (n, o, s, d, p) in zip(at, dims, strict=True)]
        taps.append((tap, (..., *(w for w, _ in found)), (..., *(x for _, x in found))))
    return taps


def _lowest(dtype: np.dtype) -> int | float:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


@quiet
def max_pool2d(
    x: Array, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, ceil_mode: bool
) -> tuple[Array, Array]:
    """Largest element of each window and its position in the H·W plane.

    The first of equal elements counts, in row-major order of the window; of NaNs, the last.
    """
    if is_half(x.dtype):
        values, places = max_pool2d(wide(x), kernel, stride, padding, dilation, ceil_mode)
        return narrow(values, x.dtype), places
    h, w = x.shape[-2:]
    sizes = zip((h, w), kernel, stride, padding, dilation, strict=True)
    oh, ow = (out_size(*five, ceil_mode) for five in sizes)
    lead = x.shape[:-2]
    values, places = empty((*lead, oh, ow), x.dtype), empty((*lead, oh, ow), np.int64)
    if not values.size:
        return values, places
    taps = _taps((h, w), (oh, ow), kernel, stride, padding, dilation)
    starts, steps, cells = _positions((h, w), (oh, ow), kernel, stride, padding, dilation)
    planes = np.ascontiguousarray(x).reshape(-1, h, w)
    if len(planes) * cells.size <= SMALL and padding == (0, 0) and not ceil_mode:
        windows = planes.reshape(-1, h * w).take(cells, 1)
        largest = np.maximum.reduce(windows, -1)
        if x.dtype.kind != "f" or not np.isnan(largest).any():
            found = steps.take(windows.argmax(-1))
            found += starts
            return largest.reshape(values.shape), found.reshape(values.shape)
    flat_values, flat_places = values.reshape(-1, oh, ow), places.reshape(-1, oh, ow)
    step = max(1, BLOCK // (h * w))
    for start in range(0, len(planes), step):
        piece = slice(start, start + step)
        some, found = planes[piece], flat_values[piece]
        which = _largest(some, found, taps)
        if max(dilation) > 1 and which.max() >= len(steps):  # windows that meet nothing but padding
            first = _first_taps((h, w), (oh, ow), kernel, stride, padding, dilation)
            np.copyto(which, first, where=which >= len(steps), casting="unsafe")
        np.take(steps, which, out=flat_places[piece], mode="clip")
        flat_places[piece] += starts
    return values, places


@lru_cache(maxsize=64)
def _positions(
    size: Pair, out: Sizes, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair
) -> tuple[Array, Array, Array]:
    """Where in the plane each window starts, how far from there each tap is, and the sums."""
    w = size[1]
    rows = np.arange(out[0]) * stride[0] - padding[0]
    starts = rows[:, None] * w + np.arange(out[1]) * stride[1] - padding[1]
    taps = product(*map(taps_inside, size, out, kernel, stride, padding, dilation))
    steps = np.array([i * dilation[0] * w + j * dilation[1] for i, j in taps])
    return starts, steps, starts[..., None] + steps


@lru_cache(maxsize=64)
def _first_taps(
    size: Pair, out: Sizes, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair
) -> Array:
    """The number of the first tap of each window that is not before the plane."""
    ranges = list(map(taps_inside, size, out, kernel, stride, padding, dilation))
    rows, columns = (
        np.clip(-(np.minimum(np.arange(n) * s - p, 0) // d), taps[0], taps[-1]) - taps[0]
        for n, s, p, d, taps in zip(out, stride, padding, dilation, ranges, strict=True)
    )
    return (rows[:, None] * len(ranges[1]) + columns).astype(np.uint32)


def _largest(x: Array, values: Array, taps: list[Any]) -> Array:
    """Write the maxima to `values`; returns the number of the tap that has each."""
    small = next(t for t in (np.uint8, np.uint16, np.uint32) if len(taps) < np.iinfo(t).max)
    unknown = int(np.iinfo(small).max)
    values.fill(_lowest(values.dtype))
    parts = []
    for tap, windows, pixels in taps:
        part = np.ascontiguousarray(x[pixels])  # used twice, and strided operands are slow
        parts.append((tap, windows, part))
        region = values[windows]
        np.maximum(region, part, out=region)
    which = np.full(values.shape, unknown, small)
    for tap, windows, part in parts:
        # The tap's number where it has the maximum, else the largest number; the smallest wins.
        other = np.not_equal(part, values[windows]).view(np.uint8)
        candidate = np.negative(other) if small is np.uint8 else other.astype(small) * unknown
        candidate |= small(tap)
        region = which[windows]
        np.minimum(region, candidate, out=region)
    if values.dtype.kind == "f" and which.max() == unknown:
        for tap, windows, part in parts:
            np.copyto(which[windows], small(tap), where=np.isnan(part))
    return which


def max_pool3d(
    x: Array, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool
) -> tuple[Array, Array]:
    """Largest element of each window and its position in the D·H·W volume.

    The maxima of every frame, then those of columns of frames: both searches are ascending, so
    that the first of equals and the last of NaNs stay what they are.
    """
    *lead, depth, h, w = x.shape
    frames = x.reshape((prod(lead) * depth, h, w))
    k, s, p, d = [(how[1], how[2]) for how in (kernel, stride, padding, dilation)]
    values, inside = max_pool2d(frames, k, s, p, d, ceil_mode)
    area = prod(values.shape[1:])
    columns = values.reshape((prod(lead), depth, area))
    k, s, p, d = (kernel[0], 1), (stride[0], 1), (padding[0], 0), (dilation[0], 1)
    best, which = max_pool2d(columns, k, s, p, d, ceil_mode)
    shape = (*lead, best.shape[1], *values.shape[1:])
    rows = which.reshape(prod(lead), best.shape[1] * area)
    places = np.take_along_axis(inside.reshape(prod(lead), depth * area), rows, 1)
    if area:
        places += rows // area * (h * w)
    return best.reshape(shape), places.reshape(shape)


@quiet
def adaptive_max_pool(x: Array, counts: Sizes) -> tuple[Array, Array]:
    """Largest element of each of `counts` windows that cover the last dimensions, and its place.

    All windows are copied out at the length of the longest: shorter ones repeat their last element.
    """
    rank = len(counts)
    lead, size = x.shape[:-rank], x.shape[-rank:]
    flat: Any = 0
    for d, (n, count) in enumerate(zip(size, counts, strict=True)):
        first = np.arange(count) * n // count
        end = -(-(np.arange(count) + 1) * n // count)
        places = np.minimum(first[:, None] + np.arange((end - first).max()), end[:, None] - 1)
        shape = [1] * (2 * rank)
        shape[d], shape[rank + d] = places.shape
        flat = flat * n + places.reshape(shape)
    flat = flat.reshape((prod(counts), -1))
    windows = x.reshape((prod(lead), prod(size)))[:, flat]
    best = windows.argmax(-1)
    if (nan := windows != windows).any():
        last = windows.shape[-1] - 1 - nan[..., ::-1].argmax(-1)
        best = np.where(nan.any(-1), last, best)
    values = np.take_along_axis(windows, best[..., None], -1)
    found = flat[np.arange(len(flat)), best]
    return values.reshape((*lead, *counts)), found.reshape((*lead, *counts))


@quiet
def max_pool2d_backward(grad: Array, indices: Array, input_shape: tuple[int, ...]) -> Array:
    """The gradient, added at the position of each window's maximum."""
    h, w = input_shape[-2:]
    if is_half(grad.dtype):
        return narrow(max_pool2d_backward(wide(grad), indices, input_shape), grad.dtype)
    if not grad.size or not prod(input_shape):
        return np.zeros(input_shape, grad.dtype)
    out = zeros(input_shape, grad.dtype)
    windows = grad.shape[-2] * grad.shape[-1]
    planes = grad.size // windows
    # A sparse matrix with a row per plane; writing it out adds what falls on one place.
    entries = sparse_rows(
        np.ascontiguousarray(grad).reshape(-1),
        indices.reshape(-1),
        np.arange(0, grad.size + 1, windows),
        (planes, h * w),
    )
    entries.toarray(out=out.reshape(planes, h * w))
    return out


def _average_geometry(
    size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, ceil_mode: bool
) -> tuple[Sizes, list[Any]]:
    sizes = zip(size, kernel, stride, padding, strict=True)
    out = tuple(out_size(n, k, s, p, 1, ceil_mode) for n, k, s, p in sizes)
    return out, _taps(size, out, kernel, stride, padding, (1,) * len(size))


@lru_cache(maxsize=64)
def _divisors(
    size: Sizes,
    out: Sizes,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    """How many elements each window averages over; windows never reach beyond the padding."""
    if divisor_override is not None:
        return divisor_override
    counts = []
    for n, o, k, s, p in zip(size, out, kernel, stride, padding, strict=True):
        start = np.arange(o) * s - p
        end = np.minimum(start + k, n + p)
        if not count_include_pad:
            start, end = np.maximum(start, 0), np.minimum(end, n)
        counts.append(end - start)
    return reduce(np.multiply.outer, counts)


@quiet
def avg_pool(
    x: Array,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    """Mean of each window."""
    rank = len(kernel)
    size = x.shape[-rank:]
    out, taps = _average_geometry(size, kernel, stride, padding, ceil_mode)
    work = FLOAT32 if is_half(x.dtype) else x.dtype
    total = zeros((*x.shape[:-rank], *out), work)
    for _, windows, pixels in taps:
        region = total[windows]
        region += x[pixels]
    if work.kind not in "iu" and not any(padding) and not ceil_mode:
        total /= work.type(divisor_override or prod(kernel))  # every window is full
        return narrow(total, x.dtype)
    divisors = _divisors(size, out, kernel, stride, padding, count_include_pad, divisor_override)
    if work.kind in "iu":
        total -= np.fmod(total, divisors)  # so that the quotient is cut off, not rounded down
        total //= np.asarray(divisors, work)
    else:
        total /= np.asarray(divisors, work)
    return narrow(total, x.dtype)


@quiet
def avg_pool_backward(
    grad: Array,
    input_shape: tuple[int, ...],
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    """The gradient of each window, shared among its elements."""
    size = input_shape[-len(kernel) :]
    out, taps = _average_geometry(size, kernel, stride, padding, ceil_mode)
    work = FLOAT32 if is_half(grad.dtype) else grad.dtype
    divisors = _divisors(size, out, kernel, stride, padding, count_include_pad, divisor_override)
    share = np.divide(grad, np.asarray(divisors, work), dtype=work)
    result = zeros(input_shape, work)
    for _, windows, pixels in taps:
        region = result[pixels]
        region += share[windows]
    return narrow(result, grad.dtype)


KERNELS = {
    "max_pool2d": max_pool2d,
    "max_pool2d_backward": max_pool2d_backward,
    "max_pool3d": max_pool3d,
    "adaptive_max_pool2d": adaptive_max_pool,
    "adaptive_max_pool3d": adaptive_max_pool,
    "avg_pool2d": avg_pool,
    "avg_pool2d_backward": avg_pool_backward,
    "avg_pool3d": avg_pool,
    "avg_pool3d_backward": avg_pool_backward,
}
