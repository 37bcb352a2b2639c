"""Numbers at even distances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from flambeau import plugin
from flambeau_numpy.allocator import empty
from flambeau_numpy.dtypes import TO_NUMPY
from flambeau_numpy.pointwise import BLOCK, Array
from flambeau_numpy.silence import quiet

if TYPE_CHECKING:
    from flambeau.plugin import dtype as DType

_INT64 = TO_NUMPY[plugin.int64]


def arange(start: float, step: float, length: int, dtype: DType) -> Array:
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
def _arange(start: float, step: float, length: int, kind: np.dtype) -> Array:
    whole = type(start) is int and type(step) is int
    work = np.int64 if whole else np.float64
    if length > BLOCK:
        return _in_blocks(start, step, length, kind, whole)
    made = np.arange(length, dtype=work)
    if step != 1:
        made *= step
    if start != 0 or not (whole or step > 0):  # 0 times a step may be -0.0
        made += start
    return made if made.dtype == kind else made.astype(kind)


def _in_blocks(start: float, step: float, length: int, kind: np.dtype, whole: bool) -> Array:
    """The same, a block in the cache at a time."""
    out, work = empty((length,), kind), np.dtype(np.int64 if whole else np.float64)
    first = np.arange(BLOCK, dtype=work)
    made = np.empty(BLOCK, work)
    adds = start != 0 or not (whole or step > 0)
    for at in range(0, length, BLOCK):
        piece = out[at : at + BLOCK]
        numbers = made[: piece.size]
        np.add(first[: piece.size], at, numbers)
        if step != 1:
            numbers *= step
        if adds:
            numbers += start
        piece[...] = numbers
    return out


KERNELS = {"arange": arange}
