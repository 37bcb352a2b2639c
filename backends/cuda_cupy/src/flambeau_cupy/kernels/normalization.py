"""Normalisation of channels and of the last dimensions; halves are computed in float32."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flambeau_cupy.device.array_module import Array, Kernel, channels_last
from flambeau_cupy.device.launch import blocks_for, columns_for, rows_for
from flambeau_cupy.dtypes import accumulator
from flambeau_cupy.kernels._operands import demand
from flambeau_cupy.layer import Layer

Three = tuple[Array, Array, Array]


def parameters(
    layer: Layer, kind: np.dtype, *given: Array | None
) -> tuple[list[Array | None], np.int32]:
    """Vectors of one dtype, which is `kind` or what it is computed in, and whether the last."""
    wide = any(v is not None and v.dtype != kind for v in given)
    wanted = accumulator(kind) if wide else kind
    made = [None if v is None else layer.dense(v.astype(wanted, copy=False)) for v in given]
    return made, np.int32(wide)


def unknown(layer: Layer, shape: tuple[int, ...], kind: np.dtype) -> Array:
    return layer.xp.full(shape, np.nan, np.float32).astype(kind)


def layer_norm(
    layer: Layer,
    x: Array,
    weight: Array | None,
    bias: Array | None,
    shape: tuple[int, ...],
    eps: float,
) -> Three:
    xp = layer.xp
    demand("layer_norm", "input", x, (*x.shape[: x.ndim - len(shape)], *shape))
    for what, vector in (("weight", weight), ("bias", bias)):
        demand("layer_norm", what, vector, shape)
    x, kind = layer.dense(x), x.dtype
    kept = (*x.shape[: x.ndim - len(shape)], *(1,) * len(shape))
    out = xp.empty(x.shape, kind)
    if not x.size:
        return out, unknown(layer, kept, kind), unknown(layer, kept, kind)
    columns = prod(shape)
    rows = x.size // columns
    mean, invstd = xp.empty(kept, kind), xp.empty(kept, kind)
    vectors, wide = parameters(layer, kind, weight, bias)
    layer.launched(
        *(kind, "layer_norm_forward", *rows_for(rows, columns)),
        *(out, mean, invstd, x, *vectors, wide),
        *(np.int64(rows), np.int64(columns), np.float64(eps)),
    )
    return out, mean, invstd


def layer_norm_backward(
    layer: Layer,
    grad: Array,
    x: Array,
    weight: Array | None,
    mean: Array,
    invstd: Array,
    shape: tuple[int, ...],
) -> Three:
    xp = layer.xp
    kind = x.dtype
    into = kind if weight is None else weight.dtype
    if not x.size:
        return (
            xp.empty(x.shape, kind),
            xp.zeros(shape, into),
            xp.zeros(shape, into),
        )
    columns = prod(shape)
    grad, x, mean, invstd = _dense_of(layer, kind, grad, x, mean, invstd)
    out = _over_rows(layer, grad, x, weight, mean, invstd, columns)
    over_weight, over_bias = (xp.empty(shape, accumulator(kind)) for _ in "wb")
    layer.launched(
        *(kind, "layer_norm_backward_weight", *columns_for(columns)),
        *(over_weight, over_bias, grad, x, mean, invstd),
        *(np.int64(x.size // columns), np.int64(columns)),
    )
    return out, over_weight.astype(into, copy=False), over_bias.astype(into, copy=False)


def _dense_of(layer: Layer, kind: np.dtype, *arrays: Array) -> list[Array]:
    return [layer.dense(a.astype(kind, copy=False)) for a in arrays]


def _over_rows(
    layer: Layer,
    grad: Array,
    x: Array,
    weight: Array | None,
    mean: Array,
    invstd: Array,
    columns: int,
) -> Array:
    """The gradient of normalised rows; all but the weight are dense and of one dtype."""
    (factor,), wide = parameters(layer, x.dtype, weight)
    rows, out = x.size // columns, layer.xp.empty(x.shape, x.dtype)
    layer.launched(
        *(x.dtype, "layer_norm_backward_input", *rows_for(rows, columns)),
        *(out, grad, x, factor, wide, mean, invstd, np.int64(rows), np.int64(columns)),
    )
    return out


def group_norm(
    layer: Layer, x: Array, weight: Array | None, bias: Array | None, groups: int, eps: float
) -> Three:
    """Groups are rows of a layer norm; weight and bias are of channels."""
    batch, channels = x.shape[:2]
    for what, vector in (("weight", weight), ("bias", bias)):
        demand("group_norm", what, vector, (channels,))
    rows, planes = _groups(layer, x, groups)
    out, mean, invstd = layer_norm(layer, rows, None, None, rows.shape[1:], eps)
    found = out.reshape(planes)
    if weight is not None:
        found = found * weight[:, None]
    if bias is not None:
        found = found + bias[:, None]
    found = found.astype(x.dtype, copy=False).reshape(x.shape)
    return found, mean.reshape(batch, groups), invstd.reshape(batch, groups)


def group_norm_backward(
    layer: Layer,
    grad: Array,
    x: Array,
    weight: Array | None,
    mean: Array,
    invstd: Array,
    groups: int,
) -> Three:
    rows, planes = _groups(layer, x, groups)
    g = layer.dense(grad).reshape(planes)
    p = g if weight is None else g * weight[:, None]
    kept = mean.reshape(-1, 1), invstd.reshape(-1, 1)
    if x.size:
        p, mean, invstd = _dense_of(layer, x.dtype, p.reshape(rows.shape), *kept)
        over = _over_rows(layer, p, rows, None, mean, invstd, rows.shape[1])
    else:
        over = layer.xp.empty(x.shape, x.dtype)
    normalised = ((rows - kept[0]) * kept[1]).reshape(planes)
    into = x.dtype if weight is None else weight.dtype
    sums = (terms.sum((0, 2)).astype(into, copy=False) for terms in (g * normalised, g))
    return over.reshape(x.shape), *sums


def _groups(layer: Layer, x: Array, groups: int) -> tuple[Array, tuple[int, int, int]]:
    """The rows that are normalised, and the shape of the planes of channels."""
    batch, channels = x.shape[:2]
    size = prod(x.shape[2:])
    rows = layer.dense(x).reshape(batch * groups, channels // groups * size)
    return rows, (batch, channels, size)


# An input is (images, channels, size) in memory; with the channels last it is a matrix with a
# column per channel, as it is if it has no other dimensions.
def laid_out(layer: Layer, x: Array, last: bool, kind: np.dtype) -> Array:
    x = x.astype(kind, copy=False)
    return layer.dense(layer.xp.moveaxis(x, 1, -1) if last else x)


def made_like(layer: Layer, table: Array, last: bool) -> tuple[Array, Array]:
    """A result, and its memory in the order of that of the input."""
    out = layer.xp.empty(table.shape, table.dtype)
    return (layer.xp.moveaxis(out, -1, 1) if last else out), out


def layout(x: Array, last: bool) -> tuple[int, int, int]:
    """Images, channels, and elements of a channel of one image."""
    if last or x.ndim == 2:
        return x.size // x.shape[1], x.shape[1], 1
    return x.shape[0], x.shape[1], prod(x.shape[2:])


def transformed(
    layer: Layer, table: Array, last: bool, sizes: tuple[int, int, int], *given: Array | None
) -> Array:
    weight, bias, mean, invstd = given
    kind, (_, channels, size) = table.dtype, sizes
    result, out = made_like(layer, table, last)
    statistics, wide_statistics = parameters(layer, kind, mean, invstd)
    vectors, wide = parameters(layer, kind, weight, bias)
    layer.launched(
        *(kind, "batch_norm_transform", *blocks_for(table.size), out, table, *vectors, wide),
        *(*statistics, wide_statistics),
        *(np.int64(channels), np.int64(size), np.int64(table.size)),
    )
    return result


def batch_norm(
    layer: Layer, x: Array, weight: Array | None, bias: Array | None, mean: Array, invstd: Array
) -> Array:
    statistics = (("mean", mean), ("invstd", invstd))
    for what, vector in (("weight", weight), ("bias", bias), *statistics):
        demand("batch_norm", what, vector, x.shape[1:2])
    if not x.size:
        return layer.xp.empty(x.shape, x.dtype)
    last = channels_last(x)
    table = laid_out(layer, x, last, x.dtype)
    return transformed(layer, table, last, layout(x, last), weight, bias, mean, invstd)


def through_channels(
    kind: np.dtype, name: str, sizes: tuple[int, int, int], *given: object
) -> tuple[Any, ...]:
    """The start of a launch that goes through channels: lanes are channels if neighbours."""
    images, channels, size = sizes
    first = np.int64(images), np.int64(channels)
    if size == 1:
        return kind, f"batch_norm_column_{name}", *columns_for(channels), *given, *first
    grid = rows_for(channels, images * size)
    return kind, f"batch_norm_{name}", *grid, *given, *first, np.int64(size)


def batch_norm_train(
    layer: Layer, x: Array, weight: Array | None, bias: Array | None, eps: float
) -> Three:
    xp = layer.xp
    for what, vector in (("weight", weight), ("bias", bias)):
        demand("batch_norm_train", what, vector, x.shape[1:2])
    kind, last = x.dtype, channels_last(x)
    channels = x.shape[1]
    if not x.size:
        return (
            xp.empty(x.shape, kind),
            unknown(layer, (channels,), kind),
            unknown(layer, (channels,), kind),
        )
    mean, invstd = xp.empty((channels,), kind), xp.empty((channels,), kind)
    table, sizes = laid_out(layer, x, last, kind), layout(x, last)
    given = mean, invstd, table
    layer.launched(*through_channels(kind, "statistics", sizes, *given), np.float64(eps))
    return transformed(layer, table, last, sizes, weight, bias, mean, invstd), mean, invstd


def batch_norm_backward(
    layer: Layer, grad: Array, x: Array, weight: Array | None, mean: Array, invstd: Array
) -> Three:
    xp = layer.xp
    kind, last = x.dtype, channels_last(x)
    into = kind if weight is None else weight.dtype
    channels = x.shape[1]
    if not x.size:
        return xp.empty(x.shape, kind), *(xp.zeros((channels,), into) for _ in "wb")
    table, grads = (laid_out(layer, a, last, kind) for a in (x, grad))
    sizes = layout(x, last)
    statistics, wide_statistics = parameters(layer, kind, mean, invstd)
    (factor,), wide = parameters(layer, kind, weight)
    sums = [xp.empty((channels,), accumulator(kind)) for _ in "wb"]
    given = *sums, grads, table, *statistics, wide_statistics
    layer.launched(*through_channels(kind, "sums", sizes, *given))
    result, out = made_like(layer, table, last)
    layer.launched(
        *(kind, "batch_norm_backward_input", *blocks_for(x.size), out, grads, table, factor),
        *(wide, *statistics, wide_statistics, *sums),
        *(np.int64(channels), np.int64(sizes[2]), np.int64(x.size)),
    )
    over_weight, over_bias = (s.astype(into, copy=False) for s in sums)
    return result, over_weight, over_bias


KERNELS: dict[str, Kernel] = {
    "group_norm": group_norm,
    "group_norm_backward": group_norm_backward,
    "layer_norm": layer_norm,
    "layer_norm_backward": layer_norm_backward,
    "batch_norm": batch_norm,
    "batch_norm_train": batch_norm_train,
    "batch_norm_backward": batch_norm_backward,
}
"""Functions of a layer and what the op of their name is given."""
