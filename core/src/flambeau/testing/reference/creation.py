"""Creation kernels: arrays from plain numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

from flambeau._types.dtype import bool_, complex128, float64, int64
from flambeau._types.dtype import dtype as DType
from flambeau.testing.reference.array import RefArray, build, need_room
from flambeau.testing.reference.elementwise import converted

Number = bool | int | float | complex


def full(shape: tuple[int, ...], value: Number, dtype: DType) -> RefArray:
    """An array of `value` everywhere, cast to `dtype`."""
    (element,) = build((1,), dtype, converted((value,), _dtype_of(value), dtype)).data
    return RefArray(tuple(shape), dtype, (element,) * math.prod(shape))


def arange(start: float, step: float, length: int, dtype: DType) -> RefArray:
    """start + step·i for i below `length`, computed in integers or float64, then cast."""
    need_room(length)
    values = tuple([start + step * i for i in range(length)])
    return build((length,), dtype, converted(values, _dtype_of(start + step), dtype))


def _dtype_of(value: Number) -> DType:
    """The widest dtype of a Python number's category."""
    kind = type(value)
    if kind is bool:
        return bool_
    return int64 if kind is int else float64 if kind is float else complex128


KERNELS: dict[str, Callable[..., RefArray]] = {"full": full, "arange": arange}
