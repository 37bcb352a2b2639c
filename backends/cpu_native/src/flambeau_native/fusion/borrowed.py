"""The functions of small arrays, which are NumPy's: programs call the same loops.

A ufunc gives its loop by two methods that are documented for compilers; a NumPy without them lends
none, and its functions stay calls.
"""

from __future__ import annotations

import numpy as np

from flambeau_native.extension import native
from flambeau_native.kernels._common import FLOAT32

__all__ = ["BORROWED"]


def _borrowed(name: str) -> bool:
    """Whether programs have the loop of that function now."""
    ufunc = getattr(np, name)
    try:
        (given, made), capsule = ufunc._resolve_dtypes_and_context((FLOAT32, None))
        if given != FLOAT32 or made != FLOAT32:
            return False
        ufunc._get_strided_loop(capsule, fixed_strides=(4, 4))
        native.borrow(name, capsule)
    except (AttributeError, TypeError, ValueError, RuntimeError):
        return False
    return True


BORROWED = frozenset(filter(_borrowed, ("exp", "log", "tanh", "sin", "cos")))
"""Those that there are."""
