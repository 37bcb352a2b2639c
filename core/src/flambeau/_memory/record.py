"""Storage: one allocation, the tensors that share it, and the count of writes to it.

This is the record that tensors keep; what users hold are `UntypedStorage` and `TypedStorage`, which
refer to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flambeau._types import dtype as D

if TYPE_CHECKING:
    import weakref

    from typing_extensions import TypeIs

    from flambeau._dispatch.bound import BoundBackend
    from flambeau._tensor.tensor import Tensor
    from flambeau._types.dtype import dtype as DType


class TensorBase:
    """What layers below the tensor know one by; `flambeau.Tensor` is the class that has methods."""

    __slots__ = ("__dict__", "__weakref__")


state_of: Callable[[Any], dict[str, Any]] = vars(TensorBase)["__dict__"].__get__
"""The dictionary of a tensor; its ``__dict__`` shows what programs have put there."""


def is_tensor(value: object) -> TypeIs[Tensor]:
    """Whether `value` is a tensor, for layers below its class."""
    return isinstance(value, TensorBase)


class Storage:
    """One flat allocation of a backend, made when somebody first shares or writes a tensor.

    A tensor without one is at version 0 and shares its memory with nobody.

    Attributes:
        version: number of in-place writes through any tensor that shares it.
        shared: whether several tensors (or foreign arrays) see this memory.
        buffer: the native array that owns the memory; on backends without strides, its current
        value.
        dtype: element type of the buffer; tensors over it may read it as another one.
        aliases: on backends without strides, weak references to the tensors to refresh after a
        write.
        mapping: the file or shared memory behind the buffer, None for ordinary memory.
        lent: whether an array of another library is over it, which could not follow it elsewhere.
    """

    version: int  # stored on each: views read them, and a class default would slow that down
    shared: bool
    buffer: Any
    aliases: list[weakref.ref[Any]] | tuple[()] = ()
    mapping: Any = None
    lent: bool = False

    _be: BoundBackend
    dtype: DType

    def __init__(self, buffer: Any, be: BoundBackend, dtype: DType) -> None:
        self.buffer = buffer
        self._be = be
        self.dtype = dtype
        self.version = 0
        self.shared = False

    def uncounted(self) -> Storage:
        """The same memory with a count of its own, for writes that nobody shall notice."""
        twin = Storage(self.buffer, self._be, self.dtype)
        twin.shared = True
        twin.mapping = self.mapping
        twin.lent = self.lent
        return twin

    @property
    def identity(self) -> int:
        """A number that storages over the same memory share, while one of them is alive."""
        be = self._be
        if not be.strided:
            return id(self)
        return be.backend.data_ptr(self.buffer) or id(self.buffer)

    def size(self) -> int:
        """Number of elements from the first to the last, gaps between them included."""
        shape = self.buffer.shape
        if 0 in shape:
            return 0
        be = self._be
        if not be.strided or be.backend.is_contiguous(self.buffer):
            count = 1
            for n in shape:
                count *= n
            return count
        strides = be.backend.strides(self.buffer)
        return 1 + sum(s * (n - 1) for s, n in zip(strides, shape, strict=True))

    def nbytes(self) -> int:
        """Number of bytes from the first to the last element."""
        return self.size() * self.dtype.itemsize

    def root(self, dtype: DType) -> Any:
        """The memory as a native array of `dtype`, an alias: where views of that dtype start.

        Raises:
            NotImplementedError: the backend cannot read its memory as another dtype.
        """
        if dtype is self.dtype:
            return self.buffer
        return self.vector(dtype)

    def vector(self, dtype: DType) -> Any:
        """All of the memory as a native vector of `dtype`, an alias."""
        return self._be.backend.reinterpret(self.buffer, dtype)

    def read(self, start: int, stop: int) -> bytes:
        """The bytes from `start` to `stop`.

        Raises:
            NotImplementedError: the device has no data.
        """
        be = self._be
        if be.strided:
            part = be.slice(self.vector(D.uint8), (slice(start, stop, 1),))
            return bytes(be.backend.to_host(part))
        return bytes(be.backend.to_host(self.buffer))[start:stop]

    def write(self, start: int, data: bytes) -> None:
        """Put `data` at byte `start`; tensors see it, and no write is counted."""
        be = self._be
        index = be.device.index or 0
        if not data:
            return
        if be.strided:
            part = be.slice(self.vector(D.uint8), (slice(start, start + len(data), 1),))
            be.assign(part, be.backend.from_host(data, (len(data),), D.uint8, index))
            return
        from flambeau._dispatch.dispatch import wrap
        from flambeau._writes.inplace import write

        held = bytearray(be.backend.to_host(self.buffer))
        held[start : start + len(data)] = data
        whole = wrap(be, self.buffer, self.dtype)
        whole._st, version = self, self.version
        write(whole, be.backend.from_host(bytes(held), self.buffer.shape, self.dtype, index))
        self.version = version
