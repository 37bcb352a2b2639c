"""Sliding windows of images, added where they lie."""

from __future__ import annotations

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

Pair = tuple[int, int]

_FOLD = compiled("col2im")
_LARGEST = 1 << 31


def _prepare(
    columns: Array, size: Pair, kernel: Pair, dilation: Pair, padding: Pair, stride: Pair
) -> object:
    run, taps = _FOLD.get(columns.dtype), kernel[0] * kernel[1]
    if run is None or columns.ndim != 3 or max(*dilation, *padding, *stride) >= _LARGEST:
        return None
    how = zip(size, kernel, dilation, padding, stride, strict=True)
    counts = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in how]
    n, rows, windows = columns.shape
    if rows % taps or min(counts) < 1 or counts[0] * counts[1] != windows:
        return None
    numbers = n * (rows // taps), *kernel, *counts, *size, *dilation, *padding, *stride
    return run, (form((n, rows // taps, *size), columns.dtype),), numbers


def _make() -> Kernel:
    general = halves_by(lambda: kernel, otherwise("col2im"))
    kernel = prepared("col2im", "asssss", _prepare, general, packs=True)
    return kernel


KERNELS: dict[str, Kernel] = {"col2im": _make()} if native is not None else {}
