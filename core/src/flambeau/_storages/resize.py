"""`Tensor.resize_`: another shape over the same memory, which grows if it must."""

from __future__ import annotations

import gc
from math import prod
from typing import TYPE_CHECKING, Any

from flambeau._memory.record import TensorBase, state_of
from flambeau._memory.views import geometry_of, register_alias, storage_of
from flambeau._storages.move import grown
from flambeau._storages.untyped import UntypedStorage
from flambeau._types.memory_format import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    is_contiguous,
    order_of_memory,
    preserve_format,
    preserved_order,
)
from flambeau._types.strides import contiguous_strides

if TYPE_CHECKING:
    from flambeau._memory.record import Storage
    from flambeau._tensor.tensor import Tensor


def resize(t: Tensor, shape: tuple[int, ...], memory_format: Any) -> Tensor:
    """`t` itself, of another shape from the place in memory where it starts.

    Memory never shrinks, so that elements come back when a tensor grows again; what is new is zero.
    Tensors over the same memory keep their elements, views of `t` theirs.

    Raises:
        RuntimeError: `t` requires a gradient, no tensor of so many dimensions has the memory
            format, or memory that cannot grow (a file's, or that of several processes) would have
            to.
    """
    if t.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    if memory_format is None and shape == tuple(t._a.shape):
        return t
    if memory_format is preserve_format:
        raise RuntimeError(f"Unsupported memory format {memory_format}")
    order = order_of_memory(memory_format or contiguous_format, len(shape))
    return _reshaped(t, shape, dense_strides(shape, order))


def _reshaped(t: Tensor, shape: tuple[int, ...], stride: tuple[int, ...]) -> Tensor:
    """`t` itself, with dense `stride`."""
    st = storage_of(t)
    views = _views_of(t) if st.shared else []
    offset = geometry_of(t)[2]
    itemsize = t.dtype.itemsize
    if (missing := (offset + prod(shape)) * itemsize - st.nbytes()) > 0 and 0 not in shape:
        _grow(t, st, st.nbytes() + missing)
    _see(t, st, shape, stride, offset)
    if t._base is not None:
        _restep(t, t._base)
    for view in views:
        _restep(view, view._base)
    return t


def dense_strides(shape: tuple[int, ...], order: list[int] | None) -> tuple[int, ...]:
    """Strides of dense memory with the dimensions in `order`, the slowest first."""
    if order is None:
        return contiguous_strides(shape)
    dense = contiguous_strides([shape[d] for d in order])
    return tuple(dense[order.index(d)] for d in range(len(shape)))


def _views_of(t: Tensor) -> list[Any]:
    """The living views that were made from `t` directly."""
    return [
        x
        for x in gc.get_objects()
        if issubclass(type(x), TensorBase)
        and (made := state_of(x).get("_view")) is not None
        and made[0] is t
    ]


def _grow(t: Tensor, st: Storage, nbytes: int) -> None:
    if st.shared:
        UntypedStorage._of(st).resize_(nbytes)
        return
    # Nobody else sees the memory: no search for those who do.
    st.buffer, st.dtype = grown(st, nbytes)
    if t._be.strided:
        st.buffer, st.dtype = st.root(t.dtype), t.dtype


def _see(
    t: Tensor, st: Storage, shape: tuple[int, ...], stride: tuple[int, ...], offset: int
) -> None:
    be = t._be
    root = st.root(t.dtype)
    if be.strided:
        t._a = be.backend.as_strided(root, shape, stride, offset)
        if st.dtype is t.dtype and not st.shared and prod(shape) == st.size():
            st.buffer = t._a
            return
    else:
        step = (shape, stride, offset, contiguous_strides(root.shape), 0)
        t._a = be.as_strided_region(root, root.shape, *step)
        t._msteps = (("as_strided", step),)
        if not st.shared:
            st.aliases = []
            register_alias(st, t)
    st.shared = True  # what lies behind the elements must stay


def _restep(view: Tensor, base: Any) -> None:
    """State `view` as a part of the memory of its base, whatever shapes were between."""
    shape, stride, offset = geometry_of(view)
    _, base_stride, base_offset = geometry_of(base)
    place = (shape, stride, offset, base_stride, base_offset)
    view._view = (base, "as_strided", place, "AsStrided")


def resize_like(t: Tensor, model: Tensor) -> Tensor:
    """`t` itself, with the shape of `model` and its order in memory."""
    shape, stride, _ = geometry_of(model)
    return _reshaped(t, tuple(shape), dense_strides(tuple(shape), preserved_order(shape, stride)))


def resize_as(t: Tensor, other: Tensor, memory_format: object) -> Tensor:
    """`t` itself, of the shape of `other` and, for ``preserve_format``, in its order in memory."""
    shape, stride, _ = geometry_of(other)
    if memory_format is preserve_format:
        known = (contiguous_format, channels_last, channels_last_3d)
        memory_format = next((m for m in known if is_contiguous(shape, stride, m)), known[0])
    return resize(t, tuple(shape), memory_format)
