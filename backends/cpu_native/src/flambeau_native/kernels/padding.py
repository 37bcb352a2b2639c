"""Padding of one dimension with a constant, or of two neighbours."""

from __future__ import annotations

from math import prod

import numpy as np

from flambeau_native.extension import native
from flambeau_native.kernels._common import Array, Kernel, form, prepared

Pairs = tuple[tuple[int, int], ...]


def _general(a: Array, pad: Pairs, value: complex) -> Array:
    read, to, shape = [], [], []
    for n, (before, after) in zip(a.shape, pad, strict=True):
        kept = slice(max(-before, 0), n - max(-after, 0))
        start = max(before, 0)
        read.append(kept)
        to.append(slice(start, start + kept.stop - kept.start))
        shape.append(n + before + after)
    out = np.full(shape, value, a.dtype)
    out[tuple(to)] = a[tuple(read)]
    return out


def _prepare(a: Array, pad: Pairs, value: complex) -> object:
    padded = [d for d, pair in enumerate(pad) if any(pair)]
    if a.dtype.kind == "V" or not padded or padded[-1] - padded[0] > 1:
        return None
    first, last = padded[0], padded[-1]
    shape = tuple([n + before + after for n, (before, after) in zip(a.shape, pad, strict=True)])
    rows, wanted, top = 1, 1, 0
    if first < last:
        rows, wanted, top = a.shape[first], shape[first], pad[first][0]
    unit = prod(a.shape[last + 1 :]) * a.itemsize
    sizes = prod(a.shape[:first]), rows, a.shape[last] * unit, wanted, shape[last] * unit
    item = np.array(value, a.dtype)
    numbers = (*sizes, top, pad[last][0] * unit, a.itemsize)
    return native.pad, (form(shape, a.dtype),), (item, *numbers)


def _prepare_pixels(a: Array, pad: Pairs, value: complex) -> object:
    return _prepare(a, (pad[0], *pad[2:], pad[1]), value)


KERNELS: dict[str, Kernel] = {}

if native is not None:
    KERNELS["constant_pad_nd"] = prepared(
        "constant_pad_nd", "ass", _prepare, _general, pixels=_prepare_pixels
    )
