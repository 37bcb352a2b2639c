"""Numbers at even distances."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau import plugin
from flambeau_numpy.dtypes import TO_NUMPY
from flambeau_numpy.pointwise import Array
from flambeau_numpy.silence import quiet

_INT64 = TO_NUMPY[plugin.int64]


def arange(start: Any, step: Any, length: int, dtype: Any) -> Array:
    """start + step·i, computed in int64 or float64 and then cast."""
    kind = TO_NUMPY[dtype]
    if kind is _INT64 and type(start) is int is type(step):
        made = np.arange(length, dtype=kind)
        if step != 1:
            made *= step
        if start:
            made += start
        return made
    return _arange(start, step, length, kind)


@quiet
def _arange(start: Any, step: Any, length: int, kind: np.dtype) -> Array:
    whole = type(start) is int and type(step) is int
    made = np.arange(length, dtype=np.int64 if whole else np.float64)
    if step != 1:
        made *= step
    if start != 0:
        made += start
    return made if made.dtype == kind else made.astype(kind)


KERNELS = {"arange": arange}
