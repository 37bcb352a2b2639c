"""Creation of arrays from numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from flambeau_cupy.arrays import host_scalar
from flambeau_cupy.device.array_module import Array, Kernel
from flambeau_cupy.dtypes import BFLOAT16, FROM_NUMPY, TO_NUMPY
from flambeau_cupy.layer import Layer

if TYPE_CHECKING:
    from flambeau.plugin import dtype as DType


def full(layer: Layer, shape: tuple[int, ...], value: object, dtype: DType) -> Array:
    out = layer.xp.empty(shape, TO_NUMPY[dtype])
    fill_(layer, out, value)
    return out


def fill_(layer: Layer, a: Array, value: Any) -> None:
    number = host_scalar(value, FROM_NUMPY[a.dtype])
    if a.dtype == BFLOAT16:  # its bits: filling is a copy, and all modules copy integers
        a.view(np.uint16).fill(number.view(np.uint16).item())
    else:
        a.fill(number.item())


KERNELS: dict[str, Kernel] = {"full": full, "fill_": fill_}
"""Functions of a layer and what the op of their name is given."""
