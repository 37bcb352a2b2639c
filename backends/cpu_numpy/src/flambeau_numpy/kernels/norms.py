"""The Euclidean norm."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau_numpy.casts import wide
from flambeau_numpy.kernels.reduction import sum_over
from flambeau_numpy.pointwise import Array, row_major
from flambeau_numpy.silence import quiet


@quiet
def norm2(a: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
    """√Σa²."""
    x = wide(a)
    root = np.sqrt(sum_over(np.multiply(x, x), dims, keepdim))
    return row_major(np.asarray(root, a.dtype))


KERNELS = {"norm2": norm2}
