"""Storages that change their memory: resizing, and moving to shared memory.

On strided backends a tensor holds an alias of its storage's memory, and nobody keeps a list of
tensors, since every op would pay for it.  When memory moves, which is rare, the tensors over it are
therefore looked for among all living objects.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

from flambeau._storage import Storage
from flambeau._views import geometry_of

if TYPE_CHECKING:
    from flambeau._dtype import dtype as DType
    from flambeau._tensor import Tensor


def move(st: Storage, buffer: Any, dtype: DType, mapping: Any = None) -> None:
    """Give a storage the memory of `buffer`; every living tensor over it follows.

    NumPy arrays and other foreign views keep the old memory.

    Raises:
        RuntimeError: the new memory is too small for a tensor, or the backend has no strides and
            tensors see the storage.
    """
    tensors, records = _over(st)
    be = st._be
    if not be.strided:
        if any(r() is not None for r in st.aliases):
            raise RuntimeError(
                f"resize_: tensors of device {be.device} see this storage, and their arrays cannot "
                "follow it; resize a clone() of the storage"
            )
        st.buffer, st.dtype = buffer, dtype
        return
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
        t._a = be.backend.as_strided(moved.root(t.dtype), shape, stride, offset)


def _over(st: Storage) -> tuple[list[Tensor], list[Storage]]:
    """The living tensors over the memory of `st`, and the records that count writes to it."""
    from flambeau._tensor import Tensor

    buffer = st.buffer
    tensors, records = [], []
    for found in gc.get_objects():
        kind = type(found)
        if kind is Storage:
            if found.buffer is buffer:
                records.append(found)
        elif issubclass(kind, Tensor) and found.__dict__.get("_st") is not None:
            if found._st.buffer is buffer:
                tensors.append(found)
    return tensors, records
