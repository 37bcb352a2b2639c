"""Storages that change their memory: resizing, and moving to shared memory.

On strided backends a tensor holds an alias of its storage's memory, and nobody keeps a list of
tensors, since every op would pay for it.  When memory moves, which is rare, the tensors over it are
therefore looked for among all living objects.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

from flambeau._memory.record import Storage, TensorBase, state_of
from flambeau._memory.views import geometry_of
from flambeau._storages.memory import cannot_hold, checked_size
from flambeau._types import dtype as D
from flambeau._types.strides import contiguous_strides

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor
    from flambeau._types.dtype import dtype as DType


def grown(st: Storage, size: int) -> tuple[Any, DType]:
    """Native memory of `size` bytes with those of `st`, cut off or followed by zeros; its dtype."""
    be = st._be
    dtype = D.uint8 if be.strided else st.dtype
    count = checked_size(size) // dtype.itemsize
    if be.device.type == "meta":
        return be.full((count,), 0, dtype), dtype
    held = st.nbytes()
    try:
        data = st.read(0, min(size, held)) + bytes(max(0, size - held))
        return be.backend.from_host(data, (count,), dtype, be.device.index or 0), dtype
    except (MemoryError, OverflowError) as error:  # Python's bytes count themselves too
        raise cannot_hold(size, error) from error


def move(
    st: Storage, buffer: Any, dtype: DType, mapping: object = None, alone: Tensor | None = None
) -> None:
    """Give a storage the memory of `buffer`; every living tensor over it follows.

    NumPy arrays and other foreign views keep the old memory.  If `alone` is known to be the only
    tensor over it, nobody has to look for others.

    Raises:
        RuntimeError: the new memory is too small for a tensor.
    """
    be = st._be
    if alone is not None:
        tensors, records = [alone], [st]
    elif be.strided:
        tensors, records = _over(st)
    else:
        tensors, records = [t for r in st.aliases if (t := r()) is not None], [st]
    moved = Storage(buffer, be, dtype)
    held = moved.nbytes()
    places = [(t, *geometry_of(t)) for t in tensors]
    for t, shape, stride, offset in places:
        last = offset + sum(s * (n - 1) for n, s in zip(shape, stride, strict=True))
        if 0 not in shape and (last + 1) * t.dtype.itemsize > held:
            raise RuntimeError(
                f"a tensor of shape {list(shape)} and dtype {t.dtype} uses "
                f"{(last + 1) * t.dtype.itemsize} bytes of this storage, which cannot shrink to "
                f"{held}; delete the tensor or give it other memory with set_() first"
            )
    for record in records:
        record.buffer, record.dtype, record.mapping = buffer, dtype, mapping
    for t, shape, stride, offset in places:
        if be.strided:
            t._a = be.backend.as_strided(moved.root(t.dtype), shape, stride, offset)
        else:
            step = (shape, stride, offset, contiguous_strides(buffer.shape), 0)
            t._a = be.as_strided_region(buffer, buffer.shape, *step)
            t._msteps = (("as_strided", step),)


def _over(st: Storage) -> tuple[list[Tensor], list[Storage]]:
    """The living tensors over the memory of `st`, and the records that count writes to it."""
    buffer = st.buffer
    tensors, records = [], []
    for found in gc.get_objects():
        kind = type(found)
        if kind is Storage:
            if found.buffer is buffer:
                records.append(found)
        elif issubclass(kind, TensorBase) and state_of(found).get("_st") is not None:
            if found._st.buffer is buffer:
                tensors.append(found)
    return tensors, records
