"""Storage: one allocation, the tensors that share it, and the count of writes to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import weakref

    from flambeau._bound import BoundBackend
    from flambeau._dtype import dtype as DType


class Storage:
    """One flat allocation of a backend, made when somebody first shares or writes a tensor.

    A tensor without one is at version 0 and shares its memory with nobody.

    Attributes:
        version: number of in-place writes through any tensor that shares it.
        shared: whether several tensors (or foreign arrays) see this memory.
        buffer: the native array that owns the memory; on backends without strides, its current
        value.
        aliases: on backends without strides, weak references to the tensors to refresh after a
        write.
    """

    version = 0
    shared = False
    buffer: Any = None
    aliases: list[weakref.ref[Any]] | tuple[()] = ()

    _be: BoundBackend
    _dtype: DType

    def __init__(self, buffer: Any, be: BoundBackend, dtype: DType) -> None:
        self.buffer = buffer
        self._be = be
        self._dtype = dtype

    @property
    def device(self) -> Any:
        """The device whose backend allocated it."""
        return self._be.device

    @property
    def dtype(self) -> DType:
        """Element type of the tensor for which it was made."""
        return self._dtype

    def size(self) -> int:
        """Number of elements."""
        count = 1
        for n in self.buffer.shape:
            count *= n
        return count

    __len__ = size

    def nbytes(self) -> int:
        """Number of bytes."""
        return self.size() * self._dtype.itemsize

    def element_size(self) -> int:
        """Bytes of one element."""
        return self._dtype.itemsize

    def data_ptr(self) -> int:
        """Address of the first byte, 0 on backends whose memory has no address."""
        return self._be.backend.data_ptr(self.buffer) if self._be.strided else 0

    def tolist(self) -> list[Any]:
        """The elements as Python numbers, in memory order."""
        flat = self._be.flat(self.buffer)
        return self._be.backend.tolist(flat)

    def __getitem__(self, index: int) -> Any:
        return self.tolist()[index]

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return (
            f"[{self.__class__.__name__}: dtype={self._dtype}, device={self.device}, "
            f"size={self.size()}, version={self.version}]"
        )
