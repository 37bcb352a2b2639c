"""The compiled module, or None where the package was installed without a compiler.

Raises:
    ImportError: it is older than the sources beside it.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

native: Any
try:
    from flambeau_native import _native as native  # type: ignore[attr-defined] - compiled
except ImportError:
    native = None
else:
    from flambeau_native.sources import demand_those_of

    demand_those_of(native)
    # The commonest first: they are looked for in turn.
    _DTYPES = tuple(map(np.dtype, "f4 f8 i8 ? i4 f2 u1 i1 i2 u2 u4 u8 c8 c16".split()))

    def _samples() -> tuple[Any, ...]:
        """Arrays that differ in all that compiled code looks at."""
        made = [np.zeros((2, 3), dtype) for dtype in _DTYPES]
        fixed = np.zeros(3, np.float32)
        fixed.flags.writeable = False
        cut = np.zeros((3, 4, 5), np.float32)[1:, ::2, :0:-1]
        return (*made, fixed, cut, made[0].T, np.zeros(()), np.zeros((0, 3)), np.zeros(5)[2:])

    try:
        from numpy._core._multiarray_umath import _ARRAY_API as _TABLE  # as its headers do
    except ImportError:
        _TABLE = None
    READS_ARRAYS: bool = native.learn_arrays(
        np.ndarray, _TABLE, tuple([(dtype, dtype.itemsize) for dtype in _DTYPES]), _samples()
    )
    """Whether compiled code reads arrays where they lie, as it found them to be."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=native.after_fork)
