"""Storages that change their memory: resizing, and moving to shared memory.

On strided backends a tensor holds an alias of its storage's memory, and nobody keeps a list of
tensors, since every op would pay for it.  When memory moves, which is rare, the tensors over it are
therefore looked for among all living objects.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

from flambeau._memory.record import Storage, TensorBase
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
    st: Storage,
    buffer: Any,
    dtype: DType,
    mapping: object = None,
    known: list[Tensor] | None = None,
) -> None:
    """Give a storage the memory of `buffer`; every living tensor over it follows.

    NumPy arrays and other foreign views keep the old memory.  If `known` are all the tensors over
    it and no other record has this memory, nobody has to look for them.

    Raises:
        RuntimeError: the new memory is too small for a tensor.
    """
    be = st._be
    if known is not None:
        tensors, records = known, [st]
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
    records = [r for r in _owners(buffer) if type(r) is Storage and r.buffer is buffer]
    tensors = [
        t
        for t in _owners(*records)
        if issubclass(type(t), TensorBase) and any(t._st is r for r in records)
    ]
    return tensors, records


def _owners(*held: object) -> list[Any]:
    """The objects with one of these in an attribute, and others that refer to them."""
    found = gc.get_referrers(*held)
    # Once somebody has asked for the `__dict__` of an object, it is what refers to attributes.
    dicts = [each for each in found if type(each) is dict]
    owners = [each for each in found if type(each) is not dict]
    if dicts:
        owners += gc.get_referrers(*dicts)
    once = {id(each): each for each in owners}
    return list(once.values())
