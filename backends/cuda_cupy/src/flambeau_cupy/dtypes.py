"""Element types: flambeau's dtype objects and NumPy's, which are CuPy's too."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from flambeau import plugin

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOAT16 = np.dtype(np.float16)
HALVES = (FLOAT16, BFLOAT16)
FLOATS = (*HALVES, np.dtype(np.float32), np.dtype(np.float64))
INT64 = np.dtype(np.int64)


def accumulator(kind: np.dtype) -> np.dtype:
    """What kernels compute elements of `kind` in: float32 for halves, else the same."""
    return np.dtype(np.float32) if kind in HALVES else kind


class _Known(dict[plugin.dtype, np.dtype]):
    def __missing__(self, dtype: plugin.dtype) -> np.dtype:
        raise NotImplementedError(
            f"flambeau-cupy has no {dtype}: keep such tensors on the CPU, or convert them, for "
            "instance by .float(), before they move to the device"
        )


TO_NUMPY: dict[plugin.dtype, np.dtype] = _Known(
    {
        d: BFLOAT16 if d is plugin.bfloat16 else np.dtype(d.name.removesuffix("_"))
        for d in plugin.dtypes
    }
)
"""flambeau dtype to NumPy dtype; NotImplementedError for one that no kernel knows."""

FROM_NUMPY: dict[np.dtype, plugin.dtype] = {d: ours for ours, d in TO_NUMPY.items()}
"""NumPy dtype to flambeau dtype."""
