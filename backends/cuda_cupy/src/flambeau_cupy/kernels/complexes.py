"""Kernels of complex numbers: their parts, conjugates, and views of their memory."""

from __future__ import annotations

import numpy as np

from flambeau_cupy.device.array_module import Array, Kernel
from flambeau_cupy.layer import Layer

_PARTS = {np.dtype(np.complex64): np.float32, np.dtype(np.complex128): np.float64}
_WHOLE = {np.dtype(np.float32): np.complex64, np.dtype(np.float64): np.complex128}


def real(layer: Layer, a: Array) -> Array:
    return a.real.copy()


def imag(layer: Layer, a: Array) -> Array:
    return a.imag.copy() if a.dtype.kind == "c" else layer.xp.zeros(a.shape, a.dtype)


def compose(layer: Layer, real: Array, imag: Array) -> Array:
    shape = np.broadcast_shapes(real.shape, imag.shape)
    out = layer.xp.empty((*shape, 2), real.dtype if real.dtype in _WHOLE else np.float32)
    out[..., 0], out[..., 1] = real, imag
    return out.view(_WHOLE[out.dtype])[..., 0].copy()


def view_as_real(layer: Layer, a: Array) -> Array:
    if a.dtype.kind != "c":
        return layer.xp.stack([a, layer.xp.zeros_like(a)], -1)
    part = np.dtype(_PARTS[a.dtype])
    # Twice the elements, the last dimension being neighbours in memory.
    halves = a[..., None]
    return halves.view(part)


def view_as_complex(layer: Layer, a: Array) -> Array:
    whole = _WHOLE.get(a.dtype)
    if whole is None:
        return compose(layer, a[..., 0], a[..., 1])
    if not a.size:
        return layer.xp.empty(a.shape[:-1], whole)
    if a.strides[-1] != a.itemsize:
        a = a.copy("C")
    return a.view(whole)[..., 0]


def conj(layer: Layer, a: Array) -> Array:
    return layer.held(layer.xp.conjugate(a)) if a.dtype.kind == "c" else a.copy()


KERNELS: dict[str, Kernel] = {
    "real": real,
    "imag": imag,
    "conj": conj,
    "complex": compose,
    "view_as_real": view_as_real,
    "view_as_complex": view_as_complex,
}
"""Functions of a layer and what the op of their name is given."""
