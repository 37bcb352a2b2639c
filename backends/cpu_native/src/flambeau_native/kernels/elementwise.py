"""Pointwise functions that take several passes in NumPy, and copies of transposed matrices."""

from __future__ import annotations

from math import inf
from typing import Any

from flambeau_native.extension import native
from flambeau_native.kernels._common import Array, Kernel, made, otherwise, unary

_contiguous, _clamp = otherwise("contiguous"), otherwise("clamp")
_TRANSPOSES = {4: native.transpose_w4, 8: native.transpose_w8} if native else {}
_SMALLEST = 1024  # elements, below which NumPy's copy is as fast


def contiguous(a: Array) -> Any:
    if a.size >= _SMALLEST and a.ndim > 1 and not a.flags.c_contiguous:
        turned = a.swapaxes(-1, -2)
        run = _TRANSPOSES.get(a.itemsize)
        if run is not None and turned.flags.c_contiguous and a.dtype.kind != "V":
            out = made(a.shape, a.dtype)
            rows, columns = turned.shape[-2:]
            run(out, turned, a.size // (rows * columns), rows, columns)
            return out
    return _contiguous(a)


def _make_clamp() -> Kernel:
    bounded, general = unary("clamp"), _clamp
    lowest, greatest = -inf, inf

    def clamp(a: Array, low: float | None, high: float | None) -> Any:
        # Limits that are NaN, or crossed, have rules of their own.
        first, last = lowest if low is None else low, greatest if high is None else high
        return bounded(a, first, last) if first <= last else general(a, low, high)

    return clamp


KERNELS: dict[str, Kernel] = {
    "clamp": _make_clamp(),
    "contiguous": contiguous,
    "erf": unary("erf"),
    "sign": unary("sign"),
    "rsqrt": unary("rsqrt"),
    "reciprocal": unary("reciprocal", smallest=8192),
}
