"""Element types: flambeau's dtype objects and NumPy's, in both directions."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from flambeau import plugin

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

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
}
"""flambeau dtype to NumPy dtype (native byte order)."""

FROM_NUMPY: dict[np.dtype, plugin.dtype] = {d: ours for ours, d in TO_NUMPY.items()}
"""NumPy dtype to flambeau dtype; a dtype of foreign byte order is no key."""
