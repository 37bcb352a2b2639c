"""The typed constructors of the 1.0 documents: ``flambeau.sparse.FloatTensor`` and its kin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.bound import home
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.ops.creation.sparse import sparse_coo_tensor
from flambeau.sparse._coo import SparseTensor

if TYPE_CHECKING:
    from flambeau._types.dtype import dtype as DType


def new(dtype: DType, device: Any, args: tuple[Any, ...]) -> Tensor:
    """What ``(indices, values)``, ``(indices, values, size)``, sizes or nothing stand for."""
    if args and isinstance(args[0], Tensor):
        return sparse_coo_tensor(*args, device=device)
    size = args[0] if len(args) == 1 and not isinstance(args[0], int) else (args or (0,))
    if isinstance(size, list):
        raise TypeError("SparseTensor.new(sequence) only accepts sizes")
    return sparse_coo_tensor(size=tuple(size), dtype=dtype, device=device)


class _Typed(type):
    """The type of the typed constructors: calling one makes a `SparseTensor` of its dtype."""

    dtype: Any

    def __call__(cls, *args: Any, device: object = None) -> Tensor:
        """``()``, sizes, ``(indices, values)`` or ``(indices, values, size)``."""
        if args and isinstance(args[0], Tensor):
            indices, values, *size = args if len(args) > 1 else (*args, None)
            if device is not None:
                home(device)  # what is not there is said first
            if need_tensor(values, f"sparse.{cls.__name__}", "values").dtype is not cls.dtype:
                raise TypeError(
                    f"sparse.{cls.__name__}: values must be {cls.dtype}, got {values.dtype}"
                )
            return new(cls.dtype, device, (indices, values, *size))
        return new(cls.dtype, device, args)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, SparseTensor) and instance.dtype is cls.dtype


def _typed(name: str, dtype: DType) -> type:
    text = f"Makes sparse tensors of {dtype}; ``isinstance`` tests layout and dtype."
    return _Typed(name, (SparseTensor,), {"dtype": dtype, "__doc__": text, "__module__": __name__})


ByteTensor = _typed("ByteTensor", D.uint8)
CharTensor = _typed("CharTensor", D.int8)
DoubleTensor = _typed("DoubleTensor", D.float64)
FloatTensor = _typed("FloatTensor", D.float32)
HalfTensor = _typed("HalfTensor", D.float16)
IntTensor = _typed("IntTensor", D.int32)
LongTensor = _typed("LongTensor", D.int64)
ShortTensor = _typed("ShortTensor", D.int16)
