"""How `multiprocessing` sends tensors, by the names of PyTorch's file."""

from __future__ import annotations

import weakref
from multiprocessing.reduction import ForkingPickler
from typing import Any

from flambeau import Tensor
from flambeau._storages.sending import register

__all__ = ["ForkingPickler", "StorageWeakRef", "init_reductions", "reduce_storage", "reduce_tensor"]


def init_reductions() -> None:
    """Let tensors be sent by where their shared memory is, as importing the package does."""
    register(moves=True)


def reduce_tensor(tensor: Tensor) -> tuple[Any, ...]:
    """A function and its arguments that make the tensor in another process, over its memory."""
    reducers: dict[type, Any] = ForkingPickler._extra_reducers  # type: ignore[attr-defined]
    return reducers[type(tensor)](tensor)


reduce_storage = reduce_tensor


class StorageWeakRef:
    """A storage that is told apart and not kept: equal for all storages over one memory."""

    __slots__ = ("_record", "cdata")

    def __init__(self, storage: Any) -> None:
        untyped = getattr(storage, "_untyped_storage", storage)
        self.cdata = untyped._cdata
        self._record = weakref.ref(untyped._st)

    def expired(self) -> bool:
        """Whether nobody has the memory any more."""
        return self._record() is None

    def __hash__(self) -> int:
        return hash(self.cdata)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageWeakRef) and self.cdata == other.cdata
