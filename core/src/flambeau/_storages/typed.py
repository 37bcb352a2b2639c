"""`TypedStorage` and the classes named after dtypes: one allocation read as numbers."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import sizes
from flambeau._dispatch.promotion import python_number
from flambeau._storages.casts import Casts
from flambeau._storages.memory import from_arguments, listed, part, position, span, tensor_in
from flambeau._storages.untyped import UntypedStorage
from flambeau._types import dtype as D

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flambeau._memory.record import Storage
    from flambeau._tensor.tensor import Tensor
    from flambeau._types.device import device as Device
    from flambeau._types.dtype import dtype as DType


class TypedStorage(Casts):
    """An allocation read as a one-dimensional array of one dtype.

    Args:
        args: nothing, a number of elements, or a sequence of numbers.
        wrap_storage: an `UntypedStorage` to read, instead of new memory.
        dtype: the element type; by default the default dtype.
        device: where new memory shall be.

    Raises:
        TypeError: the arguments are none of these.

    >>> import flambeau as fb
    >>> x = fb.tensor([1.0, 2.0]); s = x.storage(); s[0] = 5; x
    tensor([5., 2.])
    >>> s.half().tolist()
    [5.0, 2.0]
    """

    _untyped_storage: UntypedStorage
    dtype: DType

    is_sparse = False

    def __init__(
        self,
        *args: object,
        wrap_storage: UntypedStorage | None = None,
        dtype: DType | None = None,
        device: object = None,
    ) -> None:
        self.dtype = D.get_default_dtype() if dtype is None else D.as_dtype(dtype)
        if wrap_storage is None:
            st = from_arguments("TypedStorage", args, self.dtype, device)
            wrap_storage = UntypedStorage._of(st)
        elif args or device is not None or not isinstance(wrap_storage, UntypedStorage):
            raise TypeError(
                "TypedStorage(): with wrap_storage= give dtype= and nothing else; it must be an "
                f"UntypedStorage, got {type(wrap_storage).__name__}"
            )
        self._untyped_storage = wrap_storage

    def untyped(self) -> UntypedStorage:
        """The bytes."""
        return self._untyped_storage

    @property
    def _st(self) -> Storage:
        return self._untyped_storage._st

    @property
    def _cdata(self) -> builtins.int:
        return self._untyped_storage._cdata

    @property
    def device(self) -> Device:
        """Where the memory is."""
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> builtins.bool:
        """Whether the memory is a CUDA device's."""
        return self._untyped_storage.is_cuda

    @property
    def filename(self) -> str | None:
        """The file that is mapped, or None."""
        return self._untyped_storage.filename

    def get_device(self) -> builtins.int:
        """The index of the device, -1 on the CPU."""
        return self._untyped_storage.get_device()

    def size(self) -> builtins.int:
        """The number of elements."""
        return self.nbytes() // self.dtype.itemsize

    __len__ = size

    def nbytes(self) -> builtins.int:
        """The number of bytes."""
        return self._untyped_storage.nbytes()

    def __sizeof__(self) -> builtins.int:
        return object.__sizeof__(self) + self.nbytes()

    def element_size(self) -> builtins.int:
        """Bytes per element."""
        return self.dtype.itemsize

    def data_ptr(self) -> builtins.int:
        """The address of the first element; 0 if there is none, or on devices without addresses."""
        return self._untyped_storage.data_ptr()

    def pickle_storage_type(self) -> str:
        """The name of the class of this dtype, such as ``FloatStorage``."""
        return legacy_name(self.dtype)

    def __eq__(self, other: object) -> builtins.bool:
        if not isinstance(other, TypedStorage):
            return NotImplemented
        return self.dtype is other.dtype and self._untyped_storage == other._untyped_storage

    def __hash__(self) -> builtins.int:
        return hash(self._untyped_storage)

    def __repr__(self) -> str:
        return (
            f"{listed(self)}\n[torch.storage.TypedStorage(dtype={self.dtype}, "
            f"device={self.device}) of size {self.size()}]"
        )

    def tolist(self) -> list[Any]:
        """The elements as Python numbers."""
        size = self.size() * self.dtype.itemsize
        return D.unpack(self._st.read(0, size), self.dtype)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: object) -> Any:
        size = self.dtype.itemsize
        if isinstance(index, slice):
            start, stop = span(index, self.size())
            inner = UntypedStorage._of(part(self._st, start * size, stop * size))
            return TypedStorage(wrap_storage=inner, dtype=self.dtype)
        i = position(index, self.size())
        return D.unpack(self._st.read(i * size, (i + 1) * size), self.dtype)[0]

    def __setitem__(self, index: object, value: object) -> None:
        if isinstance(index, slice):
            start, stop = span(index, self.size())
        else:
            start = position(index, self.size())
            stop = start + 1
        number = python_number(value)
        if not isinstance(number, (builtins.int, builtins.float, complex)):
            raise TypeError(f"can't assign a {type(value).__name__} to a torch.{self._tensor_name}")
        data = D.pack([number], self.dtype) * (stop - start)
        self._st.write(start * self.dtype.itemsize, data)

    @property
    def _tensor_name(self) -> str:
        return D.TENSOR_TYPE_NAMES[self.dtype]

    def fill_(self, value: complex) -> TypedStorage:
        """Write one number into every element."""
        self[:] = value
        return self

    def copy_(self, source: object, non_blocking: object = None) -> TypedStorage:
        """Write the elements of another storage, cast to this dtype, from the first on.

        Raises:
            RuntimeError: the source is longer.
        """
        if isinstance(source, TypedStorage) and source.dtype is not self.dtype:
            source = source._to(self.dtype)
        self._untyped_storage.copy_(source)
        return self

    def _tensor(self) -> Tensor:
        st = self._st
        if not st._be.strided and st.dtype is not self.dtype:
            from flambeau.ops.creation.creation import from_data

            return from_data(self.tolist(), self.dtype, self.device, copy=True)
        return tensor_in(st, self.dtype)

    def _to(self, dtype: DType) -> TypedStorage:
        return self._tensor().detach().to(dtype=dtype, copy=True).storage()

    def _wrapped(self, untyped: UntypedStorage) -> TypedStorage:
        if untyped is self._untyped_storage:
            return self
        return TypedStorage(wrap_storage=untyped, dtype=self.dtype)

    def clone(self) -> TypedStorage:
        """A copy of the memory."""
        return self._wrapped(self._untyped_storage.clone())

    __copy__ = clone

    @takes_as_annotated
    def __deepcopy__(self, memo: dict[builtins.int, Any]) -> TypedStorage:
        return self._wrapped(self._untyped_storage.__deepcopy__(memo))

    def new(self) -> TypedStorage:
        """An empty storage of the same dtype on the same device."""
        return TypedStorage(dtype=self.dtype, device=self.device)

    def to(self, *, device: object, non_blocking: object = False) -> TypedStorage:
        """The storage on a device; itself if it is there."""
        return self._wrapped(self._untyped_storage.to(device=device))

    def cpu(self) -> TypedStorage:
        """The storage on the CPU; itself if it is there."""
        return self.to(device="cpu")

    def cuda(
        self, device: object = None, non_blocking: object = False, **kwargs: object
    ) -> TypedStorage:
        """The storage on a CUDA device; itself if it is there.

        Raises:
            RuntimeError: there is no such device.
        """
        return self._wrapped(self._untyped_storage.cuda(device))

    def type(
        self, dtype: DType | None = None, non_blocking: object = False, **kwargs: object
    ) -> Any:
        """The name of the storage's class, or the storage cast to a dtype, class or its name.

        Raises:
            ValueError: the name is unknown.

        >>> import flambeau as fb
        >>> fb.FloatStorage([1.5]).type(), fb.FloatStorage([1.5]).type("torch.IntStorage").tolist()
        ('torch.FloatStorage', [1])
        """
        if dtype is None:
            where = "" if self.device.type == "cpu" else f"{self.device.type}."
            return f"torch.{where}{self.pickle_storage_type()}"
        target = _dtype_named(dtype)
        return self if target is self.dtype else self._to(target)

    def is_pinned(self, device: object = "cuda") -> builtins.bool:
        """Whether it lives in page-locked host memory."""
        return self._untyped_storage.is_pinned(device)

    def pin_memory(self, device: object = "cuda") -> TypedStorage:
        """The storage in page-locked memory; itself where no accelerator needs that."""
        return self._wrapped(self._untyped_storage.pin_memory(device))

    def resizable(self) -> builtins.bool:
        """Whether `resize_` works: not for shared memory and files."""
        return self._untyped_storage.resizable()

    def resize_(self, size: builtins.int) -> TypedStorage:
        """Change the number of elements; see `UntypedStorage.resize_`."""
        (size,) = sizes((size,))
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    def is_shared(self) -> builtins.bool:
        """Whether other processes can see the memory."""
        return self._untyped_storage.is_shared()

    def share_memory_(self) -> TypedStorage:
        """Move the memory to shared memory; see `UntypedStorage.share_memory_`."""
        self._untyped_storage.share_memory_()
        return self

    @classmethod
    def _class_dtype(cls) -> DType:
        found = vars(cls).get("dtype")
        return D.get_default_dtype() if found is None else found

    @classmethod
    def from_file(
        cls, filename: object, shared: builtins.bool = False, size: builtins.int = 0
    ) -> TypedStorage:
        """A file read as `size` elements (0: all of it); see `UntypedStorage.from_file`."""
        dtype = cls._class_dtype()
        inner = UntypedStorage.from_file(filename, shared, size * dtype.itemsize)
        return TypedStorage(wrap_storage=inner, dtype=dtype)

    @classmethod
    def from_buffer(
        cls,
        buffer: object,
        byte_order: str | None = None,
        count: builtins.int = -1,
        offset: builtins.int = 0,
    ) -> TypedStorage:
        """A copy of bytes that hold numbers of this dtype; see `UntypedStorage.from_buffer`."""
        dtype = cls._class_dtype()
        inner = UntypedStorage.from_buffer(buffer, byte_order, count, offset, dtype=dtype)
        return TypedStorage(wrap_storage=inner, dtype=dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self._untyped_storage, self.dtype)


def _rebuilt(storage: UntypedStorage, dtype: DType) -> TypedStorage:
    return TypedStorage(wrap_storage=storage, dtype=dtype)


class _OfOneDtype(type):
    """The class of `FloatStorage` and its like: a dtype and, for some, a device type."""

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            isinstance(instance, TypedStorage)
            and instance.dtype is cls.dtype  # type: ignore[attr-defined]
            and instance.device.type == cls._device  # type: ignore[attr-defined]
        )


def legacy_name(dtype: DType) -> str:
    """The name of the storage class of a dtype."""
    return D.TENSOR_TYPE_NAMES[dtype].replace("Tensor", "Storage")


def _legacy_class(dtype: DType, device: str = "cpu") -> type:
    name = legacy_name(dtype)

    def new(cls: object, *args: object, wrap_storage: UntypedStorage | None = None) -> TypedStorage:
        if wrap_storage is not None:
            return TypedStorage(*args, wrap_storage=wrap_storage, dtype=dtype)
        st = from_arguments(name, args, dtype, device)
        return TypedStorage(wrap_storage=UntypedStorage._of(st), dtype=dtype)

    members = {
        "__doc__": f"A `TypedStorage` of {dtype} on device {device}, by its legacy name.",
        "__module__": "torch" if device == "cpu" else f"torch.{device}",
        "__new__": new,
        "_device": device,
        "dtype": dtype,
    }
    return _OfOneDtype(name, (TypedStorage,), members)


LEGACY: dict[DType, Any] = {d: _legacy_class(d) for d in D.ALL}
CUDA_LEGACY: dict[DType, Any] = {d: _legacy_class(d, "cuda") for d in D.ALL}
_NAMED = {legacy_name(d): d for d in D.ALL}


def _dtype_named(name: object) -> DType:
    if isinstance(name, str):
        found = _NAMED.get(name.rpartition(".")[2])
        if found is not None:
            return found
    elif isinstance(name, D.dtype):
        return name
    elif isinstance(name, _OfOneDtype):
        return name.dtype  # type: ignore[attr-defined]
    from flambeau._tensor.legacy import dtype_and_device

    return dtype_and_device(name)[0]


def default_class() -> Any:
    """The class of storages of the default dtype."""
    return LEGACY[D.get_default_dtype()]


BoolStorage = LEGACY[D.bool_]
ByteStorage = LEGACY[D.uint8]
CharStorage = LEGACY[D.int8]
ShortStorage = LEGACY[D.int16]
IntStorage = LEGACY[D.int32]
LongStorage = LEGACY[D.int64]
HalfStorage = LEGACY[D.float16]
BFloat16Storage = LEGACY[D.bfloat16]
FloatStorage = LEGACY[D.float32]
DoubleStorage = LEGACY[D.float64]
ComplexFloatStorage = LEGACY[D.complex64]
ComplexDoubleStorage = LEGACY[D.complex128]
