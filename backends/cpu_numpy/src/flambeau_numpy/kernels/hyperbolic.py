"""Inverse hyperbolic functions, in float32 or wider."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau_numpy.casts import wide
from flambeau_numpy.silence import quiet

Array = np.ndarray[Any, Any]


def _widened(function: np.ufunc) -> Callable[[Array], Array]:
    @quiet
    def kernel(a: Array) -> Array:
        return np.asarray(function(wide(a)), a.dtype)

    return kernel


KERNELS = {
    "asinh": _widened(np.arcsinh),
    "acosh": _widened(np.arccosh),
    "atanh": _widened(np.arctanh),
}
