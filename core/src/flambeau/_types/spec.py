"""What a shape rule knows about an array: its shape and element type, no data."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flambeau._types.dtype import dtype as DType


class Spec:
    """Shape and dtype of an array that has no data; also the native array of device ``meta``."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: DType) -> None:
        self.shape = shape
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"Spec({self.shape}, {self.dtype})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Spec):
            return NotImplemented
        return self.shape == other.shape and self.dtype is other.dtype

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))
