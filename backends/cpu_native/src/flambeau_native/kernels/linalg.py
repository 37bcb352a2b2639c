"""Linear layers of some rows or of a small weight, for `flambeau_numpy.products.linear`."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau_native.extension import native
from flambeau_native.kernels._common import FLOAT32, Array, made

_LINES, _ROWS = 1 << 14, 1 << 16
"""Elements of a weight up to which any row is worth it, and up to which eight and more are.

Sixteen rows fill a vector.  Of some a weight of any size is read once or twice, but of more than
`_SOME` and a large weight both had better be copied.
"""
_SOME = 192


def linear(
    x: Array, weight: Array, bias: Array | None, _empty: Any = np.empty, _kind: Any = FLOAT32
) -> Array | None:
    """x @ weightᵀ + bias over the last dimension of float32 arrays, or None if others do better."""
    if x.dtype is not _kind or weight.dtype is not _kind or weight.ndim != 2 or not x.ndim:
        return None
    shape, (lines, depth) = x.shape, weight.shape
    elements, size = x.size, lines * depth
    if not elements or not size or shape[-1] != depth:
        return None
    rows = elements // depth
    if size > _LINES and (rows < 8 or (size >= _ROWS and (rows < 16 or rows > _SOME))):
        return None
    if not x.flags.c_contiguous or not weight.flags.c_contiguous:
        return None
    if bias is not None and (
        bias.dtype is not _kind or bias.shape != (lines,) or not bias.flags.c_contiguous
    ):
        return None
    if len(shape) == 2 and rows * lines <= 4096:
        out = _empty((rows, lines), _kind)
    else:
        out = made((*shape[:-1], lines), _kind)
    native.linear(out, x, weight, bias, rows, lines, depth)
    return out
