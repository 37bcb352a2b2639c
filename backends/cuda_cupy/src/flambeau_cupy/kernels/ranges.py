"""Numbers at even distances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from flambeau_cupy.device.array_module import Array, Kernel
from flambeau_cupy.dtypes import TO_NUMPY
from flambeau_cupy.layer import Layer

if TYPE_CHECKING:
    from flambeau.plugin import dtype as DType


def arange(layer: Layer, start: float, step: float, length: int, dtype: DType) -> Array:
    whole = type(start) is int and type(step) is int
    made = layer.xp.arange(length, dtype=np.int64 if whole else np.float64)
    return (made * step + start).astype(TO_NUMPY[dtype])


KERNELS: dict[str, Kernel] = {"arange": arange}
"""Functions of a layer and what the op of their name is given."""
