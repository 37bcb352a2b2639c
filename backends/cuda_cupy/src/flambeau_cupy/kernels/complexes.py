"""Kernels of complex numbers: their parts, conjugates, and views of their memory."""

from __future__ import annotations

import numpy as np

from flambeau_cupy.array_module import Array, Kernel
from flambeau_cupy.layer import Layer

_PARTS = {np.dtype(np.complex64): np.float32, np.dtype(np.complex128): np.float64}
_WHOLE = {np.dtype(np.float32): np.complex64, np.dtype(np.float64): np.complex128}


def make(layer: Layer) -> dict[str, Kernel]:
    """The kernels of this family."""
    xp = layer.xp

    def real(a: Array) -> Array:
        return a.real.copy()

    def imag(a: Array) -> Array:
        return a.imag.copy() if a.dtype.kind == "c" else xp.zeros(a.shape, a.dtype)

    def compose(real: Array, imag: Array) -> Array:
        shape = np.broadcast_shapes(real.shape, imag.shape)
        out = xp.empty((*shape, 2), real.dtype if real.dtype in _WHOLE else np.float32)
        out[..., 0], out[..., 1] = real, imag
        return out.view(_WHOLE[out.dtype])[..., 0].copy()

    def view_as_real(a: Array) -> Array:
        if a.dtype.kind != "c":
            return xp.stack([a, xp.zeros_like(a)], -1)
        part = np.dtype(_PARTS[a.dtype])
        # Twice the elements, the last dimension being neighbours in memory.
        halves = a[..., None]
        return halves.view(part)

    def view_as_complex(a: Array) -> Array:
        whole = _WHOLE.get(a.dtype)
        if whole is None:
            return compose(a[..., 0], a[..., 1])
        if not a.size:
            return xp.empty(a.shape[:-1], whole)
        if a.strides[-1] != a.itemsize:
            a = a.copy("C")
        return a.view(whole)[..., 0]

    def conj(a: Array) -> Array:
        return layer.held(xp.conjugate(a)) if a.dtype.kind == "c" else a.copy()

    return {
        "real": real,
        "imag": imag,
        "conj": conj,
        "complex": compose,
        "view_as_real": view_as_real,
        "view_as_complex": view_as_complex,
    }
