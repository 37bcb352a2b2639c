"""Joining large arrays along their first dimension, and moving and reversing rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from flambeau_native.extension import native
from flambeau_native.kernels._common import (
    BACK,
    LAST,
    Array,
    Kernel,
    form,
    made,
    memory_of,
    otherwise,
    prepared,
)
from flambeau_numpy.extending import THRESHOLD, empty
from flambeau_numpy.extending.parts import large_cat, large_stack, make_cat, make_stack

_STREAMED = 3_500_000  # bytes, from which on results may be written past the caches
_TURNED = 4096  # bytes of an array, from which on turning it costs little
_flip = otherwise("flip")
_FLIPS = {4: native.flip_w4, 8: native.flip_w8} if native else {}


def _are_runs(arrays: Sequence[Array], dim: int) -> bool:
    """Whether all are row-major, of one dtype, and alike but for their first dimension `dim`."""
    if dim or not arrays[0].ndim:
        return False
    rest, dtype = arrays[0].shape[1:], arrays[0].dtype
    for a in arrays:
        if a.dtype != dtype or a.shape[1:] != rest or not (a.ndim and a.flags.c_contiguous):
            return False
    return True


def _joined(arrays: Sequence[Array], shape: tuple[int, ...]) -> Array:
    out, copy, offset = empty(shape, arrays[0].dtype), native.copy, 0
    is_seen = out.dtype.kind != "V"  # by code, as it is
    target = out if is_seen else memory_of(out)
    for a in arrays:
        size = a.nbytes
        copy(target, a if is_seen else memory_of(a), size, offset)
        offset += size
    return out


def _large_cat(arrays: Sequence[Array], dim: int) -> Any:
    if not _are_runs(arrays, dim):
        return large_cat(arrays, dim)
    return _joined(arrays, (sum(len(a) for a in arrays), *arrays[0].shape[1:]))


def _large_stack(arrays: Sequence[Array], dim: int) -> Any:
    first = arrays[0]
    if not _are_runs(arrays, dim) or any(a.shape != first.shape for a in arrays):
        return large_stack(arrays, dim)
    return _joined(arrays, (len(arrays), *first.shape))


def _of_pixels(general: Kernel, rows: Callable[[], Kernel]) -> Kernel:
    """`general`, and for large images whose channels vary fastest the kernel of rows, `rows`."""

    def cat(arrays: Sequence[Array], dim: int) -> Any:
        first, rank = arrays[0], arrays[0].ndim
        if rank not in LAST or first.nbytes < _TURNED or first.flags.c_contiguous:
            return general(arrays, dim)
        pixels = [a.transpose(LAST[rank]) for a in arrays if a.ndim == rank]
        if len(pixels) < len(arrays) or not all(a.flags.c_contiguous for a in pixels):
            return general(arrays, dim)
        return rows()(pixels, LAST[rank].index(dim)).transpose(BACK[rank])

    return cat


def flip(a: Array, dims: tuple[int, ...]) -> Any:
    run = _FLIPS.get(a.itemsize)
    if run is None or dims != (a.ndim - 1,) or not _is_large(a):
        return _flip(a, dims)
    out = made(a.shape, a.dtype)
    run(out, a, a.size // a.shape[-1], a.shape[-1])
    return out


def _is_large(a: Array) -> bool:
    return a.size >= 1024 and a.flags.c_contiguous and a.dtype.kind != "V"


def _make_triangle(lower: bool) -> tuple[Kernel, Kernel]:
    def triangle(a: Array, diagonal: int) -> Array:
        if not a.flags.c_contiguous:
            a = np.ascontiguousarray(a)
        out = made(a.shape, a.dtype)
        _write(out, a, diagonal)
        return out

    def triangle_(a: Array, diagonal: int) -> None:
        if a.flags.c_contiguous:
            _write(a, a, diagonal)
        else:
            a[...] = triangle(a, diagonal)

    def _write(out: Array, a: Array, diagonal: int) -> None:
        rows, columns = a.shape[-2:]
        if a.size:
            sizes = (a.size // (rows * columns), rows, columns, a.itemsize)
            least, most = -rows - 1, columns + 1  # beyond, all is on one side
            native.triangle(
                memory_of(out), memory_of(a), *sizes, max(least, min(most, diagonal)), lower
            )

    return triangle, triangle_


def _prepare_roll(a: Array, shifts: tuple[int, ...], dims: tuple[int, ...]) -> object:
    by = [0] * a.ndim
    for shift, d in zip(shifts, dims, strict=True):
        by[d] = (by[d] + shift) % a.shape[d]
    moved = [d for d, shift in enumerate(by) if shift]
    if a.dtype.kind == "V" or not moved or moved[-1] - moved[0] > 2:
        return None
    first, last = moved[0], moved[-1]
    ones = 2 - (last - first)
    unit = prod(a.shape[last + 1 :]) * a.itemsize
    sizes = [*[1] * ones, *a.shape[first:last], a.shape[last] * unit]
    places = [*[0] * ones, *by[first:last], by[last] * unit]
    return native.roll, (form(a.shape, a.dtype),), (prod(a.shape[:first]), *sizes, *places)


KERNELS: dict[str, Kernel] = {
    "cat": make_cat(_large_cat),
    "stack": make_stack(_large_stack),
    "flip": flip,
}

if native is not None:
    KERNELS["roll"] = prepared("roll", "ass", _prepare_roll, otherwise("roll"), packs=True)
    _cat = _of_pixels(KERNELS["cat"], lambda: KERNELS["cat"])
    KERNELS["cat"] = native.joining(_cat, False, THRESHOLD, made, _STREAMED)
    KERNELS["stack"] = native.joining(KERNELS["stack"], True, THRESHOLD, made, _STREAMED)
    KERNELS["tril"], KERNELS["tril_"] = _make_triangle(True)
    KERNELS["triu"], KERNELS["triu_"] = _make_triangle(False)
