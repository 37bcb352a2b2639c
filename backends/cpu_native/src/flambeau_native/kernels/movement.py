"""Joining large arrays along their first dimension: copies of whole runs of memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flambeau_native.extension import native
from flambeau_native.kernels._common import Array, Kernel, made, otherwise
from flambeau_numpy.allocator import THRESHOLD

_cat, _stack, _BYTE = otherwise("cat"), otherwise("stack"), np.dtype(np.uint8)


def _are_runs(arrays: Sequence[Array], dim: int) -> bool:
    """Whether all are row-major, of one dtype, and alike but for their first dimension `dim`."""
    first = arrays[0]
    rest, dtype = first.shape[1:], first.dtype
    return not dim and all(
        a.ndim and a.shape[1:] == rest and a.dtype == dtype and a.flags.c_contiguous for a in arrays
    )


def _joined(arrays: Sequence[Array], shape: tuple[int, ...]) -> Array:
    out = made(shape, arrays[0].dtype)
    target, offset = out.reshape(-1).view(_BYTE), 0
    for a in arrays:
        native.copy(target, a.reshape(-1).view(_BYTE), a.nbytes, offset)
        offset += a.nbytes
    return out


def cat(arrays: Sequence[Array], dim: int) -> Any:
    first = arrays[0]
    if len(arrays) * first.nbytes < THRESHOLD or not _are_runs(arrays, dim):
        return _cat(arrays, dim)
    return _joined(arrays, (sum(len(a) for a in arrays), *first.shape[1:]))


def stack(arrays: Sequence[Array], dim: int) -> Any:
    first = arrays[0]
    if len(arrays) * first.nbytes < THRESHOLD or not _are_runs(arrays, dim):
        return _stack(arrays, dim)
    if any(a.shape != first.shape for a in arrays):
        return _stack(arrays, dim)
    return _joined(arrays, (len(arrays), *first.shape))


KERNELS: dict[str, Kernel] = {"cat": cat, "stack": stack}
