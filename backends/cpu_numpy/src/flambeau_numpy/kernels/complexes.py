"""Kernels of complex numbers: their parts, conjugates and directions, and views of their memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau_numpy.silence import quiet

Array = np.ndarray[Any, Any]

_PARTS = {np.dtype(np.complex64): np.float32, np.dtype(np.complex128): np.float64}
_WHOLE = {np.dtype(np.float32): np.complex64, np.dtype(np.float64): np.complex128}


def real(a: Array) -> Array:
    """A copy of the real parts."""
    return a.real.copy()


def imag(a: Array) -> Array:
    """A copy of the imaginary parts; zeros for real numbers."""
    return a.imag.copy()


@quiet
def compose(real: Array, imag: Array) -> Array:
    """The complex numbers of these parts, of which neither touches the other."""
    kind = _WHOLE.get(real.dtype, np.complex64)
    out = np.empty(np.broadcast_shapes(real.shape, imag.shape), kind)
    out.real, out.imag = real, imag
    return out


def view_as_real(a: Array) -> Array:
    """Real and imaginary parts in a new last dimension, over the memory of a complex array."""
    if a.dtype.kind != "c":
        return np.stack([a, np.zeros_like(a)], -1)
    # The new dimension of size 1 is contiguous, whatever the others are.
    return a[..., np.newaxis].view(_PARTS[a.dtype])


def view_as_complex(a: Array) -> Array:
    """Pairs in the last dimension as complex numbers, over the same memory where joined."""
    kind = _WHOLE.get(a.dtype)
    if kind is None:
        return compose(a[..., 0], a[..., 1])
    if not a.size:
        return np.empty(a.shape[:-1], kind)
    if a.strides[-1] != a.itemsize:
        a = np.ascontiguousarray(a)
    return a.view(kind)[..., 0]


@quiet
def sgn(a: Array) -> np.ndarray:
    """z/|z|, and 0 for 0; the sign of real numbers, 0 for NaN."""
    if a.dtype.kind == "b":
        return a.copy()
    found = np.asarray(np.sign(a))
    if a.dtype.kind not in "iuc":
        np.copyto(found, 0, where=np.isnan(a))
    return found


@quiet
def angle(a: Array) -> Any:
    """The angle of complex numbers; of real ones 0 or pi."""
    if a.dtype.kind == "c":
        return np.arctan2(a.imag, a.real)
    found = np.where(a < 0, np.asarray(np.pi, a.dtype), np.asarray(0, a.dtype))
    np.copyto(found, np.nan, where=np.isnan(a))
    return found


KERNELS: dict[str, Callable[..., Any]] = {
    "real": real,
    "imag": imag,
    "conj": np.conjugate,
    "complex": compose,
    "view_as_real": view_as_real,
    "view_as_complex": view_as_complex,
    "sgn": sgn,
    "angle": angle,
}
