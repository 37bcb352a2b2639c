"""What storages of both kinds need: making memory, parts of it, and tensors over it."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from flambeau._dispatch.bound import bind
from flambeau._dispatch.dispatch import wrap
from flambeau._memory.record import Storage, is_tensor
from flambeau._memory.views import register_alias, replay, storage_of
from flambeau._types import dtype as D
from flambeau._types.strides import contiguous_strides
from flambeau._writes.inplace import memory_steps
from flambeau.plugin.accelerator import OutOfMemoryError

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor
    from flambeau._types.dtype import dtype as DType
    from flambeau._types.hints import DeviceLike


def checked_size(size: int) -> int:
    """A number of bytes.

    Raises:
        RuntimeError: 64 bits cannot count them.
    """
    if size >= 1 << 63:
        raise RuntimeError(f"Storage size calculation overflowed: {size} bytes")
    return size


def cannot_hold(size: int, error: Exception) -> OutOfMemoryError:
    """What to raise where there is no memory for a storage."""
    if isinstance(error, OutOfMemoryError) and error.size is None:
        return error  # an accelerator has said it all
    return OutOfMemoryError(f"a storage: not enough memory. Tried to allocate {size} bytes")


def allocated(count: int, dtype: DType, device: Any) -> Storage:
    """Memory for `count` elements on a device.

    Raises:
        RuntimeError: 64 bits cannot count its bytes.
        OutOfMemoryError: there is too little.
    """
    be = bind(device)
    size = checked_size(count * dtype.itemsize)
    try:
        native = be.full((count,), 0, dtype)
    except MemoryError as error:
        raise cannot_hold(size, error) from error
    st = Storage(native, be, dtype)
    st.shared = True
    if not be.strided:
        st.aliases = []
    return st


def copied(st: Storage, device: DeviceLike) -> Storage:
    """A copy of memory on a device, in the same dtype."""
    if st._be.strided and bind(device) is st._be:
        made = storage_of(tensor_in(st, st.dtype).clone())
        made.shared = True
        return made
    made = allocated(st.size(), st.dtype, device)
    if st._be.device.type != "meta":
        made.write(0, st.read(0, st.nbytes()))
    return made


def from_arguments(name: str, args: tuple[Any, ...], dtype: DType, device: object) -> Storage:
    """The memory that a constructor's arguments ask for: nothing, a size, or numbers.

    Raises:
        TypeError: they are neither of these.
    """
    if not args:
        return allocated(0, dtype, device)
    data: Any = args[0] if len(args) == 1 else None
    if type(data) is int:
        if data < 0:
            raise RuntimeError(f"{name}(): the size must not be negative, got {data}")
        return allocated(data, dtype, device)
    if len(args) > 1 or is_tensor(data) or not hasattr(data, "__len__"):
        given = ", ".join(type(a).__name__ for a in args)
        raise TypeError(
            f"{name}() received an invalid combination of arguments ({given}). Expected one of: no "
            "arguments, (int size), (Sequence data)"
        )
    values: list[Any] = [*data]
    st = allocated(len(values), dtype, device)
    st.write(0, D.pack(values, dtype))
    return st


def part(st: Storage, start: int, stop: int) -> Storage:
    """The bytes from `start` to `stop` as memory of their own: an alias on strided devices."""
    be = st._be
    if be.strided:
        made = Storage(be.slice(st.vector(D.uint8), (slice(start, stop, 1),)), be, D.uint8)
        made.shared = True
        made.mapping = st.mapping
        return made
    made = allocated(stop - start, D.uint8, be.device)
    made.write(0, st.read(start, stop))
    return made


def position(index: Any, count: int) -> int:
    """A checked index, counted from the start.

    Raises:
        IndexError: it is out of range.
        TypeError: it is no integer.
    """
    try:
        i = operator.index(index)
    except TypeError as error:
        raise TypeError(
            f"can't index a storage with {type(index).__name__}: use an int or a slice"
        ) from error
    if not -count <= i < count:
        raise IndexError(f"index {i} out of range for storage of size {count}")
    return i + count if i < 0 else i


def span(index: slice, count: int) -> tuple[int, int]:
    """Start and stop of a slice.

    Raises:
        RuntimeError: its step is not 1.
    """
    start, stop, step = index.indices(count)
    if step != 1:
        raise RuntimeError(
            f"Trying to slice with a step of {step}, but only a step of 1 is supported"
        )
    return start, max(start, stop)


def swapped(data: bytes, size: int) -> bytes:
    """The bytes of each run of `size` in reverse order."""
    out = bytearray(len(data))
    for i in range(size):
        out[i::size] = data[size - 1 - i :: size]
    return bytes(out)


def listed(storage: Any) -> str:
    """The elements of a storage, one per line, as its `repr` begins."""
    if storage.device.type == "meta":
        return "..."
    return "\n".join(f" {value}" for value in storage.tolist()) or " "


def tensor_in(
    st: Storage,
    dtype: DType,
    offset: int = 0,
    shape: tuple[int, ...] | None = None,
    stride: tuple[int, ...] | None = None,
) -> Tensor:
    """A tensor over memory, by default over all of it, without history.

    Raises:
        NotImplementedError: the device cannot read its memory as another dtype.
    """
    be = st._be
    if shape is None:
        shape = (st.nbytes() // dtype.itemsize - offset,)
    if stride is None:
        stride = contiguous_strides(shape)
    st.shared = True
    if be.strided:
        t = wrap(be, be.backend.as_strided(st.root(dtype), shape, stride, offset), dtype)
        t._st = st
        return t
    if dtype is not st.dtype:
        raise NotImplementedError(
            f"device {be.device} keeps values, not bytes: memory of {st.dtype} cannot be shared as "
            f"{dtype}; x.view(dtype) makes a copy there"
        )
    root = st.buffer
    step = (shape, stride, offset, contiguous_strides(root.shape), 0)
    t = wrap(be, be.as_strided_region(root, root.shape, *step), dtype)
    t._st, t._msteps = st, (("as_strided", step),)
    register_alias(st, t)
    return t


def shown_in(st: Storage, t: Tensor) -> Tensor:
    """What `t` shows of its memory, in a copy of that memory; without history."""
    be = st._be
    if be.strided or st.dtype is not t.dtype:
        return tensor_in(st, t.dtype, t.storage_offset(), tuple(t._a.shape), t.stride())
    st.shared = True
    made = wrap(be, st.buffer, t.dtype)
    made._st = st
    made._msteps = (("view", (tuple(storage_of(t).buffer.shape),)), *t._msteps)
    made._a = replay(be, st.buffer, memory_steps(made))
    register_alias(st, made)
    return made
