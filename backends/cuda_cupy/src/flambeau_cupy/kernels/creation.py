"""Creation of arrays from numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau_cupy.array_module import Array, Kernel
from flambeau_cupy.arrays import host_scalar
from flambeau_cupy.dtypes import BFLOAT16, FROM_NUMPY, TO_NUMPY
from flambeau_cupy.layer import Layer


def make(layer: Layer) -> dict[str, Kernel]:
    """The kernels of this family."""
    xp = layer.xp

    def full(shape: tuple[int, ...], value: Any, dtype: Any) -> Array:
        out = xp.empty(shape, TO_NUMPY[dtype])
        fill_(out, value)
        return out

    def fill_(a: Array, value: Any) -> None:
        number = host_scalar(value, FROM_NUMPY[a.dtype])
        if a.dtype == BFLOAT16:  # its bits: filling is a copy, and all modules copy integers
            a.view(np.uint16).fill(number.view(np.uint16).item())
        else:
            a.fill(number.item())

    def arange(start: Any, step: Any, length: int, dtype: Any) -> Array:
        whole = type(start) is int and type(step) is int
        made = xp.arange(length, dtype=np.int64 if whole else np.float64)
        return (made * step + start).astype(TO_NUMPY[dtype])

    return {"full": full, "fill_": fill_, "arange": layer.quiet(arange)}
