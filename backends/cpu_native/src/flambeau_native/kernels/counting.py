"""Places in ascending sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau_native.extension import native
from flambeau_native.kernels._common import (
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    Array,
    Kernel,
    alike,
    otherwise,
)

_bisected = otherwise("searchsorted")
_RUNS = {
    dtype: getattr(native, f"bisect_{suffix}", None)
    for dtype, suffix in ((FLOAT32, "f32"), (FLOAT64, "f64"), (INT32, "i32"), (INT64, "i64"))
}


def searchsorted(edges: Array, x: Array, right: bool) -> Any:
    run = _RUNS.get(x.dtype)
    if run is None or not x.size or not alike(edges, x):
        return _bisected(edges, x, right)
    out = np.empty(x.shape, INT64)
    count = x.size if edges.ndim == 1 else x.shape[-1]
    run(out, edges, x, x.size // count, edges.shape[-1], count, right)
    return out


KERNELS: dict[str, Kernel] = {"searchsorted": searchsorted}
