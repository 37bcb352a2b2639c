"""Legacy ways to name dtypes and make tensors: ``FloatTensor``, ``x.type()``, ``Tensor(2, 3)``."""

from __future__ import annotations

from typing import Any, Union

from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.device import device as Device
from flambeau._types.device import get_default_device, set_default_device
from flambeau._types.dtype import dtype as DType
from flambeau._types.size import Size

_BY_NAME = {name: d for d, name in D.TENSOR_TYPE_NAMES.items()}


def type_name(t: Tensor) -> str:
    """The legacy type name of a tensor, such as ``torch.FloatTensor``."""
    where = "" if t.device.type == "cpu" else f"{t.device.type}."
    return f"torch.{where}{D.TENSOR_TYPE_NAMES[t.dtype]}"


def dtype_and_device(name: object) -> tuple[DType, Device | None]:
    """What a dtype, legacy type or its name stands for.

    Raises:
        ValueError: the name is unknown.
    """
    if isinstance(name, D.dtype):
        return name, None
    if isinstance(name, LegacyTensorType):
        return name.dtype, None if name.device is None else Device(name.device)
    if name is Tensor:
        return D.get_default_dtype(), Device("cpu")
    if isinstance(name, str):
        parts = name.split(".")
        if parts[0] in ("torch", "flambeau") and parts[-1] in _BY_NAME and len(parts) in (2, 3):
            return _BY_NAME[parts[-1]], Device(parts[1] if len(parts) == 3 else "cpu")
        if parts[-1] == "Tensor":
            return D.get_default_dtype(), None
    raise ValueError(f"invalid type: {name!r}")


class LegacyTensorType:
    """A typed constructor such as ``FloatTensor``; ``isinstance`` tests dtype and device.

    >>> import flambeau as fb
    >>> fb.LongTensor([1, 2])
    tensor([1, 2])
    >>> isinstance(fb.ones(1), fb.FloatTensor)
    True
    """

    def __init__(self, dtype: DType, device: str | None = "cpu") -> None:
        self.dtype = dtype
        self.device = device
        self.__name__ = self.__qualname__ = D.TENSOR_TYPE_NAMES[dtype]
        self.__module__ = "torch" if device in (None, "cpu") else f"torch.{device}"

    def __call__(self, *args: Any, device: Any = None, size: Any = None) -> Tensor:
        return make(self.dtype, device or self.device, args if size is None else (Size(size),))

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        raise TypeError(f"type '{self.__module__}.{self.__name__}' is not an acceptable base type")

    def __or__(self, other: object) -> LegacyTensorType | object:
        return Union[self, other]  # noqa: UP007 - `|` is what is defined here

    def __ror__(self, other: object) -> object | LegacyTensorType:
        return Union[other, self]  # noqa: UP007

    def __instancecheck__(self, instance: object) -> bool:
        return (
            isinstance(instance, Tensor)
            and instance.dtype is self.dtype
            and instance.device.type == self.device
        )

    def __repr__(self) -> str:
        return f"<class '{self.__module__}.{self.__name__}'>"


def set_default_tensor_type(t: object) -> None:
    """Set the default dtype and device by a legacy type or its name; `set_default_dtype` is newer.

    Raises:
        TypeError: it is not the type of floating tensors.

    >>> import flambeau as fb
    >>> fb.set_default_tensor_type("torch.DoubleTensor"); fb.ones(1).dtype
    torch.float64
    >>> fb.set_default_tensor_type(fb.FloatTensor)
    """
    if not isinstance(t, (str, LegacyTensorType)):
        raise TypeError(
            f"invalid type object: expected a type such as FloatTensor or its name, got {t!r}"
        )
    try:
        dtype, place = dtype_and_device(t)
    except ValueError as error:
        raise TypeError(f"set_default_tensor_type(): {error}") from error
    D.set_default_dtype(dtype)
    if place is not None and place.type != get_default_device().type:
        set_default_device(place)


def make(dtype: DType, device: Any, args: tuple[Any, ...]) -> Tensor:
    """The tensor of a legacy constructor call: sizes, a sequence, a tensor, or nothing."""
    from flambeau.ops.creation.creation import empty, from_data

    if not args:
        return empty((0,), dtype=dtype, device=device)
    if len(args) == 1:
        (data,) = args
        if hasattr(data, "resizable"):  # a storage
            return empty((0,), dtype=dtype, device=data.device).set_(data)
        if isinstance(data, Tensor):
            if data.dtype is not dtype:
                raise TypeError(
                    f"expected {D.TENSOR_TYPE_NAMES[dtype]} (got {data.type()}); "
                    "cast with .to(dtype)"
                )
            return data.detach()

        if isinstance(data, Size):
            return empty(tuple(data), dtype=dtype, device=device)
        if not isinstance(data, int) or isinstance(data, bool):
            return from_data(data, dtype, device, copy=True)
    elif isinstance(args[0], (tuple, list)):
        kinds = ", ".join(type(a).__name__ for a in args)
        raise TypeError(f"new() received an invalid combination of arguments - got ({kinds})")
    return empty(tuple(args), dtype=dtype, device=device)


def legacy_new(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """``Tensor(...)``: the default dtype on the CPU."""
    device = kwargs.pop("device", None)
    data = kwargs.pop("data", None)
    size = kwargs.pop("size", None)
    if kwargs:
        raise TypeError(f"new() received an unexpected keyword argument {next(iter(kwargs))!r}")
    if data is not None:
        args = (data, *args)
    if size is not None:
        args = (Size(size), *args)
    if len(args) == 1 and isinstance(args[0], Tensor):
        t = args[0].detach()  # of any dtype
    else:
        t = make(D.get_default_dtype(), device or "cpu", args)
    return t if cls is Tensor else Tensor._make_subclass(cls, t)
