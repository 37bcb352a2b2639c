"""Views and rearrangements.  The view kernels return aliases, the others fresh arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau_cupy.device.array_module import Array, Kernel
from flambeau_cupy.layer import Layer


def slice_(layer: Layer, a: Array, items: tuple[Any, ...]) -> Array:
    return a[(*items, ...)]


def permute(layer: Layer, a: Array, dims: tuple[int, ...]) -> Array:
    return a.transpose(dims) if dims else a.view()


def view(layer: Layer, a: Array, shape: tuple[int, ...]) -> Array:
    found = a.reshape(shape)
    if found is a:
        return a.view()
    if a.size and layer.address(found) != layer.address(a):
        raise ValueError(f"cannot view shape {a.shape} with strides {a.strides} as {tuple(shape)}")
    return found


def expand(layer: Layer, a: Array, shape: tuple[int, ...]) -> Array:
    lead = len(shape) - a.ndim
    strides = [0] * lead
    for have, want, stride in zip(a.shape, shape[lead:], a.strides, strict=True):
        if have != want and have != 1:
            raise ValueError(f"cannot expand shape {a.shape} to {tuple(shape)}")
        strides.append(stride if have == want else 0)
    if lead and a.ndim:
        # A new dimension of size 1 has the stride that it would have in row-major memory.
        step = shape[lead] * strides[lead]
        for i in range(lead - 1, -1, -1):
            strides[i] = step = step if shape[i] == 1 else 0
    return layer.window(a, tuple(shape), tuple(strides), 0)


def diagonal(layer: Layer, a: Array, offset: int, dim1: int, dim2: int) -> Array:
    rest = [d for d in range(a.ndim) if d not in (dim1, dim2)]
    planes = a.transpose((*rest, dim1, dim2))
    planes = planes[..., max(-offset, 0) :, max(offset, 0) :]
    length = min(planes.shape[-2:])
    steps = (*planes.strides[:-2], planes.strides[-2] + planes.strides[-1])
    return layer.window(planes, (*planes.shape[:-2], length), steps, 0)


def cat(layer: Layer, arrays: Sequence[Array], dim: int) -> Array:
    return layer.xp.concatenate([a.view() for a in arrays], dim).copy("C")


def flip(layer: Layer, a: Array, dims: tuple[int, ...]) -> Array:
    turn = slice(None, None, -1)
    return a[tuple(turn if d in dims else slice(None) for d in range(a.ndim))].copy("C")


KERNELS: dict[str, Kernel] = {
    "slice": slice_,
    "permute": permute,
    "view": view,
    "expand": expand,
    "diagonal": diagonal,
    "cat": cat,
    "flip": flip,
}
"""Functions of a layer and what the op of their name is given."""
