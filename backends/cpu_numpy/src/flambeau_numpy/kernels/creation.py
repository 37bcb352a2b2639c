"""Creation of arrays from numbers."""

from __future__ import annotations

from math import copysign
from typing import TYPE_CHECKING, Any

import numpy as np

from flambeau_numpy.allocator import empty, zeros
from flambeau_numpy.casts import FLOAT16, recast
from flambeau_numpy.dtypes import EIGHTHS, TO_NUMPY, to_float8
from flambeau_numpy.silence import quiet

if TYPE_CHECKING:
    from flambeau.plugin import dtype as DType

Array = np.ndarray[Any, Any]


def full(shape: tuple[int, ...], value: object, dtype: DType) -> Array:
    """An array of `value`."""
    kind = TO_NUMPY[dtype]
    if value == 0 and (type(value) is not float or copysign(1.0, value) > 0):
        return zeros(shape, kind)
    made = empty(shape, kind)
    fill(made, value)
    return made


def unfilled(shape: tuple[int, ...], dtype: DType) -> Array:
    """An array of whatever its memory has; of bools, which have two values only, of False."""
    kind = TO_NUMPY[dtype]
    return zeros(shape, kind) if kind == np.bool_ else empty(shape, kind)


full.empty = unfilled  # type: ignore[attr-defined]


def fill(array: Array, value: object) -> None:
    """Write `value` everywhere, converted as C does: integers wrap, floats overflow to infinity."""
    if array.itemsize == 1 and array.dtype in EIGHTHS:
        array[...] = to_float8(np.array(value), array.dtype)
        return
    if isinstance(value, (int, float)) and array.dtype == FLOAT16:
        value = recast(np.array(float(value)), FLOAT16)[()]
    try:
        if type(value) is float and not -_LARGE < value < _LARGE:
            _fill_quietly(array, value)
        else:
            array.fill(value)
    except (OverflowError, TypeError, ValueError):
        _fill_as_c(array, value)


_LARGE = 1e38  # beyond, a float32 may overflow
_fill_quietly = quiet(np.ndarray.fill)


@quiet
def _fill_as_c(array: Array, value: Any) -> None:
    if type(value) is complex:
        value = value.real
    if array.dtype.kind in "iu":
        bits = 8 * array.dtype.itemsize
        low = 0 if array.dtype.kind == "u" else -(1 << (bits - 1))
        array.fill(((int(value) - low) & ((1 << bits) - 1)) + low)
    else:
        array.fill(recast(np.array(value, np.float64), array.dtype)[()])


KERNELS = {"full": full}
