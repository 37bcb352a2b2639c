"""Functions that move elements, or choose among them."""

from __future__ import annotations

import builtins
from typing import Any

import flambeau as fb
from flambeau import Tensor, broadcast_shapes
from flambeau._dispatch.annotated import all_take_as_annotated
from flambeau.array_api._dtypes import result_type
from flambeau.array_api._elementwise import pair

__all__ = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "take",
    "take_along_axis",
    "tile",
    "unstack",
    "where",
]


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """The tensors, expanded to one shape."""
    return list(fb.broadcast_tensors(*arrays))


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """The tensor, expanded to a shape."""
    return fb.broadcast_to(x, shape)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """The tensors one after another, with `axis` None after they are flattened."""
    dtype = result_type(*arrays)
    parts = [a.to(dtype) for a in arrays]
    return fb.cat([p.flatten() for p in parts] if axis is None else parts, dim=axis or 0)


def expand_dims(x: Tensor, /, axis: int) -> Tensor:
    """With a dimension of one element at `axis`.

    Raises:
        IndexError: there is no such place.
    """
    if not -x.ndim - 1 <= axis <= x.ndim:
        raise IndexError(f"expand_dims(): axis {axis} of a tensor with {x.ndim} dimensions")
    return fb.unsqueeze(x, axis)


def flip(x: Tensor, /, *, axis: object = None) -> Tensor:
    """With the elements along dimensions in reverse."""
    return fb.flip(x, axes(x, axis))


def axes(x: Tensor, axis: Any) -> tuple[int, ...]:
    """Dimensions from 0 on as a tuple: of all, of one, or of those that are given.

    Raises:
        IndexError: an axis is none of the dimensions.
        ValueError: an axis is given twice.
    """
    if axis is None:
        return tuple(range(x.ndim))
    given = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    for d in given:
        if not -x.ndim <= d < x.ndim:
            raise IndexError(f"axis {d} is none of {x.ndim} dimensions")
    found = tuple(d % x.ndim for d in given)
    if len(set(found)) < len(found):
        raise ValueError(f"axis: a dimension is given twice in {given}")
    return found


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """With dimensions at other places."""
    return fb.moveaxis(x, source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """With the dimensions in another order."""
    return fb.permute(x, axes)


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """With each element several times."""
    if isinstance(repeats, Tensor):
        repeats = repeats.to(fb.int64)
        if repeats.numel() == 1:
            repeats = int(repeats.item())
    return fb.repeat_interleave(x, repeats, dim=axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: builtins.bool | None = None) -> Tensor:
    """The elements in another shape.

    Raises:
        ValueError: `copy` is False and only a copy has the shape.
    """
    if copy is False:
        try:
            return x.view(shape)
        except RuntimeError as error:
            raise ValueError(f"reshape(): {error}") from error
    return fb.reshape(x.clone() if copy else x, shape)


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    """With the elements moved along dimensions; what leaves at one end enters at the other."""
    if axis is None or isinstance(axis, int):
        return fb.roll(x, shift, axis)
    shifts = (shift,) * len(axis) if isinstance(shift, int) else shift
    return fb.roll(x, shifts, axis)


def squeeze(x: Tensor, /, axis: object) -> Tensor:
    """Without dimensions of one element.

    Raises:
        ValueError: a dimension has more.
    """
    dims = axes(x, axis)
    if any(x.shape[d] != 1 for d in dims):
        raise ValueError(f"squeeze(): of shape {tuple(x.shape)} not all of {dims} are of size 1")
    return fb.squeeze(x, dims) if dims else x


def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """The tensors along a new dimension."""
    dtype = result_type(*arrays)
    return fb.stack([a.to(dtype) for a in arrays], dim=axis)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The elements at indices of a dimension."""
    axis = 0 if axis is None and x.ndim == 1 else axis
    if axis is None:
        raise ValueError("take(): of more than one dimension `axis` has to be given")
    flat = indices.to(fb.int64).flatten()
    found = fb.index_select(x, axis, fb.where(flat < 0, flat + x.shape[axis], flat))
    return found.unflatten(axis, tuple(indices.shape)) if indices.ndim != 1 else found


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements at indices of a dimension, which differ from place to place."""
    at = indices.to(fb.int64)
    return fb.take_along_dim(x, fb.where(at < 0, at + x.shape[axis], at), dim=axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """Several times along each dimension."""
    return fb.tile(x, repetitions)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts along a dimension."""
    return tuple(fb.unbind(x, axis))


def where(condition: Tensor, x1: object, x2: object, /) -> Tensor:
    """Elements of one where a condition holds, of the other elsewhere."""
    return fb.where(condition, *pair(x1, x2))


all_take_as_annotated(globals())
