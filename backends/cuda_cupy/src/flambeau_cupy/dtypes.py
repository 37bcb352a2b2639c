"""Element types: flambeau's dtype objects and NumPy's, which are CuPy's too."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from flambeau import plugin

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOAT16 = np.dtype(np.float16)
HALVES = (FLOAT16, BFLOAT16)

TO_NUMPY: dict[plugin.dtype, np.dtype] = {
    d: BFLOAT16 if d is plugin.bfloat16 else np.dtype(d.name.removesuffix("_"))
    for d in plugin.dtypes
}
"""flambeau dtype to NumPy dtype."""

FROM_NUMPY: dict[np.dtype, plugin.dtype] = {d: ours for ours, d in TO_NUMPY.items()}
"""NumPy dtype to flambeau dtype."""
