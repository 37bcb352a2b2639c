"""The conversions of storages, named as dtypes: ``storage.half()``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flambeau._types import dtype as D

if TYPE_CHECKING:
    from flambeau._storages.typed import TypedStorage


class Casts:
    """A method per dtype; classes that have them convert with ``_to(dtype)``."""

    def _to(self, dtype: D.dtype) -> TypedStorage:
        raise NotImplementedError

    def bool(self) -> TypedStorage:
        """The storage cast to bool."""
        return self._to(D.bool_)

    def byte(self) -> TypedStorage:
        """The storage cast to uint8."""
        return self._to(D.uint8)

    def char(self) -> TypedStorage:
        """The storage cast to int8."""
        return self._to(D.int8)

    def short(self) -> TypedStorage:
        """The storage cast to int16."""
        return self._to(D.int16)

    def int(self) -> TypedStorage:
        """The storage cast to int32."""
        return self._to(D.int32)

    def long(self) -> TypedStorage:
        """The storage cast to int64."""
        return self._to(D.int64)

    def half(self) -> TypedStorage:
        """The storage cast to float16."""
        return self._to(D.float16)

    def bfloat16(self) -> TypedStorage:
        """The storage cast to bfloat16."""
        return self._to(D.bfloat16)

    def float(self) -> TypedStorage:
        """The storage cast to float32."""
        return self._to(D.float32)

    def double(self) -> TypedStorage:
        """The storage cast to float64."""
        return self._to(D.float64)

    def complex_float(self) -> TypedStorage:
        """The storage cast to complex64."""
        return self._to(D.complex64)

    def complex_double(self) -> TypedStorage:
        """The storage cast to complex128."""
        return self._to(D.complex128)
