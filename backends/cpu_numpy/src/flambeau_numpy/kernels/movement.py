"""Views and rearrangements.  The view kernels return aliases, the others fresh arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from flambeau_numpy.allocator import THRESHOLD, empty, zeros
from flambeau_numpy.casts import copy_order
from flambeau_numpy.kernels.elementwise import clone, contiguous
from flambeau_numpy.kernels.indexing import scatter_add_

Array = np.ndarray[Any, Any]
_ndarray = np.ndarray
SMALL = 1024  # elements, up to which a copy costs less than to ask whether there would be one
ASKS = np.lib.NumpyVersion(np.__version__) >= "2.1.0"  # knows reshape(copy=False)


def slice_(a: Array, items: tuple[Any, ...]) -> Array:
    """The region that full-length `items` select; None makes a new dimension."""
    r = a[items]
    return r if type(r) is _ndarray else a[(*items, ...)]  # all integers: NumPy copies to a scalar


slice_.part = operator.getitem  # type: ignore[attr-defined] - where a dimension is left: no frame


def view(a: Array, shape: tuple[int, ...]) -> Array:
    """`a` in another shape, over the same memory.

    Raises:
        ValueError: the strides of `a` do not allow it.
    """
    if a.size > SMALL and ASKS:
        return a.reshape(shape, copy=False)
    r = a.reshape(shape)
    base = r.base
    # A copy hides behind a base of its own; asking NumPy with copy=False takes twice as long.
    if base is a or base is a.base:
        return r
    raise ValueError("cannot view an array of such strides in that shape")


def expand(a: Array, shape: tuple[int, ...]) -> Array:
    """`a` with dimensions of size 1, and new leading ones, repeated by strides of 0."""
    have = a.shape
    lead = len(shape) - len(have)
    strides = [0] * lead
    strides += a.strides
    for d, n in enumerate(have, lead):
        if d < 0 or n != shape[d]:
            if d < 0 or n != 1:
                raise ValueError(f"cannot expand shape {have} to {tuple(shape)}")
            strides[d] = 0
    if lead and have:
        # A new dimension of size 1 has the stride that it would have in row-major memory.
        step = shape[lead] * strides[lead]
        for i in range(lead - 1, -1, -1):
            strides[i] = step = step if shape[i] == 1 else 0
    if a.flags.c_contiguous and a.size:
        return _ndarray(shape, a.dtype, a, 0, strides)
    return as_strided(a, shape, strides)


def diagonal(a: Array, offset: int, dim1: int, dim2: int) -> Array:
    """The diagonal of the planes of `dim1` and `dim2`, as last dimension."""
    r = a.diagonal(offset, dim1, dim2)
    if a.flags.writeable:
        r.flags.writeable = True
    return r


def make_cat(large: Callable[[Sequence[Array], int], Array]) -> Callable[..., Array]:
    """The kernel ``cat``; `large` joins large arrays."""
    join, row_major = np.concatenate, np.ascontiguousarray

    def cat(arrays: Sequence[Array], dim: int) -> Array:
        """The arrays joined along `dim`: row-major, or channels last if they all are so."""
        if len(arrays) * arrays[0].nbytes >= THRESHOLD:
            return large(arrays, dim)
        r = join(arrays, dim)  # keeps the order that the arrays have in common
        if r.flags.c_contiguous or all(_is_channels_last(a) for a in arrays):
            return r
        return row_major(r)

    return cat


def large_cat(arrays: Sequence[Array], dim: int) -> Array:
    """`cat` with a pooled result."""
    first = arrays[0]
    shape = list(first.shape)
    shape[dim] = sum(a.shape[dim] for a in arrays)
    if any(a.ndim != first.ndim for a in arrays) or prod(shape) != sum(a.size for a in arrays):
        return np.concatenate(arrays, dim)  # which words the error
    if all(_is_channels_last(a) for a in arrays):
        return np.concatenate(arrays, dim)
    return np.concatenate(arrays, dim, empty(shape, first.dtype))


def make_stack(large: Callable[[Sequence[Array], int], Array]) -> Callable[..., Array]:
    """The kernel ``stack``; `large` joins large arrays."""
    join, row_major, made = np.concatenate, np.ascontiguousarray, np.empty

    def stack(arrays: Sequence[Array], dim: int) -> Array:
        """The arrays joined along a new dimension, row-major."""
        first, count = arrays[0], len(arrays)
        shape = first.shape
        if count * first.nbytes >= THRESHOLD:
            return large(arrays, dim)
        if shape and not dim:
            for a in arrays:
                if a.shape != shape:
                    raise ValueError(f"cannot stack arrays of shapes {shape} and {a.shape}")
            return row_major(join(arrays, 0)).reshape((count, *shape))
        out = made((*shape[:dim], count, *shape[dim:]), first.dtype)
        if not shape:
            out[...] = arrays
            return out
        places = out.transpose((dim, *range(dim), *range(dim + 1, out.ndim)))
        for i, a in enumerate(arrays):
            places[i] = a
        return out

    return stack


def large_stack(arrays: Sequence[Array], dim: int) -> Array:
    """`stack` with a pooled result."""
    first = arrays[0]
    out = empty((*first.shape[:dim], len(arrays), *first.shape[dim:]), first.dtype)
    places = out if dim == 0 else np.moveaxis(out, dim, 0)
    for place, array in zip(places, arrays, strict=True) if first.ndim else ():
        place[...] = array
    if not first.ndim:
        out[...] = arrays
    return out


def _is_channels_last(a: Array) -> bool:
    if a.ndim not in (4, 5) or a.flags.c_contiguous:
        return False
    steps = np.moveaxis(a, 1, -1).strides
    return steps[-1] > 0 and all(map(operator.ge, steps, steps[1:]))


def flip(a: Array, dims: tuple[int, ...]) -> Array:
    """A copy with the order along `dims` reversed; the order of dimensions in memory is kept."""
    turn = slice(None, None, -1)
    return a[tuple(turn if d in dims else slice(None) for d in range(a.ndim))].copy(copy_order(a))


def roll(a: Array, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Array:
    """Moved along dimensions that have elements; what is pushed out enters at the other end."""
    found = a
    for shift, d in zip(shifts, dims, strict=True):
        if cut := -shift % a.shape[d]:
            lines = np.moveaxis(found, d, 0)
            moved = np.moveaxis(found := empty(a.shape, a.dtype), d, 0)
            moved[: len(lines) - cut], moved[len(lines) - cut :] = lines[cut:], lines[:cut]
    return a.copy() if found is a else found


def slice_backward(grad: Array, shape: tuple[int, ...], items: tuple[Any, ...]) -> Array:
    """Zeros of `shape`, with `grad` in the region that `items` select."""
    out = zeros(shape, grad.dtype)
    out[items] = grad
    return out


def diagonal_backward(
    grad: Array, shape: tuple[int, ...], offset: int, dim1: int, dim2: int
) -> Array:
    """Zeros of `shape`, with `grad` on the diagonal."""
    out = zeros(shape, grad.dtype)
    diagonal(out, offset, dim1, dim2)[...] = grad
    return out


def view_put(a: Array, value: Array, steps: Sequence[Any]) -> Array:
    """A copy of `a` with the region that view steps select replaced by `value`."""
    reshapes = any(step[0] == "view" for step in steps)  # which strides of a copy may not allow
    out = contiguous(a) if reshapes else clone(a)
    _put(out, value, steps)
    return out


def _put(region: Array, value: Array, steps: Sequence[Any]) -> None:
    for i, (op, args, _, _) in enumerate(steps):
        if op == "as_strided":
            places = _places_in(region.shape, *args)
            flat = np.append(region, region.dtype.type(0))  # one more, for what lies outside
            part = np.asarray(flat[places])
            _put(part, value, steps[i + 1 :])
            flat[places] = part
            region[...] = flat[:-1].reshape(region.shape)
            return
        region = _STEPS[op](region, *args)
    region[...] = value


def _unfold(a: Array, dim: int, size: int, step: int) -> Array:
    shape, strides = list(a.shape), list(a.strides)
    shape[dim], strides[dim] = (shape[dim] - size) // step + 1, strides[dim] * step
    return as_strided(a, (*shape, size), (*strides, a.strides[dim]))


_STEPS: dict[str, Callable[..., Array]] = {
    "slice": slice_,
    "permute": np.ndarray.transpose,
    "view": view,
    "expand": expand,
    "diagonal": diagonal,
    "unfold": _unfold,
}


def as_strided_region(a: Array, base: tuple[int, ...], shape: tuple[int, ...], *how: Any) -> Array:
    """What strides select of memory that holds `a`, of shape `base`, by strides of its own."""
    if (start := _first_within(base, shape, *how)) is not None:
        flat = np.ascontiguousarray(a).reshape(-1)
        return np.array(_strided(flat, shape, how[0], start), order="C")
    return np.append(a, a.dtype.type(0))[_places_in(base, shape, *how)]


def as_strided_backward(
    grad: Array, base: tuple[int, ...], shape: tuple[int, ...], *how: Any
) -> Array:
    """Zeros of shape `base` with `grad` added where strides select elements of their memory."""
    count, start = prod(base), _first_within(base, shape, *how)
    out = zeros((count if start is not None else count + 1,), grad.dtype)
    if start is not None and _are_apart(shape, how[0]):
        _strided(out, shape, how[0], start)[...] = grad
    else:
        scatter_add_(out, 0, _places_in(base, shape, *how).reshape(-1), grad.reshape(-1))
    return out[:count].reshape(base)


def _strided(flat: Array, shape: tuple[int, ...], stride: tuple[int, ...], start: int) -> Array:
    if 0 in shape:
        return flat[:0].reshape(shape)
    return _ndarray(
        shape, flat.dtype, flat, start * flat.itemsize, [s * flat.itemsize for s in stride]
    )


def _first_within(
    base: tuple[int, ...],
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    base_stride: tuple[int, ...],
    base_offset: int,
) -> int | None:
    """Where a row-major base has the first element of a region that lies in it; None of others."""
    step = 1
    for n, s in zip(reversed(base), reversed(base_stride), strict=True):
        if s != step:
            return None
        step *= max(n, 1)
    start = offset - base_offset
    return start if start >= 0 and start + _reach(shape, stride) < prod(base) else None


def _reach(shape: tuple[int, ...], stride: tuple[int, ...]) -> int:
    return sum([(n - 1) * s for n, s in zip(shape, stride, strict=True) if n])


def _are_apart(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """Whether strides surely select no element twice."""
    reach = 0
    for s, n in sorted(zip(stride, shape, strict=True)):
        if n > 1:
            if s <= reach:
                return False
            reach += (n - 1) * s
    return True


def _places_in(
    base: tuple[int, ...],
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    base_stride: tuple[int, ...],
    base_offset: int,
) -> Array:
    """Row-major positions in a base of what strides select, that after the last for all outside."""
    wanted = _places(shape, stride, offset)
    if _first_within(base, shape, stride, offset, base_stride, base_offset) is not None:
        return wanted - base_offset
    count = prod(base)
    most = max(offset + _reach(shape, stride), base_offset + _reach(base, base_stride))
    table = np.full(1 + most, count)
    table[_places(base, base_stride, base_offset).reshape(-1)] = np.arange(count)
    return table[wanted]


def _places(shape: tuple[int, ...], stride: tuple[int, ...], offset: int) -> Array:
    """The elements of a memory that strides select."""
    found = np.full(shape, offset)
    for d, (n, step) in enumerate(zip(shape, stride, strict=True)):
        found += (np.arange(n) * step).reshape((n,) + (1,) * (len(shape) - 1 - d))
    return found


KERNELS = {
    "slice": slice_,
    "slice_backward": slice_backward,
    "diagonal_backward": diagonal_backward,
    "view_put": view_put,
    "as_strided_region": as_strided_region,
    "as_strided_backward": as_strided_backward,
    "permute": np.ndarray.transpose,
    "view": view,
    "expand": expand,
    "diagonal": diagonal,
    "cat": make_cat(large_cat),
    "stack": make_stack(large_stack),
    "flip": flip,
    "roll": roll,
}
