"""The runtime of device type ``ref``: immutable arrays of Python numbers."""

from __future__ import annotations

from typing import Any

from flambeau._types.dtype import dtype as DType
from flambeau._types.dtype import pack, unpack
from flambeau.plugin import Backend
from flambeau.testing.reference.array import RefArray
from flambeau.testing.reference.creation import full

__all__ = ["RefArray", "RefBackend"]


class RefBackend(Backend):
    """Arrays of device ``ref``.

    >>> import flambeau as fb
    >>> (fb.tensor([1, 2], device="ref") + 1).tolist()
    [2, 3]
    """

    device_type = "ref"
    array = RefArray
    indexed = False
    strided = False

    def from_host(
        self,
        data: bytes | bytearray | memoryview,
        shape: tuple[int, ...],
        dtype: DType,
        index: int,
    ) -> RefArray:
        """An array of the little-endian elements in `data`.

        Raises:
            ValueError: `data` does not hold as many elements as the shape has.
        """
        return RefArray(tuple(shape), dtype, tuple(unpack(memoryview(data).cast("B"), dtype)))

    def to_host(self, array: RefArray) -> bytes:
        """The elements as little-endian bytes in row-major order."""
        return pack(list(array.data), array.dtype)

    def dtype_of(self, array: RefArray) -> DType:
        """The dtype of `array`."""
        return array.dtype

    def scalar(self, value: bool | int | float | complex, dtype: DType) -> RefArray:
        """A 0-d array of `value`."""
        return full((), value, dtype)

    def item(self, array: RefArray) -> Any:
        """The only element of `array`.

        Raises:
            ValueError: `array` does not have exactly one element.
        """
        if len(array.data) != 1:
            raise ValueError(f"item() needs one element, got shape {array.shape}")
        return array.data[0]

    def tolist(self, array: RefArray) -> Any:
        """The elements as nested lists; a number if `array` is 0-d."""
        return array.nested()
