"""Fourier transforms by SciPy's pocketfft, which computes in the precision of its input.

`scipy.fft` takes 50 ms to import, so that the first transform does it and not the first tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from flambeau_numpy.casts import wide

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


def _in_order(
    transform: Callable[[Array, tuple[int, ...]], Any], a: Array, dim: tuple[int, ...]
) -> Array:
    """A transform of `a` along `dim`, whose result has the last of them innermost in memory.

    The dimensions of the batch come before them, in the order that they have in `a`: what a library
    leaves that transforms rows of a matrix, and what PyTorch returns.
    """
    batch = sorted((d for d in range(a.ndim) if d not in dim), key=lambda d: -a.strides[d])
    order = (*batch, *dim)
    if order == tuple(range(a.ndim)):
        return np.ascontiguousarray(transform(a, dim))
    moved = transform(a.transpose(order), tuple(range(len(batch), a.ndim)))
    return np.ascontiguousarray(moved).transpose(np.argsort(order))


def _by_stride(a: Array, dim: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(dim, key=lambda d: -a.strides[d]))


def fft_c2c(a: Array, dim: tuple[int, ...], forward: bool, scale: float) -> Array:
    """The transform of complex numbers along dimensions."""
    from scipy import fft

    norm, rest = _norm(prod(a.shape[d] for d in dim), forward, scale)
    transform = fft.fftn if forward else fft.ifftn
    a = wide(a)
    dtype = np.result_type(a, np.complex64)  # of real numbers SciPy's zeros have other signs

    def computed(x: Array, dims: tuple[int, ...]) -> object:
        return transform(x.astype(dtype, copy=False), axes=dims, norm=norm)

    return _times(_in_order(computed, a, _by_stride(a, dim)), rest)


def fft_r2c(a: Array, dim: int, scale: float) -> Array:
    """The first half of the transform of real numbers."""
    from scipy import fft

    norm, rest = _norm(a.shape[dim], True, scale)
    found = _in_order(lambda x, d: fft.rfft(x, axis=d[0], norm=norm), wide(a), (dim,))
    return _times(found, rest)


def fft_c2r(a: Array, dim: int, n: int, scale: float) -> Array:
    """The real numbers whose transform has this first half."""
    from scipy import fft

    norm, rest = _norm(n, False, scale)
    found = _in_order(lambda x, d: fft.irfft(x, n, axis=d[0], norm=norm), wide(a), (dim,))
    return _times(found, rest)


KERNELS: dict[str, Callable[..., Any]] = {
    "fft_c2c": fft_c2c,
    "fft_r2c": fft_r2c,
    "fft_c2r": fft_c2r,
}
