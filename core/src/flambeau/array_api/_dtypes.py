"""Kinds of dtypes, and which dtype two make."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau._dispatch.annotated import all_take_as_annotated

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

SIGNED = (fb.int8, fb.int16, fb.int32, fb.int64)
UNSIGNED = (fb.uint8, fb.uint16, fb.uint32, fb.uint64)
REAL = (fb.float32, fb.float64)
COMPLEX = (fb.complex64, fb.complex128)
KINDS: dict[str, tuple[fb.dtype, ...]] = {
    "bool": (fb.bool,),
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": SIGNED + UNSIGNED,
    "real floating": REAL,
    "complex floating": COMPLEX,
    "numeric": SIGNED + UNSIGNED + REAL + COMPLEX,
}


@dataclass(frozen=True)
class FloatFacts:
    """What `finfo` tells."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: fb.dtype


@dataclass(frozen=True)
class IntegerFacts:
    """What `iinfo` tells."""

    bits: int
    max: int
    min: int
    dtype: fb.dtype


def _dtype(type: Any) -> fb.dtype:
    return type.dtype if isinstance(type, Tensor) else type


def finfo(type: object, /) -> FloatFacts:
    """The limits of a floating dtype, or of the dtype of a tensor; of complex ones that of a part.

    >>> import flambeau as fb
    >>> fb.array_api.finfo(fb.ones(1)).bits
    32
    """
    found = fb.finfo(_dtype(type))
    real = getattr(fb, found.dtype)
    return FloatFacts(found.bits, found.eps, found.max, found.min, found.smallest_normal, real)


def iinfo(type: object, /) -> IntegerFacts:
    """The limits of an integer dtype, or of the dtype of a tensor.

    >>> import flambeau as fb
    >>> fb.array_api.iinfo(fb.uint8).max
    255
    """
    dtype = _dtype(type)
    found = fb.iinfo(dtype)
    return IntegerFacts(found.bits, found.max, found.min, dtype)


def isdtype(dtype: fb.dtype, kind: object) -> builtins.bool:
    """Whether a dtype is of a kind: a dtype, a name such as "integral", or a tuple of both.

    >>> import flambeau as fb
    >>> fb.array_api.isdtype(fb.int8, ("bool", "integral"))
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"isdtype(): no kind {kind!r}; there are {', '.join(KINDS)}")
        return dtype in KINDS[kind]
    return dtype is kind


def promoted(a: fb.dtype, b: fb.dtype) -> fb.dtype:
    """The dtype that holds the values of two.

    Raises:
        TypeError: a signed integer of 64 bits or less holds no ``uint64``.
    """
    if a is b:
        return a
    for signed, unsigned in ((a, b), (b, a)):
        if signed in SIGNED and unsigned in UNSIGNED:
            place = max(SIGNED.index(signed), UNSIGNED.index(unsigned) + 1)
            if place == len(SIGNED):
                raise TypeError(f"result_type(): no integer dtype holds {a} and {b}")
            return SIGNED[place]
    if a in UNSIGNED and b in UNSIGNED:
        return max(a, b, key=UNSIGNED.index)
    for integer, other in ((a, b), (b, a)):
        if integer in KINDS["integral"] and other in REAL + COMPLEX:
            return other
    return fb.promote_types(a, b)


def result_type(*arrays_and_dtypes: object) -> fb.dtype:
    """The dtype of a result of tensors, dtypes and Python numbers.

    Raises:
        ValueError: neither a tensor nor a dtype is among them.
        TypeError: no dtype holds all of them.

    >>> import flambeau as fb
    >>> fb.array_api.result_type(fb.ones(2), fb.tensor(1.0, dtype=fb.float64), 3)
    torch.float64
    """
    given = [a.dtype if isinstance(a, Tensor) else a for a in arrays_and_dtypes]
    dtypes = [a for a in given if isinstance(a, fb.dtype)]
    if not dtypes:
        raise ValueError("result_type(): needs a tensor or a dtype")
    found = dtypes[0]
    for dtype in dtypes[1:]:
        found = promoted(found, dtype)
    for number in given:
        if not isinstance(number, fb.dtype):
            found = with_number(found, number)
    return found


def with_number(dtype: fb.dtype, number: object) -> fb.dtype:
    """The dtype of a tensor of `dtype` with a Python number."""
    if isinstance(number, builtins.bool):
        return dtype
    if isinstance(number, int):
        if dtype is fb.bool:
            raise TypeError("result_type(): a bool tensor does not mix with an int")
        return dtype
    if isinstance(number, float):
        if dtype not in REAL + COMPLEX:
            raise TypeError(f"result_type(): a tensor of {dtype} does not mix with a float")
        return dtype
    if isinstance(number, complex):
        if dtype in REAL:
            return COMPLEX[REAL.index(dtype)]
        if dtype not in COMPLEX:
            raise TypeError(f"result_type(): a tensor of {dtype} does not mix with a complex")
        return dtype
    raise TypeError(f"result_type(): {type(number).__name__} is no number, tensor or dtype")


def can_cast(from_: Any, to: fb.dtype, /) -> builtins.bool:
    """Whether promotion leads from a tensor or dtype to a dtype.

    >>> import flambeau as fb
    >>> fb.array_api.can_cast(fb.int8, fb.int16), fb.array_api.can_cast(fb.float32, fb.int16)
    (True, False)
    """
    dtype = from_.dtype if isinstance(from_, Tensor) else from_
    try:
        return promoted(dtype, to) is to
    except TypeError:
        return False


def astype(
    x: Tensor, dtype: fb.dtype, /, *, copy: builtins.bool = True, device: object = None
) -> Tensor:
    """The values in another dtype.

    >>> import flambeau as fb
    >>> fb.array_api.astype(fb.tensor([1.5]), fb.int64)
    tensor([1])
    """
    if x.dtype.is_complex and not dtype.is_complex and dtype is not fb.bool:
        raise TypeError(f"astype(): complex values have no {dtype}; take xp.real or xp.abs")
    return x.to(device=device, dtype=dtype, copy=copy)


all_take_as_annotated(globals())
