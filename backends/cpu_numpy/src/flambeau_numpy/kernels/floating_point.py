"""The parts of floating numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau_numpy.casts import wide
from flambeau_numpy.silence import quiet

Array = np.ndarray[Any, Any]


@quiet
def frexp(a: Array) -> tuple[Array, Array]:
    """The C library's, which leaves open what the exponents of infinity and NaN are."""
    mantissa, exponent = np.frexp(wide(a))
    return np.asarray(mantissa, a.dtype), np.where(np.isfinite(a), exponent, 0).astype(np.int32)


KERNELS: dict[str, Callable[..., Any]] = {"frexp": frexp}
