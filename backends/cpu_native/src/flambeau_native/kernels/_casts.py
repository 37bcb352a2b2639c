"""Arrays of floats in another precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau_native.extension import native
from flambeau_native.kernels._common import FLOATS, WORD, Array, made
from flambeau_numpy.casts import FLOAT16, copy_order, ordered_copy
from flambeau_numpy.extending import BFLOAT16, THRESHOLD

_LEAST_SINGLE = 32768  # bytes of float32, below which NumPy converts them to float64 as fast
_FUNCTIONS: dict[tuple[np.dtype, np.dtype], Callable[..., object]] = {
    (before, after): getattr(native, f"cast_{FLOATS[before]}_{FLOATS[after]}")
    for before in FLOATS
    for after in FLOATS
    if before != after
}


def convert(a: Array, kind: np.dtype) -> Any:
    """`a` in another precision, or None where NumPy is as fast or its dtype is no float's.

    The result has the order of the dimensions of `a` in memory.
    """
    before = a.dtype
    run = _FUNCTIONS.get((before, kind))
    are_wide = before.itemsize > 2 < kind.itemsize
    if run is None or (
        are_wide and a.nbytes < (_LEAST_SINGLE if before.itemsize == 4 else THRESHOLD)
    ):
        return None
    if not a.flags.c_contiguous:
        a = a.copy("K") if copy_order(a) == "K" else ordered_copy(a)
        if not a.flags.c_contiguous:
            order = sorted(range(a.ndim), key=lambda d: -a.strides[d])
            found = convert(a.transpose(order), kind)
            return found.transpose(sorted(range(a.ndim), key=order.__getitem__))
    out = made(a.shape, kind)
    if are_wide:
        run(out, a, a.size)
    elif kind is FLOAT16 or kind == FLOAT16:
        run(out, _exported(a) if before.itemsize == 2 else a, a.size)
    else:
        run(_exported(out), _exported(a), a.size)
    return out


def convert_into(out: Array, a: Array) -> bool:
    """Write `a` into the memory of `out`, if it is like that in shape and is not of it."""
    if a.shape != out.shape or not (a.flags.c_contiguous and out.flags.c_contiguous):
        return False
    run = _FUNCTIONS.get((a.dtype, out.dtype))
    if run is None or np.may_share_memory(a, out):
        return False
    run(_exported(out), _exported(a), a.size)
    return True


def _exported(a: Array) -> Array:
    return a.view(WORD) if a.dtype == BFLOAT16 else a
