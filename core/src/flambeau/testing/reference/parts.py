"""Kernels that take complex numbers apart and put them together, exact for infinite parts too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.testing.reference.array import RefArray, build


def real(a: RefArray) -> RefArray:
    """The real parts."""
    return build(a.shape, a.dtype.to_real(), [v.real for v in a.data])


def imag(a: RefArray) -> RefArray:
    """The imaginary parts; zeros for real numbers."""
    return build(a.shape, a.dtype.to_real(), [v.imag for v in a.data])


def conj(a: RefArray) -> RefArray:
    """The complex conjugates."""
    return build(a.shape, a.dtype, [v.conjugate() for v in a.data])


def compose(real: RefArray, imag: RefArray) -> RefArray:
    """The complex numbers of two arrays of parts of one shape."""
    parts = zip(real.data, imag.data, strict=True)
    return build(real.shape, real.dtype.to_complex(), [complex(x, y) for x, y in parts])


KERNELS: dict[str, Callable[..., Any]] = {
    "real": real,
    "imag": imag,
    "conj": conj,
    "complex": compose,
}
