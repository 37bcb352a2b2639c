"""Element types: flambeau's dtype objects and NumPy's, in both directions."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from flambeau import plugin

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOAT8: dict[plugin.dtype, np.dtype] = {
    plugin.float8_e4m3fn: np.dtype(ml_dtypes.float8_e4m3fn),
    plugin.float8_e5m2: np.dtype(ml_dtypes.float8_e5m2),
    plugin.float8_e4m3fnuz: np.dtype(ml_dtypes.float8_e4m3fnuz),
    plugin.float8_e5m2fnuz: np.dtype(ml_dtypes.float8_e5m2fnuz),
}
EIGHTHS = frozenset(FLOAT8.values())
FOREIGN = frozenset({BFLOAT16, *EIGHTHS})
"""Dtypes whose elements NumPy does not turn into Python's numbers."""

TO_NUMPY: dict[plugin.dtype, np.dtype] = {
    plugin.bool_: np.dtype(np.bool_),
    plugin.uint8: np.dtype(np.uint8),
    plugin.int8: np.dtype(np.int8),
    plugin.int16: np.dtype(np.int16),
    plugin.int32: np.dtype(np.int32),
    plugin.int64: np.dtype(np.int64),
    plugin.float16: np.dtype(np.float16),
    plugin.bfloat16: BFLOAT16,
    plugin.float32: np.dtype(np.float32),
    plugin.float64: np.dtype(np.float64),
    plugin.complex64: np.dtype(np.complex64),
    plugin.complex128: np.dtype(np.complex128),
    plugin.uint16: np.dtype(np.uint16),
    plugin.uint32: np.dtype(np.uint32),
    plugin.uint64: np.dtype(np.uint64),
    **FLOAT8,
}
"""flambeau dtype to NumPy dtype (native byte order)."""

FROM_NUMPY: dict[np.dtype, plugin.dtype] = {d: ours for ours, d in TO_NUMPY.items()}
"""NumPy dtype to flambeau dtype; a dtype of foreign byte order is no key."""


def to_float8(a: Any, kind: np.dtype) -> Any:
    """An array as a float8 with PyTorch's bits, which rounds by way of float32.

    ml_dtypes makes NaN of what is too large for e4m3fn, and has another NaN of e5m2.
    """
    with np.errstate(all="ignore"):
        single = a.astype(np.float32)
        if kind == FLOAT8[plugin.float8_e4m3fn]:
            single = np.clip(single, -448, 448)
        made = single.astype(kind)
    if kind == FLOAT8[plugin.float8_e5m2] and (lost := np.isnan(single)).any():
        made.view(np.uint8)[lost] |= 1
    return made
