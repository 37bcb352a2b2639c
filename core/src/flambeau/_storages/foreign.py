"""Tensors over memory that other libraries or Python objects own."""

from __future__ import annotations

import operator
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.bound import bind
from flambeau._dispatch.dispatch import wrap
from flambeau._dispatch.keywords import documented
from flambeau._memory.views import storage_of
from flambeau._types import dtype as D
from flambeau._types.strides import contiguous_strides

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor
    from flambeau._types.dtype import dtype as DType

_NATIVE = "<" if sys.byteorder == "little" else ">"

# Type codes of the array interface; NumPy has none for bfloat16 and float8,
# whose bits travel as integers.
_TYPES = {
    D.bool_: "|b1",
    D.uint8: "|u1",
    D.int8: "|i1",
    D.int16: f"{_NATIVE}i2",
    D.int32: f"{_NATIVE}i4",
    D.int64: f"{_NATIVE}i8",
    D.float16: f"{_NATIVE}f2",
    D.bfloat16: f"{_NATIVE}i2",
    D.float32: f"{_NATIVE}f4",
    D.float64: f"{_NATIVE}f8",
    D.complex64: f"{_NATIVE}c8",
    D.complex128: f"{_NATIVE}c16",
    D.uint16: f"{_NATIVE}u2",
    D.uint32: f"{_NATIVE}u4",
    D.uint64: f"{_NATIVE}u8",
    **dict.fromkeys(D.FLOAT8, "|u1"),
}


class Memory:
    """Host memory with a shape, readable through the array interface.

    Args:
        data: (address, whether it is read-only), or an object with the buffer protocol.
        offset: bytes from the start of a buffer to the first element.
        release: called when no array over the memory is left.
    """

    __slots__ = ("__array_interface__", "_release")

    def __init__(
        self,
        data: object,
        shape: Sequence[int],
        stride: Sequence[int],
        dtype: DType,
        *,
        offset: int = 0,
        release: Callable[[], object] | None = None,
    ) -> None:
        self._release = release
        self.__array_interface__ = {
            "version": 3,
            "data": data,
            "offset": offset,
            "shape": tuple(shape),
            "strides": tuple(s * dtype.itemsize for s in stride),
            "typestr": _TYPES[dtype],
        }

    def __del__(self) -> None:
        if self._release is not None:
            self._release()


def tensor_over(memory: Memory, dtype: DType) -> Tensor:
    """A CPU tensor that shares `memory` and keeps it alive.

    Raises:
        TypeError: the CPU backend does not read the array interface.
    """
    be = bind("cpu")
    native = be.to_array(memory)
    if type(native) is not be.array:
        raise TypeError(
            f"the backend of {be.device} ({type(be.backend).__name__}) cannot share memory of "
            "other libraries: its arrays do not read the array interface"
        )
    if dtype is D.bfloat16 or dtype in D.FLOAT8:
        shape, stride = native.shape, be.backend.strides(native)
        native = be.backend.as_strided(be.backend.reinterpret(native, dtype), shape, stride, 0)
    t = wrap(be, native, dtype)
    storage_of(t).shared = True  # somebody outside sees the writes
    return t


@takes_as_annotated
def frombuffer(
    buffer: Any, *, dtype: DType, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A one-dimensional tensor over the memory of a Python object, which stays shared with it.

    Args:
        buffer: an object with the buffer protocol, such as a `bytearray`.
        dtype: how to read the bytes.
        count: number of elements; -1 for all that follow.
        offset: bytes to skip at the start.
        requires_grad: whether to record operations on the result.

    Raises:
        ValueError: no buffer, an empty one, or `count` and `offset` that do not fit it.

    >>> import flambeau as fb
    >>> data = bytearray(8)
    >>> t = fb.frombuffer(data, dtype=fb.int32); t[0] = 7; bytes(data)
    b'\\x07\\x00\\x00\\x00\\x00\\x00\\x00\\x00'
    """
    try:
        view = memoryview(buffer)
    except TypeError as error:
        raise ValueError("object does not implement Python buffer protocol.") from error
    if not view.c_contiguous:
        raise RuntimeError("could not retrieve buffer from object: it is not contiguous")
    dtype = D.as_dtype(dtype)
    # As Python's own numbers: those of NumPy wrap around, and the sum below would lie.
    count, offset = operator.index(count), operator.index(offset)
    size, length = dtype.itemsize, view.nbytes
    if not length or not count:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length "
            f"({length} bytes) minus 1"
        )
    if count < 0:
        if (length - offset) % size:
            raise ValueError(
                f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a "
                f"multiple of element size ({size})"
            )
        count = (length - offset) // size
    elif offset + count * size > length:
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must "
            f"not be greater than actual buffer length ({length} bytes)"
        )
    if view.readonly:
        warnings.warn(
            "The given buffer is not writable, and tensors do not know this: writing to the tensor "
            "fails. Copy the buffer, or make it writable, before converting it to a tensor.",
            stacklevel=2,
        )
    memory = Memory(view.cast("B"), (count,), contiguous_strides((count,)), dtype, offset=offset)
    return tensor_over(memory, dtype).requires_grad_(requires_grad)


@documented({"dlpack": "ext_tensor"})
def from_dlpack(ext_tensor: object, *, device: object = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of another library's tensor, exchanged by the DLPack protocol.

    Args:
        ext_tensor: an object with ``__dlpack__``, or a capsule of one.
        device: where the result shall live; by default where the memory is.
        copy: True to copy, False to refuse a copy, None to copy if `device` asks for it.

    Raises:
        RuntimeError: a capsule that was used before.
        BufferError: memory, element type or strides cannot be shared, or a copy is refused.
        TypeError: neither a capsule nor an object with ``__dlpack__``.

    >>> import flambeau as fb
    >>> x = fb.zeros(2); y = fb.from_dlpack(x); y[0] = 1; x
    tensor([1., 0.])
    """
    from flambeau.utils import dlpack  # ctypes is not loaded before it is needed

    return dlpack.imported(ext_tensor, device=device, copy=copy)
