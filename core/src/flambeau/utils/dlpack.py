"""DLPack: exchanging tensors with other libraries without copying.

A tensor travels as a capsule around a C structure that describes its memory; the receiver calls the
structure's deleter when it is done.  Exports are those of the native array; imports are read here,
so that capsules of the first protocol, which do not say whether the memory may be written, can be.
"""

from __future__ import annotations

import ctypes
from typing import Any

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.bound import bind
from flambeau._dispatch.dispatch import wrap
from flambeau._memory.views import storage_of
from flambeau._storages.foreign import Memory, from_dlpack, tensor_over
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.strides import contiguous_strides

__all__ = ["from_dlpack", "to_dlpack"]

_CPU, _CUDA, _CUDA_HOST, _ROCM_HOST = 1, 2, 3, 11
_HOST = (_CPU, _CUDA_HOST, _ROCM_HOST)
_READ_ONLY = 1  # bit of the flags
# Of a fresh and of a used capsule.  A capsule keeps the address, so these must live for ever.
_NAMES = {
    False: (b"dltensor", b"used_dltensor"),
    True: (b"dltensor_versioned", b"used_dltensor_versioned"),
}

_BFLOAT = 4
_DTYPES = {  # (type code, bits)
    (0, 8): D.int8,
    (0, 16): D.int16,
    (0, 32): D.int32,
    (0, 64): D.int64,
    (1, 8): D.uint8,
    (1, 16): D.uint16,
    (1, 32): D.uint32,
    (1, 64): D.uint64,
    (2, 16): D.float16,
    (2, 32): D.float32,
    (2, 64): D.float64,
    (_BFLOAT, 16): D.bfloat16,
    (5, 64): D.complex64,
    (5, 128): D.complex128,
    (6, 8): D.bool_,
}
_KINDS = {0: "int", 1: "uint", 2: "float", 3: "opaque", _BFLOAT: "bfloat", 5: "complex", 6: "bool"}


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = (
        ("tensor", _DLTensor),
        ("context", ctypes.c_void_p),
        ("deleter", _Deleter),
    )


class _ManagedVersioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", _Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", _DLTensor),
    )


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_set_name = ctypes.pythonapi.PyCapsule_SetName
_set_name.restype, _set_name.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)


def _opened(capsule: object) -> tuple[Any, bool]:
    """The structure in a fresh capsule, and whether it is of the versioned kind."""
    for versioned, kind in ((True, _ManagedVersioned), (False, _Managed)):
        if _is_valid(capsule, _NAMES[versioned][0]):
            address = _pointer(capsule, _NAMES[versioned][0])
            return ctypes.cast(address, ctypes.POINTER(kind)).contents, versioned
    raise RuntimeError(
        "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only "
        "once, so you might have already constructed a tensor from it once."
    )


def to_dlpack(tensor: Tensor) -> object:
    """A capsule that shares the memory of `tensor`; it can be used once.

    Raises:
        BufferError: the tensor requires a gradient, or other libraries cannot see its memory.

    >>> import flambeau as fb
    >>> x = fb.zeros(2); y = fb.from_dlpack(fb.utils.dlpack.to_dlpack(x)); y[0] = 1; x
    tensor([1., 0.])
    """
    return exported(tensor)


@takes_as_annotated
def exported(
    tensor: Tensor,
    *,
    stream: object = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> object:
    """What ``Tensor.__dlpack__`` returns; see the Python specification of DLPack for the arguments.

    Raises:
        BufferError: the tensor requires a gradient, or other libraries cannot see its memory.
    """
    if tensor.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    native = _speaking(tensor)
    storage_of(tensor).shared = True  # writes must happen in this memory from now on
    if stream == -1 and int(native.__dlpack_device__()[0]) in _HOST:
        stream = None  # the caller needs no synchronisation, and there is none
    asked = {
        "stream": stream,
        "max_version": max_version,
        "dl_device": dl_device,
        "copy": copy,
    }
    options = {k: v for k, v in asked.items() if v is not None}
    if tensor.dtype is not D.bfloat16:
        return native.__dlpack__(**options)
    # NumPy does not know the type: it exports the bits as integers, and we correct the description.
    capsule = native.view("i2").__dlpack__(**options)
    managed, _ = _opened(capsule)
    managed.tensor.code = _BFLOAT
    return capsule


def dlpack_device(tensor: Tensor) -> tuple[int, int]:
    """Device type and index of a tensor in DLPack's numbers: (1, 0) is the CPU.

    Raises:
        BufferError: its memory is not visible to other libraries.

    >>> import flambeau as fb
    >>> fb.zeros(2).__dlpack_device__()
    (1, 0)
    """
    kind, index = _speaking(tensor).__dlpack_device__()
    return int(kind), int(index)


def _speaking(tensor: Tensor) -> Any:
    if not hasattr(tensor._a, "__dlpack__"):
        raise BufferError(
            f"tensors of device {str(tensor.device)!r} cannot be exported by DLPack: their memory "
            "is not visible to other libraries; move them with .cpu() first"
        )
    return tensor._a


def imported(ext_tensor: Any, *, device: object = None, copy: bool | None = None) -> Tensor:
    """`from_dlpack`: the tensor over the memory of an object or capsule."""
    if hasattr(ext_tensor, "__dlpack__"):
        kind, index = ext_tensor.__dlpack_device__()
        if int(kind) not in _HOST:
            t = _from_device(ext_tensor, int(kind), int(index))
        else:
            t = _from_capsule(_asked(ext_tensor))
    elif type(ext_tensor).__name__ == "PyCapsule":
        t = _from_capsule(ext_tensor)
    else:
        raise TypeError(
            "from_dlpack() takes an object with __dlpack__ or a DLPack capsule, not "
            f"{type(ext_tensor).__name__}"
        )
    if device is not None and (moved := t.to(device)) is not t:
        if copy is False:
            raise BufferError(
                f"from_dlpack(): moving from {t.device} to {moved.device} needs a copy, and "
                "copy=False refuses it"
            )
        return moved
    return t.clone() if copy else t


def _asked(ext_tensor: Any) -> Any:
    try:
        try:
            return ext_tensor.__dlpack__(max_version=(1, 0))
        except TypeError:  # a library that knows the first protocol only
            return ext_tensor.__dlpack__()
    except BufferError as error:
        kind = type(ext_tensor).__name__
        said = f"from_dlpack(): the {kind} does not give its memory: {error}"
        raise BufferError(said) from error


def _from_device(ext_tensor: object, kind: int, index: int) -> Tensor:
    """A tensor over memory of a device, of an object or a capsule."""
    where = f"cuda:{index}" if kind == _CUDA else None
    give = getattr(bind(where).backend, "from_dlpack", None) if where else None
    if give is None:
        raise BufferError(
            f"from_dlpack(): no backend takes memory of DLPack device type {kind} (index {index}); "
            "copy it to host memory first"
        )
    be = bind(where)
    native = give(ext_tensor, index)
    t = wrap(be, native, be.dtype_of(native))
    storage_of(t).shared = True
    return t


def _from_capsule(capsule: object) -> Tensor:
    managed, versioned = _opened(capsule)
    if versioned and managed.major > 1:
        raise BufferError(
            f"from_dlpack(): the capsule speaks version {managed.major}.{managed.minor} of DLPack; "
            "versions up to 1 are known"
        )
    described = managed.tensor
    if described.device_type not in _HOST:
        return _from_device(capsule, described.device_type, described.device_id)
    dtype = _DTYPES.get((described.code, described.bits))
    if dtype is None or described.lanes != 1:
        kind = _KINDS.get(described.code, f"type code {described.code}")
        raise BufferError(
            f"from_dlpack(): elements of {described.bits}-bit {kind} with {described.lanes} "
            "lane(s) have no counterpart among flambeau's dtypes"
        )
    shape = tuple(described.shape[: described.ndim])
    stride = (
        tuple(described.strides[: described.ndim])
        if described.strides
        else contiguous_strides(shape)
    )
    if any(s < 0 for s in stride) and 0 not in shape:
        raise BufferError(
            f"from_dlpack(): negative strides {stride} are not supported; copy the array first"
        )
    read_only = versioned and bool(managed.flags & _READ_ONLY)
    address = (described.data or 0) + described.byte_offset
    _set_name(capsule, _NAMES[versioned][1])  # from here on its memory is ours to release

    def release(managed: Any = managed, address_of: Any = ctypes.addressof) -> None:
        if managed.deleter:
            managed.deleter(address_of(managed))

    return tensor_over(Memory((address, read_only), shape, stride, dtype, release=release), dtype)
