"""PyTorch's classes of types, of which programs ask ``get()`` or make one from others."""

from __future__ import annotations

from typing import Any

from flambeau.jit import _types as T
from flambeau.jit._types import ClassType, EnumType, Type


class _One(type):
    """A class of a single type, or of types of one kind; its instances are types."""

    kind: str

    def __instancecheck__(cls, value: Type) -> bool:
        return isinstance(value, Type) and (not cls.kind or value.kind == cls.kind)

    def __call__(cls, *parts: Any) -> Any:
        if not cls.kind:
            raise TypeError(f"{cls.__name__}: No constructor defined!")
        members = parts[0] if len(parts) == 1 and isinstance(parts[0], (list, tuple)) else parts
        if cls.kind == "Optional":
            return T.optional(*members)
        return T.union(*members) if cls.kind == "Union" else Type(cls.kind, *members)

    def get(cls) -> Type:
        """The type."""
        return Type(cls.kind)


def _made(name: str, kind: str) -> type:
    return _One(name, (), {"kind": kind, "__doc__": f"{kind or 'All'}, as types of programs."})


AnyType = _made("AnyType", "Any")
BoolType = _made("BoolType", "bool")
ComplexType = _made("ComplexType", "complex")
DeviceObjType = _made("DeviceObjType", "Device")
DictType = _made("DictType", "Dict")
FloatType = _made("FloatType", "float")
FutureType = _made("FutureType", "Future")
IntType = _made("IntType", "int")
ListType = _made("ListType", "List")
NoneType = _made("NoneType", "NoneType")
NumberType = _made("NumberType", "number")
OptionalType = _made("OptionalType", "Optional")
StreamObjType = _made("StreamObjType", "Stream")
StringType = _made("StringType", "str")
TensorType = _made("TensorType", "Tensor")
TupleType = _made("TupleType", "Tuple")
UnionType = _made("UnionType", "Union")

__all__ = [
    "AnyType",
    "BoolType",
    "ClassType",
    "ComplexType",
    "DeviceObjType",
    "DictType",
    "EnumType",
    "FloatType",
    "FutureType",
    "IntType",
    "ListType",
    "NoneType",
    "NumberType",
    "OptionalType",
    "StreamObjType",
    "StringType",
    "TensorType",
    "TupleType",
    "Type",
    "UnionType",
]
