"""Elementwise kernels: each maps Python numbers and rounds the results to the dtype.

Unary float functions of integers and bools (which core casts before) give the default dtype.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from flambeau._types.dtype import bool_, float64, get_default_dtype, int32, int64, uint32, uint64
from flambeau._types.dtype import dtype as DType
from flambeau.testing.reference import complexes, scalars
from flambeau.testing.reference.array import (
    RefArray,
    broadcast_shapes,
    build,
    expanded,
    int_range,
    same_dtype,
)

Kernel = Callable[..., RefArray]
Function = Callable[..., Any]


def cast(a: RefArray, dtype: DType) -> RefArray:
    """The C cast: floats truncate, complex numbers become real, integers wrap, bool is ``!= 0``.

    NaN, infinities and floats beyond the range of an integer dtype are unspecified by the contract;
    here they become the smallest int64, or the smallest int32 wrapped to narrower dtypes, which is
    what x86-64 processors do.
    """
    return build(a.shape, dtype, converted(a.data, a.dtype, dtype))


def converted(values: tuple[Any, ...], source: DType, target: DType) -> list[Any]:
    """Numbers of dtype `source` as numbers of the category of `target`, not yet rounded."""
    if source.category == target.category or target is bool_:
        return list(values)
    as_float = float if target.to_real() is float64 else _foreseeing_float
    if target.is_complex:
        return [complex(as_float(v)) for v in values]
    if source.is_complex:
        values = tuple([v.real for v in values])
        source = source.to_real()
    if target.is_floating_point:
        return [as_float(v) for v in values]
    if source.is_floating_point:
        low, high = int_range(int64 if target in (int64, uint32, uint64) else int32)
        if target is uint64:
            high = int_range(uint64)[1]
        return [int(v) if low - 1 < v < high + 1 else low for v in values]
    return [int(v) for v in values]


def _foreseeing_float(value: float) -> float:
    """A number as a float that will round to a narrower dtype as the number itself would.

    Bits of a long integer that a float cannot hold are folded into its last bit, so that the second
    rounding sees which side of a tie the integer was on.
    """
    if not isinstance(value, int) or (size := abs(value)) < 1 << 53:
        return float(value)
    surplus = value.bit_length() - 53
    kept = size >> surplus
    if size & ((1 << surplus) - 1):
        kept |= 1
    return math.copysign(kept << surplus, value)


def clone(a: RefArray) -> RefArray:
    """A fresh array with the same elements."""
    return RefArray(a.shape, a.dtype, a.data)


def _float_unary(name: str, real: Function, cplx: Function | None = None) -> Kernel:
    def kernel(a: RefArray) -> RefArray:
        function = cplx if a.dtype.is_complex else real
        if function is None:
            raise TypeError(f"{name}: not defined for {a.dtype}")
        dtype = a.dtype if a.dtype.fp else get_default_dtype()
        return build(a.shape, dtype, map(function, a.data))

    kernel.__name__ = kernel.__qualname__ = name
    return kernel


def _unary(name: str, *functions: Function | None, out: DType | None = None) -> Kernel:
    """A kernel from the functions for bool, integer, floating and complex elements."""

    def kernel(a: RefArray) -> RefArray:
        function = functions[a.dtype.category]
        if function is None:
            raise TypeError(f"{name}: not defined for {a.dtype}")
        return build(a.shape, out or a.dtype, map(function, a.data))

    kernel.__name__ = kernel.__qualname__ = name
    return kernel


def absolute(a: RefArray) -> RefArray:
    """Absolute value; of complex numbers, the real modulus."""
    function = complexes.absolute if a.dtype.is_complex else abs
    return build(a.shape, a.dtype.to_real(), map(function, a.data))


def _same(value: object) -> object:
    return value


def _int_sign(x: int) -> int:
    return (x > 0) - (x < 0)


def _true(x: object) -> bool:
    return True


def _is_finite(z: complex) -> bool:
    return math.isfinite(z.real) and math.isfinite(z.imag)


UNARY: dict[str, Kernel] = {
    "abs": absolute,
    "neg": _unary("neg", None, operator.neg, operator.neg, operator.neg),
    "sign": _unary("sign", _same, _int_sign, scalars.sign, complexes.sign),
    "floor": _unary("floor", None, _same, scalars.floor, None),
    "ceil": _unary("ceil", None, _same, scalars.ceil, None),
    "trunc": _unary("trunc", None, _same, scalars.trunc, None),
    "round": _unary("round", None, _same, scalars.round_half_even, None),
    "isfinite": _unary("isfinite", _true, _true, math.isfinite, _is_finite, out=bool_),
    "bitwise_not": _unary("bitwise_not", operator.not_, operator.invert, None, None),
}

for _name, _real, _complex in (
    ("exp", scalars.exp, complexes.exp),
    ("expm1", scalars.expm1, complexes.expm1),
    ("log", scalars.log, complexes.log),
    ("log1p", scalars.log1p, complexes.log1p),
    ("sin", scalars.sin, complexes.sin),
    ("cos", scalars.cos, complexes.cos),
    ("tan", scalars.tan, complexes.tan),
    ("asin", scalars.asin, complexes.asin),
    ("acos", scalars.acos, complexes.acos),
    ("atan", math.atan, complexes.atan),
    ("sinh", scalars.sinh, complexes.sinh),
    ("cosh", scalars.cosh, complexes.cosh),
    ("tanh", math.tanh, complexes.tanh),
    ("sqrt", scalars.sqrt, complexes.sqrt),
    ("rsqrt", scalars.rsqrt, complexes.rsqrt),
    ("reciprocal", scalars.reciprocal, complexes.reciprocal),
    ("erf", math.erf, None),
):
    UNARY[_name] = _float_unary(_name, _real, _complex)


def _zipped(function: Function, a: RefArray, b: RefArray) -> tuple[tuple[int, ...], list[Any]]:
    shape = broadcast_shapes(a.shape, b.shape)
    return shape, list(map(function, expanded(a, shape), expanded(b, shape)))


def _binary(name: str, *functions: Function | None, out: DType | None = None) -> Kernel:
    """A kernel from the functions for two bools, integers, floats and complex numbers."""

    def kernel(a: RefArray, b: RefArray) -> RefArray:
        dtype = same_dtype(name, a, b)
        function = functions[dtype.category]
        if function is None:
            raise TypeError(f"{name}: not defined for {dtype}")
        shape, values = _zipped(function, a, b)
        return build(shape, out or dtype, values)

    kernel.__name__ = kernel.__qualname__ = name
    return kernel


def _float_binary(name: str, real: Function, cplx: Function | None = None) -> Kernel:
    """A kernel that computes on floats; integers and bools take the default dtype first."""
    on_floats = _binary(name, None, None, real, cplx)

    def kernel(a: RefArray, b: RefArray) -> RefArray:
        if not same_dtype(name, a, b).fp:
            a, b = cast(a, get_default_dtype()), cast(b, get_default_dtype())
        return on_floats(a, b)

    kernel.__name__ = kernel.__qualname__ = name
    return kernel


def power(a: RefArray, b: RefArray) -> RefArray:
    """a**b; integers wrap, and to a negative power give 0 unless the base is 1 or -1."""
    dtype = same_dtype("pow", a, b)
    if dtype is bool_:
        raise TypeError(f"pow: not defined for {dtype}")
    if dtype.category == 1:
        bits = 8 * dtype.itemsize
        shape, values = _zipped(lambda x, y: scalars.int_power(x, y, bits), a, b)
    else:
        shape, values = _zipped(complexes.power if dtype.is_complex else scalars.power, a, b)
    return build(shape, dtype, values)


def where(cond: RefArray, a: RefArray, b: RefArray) -> RefArray:
    """Elements of `a` where `cond` is true, else of `b`."""
    if cond.dtype is not bool_:
        raise TypeError(f"where: condition of dtype bool expected, got {cond.dtype}")
    dtype = same_dtype("where", a, b)
    shape = broadcast_shapes(cond.shape, a.shape, b.shape)
    triples = zip(expanded(cond, shape), expanded(a, shape), expanded(b, shape), strict=True)
    return RefArray(shape, dtype, tuple([x if c else y for c, x, y in triples]))


BINARY: dict[str, Kernel] = {
    "add": _binary("add", operator.or_, operator.add, operator.add, operator.add),
    "sub": _binary("sub", None, operator.sub, operator.sub, operator.sub),
    "mul": _binary("mul", operator.and_, operator.mul, operator.mul, complexes.multiply),
    "div": _float_binary("div", scalars.divide, complexes.divide),
    "pow": power,
    "remainder": _binary("remainder", None, operator.mod, scalars.remainder, None),
    "fmod": _binary("fmod", None, scalars.int_fmod, scalars.fmod, None),
    "floor_divide": _binary("floor_divide", None, operator.floordiv, scalars.floor_divide, None),
    "atan2": _float_binary("atan2", math.atan2),
    "maximum": _binary("maximum", operator.or_, max, scalars.maximum, None),
    "minimum": _binary("minimum", operator.and_, min, scalars.minimum, None),
    "bitwise_and": _binary("bitwise_and", operator.and_, operator.and_, None, None),
    "bitwise_or": _binary("bitwise_or", operator.or_, operator.or_, None, None),
    "bitwise_xor": _binary("bitwise_xor", operator.xor, operator.xor, None, None),
}
for _name in ("eq", "ne"):
    BINARY[_name] = _binary(_name, *[getattr(operator, _name)] * 4, out=bool_)
for _name in ("lt", "le", "gt", "ge"):
    BINARY[_name] = _binary(_name, *[getattr(operator, _name)] * 3, None, out=bool_)

KERNELS: dict[str, Kernel] = {"cast": cast, "clone": clone, "where": where, **UNARY, **BINARY}
