"""Arrays in another dtype, and which package converts floats faster than NumPy does.

NumPy converts to and from 16-bit floats number by number.  Kernels that compute them in float32 do
it by `wide` and `narrow`, programs by the op ``cast``.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import gt
from typing import Any, Literal

import numpy as np

from flambeau_numpy.allocator import THRESHOLD, empty
from flambeau_numpy.dtypes import BFLOAT16
from flambeau_numpy.silence import quiet, silent

__all__ = [
    "HALVES",
    "compared",
    "copy_order",
    "is_half",
    "narrow",
    "offer_casts",
    "ordered_copy",
    "recast",
    "wide",
]

Array = np.ndarray[Any, Any]
Convert = Callable[[Array, np.dtype], Array | None]

FLOAT16 = np.dtype(np.float16)
FLOAT32 = np.dtype(np.float32)
FLOAT64 = np.dtype(np.float64)
HALVES = frozenset({FLOAT16, BFLOAT16})
_FEW = 256  # elements, below which NumPy takes less time than a call

_offers: dict[str, Convert] = {}
_convert: Convert | None = None


def offer_casts(provider: str, convert: Convert | None) -> None:
    """Let a package convert arrays: ``convert(array, dtype)``, a fresh array, or None for others.

    The result has the order of the dimensions in memory that ``array`` has.  A package calls this
    where it offers its kernels; None takes back what it offered before.
    """
    global _convert
    _offers.pop(provider, None)
    if convert is not None:
        _offers[provider] = convert
    _convert = next(iter(_offers.values()), None)


def copy_order(a: Array) -> Literal["C", "K"]:
    """The order of a copy that keeps that of `a`; row-major if `a` repeats elements."""
    if 0 in a.strides and any(s == 0 and n > 1 for n, s in zip(a.shape, a.strides, strict=True)):
        return "C"
    return "K"


def ordered_copy(a: Array, copy: Callable[[Array], Any] = np.ndarray.copy) -> Any:
    """``copy(a)``, which is row-major, with the order of the dimensions of `a` in memory instead.

    A dimension along which elements repeat stays where it is; of two with one stride, the longer
    one varies more slowly.
    """
    shape, strides = a.shape, a.strides
    steps = [step for step in strides if step]
    if all(map(gt, steps, steps[1:])):
        return copy(a)
    order = list(range(a.ndim))
    for first in reversed(range(a.ndim - 1)):
        moved = first  # goes to the right past every faster place that belongs before it
        for at in range(first + 1, a.ndim):
            one, other = order[moved], order[at]
            if not (strides[one] and strides[other]):
                continue
            if strides[one] > strides[other]:
                break
            if strides[one] < strides[other] or shape[one] < shape[other]:
                order[moved], order[at] = other, one
                moved = at
    return copy(a.transpose(order)).transpose(sorted(range(a.ndim), key=order.__getitem__))


def is_half(dtype: np.dtype) -> bool:
    """Whether values of `dtype` are computed in float32."""
    return dtype in HALVES


def _make_astype() -> Callable[[Any, np.dtype], Any]:
    limit, order, half, single, double = THRESHOLD, copy_order, FLOAT16, FLOAT32, FLOAT64
    make, copyto, ordered = empty, np.copyto, ordered_copy

    def astype(a: Any, kind: np.dtype) -> Any:
        if kind == half and a.dtype == double:
            a = a.astype(single, order(a))
        if a.nbytes < limit or not a.flags.c_contiguous:
            if order(a) == "C":
                return ordered(a, lambda a: a.astype(kind, "C"))
            return a.astype(kind, "K")
        out = make(a.shape, kind)
        copyto(out, a, casting="unsafe")
        return out

    return silent(astype)


_astype = _make_astype()
_astype_quietly = quiet(_astype)


def recast(a: Any, kind: np.dtype) -> Any:
    """`a` in another dtype, and in the order of its memory.

    As in PyTorch, float64 becomes float16 by way of float32.
    """
    # NumPy gives NaN other bits: of 16-bit floats, the same ones whatever the number of elements.
    if _convert is not None and (a.size >= _FEW or kind.itemsize == 2):
        if (found := _convert(a, kind)) is not None:
            return found
    try:
        return _astype(a, kind)
    except FloatingPointError:  # the user's np.seterr(all="raise") is not for tensors
        return _astype_quietly(a, kind)


def wide(a: Array) -> Array:
    """`a`, in float32 if it is float16 or bfloat16."""
    half = a.dtype.itemsize == 2 and a.dtype in HALVES
    return recast(a, FLOAT32) if half else a


def narrow(a: Any, dtype: np.dtype) -> Any:
    """What was computed of the values of `wide`, in their `dtype`."""
    return a if a.dtype == dtype else recast(a, dtype)


def compared(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel whose last argument is a number that 16-bit floats are compared with, as one."""

    def function(*args: Any) -> Any:
        dtype = args[0].dtype
        if dtype in HALVES:
            return kernel(*args[:-1], float(dtype.type(args[-1])))
        return kernel(*args)

    return function
