"""Images and volumes at the points of grids, and weighted sums of elements at given places."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from flambeau_native.extension import native
from flambeau_native.kernels._common import (
    FLOAT32,
    FLOAT64,
    INT64,
    Array,
    Kernel,
    compiled,
    form,
    halves_by,
    made,
    otherwise,
    prepared,
)

Sizes = tuple[int, ...]
_MANY = 1 << 30  # elements of an image, of which places are counted in 32 bits in float32


def _make(name: str) -> Kernel:
    general, find = otherwise(name), compiled(name).get
    by_index, spread = name == "tap_dot", name == "tap_spread"

    def kernel(first: Array, second: Array, third: Array, *size: int) -> Any:
        # tap_dot has (grad, planes, index), the others (planes or grad, index, weight).
        a, index, weight = (second, third, first) if by_index else (first, second, third)
        run = find(a.dtype)
        n, taps, points = index.shape
        channels = a.shape[1]
        if (
            run is None
            or not (a.size and index.size and channels)
            or not (a.flags.c_contiguous and index.flags.c_contiguous)
            or not weight.flags.c_contiguous
            or weight.dtype != a.dtype
            or index.dtype != INT64
        ):
            return general(first, second, third, *size)
        elements = size[0] if spread else a.shape[2]
        shape = index.shape if by_index else (n, channels, elements if spread else points)
        out = made(shape, a.dtype)
        run(out, a, index, weight, n, channels, elements, taps, points)
        return out

    return kernel


_FUNCTIONS = {name: compiled(name) for name in ("grid_values", "grid_spread", "grid_slopes")}


def _call(name: str, made: Sizes, images: Sizes, points: Sizes, grid: Array, *how: Any) -> object:
    """How an array `made` is computed, for images (N, C, *size) and values (N, C, *points)."""
    mode, padding, align, orders = how
    (n, channels, *size), dtype, rank = images, grid.dtype, len(images) - 2
    if grid.shape != (n, *points[2:], rank) or points[:2] != images[:2] or len(orders) != rank:
        raise ValueError(f"{name}: images {images}, values {points}, points {grid.shape}")
    run = _FUNCTIONS[name].get(dtype)
    if run is None or (dtype == FLOAT32 and prod(size) >= _MANY):
        return None
    before = 3 - rank
    sizes = n, channels, prod(points[2:]), *(1,) * before, *size, rank
    numbers = mode, padding, align, *(0,) * before, *orders
    return run, (form(made, dtype),), (*sizes, *numbers)


def _values(a: Array, grid: Array, *how: Any) -> object:
    if a.dtype != grid.dtype:
        return None
    shape = (*a.shape[:2], *grid.shape[1:-1])
    return _call("grid_values", shape, a.shape, shape, grid, *how)


def _spread(grad: Array, grid: Array, size: Sizes, *how: Any) -> object:
    if grad.dtype != grid.dtype:
        return None
    shape = (*grad.shape[:2], *size)
    return _call("grid_spread", shape, shape, grad.shape, grid, *how)


def _slopes(grad: Array, a: Array, grid: Array, *how: Any) -> object:
    if not grad.dtype == a.dtype == grid.dtype:
        return None
    return _call("grid_slopes", grid.shape, a.shape, grad.shape, grid, *how)


def _at_points(name: str, arrays: str, prepare: Callable[..., object]) -> Kernel:
    def general(*args: Any) -> Any:
        """What 32 bits do not count is computed in float64."""
        given = [x for x in args if isinstance(x, np.ndarray)]
        if all(x.dtype == FLOAT64 for x in given):
            raise ValueError(f"{name}: no call of {[x.shape for x in given]}")
        wider = [x.astype(FLOAT64) if isinstance(x, np.ndarray) else x for x in args]
        return kernel(*wider).astype(given[0].dtype)

    kernel = prepared(name, arrays, prepare, halves_by(lambda: kernel, general), packs=True)
    return kernel


KERNELS: dict[str, Kernel] = {name: _make(name) for name in ("tap_sum", "tap_spread", "tap_dot")}
if native is not None:
    KERNELS["grid_values"] = _at_points("grid_values", "aassss", _values)
    KERNELS["grid_spread"] = _at_points("grid_spread", "aasssss", _spread)
    KERNELS["grid_slopes"] = _at_points("grid_slopes", "aaassss", _slopes)
