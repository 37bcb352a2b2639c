"""Shapes: views, joins, paddings, constants."""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.onnx._operators.table import (
    Context,
    UnsupportedError,
    axis_of,
    dtype_of,
    integers,
    number,
    operator,
)


@operator("Constant")
def _constant(c: Context, **attributes: object) -> Any:
    ((name, value),) = attributes.items()
    if name in ("value", "sparse_value"):
        return value
    if "string" in name:
        raise UnsupportedError("Constant: tensors of strings")
    return fb.tensor(value, dtype=fb.float32 if "float" in name else fb.int64)


@operator("ConstantOfShape")
def _constant_of_shape(c: Context, shape: Tensor, value: Tensor | None = None) -> Tensor:
    value = fb.zeros(1) if value is None else value
    return value.reshape(()).expand(integers(shape)).clone()


@operator("Shape")
def _shape(c: Context, x: Tensor, start: int = 0, end: int | None = None) -> Tensor:
    return fb.tensor(list(x.shape)[slice(start, end)], dtype=fb.int64)


@operator("Size")
def _size(c: Context, x: Tensor) -> Tensor:
    return fb.tensor(x.numel(), dtype=fb.int64)


@operator("Reshape")
def _reshape(
    c: Context,
    x: Tensor,
    sizes: Tensor | None = None,
    shape: list[int] | None = None,
    allowzero: int = 0,
    consumed_inputs: object = None,
) -> Tensor:
    wanted = integers(sizes if shape is None else shape)
    if not allowzero:
        wanted = [x.shape[i] if n == 0 else n for i, n in enumerate(wanted)]
    if -1 in wanted and 0 in wanted:  # of no elements: the rest of them
        rest = math.prod(n for n in x.shape if n) // max(math.prod(n for n in wanted if n > 0), 1)
        wanted = [rest if n == -1 else n for n in wanted]
    return x.reshape(wanted)


@operator("Flatten")
def _flatten(c: Context, x: Tensor, axis: int = 1) -> Tensor:
    axis = axis + x.dim() if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@operator("Concat")
def _concat(c: Context, *inputs: Tensor, axis: int = 1) -> Tensor:
    return fb.cat(inputs, axis)


@operator("Transpose")
def _transpose(c: Context, x: Tensor, perm: list[int] | None = None) -> Tensor:
    return x.permute(*(range(x.dim())[::-1] if perm is None else perm))


@operator("Squeeze")
def _squeeze(
    c: Context, x: Tensor, dims: Tensor | None = None, axes: list[int] | None = None
) -> Tensor:
    given = dims if axes is None else axes
    if given is None:
        return x.squeeze()
    chosen = {axis_of(a, x.dim()) for a in integers(given)}
    for a in sorted(chosen):
        if x.shape[a] != 1:
            raise ValueError(f"Squeeze: dimension {a} has size {x.shape[a]}")
    return x.reshape([n for i, n in enumerate(x.shape) if i not in chosen])


@operator("Unsqueeze")
def _unsqueeze(
    c: Context, x: Tensor, dims: Tensor | None = None, axes: list[int] | None = None
) -> Tensor:
    given = integers(dims if axes is None else axes)
    for a in sorted(axis_of(a, x.dim() + len(given)) for a in given):
        x = x.unsqueeze(a)
    return x


@operator("Expand")
def _expand(c: Context, x: Tensor, shape: Tensor) -> Tensor:
    return x.expand(fb.broadcast_shapes(tuple(x.shape), tuple(integers(shape))))


@operator("Split")
def _split(
    c: Context,
    x: Tensor,
    sizes: Tensor | None = None,
    axis: int = 0,
    split: list[int] | None = None,
    num_outputs: int | None = None,
) -> tuple[Tensor, ...]:
    given = integers(sizes if split is None else split)
    if given:
        return tuple(x.split(given, axis))
    parts = num_outputs or c.outputs
    if parts != c.outputs:  # which, unlike the attribute, is as long as the file
        raise ValueError(f"Split: num_outputs is {parts}, and there are {c.outputs} outputs")
    each = -(-x.shape[axis] // parts)
    found = list(x.split(max(each, 1), axis))
    while len(found) < parts:
        found.append(x.narrow(axis, 0, 0))
    return tuple(found)


@operator("Tile")
def _tile(c: Context, x: Tensor, repeats: Tensor, axis: Tensor | None = None) -> Tensor:
    if axis is None:
        return x.repeat(*integers(repeats))
    times = [1] * x.dim()
    times[int(axis)] = int(repeats)
    return x.repeat(*times)


@operator("Trilu")
def _trilu(c: Context, x: Tensor, k: Tensor | None = None, upper: int = 1) -> Tensor:
    return (fb.triu if upper else fb.tril)(x, 0 if k is None else int(k))


@operator("Range")
def _range(c: Context, start: Tensor, limit: Tensor, delta: Tensor) -> Tensor:
    count = max(math.ceil((limit.item() - start.item()) / delta.item()), 0)
    steps = fb.arange(count, dtype=start.dtype if start.dtype.is_floating_point else fb.int64)
    return (start + steps * delta).to(start.dtype)


@operator("EyeLike")
def _eye_like(c: Context, x: Tensor, dtype: int | None = None, k: int = 0) -> Tensor:
    rows, columns = x.shape
    one = fb.arange(rows).unsqueeze(1) + k == fb.arange(columns)
    return one.to(x.dtype if dtype is None else dtype_of(dtype))


@operator("DepthToSpace")
def _depth_to_space(c: Context, x: Tensor, blocksize: int, mode: str = "DCR") -> Tensor:
    n, channels, h, w = x.shape
    b, rest = blocksize, channels // blocksize**2
    if mode == "DCR":
        x = x.reshape(n, b, b, rest, h, w).permute(0, 3, 4, 1, 5, 2)
    else:
        x = x.reshape(n, rest, b, b, h, w).permute(0, 1, 4, 2, 5, 3)
    return x.reshape(n, rest, h * b, w * b)


@operator("SpaceToDepth")
def _space_to_depth(c: Context, x: Tensor, blocksize: int, mode: str = "DCR") -> Tensor:
    n, channels, h, w = x.shape
    b = blocksize
    x = x.reshape(n, channels, h // b, b, w // b, b)
    x = x.permute(0, 3, 5, 1, 2, 4) if mode == "DCR" else x.permute(0, 1, 3, 5, 2, 4)
    return x.reshape(n, channels * b * b, h // b, w // b)


@operator("Pad")
def _pad(
    c: Context,
    x: Tensor,
    amounts: Tensor | None = None,
    fill: Tensor | None = None,
    over: Tensor | None = None,
    pads: list[int] | None = None,
    paddings: list[int] | None = None,
    value: float = 0.0,
    mode: str = "constant",
) -> Tensor:
    given = amounts if amounts is not None else pads if pads is not None else paddings
    ends = integers(given)
    dims = [axis_of(a, x.dim()) for a in integers(over)] if over is not None else range(x.dim())
    constant = value if fill is None else number(fill)
    for j, dim in enumerate(dims):
        x = pad_dim(x, dim, ends[j], ends[len(ends) // 2 + j], mode, constant)
    return x


def pad_dim(
    x: Tensor, dim: int, before: int, after: int, mode: str = "constant", value: Any = 0
) -> Tensor:
    """A tensor with more, or for negative numbers less, at both ends of a dimension.

    Raises:
        UnsupportedError: `mode` is none of constant, edge, reflect, wrap.
    """
    if before < 0 or after < 0:
        size = x.shape[dim] + min(before, 0) + min(after, 0)
        x = x.narrow(dim, max(-before, 0), size)
        before, after = max(before, 0), max(after, 0)
    if before == after == 0:
        return x
    size = x.shape[dim]
    if mode == "constant":
        sizes = list(x.shape)
        ends = []
        for amount in (before, after):
            sizes[dim] = amount
            ends.append(fb.full(sizes, value, dtype=x.dtype, device=x.device))
        return fb.cat([ends[0], x, ends[1]], dim)
    places = fb.arange(-before, size + after, device=x.device)
    if mode == "edge":
        places = places.clamp(0, size - 1)
    elif mode == "wrap":
        places = places.remainder(size)
    elif mode == "reflect":
        period = max(2 * (size - 1), 1)
        places = places.remainder(period)
        places = fb.where(places < size, places, period - places)
    else:
        raise UnsupportedError(f"Pad: mode {mode!r}")
    return x.index_select(dim, places)


@operator("CenterCropPad")
def _center_crop_pad(c: Context, x: Tensor, shape: Tensor, axes: list[int] | None = None) -> Tensor:
    dims = range(x.dim()) if axes is None else [axis_of(a, x.dim()) for a in axes]
    for dim, size in zip(dims, integers(shape), strict=True):
        more = size - x.shape[dim]
        if more < 0:
            x = x.narrow(dim, -more // 2, size)
        else:
            x = pad_dim(x, dim, more // 2, more - more // 2)
    return x


@operator("OneHot")
def _one_hot(c: Context, x: Tensor, depth: Tensor, values: Tensor, axis: int = -1) -> Tensor:
    size = int(depth.reshape(()))
    places = fb.arange(size, device=x.device)
    x = x.long()
    x = fb.where(x < 0, x + size, x)
    hot = x.unsqueeze(-1) == places
    return fb.where(hot, values[1], values[0]).movedim(-1, axis)
