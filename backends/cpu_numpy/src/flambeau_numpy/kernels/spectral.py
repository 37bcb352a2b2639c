"""Fourier transforms by SciPy's pocketfft, which computes in the precision of its input.

`scipy.fft` takes 50 ms to import, so that the first transform does it and not the first tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from flambeau_numpy.kernels._pointwise import wide

Array = np.ndarray[Any, Any]


def _norm(n: int, forward: bool, scale: float) -> tuple[str, float]:
    """SciPy's name for dividing by what `scale` divides by, and the factor that it lacks."""
    plain, by_n = ("backward", "forward") if forward else ("forward", "backward")
    if scale == 1:
        return plain, 1.0
    if scale == 1 / n:
        return by_n, 1.0
    return ("ortho", 1.0) if scale == n**-0.5 else (plain, scale)


def _times(a: Any, scale: float) -> Array:
    if scale != 1:
        a *= scale
    return a


def fft_c2c(a: Array, dim: tuple[int, ...], forward: bool, scale: float) -> Array:
    """The transform of complex numbers along dimensions."""
    from scipy import fft

    norm, rest = _norm(prod(a.shape[d] for d in dim), forward, scale)
    transform = fft.fftn if forward else fft.ifftn
    return _times(transform(wide(a), axes=dim, norm=norm), rest)


def fft_r2c(a: Array, dim: int, scale: float) -> Array:
    """The first half of the transform of real numbers."""
    from scipy import fft

    norm, rest = _norm(a.shape[dim], True, scale)
    return _times(fft.rfft(wide(a), axis=dim, norm=norm), rest)


def fft_c2r(a: Array, dim: int, n: int, scale: float) -> Array:
    """The real numbers whose transform has this first half."""
    from scipy import fft

    norm, rest = _norm(n, False, scale)
    return _times(fft.irfft(wide(a), n, axis=dim, norm=norm), rest)


KERNELS: dict[str, Callable[..., Any]] = {
    "fft_c2c": fft_c2c,
    "fft_r2c": fft_r2c,
    "fft_c2r": fft_c2r,
}
