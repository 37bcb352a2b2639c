"""`UntypedStorage`: the bytes of one allocation, as users hold them."""

from __future__ import annotations

import builtins
import operator
import sys
from typing import TYPE_CHECKING, Any

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import sizes
from flambeau._dispatch.bound import bind
from flambeau._memory.record import Storage
from flambeau._storages.casts import Casts
from flambeau._storages.memory import (
    allocated,
    copied,
    from_arguments,
    listed,
    part,
    position,
    span,
    swapped,
    tensor_in,
)
from flambeau._types import dtype as D
from flambeau._types.device import device as Device

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flambeau._tensor.tensor import Tensor
    from flambeau._types.dtype import dtype as DType


class UntypedStorage(Casts):
    """The bytes of one allocation; every tensor sees a part of one, and views share it.

    ``UntypedStorage()`` is empty, ``UntypedStorage(4)`` has four unspecified bytes and
    ``UntypedStorage([1, 2])`` holds these two.  Storages over the same memory compare equal.
    Writes are seen by all tensors over the memory and are not counted as their in-place writes.

    On devices without addresses (``ref``) the storage of a tensor still shares every write with it;
    slices of a storage are copies there.

    Raises:
        TypeError: the argument is neither a number of bytes nor a sequence of numbers.

    >>> import flambeau as fb
    >>> x = fb.tensor([1, 2], dtype=fb.int16)
    >>> x.untyped_storage()[2] = 7; x
    tensor([1, 7], dtype=torch.int16)
    >>> x[1:].untyped_storage() == x.untyped_storage()
    True
    """

    _st: Storage

    is_sparse = False
    dtype: Any = None

    def __init__(self, *args: object, device: object = None) -> None:
        self._st = from_arguments("UntypedStorage", args, D.uint8, device)

    @classmethod
    def _of(cls, st: Storage) -> UntypedStorage:
        made = object.__new__(cls)
        made._st = st
        return made

    @property
    def device(self) -> Device:
        """Where the memory is."""
        return self._st._be.device

    @property
    def is_cuda(self) -> builtins.bool:
        """Whether the memory is a CUDA device's."""
        return self.device.type == "cuda"

    def get_device(self) -> builtins.int:
        """The index of the device, -1 on the CPU."""
        return -1 if self.device.type == "cpu" else self.device.index or 0

    def nbytes(self) -> builtins.int:
        """The number of bytes."""
        return self._st.nbytes()

    size = __len__ = nbytes

    def __sizeof__(self) -> builtins.int:
        return object.__sizeof__(self) + self.nbytes()

    def element_size(self) -> builtins.int:
        """Bytes per element: 1."""
        return 1

    def data_ptr(self) -> builtins.int:
        """The address of the first byte; 0 if there is none, or on devices without addresses."""
        be = self._st._be
        return be.backend.data_ptr(self._st.buffer) if be.strided else 0

    @property
    def _cdata(self) -> builtins.int:
        # One number per memory while it lives: what tells storages apart when they are saved.
        return self._st.identity

    @property
    def filename(self) -> str | None:
        """The file that is mapped, or None."""
        mapping = self._st.mapping
        return None if mapping is None else mapping.filename

    def __eq__(self, other: object) -> builtins.bool:
        if not isinstance(other, UntypedStorage):
            return NotImplemented
        return self.device == other.device and self._cdata == other._cdata

    def __hash__(self) -> builtins.int:
        return hash(self._cdata)

    def __repr__(self) -> str:
        kind = "torch.storage.UntypedStorage"
        return f"{listed(self)}\n[{kind}(device={self.device}) of size {self.nbytes()}]"

    def untyped(self) -> UntypedStorage:
        """The storage itself."""
        return self

    def tolist(self) -> list[Any]:
        """The bytes as numbers."""
        return list(self._st.read(0, self.nbytes()))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: object) -> UntypedStorage | int:
        if isinstance(index, slice):
            start, stop = span(index, self.nbytes())
            return UntypedStorage._of(part(self._st, start, stop))
        i = position(index, self.nbytes())
        return self._st.read(i, i + 1)[0]

    def __setitem__(self, index: object, value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, builtins.int):
            raise RuntimeError(
                "can only set storage content with a int types, but got "
                f"{type(value).__name__} instead"
            )
        if isinstance(index, slice):
            start, stop = span(index, self.nbytes())
        else:
            start = position(index, self.nbytes())
            stop = start + 1
        self._st.write(start, D.pack([value], D.uint8) * (stop - start))

    def fill_(self, value: int) -> UntypedStorage:
        """Write one number into every byte."""
        self[:] = value
        return self

    def copy_(self, source: object, non_blocking: object = None) -> UntypedStorage:
        """Write the bytes of another storage, from the first on.

        Raises:
            RuntimeError: the source is longer.
        """
        source = getattr(source, "_untyped_storage", source)
        if not isinstance(source, UntypedStorage):
            raise TypeError(f"copy_ wants a storage, not {type(source).__name__}")
        held = self.nbytes()
        if source.nbytes() > held:
            raise RuntimeError(
                f"size does not match, self was {held} bytes but src was {source.nbytes()} bytes"
            )
        self._st.write(0, source._st.read(0, source.nbytes()))
        return self

    def byteswap(self, dtype: DType) -> None:
        """Reverse the bytes of each element (of each part of a complex one) of `dtype`."""
        if not isinstance(dtype, D.dtype):
            raise TypeError(f"argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
        size = dtype.to_real().itemsize
        data = self._st.read(0, self.nbytes())
        self._st.write(0, swapped(data, size))

    def clone(self) -> UntypedStorage:
        """A copy of the memory."""
        return UntypedStorage._of(copied(self._st, self.device))

    __copy__ = clone

    @takes_as_annotated
    def __deepcopy__(self, memo: dict[builtins.int, Any]) -> UntypedStorage:
        copies = memo.setdefault("flambeau", {})  # type: ignore[call-overload]
        if self._cdata not in copies:
            copies[self._cdata] = self.clone()
        return copies[self._cdata]

    def new(self) -> UntypedStorage:
        """An empty storage on the same device."""
        return UntypedStorage(device=self.device)

    def to(self, *, device: Any, non_blocking: object = False) -> UntypedStorage:
        """The storage on a device; itself if it is there."""
        be = bind(device)
        return self if be is self._st._be else UntypedStorage._of(copied(self._st, be.device))

    def cpu(self) -> UntypedStorage:
        """The storage on the CPU; itself if it is there."""
        return self.to(device="cpu")

    def cuda(
        self, device: object = None, non_blocking: object = False, **kwargs: object
    ) -> UntypedStorage:
        """The storage on a CUDA device; itself if it is there.

        Raises:
            RuntimeError: there is no such device.
        """
        return self.to(device="cuda" if device is None else device)

    def type(self, dtype: DType | None = None, non_blocking: object = False) -> Any:
        """The name of the class, or the bytes cast to another dtype."""
        if dtype is None:
            return "torch.storage.UntypedStorage"
        from flambeau._storages.typed import TypedStorage  # is made of this class

        return TypedStorage(wrap_storage=self, dtype=D.uint8).type(dtype)

    def _to(self, dtype: DType) -> Any:
        return self.type(dtype)

    def is_pinned(self, device: object = "cuda") -> builtins.bool:
        """Whether it lives in page-locked host memory."""
        if self.device.type != "cpu" or not self.size():
            return False
        return _bytes(self).is_pinned(device)

    def pin_memory(self, device: object = "cuda") -> UntypedStorage:
        """A copy in page-locked memory; itself where it is there or no accelerator needs that."""
        if not self.size():
            return self
        plain = _bytes(self)
        pinned = plain.pin_memory(device)
        return self if pinned is plain else pinned.untyped_storage()

    def resizable(self) -> builtins.bool:
        """Whether `resize_` works: not for shared memory, files, and what NumPy has an array of."""
        return self._st.mapping is None and not self._st.lent

    def resize_(self, size: builtins.int) -> UntypedStorage:
        """Change the number of bytes; tensors over the memory follow, new bytes are zero.

        Raises:
            RuntimeError: the memory is shared, a file or an array's, or a living tensor uses what
                would be cut off.
        """
        from flambeau._storages.move import grown, move

        known = self._tensors_if_none()
        st = self._st
        (size,) = sizes((size,))
        if size < 0:
            raise RuntimeError(f"UntypedStorage.resize_: got a negative size {size}")
        if not self.resizable():
            raise RuntimeError(
                "Trying to resize storage that is not resizable: it is shared memory, a file, or "
                "memory of an array; clone() it first"
            )
        if size != self.nbytes():
            move(st, *grown(st, size), known=known)
        return self

    def is_shared(self) -> builtins.bool:
        """Whether other processes can see the memory; true of CUDA memory, as PyTorch has it."""
        mapping = self._st.mapping
        return self.is_cuda or (mapping is not None and mapping.shared)

    def _tensors_if_none(self) -> list[Tensor] | None:
        """The tensors over the memory if there are none, an empty list; None if there may be some.

        A tensor over memory holds its record, and records of the same memory hold its buffer.
        """
        # Two: the attribute, and the argument of the call.
        alone = sys.getrefcount(self._st) == 2 and sys.getrefcount(self._st.buffer) == 2
        return [] if alone else None

    def share_memory_(self) -> UntypedStorage:
        """Move the memory to shared memory, where other processes see it; nothing if it is there.

        Every living tensor over it follows; NumPy arrays keep the old memory.  Processes forked
        later share it, and so do those to which tensors are sent by `multiprocessing`.  Storages
        in shared memory cannot be resized.

        Raises:
            NotImplementedError: the device's memory cannot be shared (``ref``, ``meta``).
            RuntimeError: the system has too little shared memory.
        """
        if self.is_shared():
            return self
        known = self._tensors_if_none()
        st = self._st
        if self.device.type != "cpu" or not st._be.strided:
            raise NotImplementedError(
                f"share_memory_(): memory of device {self.device} cannot be shared between "
                "processes; .cpu() can"
            )
        from flambeau._storages import sending

        if self.nbytes():
            sending.take_over(st, known)
        sending.register()
        return self

    @classmethod
    @takes_as_annotated
    def from_file(
        cls,
        filename: object,
        shared: builtins.bool = False,
        size: builtins.int = 0,
        *,
        nbytes: builtins.int | None = None,
    ) -> UntypedStorage:
        """The bytes of a file, mapped: read when they are needed.

        Args:
            filename: the file; made, or made longer, if `shared`.
            shared: whether writes go to the file, and to all processes that map it.
            size: number of bytes; 0 for all.
            nbytes: another name of `size`.

        Raises:
            RuntimeError: the file cannot be opened, or it is too small and not `shared`.

        >>> import flambeau as fb, tempfile
        >>> with tempfile.NamedTemporaryFile() as f:
        ...     _ = fb.UntypedStorage.from_file(f.name, shared=True, size=3).fill_(65)
        ...     f.read()
        b'AAA'
        """
        from flambeau._storages.shared import map_file

        return cls._of(map_file(filename, shared, size if nbytes is None else nbytes))

    @classmethod
    @takes_as_annotated
    def from_buffer(
        cls,
        buffer: Any,
        byte_order: str | None = None,
        count: builtins.int = -1,
        offset: builtins.int = 0,
        *,
        dtype: DType = D.uint8,
    ) -> UntypedStorage:
        """A copy of bytes that hold numbers of `dtype`, in native byte order.

        Args:
            buffer: an object with the buffer protocol.
            byte_order: ``"big"``, ``"little"`` or ``"native"``; may be left out for single bytes.
            count: number of elements; -1 for all that follow.
            offset: bytes to skip at the start.

        Raises:
            ValueError: the byte order is none of these, or `count` and `offset` do not fit.

        >>> import flambeau as fb
        >>> fb.ShortStorage.from_buffer(bytes([0, 1, 0, 2]), "big").tolist()
        [1, 2]
        """
        if not isinstance(dtype, D.dtype):
            raise TypeError(
                f"from_buffer(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}"
            )
        count, offset = operator.index(count), operator.index(offset)
        size = dtype.itemsize
        if byte_order is None and size > 1:
            raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
        if byte_order not in (None, "big", "little", "native"):
            raise ValueError(
                f"invalid byte_order {byte_order!r} (expected 'big', 'little', or 'native')"
            )
        data = bytes(memoryview(buffer).cast("B"))
        held = len(data)
        if offset < 0 or (offset and offset > held):
            raise ValueError(
                f"offset must be non-negative and no greater than buffer length ({held}), but got "
                f"{offset}"
            )
        if count < 0:
            if (held - offset) % size:
                raise ValueError(
                    f"buffer size ({held - offset}) must be a multiple of element size ({size})"
                )
            count = (held - offset) // size
        elif offset + count * size > held:
            raise ValueError(
                f"buffer has only {(held - offset) // size} elements after offset {offset}, but "
                f"specified a size of {count}"
            )
        data = data[offset : offset + count * size]
        if byte_order == ("big" if sys.byteorder == "little" else "little"):
            data = swapped(data, dtype.to_real().itemsize)
        if dtype is D.bool_:
            data = bytes(b != 0 for b in data)
        made = cls(len(data))
        made._st.write(0, data)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        data = b"" if self.device.type == "meta" else self._st.read(0, self.nbytes())
        return _rebuilt, (data, self.nbytes(), self._st.dtype, str(self.device))


def _rebuilt(data: bytes, nbytes: int, dtype: DType, device: str) -> UntypedStorage:
    st = allocated(nbytes // dtype.itemsize, dtype, device)
    if data:
        st.write(0, data)
    return UntypedStorage._of(st)


def _bytes(storage: UntypedStorage) -> Tensor:
    return tensor_in(storage._st, D.uint8)
