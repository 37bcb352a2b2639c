"""Normalisation: over each channel of a batch, and over the last dimensions.

Statistics take two passes (mean, then squares about the mean), so a mean that is large against the
deviation costs no digits.  Planes are processed in blocks that stay in the cache between the steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from flambeau_numpy.allocator import empty
from flambeau_numpy.casts import is_half, narrow, wide
from flambeau_numpy.kernels.reduction import sum_columns, sum_over, sum_rows
from flambeau_numpy.pointwise import Array
from flambeau_numpy.silence import quiet

BLOCK = 1 << 16  # elements


class _Layout:
    """An input (N, C, ...) as matrices whose rows hold one channel's values, or columns if 2-d.

    Attributes:
        channels: C.
        count: values per channel.
        planes: whether rows are planes; otherwise the input is a matrix with a column per channel.
    """

    def __init__(self, x: Array) -> None:
        self.shape = x.shape
        self.images, self.channels = x.shape[:2]
        self.count = x.size // self.channels if self.channels else 0
        self.size = self.count // self.images if self.images else 0
        self.planes = self.size >= 8

    def table(self, x: Array) -> Array:
        """`x` as (images, channels, values), or (rows, channels) where planes are tiny."""
        x = np.ascontiguousarray(x)
        if self.planes:
            return x.reshape(self.images, self.channels, self.size)
        if self.size != 1:
            x = np.ascontiguousarray(np.moveaxis(x.reshape(*x.shape[:2], self.size), 1, 2))
        return x.reshape(-1, self.channels)

    def output(self, dtype: np.dtype) -> tuple[Array, Array]:
        """Room for a result, and the table to write: the result itself where the layout allows."""
        out = empty(self.shape, dtype)
        direct = self.planes or self.size == 1
        return out, self.table(out) if direct else empty((self.count, self.channels), dtype)

    def finish(self, out: Array, table: Array) -> Array:
        """`out`, after its table was written."""
        if not self.planes and self.size != 1:
            lines = table.reshape(self.images, self.size, self.channels).transpose(0, 2, 1)
            np.copyto(out.reshape(lines.shape), lines)
        return out

    def blocks(self) -> Iterator[tuple[Any, slice]]:
        """Index of a block in a table, and its channels."""
        if not self.planes:
            step = max(1, BLOCK // self.channels)
            for start in range(0, self.count, step):
                yield slice(start, start + step), slice(None)
            return
        step = max(1, BLOCK // self.size)
        for n in range(self.images):
            for start in range(0, self.channels, step):
                some = slice(start, start + step)
                yield (n, some), some

    def per_channel(self, v: Array, channels: slice) -> Array:
        """A vector of channels, to broadcast against a block."""
        return v[channels, None] if self.planes else v

    def total(self, table: Array) -> Array:
        """Sum of each channel, in float64."""
        if self.planes:
            return np.add.reduce(sum_over(table, (2,), False), 0, np.float64)
        return np.asarray(sum_over(table, (0,), False), np.float64)

    def dot(self, a: Array, b: Array) -> Array:
        """Sum of products of each channel of a block."""
        return np.einsum("ij,ij->i" if self.planes else "ij,ij->j", a, b)


@quiet
def batch_norm(
    x: Array, weight: Array | None, bias: Array | None, mean: Array, invstd: Array
) -> Array:
    """(x - mean)·invstd·weight + bias, per channel."""
    if is_half(x.dtype):
        wider = batch_norm(wide(x), weight, bias, wide(mean), wide(invstd))
        return narrow(wider, x.dtype)
    if not x.size:
        return x.copy()
    layout = _Layout(x)
    scale = invstd if weight is None else invstd * wide(weight)
    shift = -mean * scale if bias is None else wide(bias) - mean * scale
    table = layout.table(x)
    result, out = layout.output(x.dtype)
    for block, channels in layout.blocks():
        y = np.multiply(table[block], layout.per_channel(scale, channels), out[block])
        y += layout.per_channel(shift, channels)
    return layout.finish(result, out)


@quiet
def batch_norm_train(
    x: Array, weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array]:
    """`batch_norm` with the statistics of `x`; also its mean and 1 / sqrt(variance + eps).

    The variance is the biased one, Σ(x - mean)² / count.
    """
    if is_half(x.dtype):
        out, mean, invstd = batch_norm_train(wide(x), weight, bias, eps)
        return tuple(narrow(r, x.dtype) for r in (out, mean, invstd))  # type: ignore[return-value]
    layout = _Layout(x)
    if not x.size:
        unknown = np.full(layout.channels, np.nan, x.dtype)
        return x.copy(), unknown, unknown.copy()
    table = layout.table(x)
    mean = (layout.total(table) / layout.count).astype(x.dtype)
    result, out = layout.output(x.dtype)
    squares = np.zeros(layout.channels, np.float64)
    for block, channels in layout.blocks():
        d = np.subtract(table[block], layout.per_channel(mean, channels), out[block])
        squares[channels] += layout.dot(d, d)
    invstd = (1 / np.sqrt(squares / layout.count + eps)).astype(x.dtype)
    scale = invstd if weight is None else invstd * wide(weight)
    for block, channels in layout.blocks():
        d = out[block]
        d *= layout.per_channel(scale, channels)
        if bias is not None:
            d += layout.per_channel(wide(bias), channels)
    return layout.finish(result, out), mean, invstd


@quiet
def batch_norm_backward(
    grad: Array, x: Array, weight: Array | None, mean: Array, invstd: Array
) -> tuple[Array, Array, Array]:
    """The gradients of `batch_norm_train` with respect to input, weight and bias.

    With x̂ = (x - mean)·invstd: grad_bias = Σ g, grad_weight = Σ g·x̂ and
    grad_input = weight·invstd·(g - mean(g) - x̂·mean(g·x̂)), sums and means over each channel.
    """
    if is_half(x.dtype):
        moved = (wide(grad), wide(x), None if weight is None else wide(weight))
        dx, dw, db = batch_norm_backward(*moved, wide(mean), wide(invstd))
        kind = x.dtype if weight is None else weight.dtype
        return narrow(dx, x.dtype), narrow(dw, kind), narrow(db, kind)
    layout = _Layout(x)
    if not x.size:
        nothing = np.zeros(layout.channels, x.dtype)
        return x.copy(), nothing, nothing.copy()
    gs, xs = layout.table(grad), layout.table(x)
    result, out = layout.output(x.dtype)
    sums, products = layout.total(gs), np.zeros(layout.channels, np.float64)
    for block, channels in layout.blocks():
        d = np.subtract(xs[block], layout.per_channel(mean, channels), out[block])
        products[channels] += layout.dot(gs[block], d)
    products *= invstd
    scale = invstd if weight is None else invstd * weight
    centre = (sums / layout.count).astype(x.dtype)
    slope = (products / layout.count * invstd).astype(x.dtype)
    for block, channels in layout.blocks():
        d = out[block]
        d *= layout.per_channel(-slope, channels)
        d += gs[block]
        d -= layout.per_channel(centre, channels)
        d *= layout.per_channel(scale, channels)
    return layout.finish(result, out), products.astype(x.dtype), sums.astype(x.dtype)


def _row_sums(x: Array) -> Array:
    return sum_rows(x)[:, None]


@quiet
def layer_norm(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    normalized_shape: tuple[int, ...],
    eps: float,
) -> tuple[Array, Array, Array]:
    """(x - mean)·invstd·weight + bias over the last dimensions; also mean and invstd."""
    if is_half(x.dtype):
        factor, shift = (None if v is None else wide(v) for v in (weight, bias))
        found = layer_norm(wide(x), factor, shift, normalized_shape, eps)
        return tuple(narrow(r, x.dtype) for r in found)  # type: ignore[return-value]
    lead = x.shape[: x.ndim - len(normalized_shape)]
    columns = prod(normalized_shape)
    out = empty(x.shape, x.dtype)
    kept = (*lead, *(1,) * len(normalized_shape))
    if not x.size:
        return out, np.full(kept, np.nan, x.dtype), np.full(kept, np.nan, x.dtype)
    mean, invstd = np.empty(kept, x.dtype), np.empty(kept, x.dtype)
    table, result = np.ascontiguousarray(x).reshape(-1, columns), out.reshape(-1, columns)
    means, scales = mean.reshape(-1, 1), invstd.reshape(-1, 1)
    factor, shift = (None if v is None else v.reshape(-1) for v in (weight, bias))
    step = max(1, BLOCK // columns)
    for start in range(0, len(table), step):
        rows = slice(start, start + step)
        means[rows] = _row_sums(table[rows]) / columns
        d = np.subtract(table[rows], means[rows], result[rows])
        variance = np.einsum("ij,ij->i", d, d)[:, None] / columns
        scales[rows] = 1 / np.sqrt(variance + x.dtype.type(eps))
        d *= scales[rows]
        if factor is not None:
            d *= factor
        if shift is not None:
            d += shift
    return out, mean, invstd


@quiet
def layer_norm_backward(
    grad: Array,
    x: Array,
    weight: Array | None,
    mean: Array,
    invstd: Array,
    normalized_shape: tuple[int, ...],
) -> tuple[Array, Array, Array]:
    """The gradients of `layer_norm` with respect to input, weight and bias.

    With p = g·weight: grad_input = invstd·(p - mean(p) - x̂·mean(p·x̂)), means over each row.
    """
    if is_half(x.dtype):
        moved = (None if v is None else wide(v) for v in (grad, x, weight, mean, invstd))
        found = layer_norm_backward(*moved, normalized_shape)  # type: ignore[arg-type]
        return tuple(narrow(r, x.dtype) for r in found)  # type: ignore[return-value]
    columns = prod(normalized_shape)
    out = empty(x.shape, x.dtype)
    over_weight, over_bias = (np.zeros(normalized_shape, x.dtype) for _ in "wb")
    if not x.size:
        return out, over_weight, over_bias
    tables = (np.ascontiguousarray(a).reshape(-1, columns) for a in (grad, x))
    gs, xs = tables
    result, means, scales = out.reshape(-1, columns), mean.reshape(-1, 1), invstd.reshape(-1, 1)
    factor = None if weight is None else weight.reshape(-1)
    sums_w, sums_b = over_weight.reshape(-1), over_bias.reshape(-1)
    step = max(1, min(BLOCK // columns, len(xs)))
    xhat, term = (np.empty((step, columns), x.dtype) for _ in "xt")
    for start in range(0, len(xs), step):
        rows = slice(start, start + step)
        g, target = gs[rows], result[rows]
        h, t = xhat[: len(g)], term[: len(g)]
        np.subtract(xs[rows], means[rows], h)
        h *= scales[rows]
        sums_w += np.einsum("ij,ij->j", g, h)
        sums_b += sum_columns(g)
        p = g if factor is None else np.multiply(g, factor, t)
        slope = np.einsum("ij,ij->i", p, h)[:, None] / columns
        np.subtract(p, _row_sums(p) / columns, target)
        h *= slope
        target -= h
        target *= scales[rows]
    return out, over_weight, over_bias


@quiet
def group_norm(
    x: Array, weight: Array | None, bias: Array | None, groups: int, eps: float
) -> tuple[Array, Array, Array]:
    """(x - mean)·invstd·weight + bias with the statistics of each group; also mean and invstd."""
    if is_half(x.dtype):
        factor, shift = (None if v is None else wide(v) for v in (weight, bias))
        found = group_norm(wide(x), factor, shift, groups, eps)
        return tuple(narrow(r, x.dtype) for r in found)  # type: ignore[return-value]
    (batch, channels), size = x.shape[:2], prod(x.shape[2:])
    columns = channels // groups * size
    rows = np.ascontiguousarray(x).reshape(batch * groups, columns)
    out, mean, invstd = layer_norm(rows, None, None, (columns,), eps)
    planes = out.reshape(batch, channels, size)
    if weight is not None:
        planes *= weight[:, None]
    if bias is not None:
        planes += bias[:, None]
    return out.reshape(x.shape), mean.reshape(batch, groups), invstd.reshape(batch, groups)


@quiet
def group_norm_backward(
    grad: Array, x: Array, weight: Array | None, mean: Array, invstd: Array, groups: int
) -> tuple[Array, Array, Array]:
    """The gradients of `group_norm` with respect to input, weight and bias."""
    if is_half(x.dtype):
        moved = (None if v is None else wide(v) for v in (grad, x, weight, mean, invstd))
        found = group_norm_backward(*moved, groups)  # type: ignore[arg-type]
        return tuple(narrow(r, x.dtype) for r in found)  # type: ignore[return-value]
    (batch, channels), size = x.shape[:2], prod(x.shape[2:])
    columns = channels // groups * size
    rows = np.ascontiguousarray(x).reshape(batch * groups, columns)
    g = np.ascontiguousarray(grad).reshape(batch, channels, size)
    means, scales = mean.reshape(-1, 1), invstd.reshape(-1, 1)
    p = (g if weight is None else g * weight[:, None]).reshape(rows.shape)
    over, *_ = layer_norm_backward(p, rows, None, means, scales, (columns,))
    xhat = ((rows - means) * scales).reshape(g.shape)
    over_weight = np.einsum("nci,nci->c", g, xhat)
    return over.reshape(x.shape), over_weight, sum_over(g, (0, 2), False)


KERNELS = {
    "group_norm": group_norm,
    "group_norm_backward": group_norm_backward,
    "layer_norm": layer_norm,
    "layer_norm_backward": layer_norm_backward,
    "batch_norm": batch_norm,
    "batch_norm_train": batch_norm_train,
    "batch_norm_backward": batch_norm_backward,
}
