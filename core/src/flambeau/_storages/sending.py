"""Tensors on their way to other processes: they move to shared memory, and its place is sent."""

from __future__ import annotations

import sys
from multiprocessing import reduction
from typing import TYPE_CHECKING, Any

from flambeau._dispatch import dispatch
from flambeau._memory.record import TensorBase
from flambeau._memory.views import logical_geometry, storage_of
from flambeau._storages import descriptors, shared
from flambeau._storages.memory import tensor_in
from flambeau._storages.move import move
from flambeau._storages.typed import LEGACY, TypedStorage
from flambeau._storages.untyped import UntypedStorage
from flambeau._types import dtype as D

if TYPE_CHECKING:
    from flambeau._memory.record import Storage
    from flambeau._tensor.tensor import Tensor
    from flambeau._types.dtype import dtype as DType


def share(t: Tensor) -> None:
    """Move a tensor of the CPU, and all others over its memory, to shared memory."""
    if not t.is_sparse and t._be.strided and t.device.type == "cpu":
        st = storage_of(t)
        # Parameters see memory that once was another's.  Three: the tensor, or the record, whose it
        # is; the variable, or the tensor's array; and the argument of the call.
        alone = not st.shared or (
            sys.getrefcount(st) == 3 and sys.getrefcount(st.buffer) == 2 + (t._a is st.buffer)
        )
        if alone and st.mapping is None:
            if st.nbytes():
                take_over(st, [t])
            return
    t.untyped_storage().share_memory_()


def take_over(st: Storage, known: list[Tensor] | None = None) -> None:
    """Move a storage to shared memory; `known` are all the tensors over it, as far as known."""
    block = shared.filled(st)
    move(st, block.buffer, D.uint8, block.mapping, known)
    shared.adopt(st, block)


_moves = False


def register(*, moves: bool = False) -> None:
    """Let the pickler of `multiprocessing` send shared memory by its descriptor.

    Memory that is not shared yet is copied; once somebody has asked for `moves`, it is moved to
    shared memory by being sent, as ``torch.multiprocessing`` does.
    """
    global _moves
    _moves = _moves or moves

    def place_of(st: Storage) -> tuple[Any, ...] | None:
        """What tells another process where the memory is; None where it gets a copy."""
        mapping = st.mapping
        if mapping is None or not mapping.shared or mapping.filename is not None:
            return None
        if (name := mapping.name) is None:
            return descriptors.lent(mapping.fd, *mapping.key), st.nbytes()
        name.sent()
        return name.home, name.name, st.nbytes()

    def reduce_untyped(storage: UntypedStorage) -> Any:
        if storage.device.type == "cpu" and storage.nbytes() and _moves:
            storage.share_memory_()
        if (place := place_of(storage._st)) is None:
            return storage.__reduce_ex__(2)
        return _storage_at, (place,)

    def reduce_typed(storage: TypedStorage) -> tuple[Any, ...]:
        return _retyped, (storage.untyped(), storage.dtype)

    def reduce_tensor(t: Tensor) -> tuple[Any, ...]:
        if t.requires_grad and not t.is_leaf:
            raise RuntimeError(
                "Cowardly refusing to serialize non-leaf tensor which requires_grad, since "
                "autograd does not support crossing process boundaries. If you just want to "
                "transfer the data, call detach() on the tensor before serializing (e.g., putting "
                "it on the queue)."
            )
        if t.is_sparse or not t._be.strided:
            return t.__reduce_ex__(2)
        if _moves and t.device.type == "cpu":
            share(t)
        st = storage_of(t)
        st.shared = True  # writes must happen in this memory from now on
        if (place := place_of(st)) is None:
            return t.__reduce_ex__(2)
        shape, stride, offset = logical_geometry(t)
        facts = place, t.dtype.name, offset, tuple(shape), stride
        kind = type(t)
        if kind is dispatch.Tensor_ and not t.requires_grad:
            return _tensor_at, facts
        return _subclass_at, (kind, t.requires_grad, *facts)

    pickler = reduction.ForkingPickler
    pickler.register(UntypedStorage, reduce_untyped)
    for kind in (TypedStorage, *LEGACY.values()):
        pickler.register(kind, reduce_typed)
    kinds: list[type] = [TensorBase]
    while kinds:
        kind = kinds.pop()
        pickler.register(kind, reduce_tensor)
        kinds += kind.__subclasses__()


def _storage_at(place: tuple[Any, ...]) -> UntypedStorage:
    return UntypedStorage._of(_memory_at(*place))


def _memory_at(where: Any, *more: Any) -> Storage:
    """The storage whose place another process has told."""
    if len(more) == 2:
        return shared.attach_named(where, *more)
    return shared.attach(descriptors.detached(where), *more)


def _retyped(storage: Any, dtype: DType) -> TypedStorage:
    return TypedStorage(wrap_storage=storage, dtype=dtype)


def _tensor_at(place: tuple[Any, ...], dtype: str, *geometry: Any) -> Tensor:
    return tensor_in(_memory_at(*place), D._by_name(dtype), *geometry)


def _subclass_at(cls: type, requires_grad: bool, *facts: Any) -> Any:
    t = _tensor_at(*facts)
    return t._make_subclass(cls, t, requires_grad)
