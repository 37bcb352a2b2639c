"""Numbers at even distances, of many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from flambeau_native.extension import native
from flambeau_native.kernels._common import FLOAT32, FLOAT64, INT64, Array, Kernel, made, otherwise
from flambeau_numpy.extending import TO_NUMPY

if TYPE_CHECKING:
    from flambeau.plugin import dtype as DType

_arange = otherwise("arange")
_EXACT = 1 << 53  # whole numbers below are exact in float64
_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def arange(start: float, step: float, length: int, dtype: DType) -> Array:
    kind, are_whole = TO_NUMPY[dtype], type(start) is int and type(step) is int
    if kind is INT64 or kind == INT64:
        if are_whole and _LEAST <= start <= _MOST and _LEAST <= step <= _MOST:
            out = made((length,), kind)
            native.arange_i64(out, length, start, step)
            return out
    elif kind in _FLOATS and length and (not are_whole or abs(start) + abs(step) * length < _EXACT):
        out = made((length,), kind)
        _FLOATS[kind](out, length, start, step)
        return out
    return _arange(start, step, length, dtype)


def between(start: float, end: float, step: float, length: int, dtype: DType) -> Array:
    """Numbers in equal steps that are counted from both ends, as `linspace` has them."""
    kind = TO_NUMPY[dtype]
    out = made((length,), kind)
    _ENDS[kind](out, length, start, end, step)
    return out


def triangle(rows: int, columns: int, diagonal: int, lower: bool) -> Array:
    """Rows and columns of the elements on and below a diagonal of a matrix, or on and above it."""
    diagonal = max(-rows - 1, min(columns, diagonal))
    count = _below(rows, columns, diagonal if lower else diagonal - 1)
    out = made((2, count if lower else rows * columns - count), INT64)
    native.triangle_places(out, out.size, rows, columns, diagonal, lower)
    return out


def _below(rows: int, columns: int, diagonal: int) -> int:
    """How many elements of a matrix are on and below a diagonal."""
    first, full = (min(max(n, 0), rows) for n in (-diagonal, columns - diagonal - 1))
    growing = max(full - first, 0)
    return growing * (2 * (first + diagonal + 1) + growing - 1) // 2 + (rows - full) * columns


KERNELS: dict[str, Kernel] = {}

if native is not None:
    _FLOATS = {FLOAT32: native.arange_f32, FLOAT64: native.arange_f64}
    _ENDS = {FLOAT32: native.linspace_f32, FLOAT64: native.linspace_f64}
    arange.between = between  # type: ignore[attr-defined]
    arange.triangle = triangle  # type: ignore[attr-defined]
    KERNELS["arange"] = arange
