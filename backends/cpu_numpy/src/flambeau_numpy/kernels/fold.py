"""Windows of images as columns, tap by tap, and their sum back into images."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flambeau_numpy.allocator import empty, zeros
from flambeau_numpy.casts import is_half, narrow, wide
from flambeau_numpy.pointwise import Array
from flambeau_numpy.silence import quiet

Pair = tuple[int, int]


def _counts(
    size: tuple[int, ...], kernel: Pair, dilation: Pair, padding: Pair, stride: Pair
) -> Pair:
    dims = zip(size, kernel, dilation, padding, stride, strict=True)
    down, across = ((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in dims)
    return down, across


def _taps(
    padded: Array, table: Array, counts: Pair, dilation: Pair, stride: Pair
) -> Iterator[tuple[Array, Array]]:
    """The elements of the padded images at each tap, and their place in (n, c, kh, kw, y, x)."""
    (oh, ow), (dh, dw), (sh, sw) = counts, dilation, stride
    for i in range(table.shape[2]):
        rows = padded[:, :, i * dh : i * dh + sh * (oh - 1) + 1 : sh]
        for j in range(table.shape[3]):
            yield rows[..., j * dw : j * dw + sw * (ow - 1) + 1 : sw], table[:, :, i, j]


@quiet
def im2col(x: Array, kernel: Pair, dilation: Pair, padding: Pair, stride: Pair) -> Array:
    """columns[n, (c, i, j), (y, x)] = padded[n, c, y·sh + i·dh, x·sw + j·dw]."""
    n, c, h, w = x.shape
    (ph, pw), (kh, kw) = padding, kernel
    counts = _counts((h, w), kernel, dilation, padding, stride)
    padded = x
    if ph or pw:
        padded = zeros((n, c, h + 2 * ph, w + 2 * pw), x.dtype)
        padded[:, :, ph : ph + h, pw : pw + w] = x
    table = empty((n, c, kh, kw, *counts), x.dtype)
    for pixels, place in _taps(padded, table, counts, dilation, stride):
        place[...] = pixels
    return table.reshape(n, c * kh * kw, counts[0] * counts[1])


@quiet
def col2im(
    columns: Array, size: Pair, kernel: Pair, dilation: Pair, padding: Pair, stride: Pair
) -> Array:
    """The adjoint of `im2col`."""
    if is_half(columns.dtype):
        wider = col2im(wide(columns), size, kernel, dilation, padding, stride)
        return narrow(wider, columns.dtype)
    n, rows, _ = columns.shape
    (h, w), (ph, pw), (kh, kw) = size, padding, kernel
    c = rows // (kh * kw)
    counts = _counts(size, kernel, dilation, padding, stride)
    padded = zeros((n, c, h + 2 * ph, w + 2 * pw), columns.dtype)
    table = columns.reshape(n, c, kh, kw, *counts)
    for pixels, place in _taps(padded, table, counts, dilation, stride):
        pixels += place
    return np.ascontiguousarray(padded[:, :, ph : ph + h, pw : pw + w])


KERNELS = {"im2col": im2col, "col2im": col2im}
