"""Padding of up to three neighbouring dimensions with entries of the array itself."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from flambeau_native.extension import native
from flambeau_native.kernels._common import (
    Array,
    Kernel,
    compiled,
    form,
    halves_by,
    otherwise,
    prepared,
)
from flambeau_numpy.extending.parts import boundary_middle, boundary_places

Pairs = tuple[tuple[int, int], ...]

_BACKWARD = compiled("boundary_backward")
_DEEPEST = 3  # dimensions, from the first that is padded to the last
_SINGLE = {np.dtype(np.complex64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(float)}


def _readers(places: Array, size: int) -> tuple[Array, Array]:
    """Where the readers of each of `size` entries end, and which these are."""
    return np.cumsum(np.bincount(places, minlength=size)), np.argsort(places, kind="stable")


def _arranged(
    shape: tuple[int, ...], pad: Pairs, mode: str
) -> tuple[list[Array], tuple[int, ...], tuple[int, int, int]] | None:
    """The places of three dimensions, what the kernel takes of the sizes, and the middle."""
    padded = [d for d, pair in enumerate(pad) if any(pair)]
    if len(pad) != len(shape) or not padded or padded[-1] - padded[0] >= _DEEPEST:
        return None
    first, last = padded[0], padded[-1]
    missing = _DEEPEST - 1 - (last - first)
    read = [boundary_places(mode, 1, 0, 0)] * missing
    read += [boundary_places(mode, n, *p) for n, p in zip(shape, pad, strict=True)][
        first : last + 1
    ]
    sizes = *(1,) * missing, *shape[first : last + 1]
    numbers = prod(shape[:first]), *sizes, *map(len, read), prod(shape[last + 1 :])
    return read, numbers, boundary_middle(shape[last], *pad[last])


def _prepare(a: Array, pad: Pairs, mode: str) -> object:
    if a.dtype.kind == "V" or (found := _arranged(a.shape, pad, mode)) is None:
        return None
    read, (*sizes, inner), middle = found
    shape = tuple([n + before + after for n, (before, after) in zip(a.shape, pad, strict=True)])
    rest = (*read, *sizes, inner * a.itemsize, *middle)
    return native.boundary, (form(shape, a.dtype),), rest


def _prepare_backward(grad: Array, pad: Pairs, mode: str) -> object:
    run = _BACKWARD.get(_SINGLE.get(grad.dtype, grad.dtype))
    if run is None or len(pad) != grad.ndim:
        return None
    shape = tuple([n - before - after for n, (before, after) in zip(grad.shape, pad, strict=True)])
    if min(shape, default=0) < 0 or (found := _arranged(shape, pad, mode)) is None:
        return None
    read, (*sizes, inner), middle = found
    readers = [*_readers(read[0], sizes[1]), *_readers(read[1], sizes[2])]
    inner *= 2 if grad.dtype in _SINGLE else 1
    return run, (form(shape, grad.dtype),), (*readers, read[2], *sizes, inner, *middle)


def _of_pixels(prepare: Callable[..., object]) -> Callable[..., object]:
    """`prepare` of an array whose second dimension was moved to the end."""

    def prepare_pixels(a: Array, pad: Pairs, mode: str) -> object:
        return prepare(a, (pad[0], *pad[2:], pad[1]), mode)

    return prepare_pixels


def _make(name: str, prepare: Callable[..., object]) -> Kernel:
    general = otherwise(name)
    if name.endswith("backward"):
        general = halves_by(lambda: kernel, general)
    kernel = prepared(name, "ass", prepare, general, packs=True, pixels=_of_pixels(prepare))
    return kernel


KERNELS: dict[str, Kernel] = {}

if native is not None:
    KERNELS["boundary_pad_nd"] = _make("boundary_pad_nd", _prepare)
    KERNELS["boundary_pad_nd_backward"] = _make("boundary_pad_nd_backward", _prepare_backward)
