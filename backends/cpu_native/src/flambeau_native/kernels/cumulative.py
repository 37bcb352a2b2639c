"""Cumulative sums of row-major arrays."""

from __future__ import annotations

from math import prod

from flambeau_native.kernels._common import Array, Kernel, compiled, made_like, otherwise


def _make_cumsum() -> Kernel:
    general, find = otherwise("cumsum"), compiled("cumsum").get

    def cumsum(a: Array, dim: int) -> object:
        run = find(a.dtype)
        if run is None or not a.size or not a.ndim or not a.flags.c_contiguous:
            return general(a, dim)
        out, shape = made_like(a), a.shape
        if len(shape) == 1:
            run(out, a, 1, shape[0], 1)
        else:
            run(out, a, prod(shape[:dim]), shape[dim], prod(shape[dim + 1 :]))
        return out

    return cumsum


KERNELS: dict[str, Kernel] = {"cumsum": _make_cumsum()}
