"""What the kernels of a device do for an engine."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import flambeau as fb

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend

_OPS = {
    "sum": "add",
    "product": "mul",
    "min": "minimum",
    "max": "maximum",
    "band": "bitwise_and",
    "bor": "bitwise_or",
    "bxor": "bitwise_xor",
}
# What adding and multiplying mean for truth values.
_OF_BOOL = {"sum": "bor", "product": "band"}


class Arithmetic:
    """The kernels of one device, as `flambeau.plugin.communication.Arithmetic` wants them."""

    def __init__(self, be: BoundBackend) -> None:
        self._be = be

    def empty_like(self, array: Any) -> Any:
        """A new array of its shape and dtype."""
        dtype = self._be.dtype_of(array)
        return fb.empty(array.shape, dtype=dtype, device=self._be.device)._a

    def combine(self, op: str, target: object, other: object) -> None:
        """``target = target op other``."""
        be = self._be
        if be.dtype_of(target) is fb.bool:
            op = _OF_BOOL.get(op, op)
        name = _OPS[op]
        inplace = getattr(be, f"{name}_", None)
        if inplace is not None:
            inplace(target, other)
        else:
            be.assign(target, getattr(be, name)(target, other))

    def assign(self, target: object, source: object) -> None:
        """``target[...] = source``."""
        self._be.assign(target, source)

    def memory(self, array: Any) -> memoryview:
        """The bytes of an array in host memory, which can be written."""
        count = array.shape[0] * self._be.dtype_of(array).itemsize
        address = self._be.backend.data_ptr(array)
        return memoryview((ctypes.c_char * count).from_address(address)).cast("B")
