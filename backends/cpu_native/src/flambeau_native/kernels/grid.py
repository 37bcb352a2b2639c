"""Weighted sums of elements at given places."""

from __future__ import annotations

from typing import Any

from flambeau_native.kernels._common import INT64, Array, Kernel, compiled, made, otherwise


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


KERNELS: dict[str, Kernel] = {name: _make(name) for name in ("tap_sum", "tap_spread", "tap_dot")}
