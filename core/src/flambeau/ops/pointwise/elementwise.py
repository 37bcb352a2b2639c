"""Elementwise ops: arithmetic, comparison, logic, rounding and the elementary functions.

Canonical ops (with an underscore) come first in each part, PyTorch's public functions after them.
Sources of the formulas: Abramowitz & Stegun, Handbook of Mathematical Functions, chapters 3, 4 and
7.
"""

from __future__ import annotations

import builtins
import contextlib
import math
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, overload

from flambeau._autograd.modes import recording
from flambeau._autograd.node import Binary, Edges
from flambeau._dispatch.arguments import (
    broadcast,
    broadcast_shapes,
    need_tensor,
)
from flambeau._dispatch.dispatch import (
    as_operands,
    cast,
    common,
    result_type,
    scalar_native,
    slow_binary,
    slow_unary,
    wrap,
)
from flambeau._dispatch.halves import is_half
from flambeau._dispatch.keywords import documented
from flambeau._dispatch.promotion import alone, fitting, python_number
from flambeau._dispatch.warning import warn
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.dtype import dtype as DType
from flambeau._types.hints import Number
from flambeau._types.memory_format import memory_format as MemoryFormat
from flambeau._types.spec import Spec
from flambeau._writes.inplace import put_into
from flambeau._writes.out import deliver
from flambeau.ops.creation.creation import full
from flambeau.ops.declaration.public import alias, public
from flambeau.ops.declaration.table import Op, composite, primitive

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from flambeau.ops.declaration.public import Facts


@primitive(out=None, title="ToCopyBackward0")
def _cast(self: Tensor, dtype: DType) -> Spec:
    return Spec(self.shape, dtype)


@_cast.gradient
def _(F, g, self_dtype):
    return F.cast(g, self_dtype)


@primitive
def _clone(self: Tensor) -> Tensor:
    return self


@_clone.gradient
def _(F, g):
    return g


@composite
def _contiguous(self: Tensor) -> Tensor:
    return _clone(self)


@_contiguous.gradient
def _(F, g):
    return g


@primitive(promotes="any")
def _add(self: Tensor, other: Tensor) -> Spec:
    return broadcast(self, other)


class AddNode(Binary):
    """The history of a sum: both sides get the gradient as it is."""

    __slots__ = ()

    title = "AddBackward0"
    keep = (0, 0, 0, 0)

    def apply(self, F: Any, g: Any, edges: Edges = None) -> tuple[Any, ...]:
        if (shapes := self.shapes) is None:
            return g, g
        e0, e1 = self.edges if edges is None else edges
        return (
            None if e0 is None else F.sum_to(g, shapes[0]),
            None if e1 is None else F.sum_to(g, shapes[1]),
        )


_add.node = AddNode


@primitive(
    promotes="any",
    refuses_bool="Subtraction, the `-` operator, with a bool tensor is not supported. If you are "
    "trying to invert a mask, use the `~` or `logical_not()` operator instead.",
)
def _sub(self: Tensor, other: Tensor) -> Spec:
    _sub.check_dtype(self.dtype, (self,))
    return broadcast(self, other)


@_sub.gradient("self")
def _(F, g, _self, _other):
    return g


@_sub.gradient("other")
def _(F, g, _self, _other):
    return F.neg(g)


@primitive(promotes="any")
def _mul(self: Tensor, other: Tensor) -> Spec:
    return broadcast(self, other)


class MulNode(Binary):
    """The history of a product: each side gets the gradient times the other side."""

    __slots__ = ()

    title = "MulBackward0"
    keep = (0, 2, 1, 3)

    def apply(self, F: Any, g: Any, edges: Edges = None) -> tuple[Any, ...]:
        a, b = self.operands(F, g)
        e0, e1 = self.edges if edges is None else edges
        mul = F.mul
        g0 = None if e0 is None else mul(g, b)
        g1 = None if e1 is None else mul(g, a)
        if (shapes := self.shapes) is not None:
            g0 = None if g0 is None else F.sum_to(g0, shapes[0])
            g1 = None if g1 is None else F.sum_to(g1, shapes[1])
        return g0, g1


_mul.node = MulNode


@primitive(promotes="float")
def _div(self: Tensor, other: Tensor) -> Spec:
    return broadcast(self, other)


@_div.gradient("self")
def _(F, g, _self, other):
    return F.div(g, other)


@_div.gradient("other")
def _(F, g, self, other):
    return F.neg(F.mul(g, F.div(F.div(self, other), other)))


@primitive(promotes="any")
def _pow(self: Tensor, other: Tensor) -> Spec:
    return broadcast(self, other)


@_pow.gradient("self")
def _(F, g, self, other):
    one, zero = F.scalar(1, other), F.scalar(0, other)
    # The power 0 is the constant 1: without the mask, its slope at 0 would be 0 * 0**-1.
    constant = F.eq(other, zero)
    if other.shape or not F.native:  # elsewhere the slope of the slope is that of other powers
        constant = F.bitwise_and(constant, F.bitwise_or(F.eq(self, zero), F.ne(self, self)))
    exponent = F.sub(F.where(constant, one, other), one)
    return F.mul(g, F.mul(other, F.pow(self, exponent)))


@_pow.gradient("other")
def _(F, g, self, other):
    zero = F.scalar(0, self)
    slope = F.mul(F.pow(self, other), F.log(self))
    # 0**other is 0 around every positive exponent: its slope is 0, not 0 * -inf.
    sign = F.real(other) if F.is_complex(other) else other
    flat = F.bitwise_and(F.eq(self, zero), F.ge(sign, F.scalar(0, sign)))
    return F.mul(g, F.where(flat, zero, slope))


@primitive(promotes="any")
def _remainder(self: Tensor, other: Tensor) -> Spec:
    return broadcast(self, other)


@_remainder.demand
def _(self, other):
    if self.dtype is D.bool_:
        raise NotImplementedError("remainder: not implemented for bools")


@_remainder.gradient("self")
def _(F, g, _self, _other):
    return g


@_remainder.gradient("other")
def _(F, g, self, other):
    return F.neg(F.mul(g, F.floor_divide(self, other)))


@primitive(promotes="any")
def _fmod(self: Tensor, other: Tensor) -> Spec:
    return broadcast(self, other)


@_fmod.demand
def _(self, other):
    if self.dtype is D.bool_:
        raise NotImplementedError("fmod: not implemented for bools")


@_fmod.gradient("self")
def _(F, g, _self, _other):
    return g


@_fmod.gradient("other")
def _(F, g, self, other):
    return F.neg(F.mul(g, F.trunc(F.div(self, other))))


@primitive(promotes="any", differentiable=False)
def _floor_divide(self: Tensor, other: Tensor) -> Spec:
    return broadcast(self, other)


@_floor_divide.demand
def _(self, other):
    if self.dtype is D.bool_:
        raise NotImplementedError("floor_divide: not implemented for bools")


@primitive(promotes="float")
def _atan2(self: Tensor, other: Tensor) -> Spec:
    return broadcast(self, other)


@_atan2.gradient("self")
def _(F, g, self, other):
    return F.mul(g, F.div(other, F.add(F.mul(self, self), F.mul(other, other))))


@_atan2.gradient("other")
def _(F, g, self, other):
    return F.neg(F.mul(g, F.div(self, F.add(F.mul(self, self), F.mul(other, other)))))


_NO_ORDER = "a comparison does not support complex numbers, which have no order"


@primitive(promotes="any", refuses_complex=_NO_ORDER)
def _maximum(self: Tensor, other: Tensor) -> Spec:
    return broadcast(self, other)


def _share(F, g, better, self, other):
    # Equal operands share the gradient.
    half = F.mul(g, F.scalar(0.5, g))
    zero = F.scalar(0, g)
    return F.where(F.eq(self, other), half, F.where(better, g, zero))


@_maximum.gradient("self")
def _(F, g, self, other):
    return _share(F, g, F.ge(self, other), self, other)


@_maximum.gradient("other")
def _(F, g, self, other):
    return _share(F, g, F.ge(other, self), self, other)


@primitive(promotes="any", refuses_complex=_NO_ORDER)
def _minimum(self: Tensor, other: Tensor) -> Spec:
    return broadcast(self, other)


@_minimum.gradient("self")
def _(F, g, self, other):
    return _share(F, g, F.le(self, other), self, other)


@_minimum.gradient("other")
def _(F, g, self, other):
    return _share(F, g, F.le(other, self), self, other)


@primitive(
    refuses_bool="Negation, the `-` operator, on a bool tensor is not supported. If you are trying "
    "to invert a mask, use the `~` or `logical_not()` operator instead.",
)
def _neg(self: Tensor) -> Tensor:
    _neg.check_dtype(self.dtype, (self,))
    return self


@_neg.gradient
def _(F, g):
    return F.neg(g)


@primitive(out=None)
def _abs(self: Tensor) -> Spec:
    return Spec(self.shape, self.dtype.to_real())


@_abs.gradient
def _(F, g, self):
    if F.is_complex(self):  # d|z| = Re(conj(z) dz) / |z|
        return F.mul(F.cast_like(g, self), F.conj(F.sgn(self)))
    return F.mul(g, F.sign(self))


@primitive(
    refuses_complex="Unlike NumPy, torch.sign is not intended to support complex numbers. Please "
    "use torch.sgn instead."
)
def _sign(self: Tensor) -> Tensor:
    return self


@_sign.gradient
def _(F, g):
    return F.zeros(g.shape, g)


@primitive(promotes="float")
def _exp(self: Tensor) -> Tensor:
    return self


@_exp.gradient
def _(F, g, result):
    return F.mul(g, result)


@primitive(promotes="float")
def _expm1(self: Tensor) -> Tensor:
    return self


@_expm1.gradient
def _(F, g, result):
    return F.mul(g, F.add(result, F.scalar(1, result)))


@primitive(promotes="float")
def _log(self: Tensor) -> Tensor:
    return self


@_log.gradient
def _(F, g, self):
    return F.div(g, self)


@primitive(promotes="float")
def _log1p(self: Tensor) -> Tensor:
    return self


@_log1p.gradient
def _(F, g, self):
    return F.div(g, F.add(self, F.scalar(1, self)))


@composite(promotes="float")
def _log2(self: Tensor) -> Tensor:
    return _log(self) * (1 / math.log(2))


@_log2.gradient
def _(F, g, self):
    return F.div(g, F.mul(self, F.scalar(math.log(2), self)))


@composite(promotes="float")
def _log10(self: Tensor) -> Tensor:
    return _log(self) * (1 / math.log(10))


@_log10.gradient
def _(F, g, self):
    return F.div(g, F.mul(self, F.scalar(math.log(10), self)))


@primitive(promotes="float")
def _sin(self: Tensor) -> Tensor:
    return self


@_sin.gradient
def _(F, g, self):
    return F.mul(g, F.cos(self))


@primitive(promotes="float")
def _cos(self: Tensor) -> Tensor:
    return self


@_cos.gradient
def _(F, g, self):
    return F.neg(F.mul(g, F.sin(self)))


@primitive(promotes="float")
def _tan(self: Tensor) -> Tensor:
    return self


@_tan.gradient
def _(F, g, result):
    return F.mul(g, F.add(F.mul(result, result), F.scalar(1, result)))


@primitive(promotes="float")
def _asin(self: Tensor) -> Tensor:
    return self


@_asin.gradient
def _(F, g, self):
    return F.mul(g, F.rsqrt(F.sub(F.scalar(1, self), F.mul(self, self))))


@primitive(promotes="float")
def _acos(self: Tensor) -> Tensor:
    return self


@_acos.gradient
def _(F, g, self):
    return F.neg(F.mul(g, F.rsqrt(F.sub(F.scalar(1, self), F.mul(self, self)))))


@primitive(promotes="float")
def _atan(self: Tensor) -> Tensor:
    return self


@_atan.gradient
def _(F, g, self):
    return F.div(g, F.add(F.mul(self, self), F.scalar(1, self)))


@primitive(promotes="float")
def _sinh(self: Tensor) -> Tensor:
    return self


@_sinh.gradient
def _(F, g, self):
    return F.mul(g, F.cosh(self))


@primitive(promotes="float")
def _cosh(self: Tensor) -> Tensor:
    return self


@_cosh.gradient
def _(F, g, self):
    return F.mul(g, F.sinh(self))


@primitive(promotes="float")
def _tanh(self: Tensor) -> Tensor:
    return self


@_tanh.gradient
def _(F, g, result):
    return F.tanh_backward(g, result)


@primitive(promotes="float")
def _sqrt(self: Tensor) -> Tensor:
    return self


@_sqrt.gradient
def _(F, g, result):
    return F.div(g, F.mul(result, F.scalar(2, result)))


@primitive(promotes="float")
def _rsqrt(self: Tensor) -> Tensor:
    return self


@_rsqrt.gradient
def _(F, g, result):
    cube = F.mul(result, F.mul(result, result))
    return F.mul(F.mul(g, F.scalar(-0.5, g)), cube)


@primitive(promotes="float")
def _reciprocal(self: Tensor) -> Tensor:
    return self


@_reciprocal.gradient
def _(F, g, result):
    return F.neg(F.mul(g, F.mul(result, result)))


@primitive(promotes="float", refuses_complex='"erf" is not implemented for complex numbers')
def _erf(self: Tensor) -> Tensor:
    return self


@_erf.gradient
def _(F, g, self):
    slope = F.mul(F.exp(F.neg(F.mul(self, self))), F.scalar(2 / math.sqrt(math.pi), self))
    return F.mul(g, slope)


@composite(promotes="integer")
def _square(self: Tensor) -> Tensor:
    return _mul(self, self)


@_square.gradient
def _(F, g, self):
    return F.mul(F.mul(g, F.scalar(2, g)), self)


@composite
def _clamp(self: Tensor, low: float | None, high: float | None) -> Tensor:
    """Limits are numbers of the dtype of `self`, or None."""
    if low is not None:
        self = where(self < low, low, self)
    return self if high is None else where(self > high, high, self)


@_clamp.gradient
def _(F, g, self, low, high):
    inside = None if low is None else F.ge(self, F.scalar(low, self))
    if high is not None:
        below = F.le(self, F.scalar(high, self))
        inside = below if inside is None else F.bitwise_and(inside, below)
    return F.where(inside, g, F.scalar(0, g))


@composite(title="ClampBackward0")
def _clamp_within(self: Tensor, low: Tensor | None, high: Tensor | None) -> Tensor:
    """Limits are tensors; a nan takes the place of an element, and `high` wins where they cross."""
    bounded = self if low is None else _maximum.run(self, low)
    return bounded if high is None else _minimum.run(bounded, high)


@_clamp_within.gradient("self")
def _(F, g, self, low, high):
    inside = None if low is None else F.ge(self, low)
    if high is not None:
        below = F.le(self, high)
        inside = below if inside is None else F.bitwise_and(inside, below)
    return F.sum_to(F.where(inside, g, F.scalar(0, g)), self.shape)


@_clamp_within.gradient("low")
def _(F, g, self, low, high):
    below = F.lt(self, low)
    if high is not None:
        below = F.bitwise_and(below, F.lt(low, high))
    return F.sum_to(F.where(below, g, F.scalar(0, g)), low.shape)


@_clamp_within.gradient("high")
def _(F, g, self, low, high):
    above = F.gt(self, high)
    if low is not None:
        above = F.bitwise_or(above, F.lt(high, low))
    return F.sum_to(F.where(above, g, F.scalar(0, g)), high.shape)


@_clamp_within.samples(D.float32, D.float64)
def _(S):
    x, low, high = S.Arr((2, 3)), S.Arr((2, 3), low=-1, high=0, seed=1), S.Arr((2, 3), seed=2)
    return [
        S.Sample((x, low, high), "both", True),
        S.Sample((x, low, None), "low", True),
        S.Sample((x, None, high), "high", True),
        S.Sample((S.Arr((2, 1)), S.Arr((3,), seed=1), S.Arr((), seed=2)), "broadcast", True),
        S.Sample((S.Arr((0, 3)), S.Arr((3,)), S.Arr(())), "empty"),
    ]


def _flat(F, g):
    return F.zeros(g.shape, g)


@primitive
def _floor(self: Tensor) -> Tensor:
    return self


@primitive
def _ceil(self: Tensor) -> Tensor:
    return self


@primitive
def _trunc(self: Tensor) -> Tensor:
    return self


@primitive
def _round(self: Tensor) -> Tensor:
    return self


for _op in (_floor, _ceil, _trunc, _round):
    _op.gradient(_flat)


@primitive(out=D.bool_, promotes="any", differentiable=False)
def _eq(self: Tensor, other: Tensor) -> Spec:
    return Spec(broadcast_shapes(self.shape, other.shape), D.bool_)


@primitive(out=D.bool_, promotes="any", differentiable=False)
def _ne(self: Tensor, other: Tensor) -> Spec:
    return Spec(broadcast_shapes(self.shape, other.shape), D.bool_)


@primitive(out=D.bool_, promotes="any", differentiable=False, refuses_complex=_NO_ORDER)
def _lt(self: Tensor, other: Tensor) -> Spec:
    return Spec(broadcast_shapes(self.shape, other.shape), D.bool_)


@primitive(out=D.bool_, promotes="any", differentiable=False, refuses_complex=_NO_ORDER)
def _le(self: Tensor, other: Tensor) -> Spec:
    return Spec(broadcast_shapes(self.shape, other.shape), D.bool_)


@primitive(out=D.bool_, promotes="any", differentiable=False, refuses_complex=_NO_ORDER)
def _gt(self: Tensor, other: Tensor) -> Spec:
    return Spec(broadcast_shapes(self.shape, other.shape), D.bool_)


@primitive(out=D.bool_, promotes="any", differentiable=False, refuses_complex=_NO_ORDER)
def _ge(self: Tensor, other: Tensor) -> Spec:
    return Spec(broadcast_shapes(self.shape, other.shape), D.bool_)


@primitive(promotes="any", differentiable=False, integral=True)
def _bitwise_and(self: Tensor, other: Tensor) -> Spec:
    _bitwise_and.check_dtype(self.dtype, ())
    return broadcast(self, other)


@primitive(promotes="any", differentiable=False, integral=True)
def _bitwise_or(self: Tensor, other: Tensor) -> Spec:
    _bitwise_or.check_dtype(self.dtype, ())
    return broadcast(self, other)


@primitive(promotes="any", differentiable=False, integral=True)
def _bitwise_xor(self: Tensor, other: Tensor) -> Spec:
    _bitwise_xor.check_dtype(self.dtype, ())
    return broadcast(self, other)


@primitive(differentiable=False, integral=True)
def _bitwise_not(self: Tensor) -> Tensor:
    _bitwise_not.check_dtype(self.dtype, ())
    return self


@primitive(out=D.bool_, differentiable=False)
def _isfinite(self: Tensor) -> Spec:
    return Spec(self.shape, D.bool_)


@primitive(out=None)
def _where(condition: Tensor, self: Tensor, other: Tensor) -> Any:
    shape = broadcast_shapes(condition.shape, self.shape, other.shape)
    return Spec(shape, self.dtype)


@_where.gradient("self")
def _(F, g, condition, self_shape):
    return F.sum_to(F.where(condition, g, F.scalar(0, g)), self_shape)


@_where.gradient("other")
def _(F, g, condition, other_shape):
    return F.sum_to(F.where(condition, F.scalar(0, g), g), other_shape)


@_where.gradient("condition")
def _(F, g):
    return None


@composite(title="AddBackward0")
def _multiply_add(self: Tensor, first: Tensor, second: Tensor) -> Tensor:
    return self + first * second


@_multiply_add.gradient("self")
def _(F, g, self_shape):
    return F.sum_to(g, self_shape)


@_multiply_add.gradient("first")
def _(F, g, first_shape, second):
    return F.sum_to(F.mul(g, second), first_shape)


@_multiply_add.gradient("second")
def _(F, g, first, second_shape):
    return F.sum_to(F.mul(g, first), second_shape)


@_multiply_add.samples(D.float32, D.float64)
def _(S):
    a, b, c = S.Arr((2, 3)), S.Arr((2, 3), seed=1), S.Arr((2, 3), seed=2)
    return [
        S.Sample((a, b, c), "equal shapes", True),
        S.Sample((a, b, S.Arr((), seed=2)), "number", True),
        S.Sample((S.Arr((2, 1)), S.Arr((3,), seed=1), c), "broadcast", True),
        S.Sample((S.Arr(()), S.Arr((), seed=1), S.Arr((), seed=2)), "scalar", True),
        S.Sample((S.Arr((0, 3)), S.Arr((3,)), S.Arr(())), "empty"),
    ]


def multiply_add(name: str, x: object, y: object, z: object, dtype: DType) -> Tensor:
    """x + y·z of numbers and tensors in `dtype`, rounded once where the backend does.

    16-bit floats are computed in float32.
    """
    x, y, z = common(name, (x, y, z), dtype)
    if not dtype.is_floating_point:
        return x + y * z
    if is_half(dtype):
        return cast(_multiply_add(*(cast(t, D.float32) for t in (x, y, z))), dtype)
    shape = x._a.shape
    if y._a.shape == shape and (z._a.shape == shape or not z._a.shape):
        return put_into(_multiply_add, x, y, z)
    return _multiply_add(x, y, z)


class UnaryFunction(Protocol):
    """A public elementwise function of one tensor."""

    __name__: str

    def __call__(self, input: Tensor, *, out: Tensor | None = None) -> Tensor: ...


class BinaryFunction(Protocol):
    """A public elementwise function of two operands, of which one at least is a tensor."""

    __name__: str

    def __call__(
        self, input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None
    ) -> Tensor: ...


# Functions whose `out` must have the dtype of the result.
_EXACT = frozenset("abs bitwise_not ceil floor neg sign trunc".split())


def _unary(op: Op, doc: str, **facts: Unpack[Facts]) -> UnaryFunction:
    name = op.name

    def function(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        need_tensor(input, name, "input")
        result = getattr(input, name)()
        if out is None:
            return result
        exact = name in _EXACT and not (name == "abs" and input.dtype.is_complex)
        return deliver(result, out, input, exact=exact)

    return _named(function, name, doc, facts)


_OPERATORS = {
    "mul": "__mul__",
    "pow": "__pow__",
    "eq": "__eq__",
    "ne": "__ne__",
    "lt": "__lt__",
    "le": "__le__",
    "gt": "__gt__",
    "ge": "__ge__",
}


def _binary(op: Op, doc: str, **facts: Unpack[Facts]) -> BinaryFunction:
    name = op.name

    operator = getattr(Tensor, _OPERATORS.get(name, ""), None)
    unpromoted = frozenset(d for d in D.EVERY if _takes_unpromoted(op, d))

    def function(
        input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None
    ) -> Tensor:
        if type(input) is Tensor:
            if operator is not None:
                result = operator(input, other)  # it has a fast path
                if result is not NotImplemented:
                    return result if out is None else deliver(result, out, input, other)
            elif out is None and type(other) is Tensor and input.dtype is other.dtype:
                if input._be is other._be and input.dtype in unpromoted:
                    return op.run(input, other)
        return deliver(binary(name, input, other), out, input, other)

    return _named(function, name, doc, facts)


def _takes_unpromoted(op: Op, dtype: DType) -> bool:
    """Whether tensors of `dtype` are promoted to nothing else and never refused."""
    refused = (
        (op.refuses_bool and dtype.category == 0)
        or (op.refuses_complex and dtype.is_complex)
        or (op.integral and dtype.category >= 2)
    )
    return not refused and (op.promotes == "any" or (op.promotes == "float" and dtype.fp))


def _named(function: Callable[..., Any], name: str, doc: str, facts: Facts) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__module__ = "flambeau"
    function.__doc__ = doc
    return public(**facts)(function)


_OF_NUMBERS = ("add", "sub", "mul", "div", "floor_divide")
"""The ops that take two numbers: the first is a 0-d tensor then."""


def binary(name: str, input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Apply a broadcasting canonical op to tensors and numbers.

    Raises:
        TypeError: an operand is neither a tensor nor a number, or none is a tensor and the op is
            not one of arithmetic.
    """
    if not isinstance(input, Tensor) and not isinstance(other, Tensor):
        numbers = as_operands(name, input, other) if name in _OF_NUMBERS else None
        if numbers is None:
            raise TypeError(
                f"{name}(): expected a Tensor as first or second argument, got "
                f"{type(input).__name__} and {type(other).__name__}"
            )
        input, other = full((), numbers[0], device="cpu"), numbers[1]
    result = slow_binary(name, input, other)
    if result is NotImplemented:
        bad = other if isinstance(input, Tensor) else input
        raise TypeError(
            f"{name}(): argument 'other' must be Tensor or Number, not {type(bad).__name__}"
        )
    return result


exp = _unary(
    _exp,
    """e raised to each element.

    >>> import flambeau as fb
    >>> fb.exp(fb.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """,
    inplace="both",
)
expm1 = _unary(
    _expm1,
    """exp(x) - 1, accurate near zero.

    >>> import flambeau as fb
    >>> fb.expm1(fb.tensor([1e-8], dtype=fb.float64))
    tensor([1.0000e-08], dtype=torch.float64)
    """,
    inplace="both",
)
log = _unary(
    _log,
    """Natural logarithm; -inf at 0, nan below.

    >>> import flambeau as fb
    >>> fb.log(fb.tensor([1.0, 0.0]))
    tensor([0., -inf])
    """,
    inplace="both",
)
log1p = _unary(
    _log1p,
    """log(1 + x), accurate near zero.

    >>> import flambeau as fb
    >>> fb.log1p(fb.tensor([0.0]))
    tensor([0.])
    """,
    inplace="both",
)
log2 = _unary(
    _log2,
    """Logarithm to base 2.

    >>> import flambeau as fb
    >>> fb.log2(fb.tensor([8.0]))
    tensor([3.])
    """,
    inplace="both",
)
log10 = _unary(
    _log10,
    """Logarithm to base 10.

    >>> import flambeau as fb
    >>> fb.log10(fb.tensor([100.0], dtype=fb.float64))
    tensor([2.], dtype=torch.float64)
    """,
    inplace="both",
)
sin = _unary(
    _sin,
    """Sine of angles in radians.

    >>> import flambeau as fb
    >>> fb.sin(fb.tensor([0.0]))
    tensor([0.])
    """,
    inplace="both",
)
cos = _unary(
    _cos,
    """Cosine of angles in radians.

    >>> import flambeau as fb
    >>> fb.cos(fb.tensor([0.0]))
    tensor([1.])
    """,
    inplace="both",
)
tan = _unary(
    _tan,
    """Tangent of angles in radians.

    >>> import flambeau as fb
    >>> fb.tan(fb.tensor([0.0]))
    tensor([0.])
    """,
    inplace="both",
)
asin = _unary(
    _asin,
    """Inverse sine in radians; nan outside [-1, 1].

    >>> import flambeau as fb
    >>> fb.asin(fb.tensor([1.0]))
    tensor([1.5708])
    """,
    inplace="both",
)
acos = _unary(
    _acos,
    """Inverse cosine in radians; nan outside [-1, 1].

    >>> import flambeau as fb
    >>> fb.acos(fb.tensor([1.0]))
    tensor([0.])
    """,
    inplace="both",
)
atan = _unary(
    _atan,
    """Inverse tangent in radians.

    >>> import flambeau as fb
    >>> fb.atan(fb.tensor([1.0]))
    tensor([0.7854])
    """,
    inplace="both",
)
sinh = _unary(
    _sinh,
    """Hyperbolic sine.

    >>> import flambeau as fb
    >>> fb.sinh(fb.tensor([0.0]))
    tensor([0.])
    """,
    inplace="both",
)
cosh = _unary(
    _cosh,
    """Hyperbolic cosine.

    >>> import flambeau as fb
    >>> fb.cosh(fb.tensor([0.0]))
    tensor([1.])
    """,
    inplace="both",
)
tanh = _unary(
    _tanh,
    """Hyperbolic tangent.

    >>> import flambeau as fb
    >>> fb.tanh(fb.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """,
    inplace="both",
)
sqrt = _unary(
    _sqrt,
    """Square root; nan below zero.

    >>> import flambeau as fb
    >>> fb.sqrt(fb.tensor([4.0]))
    tensor([2.])
    """,
    inplace="both",
)
rsqrt = _unary(
    _rsqrt,
    """Reciprocal of the square root.

    >>> import flambeau as fb
    >>> fb.rsqrt(fb.tensor([4.0]))
    tensor([0.5000])
    """,
    inplace="both",
)
reciprocal = _unary(
    _reciprocal,
    """1 / x.

    >>> import flambeau as fb
    >>> fb.reciprocal(fb.tensor([4.0]))
    tensor([0.2500])
    """,
    inplace="both",
)
erf = documented({"tensor": "input"})(
    _unary(
        _erf,
        """The error function, 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x.

    >>> import flambeau as fb
    >>> fb.erf(fb.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8427])
    """,
        inplace="both",
    )
)
neg = _unary(
    _neg,
    """-x.

    Raises:
        RuntimeError: the tensor is bool.

    >>> import flambeau as fb
    >>> fb.neg(fb.tensor([1, -2]))
    tensor([-1,  2])
    """,
    inplace="both",
    saves_self=False,
)
abs = _unary(
    _abs,
    """Absolute value; the modulus of complex numbers.

    >>> import flambeau as fb
    >>> fb.abs(fb.tensor([-1, 2]))
    tensor([1, 2])
    """,
    inplace="both",
)
sign = _unary(
    _sign,
    """-1, 0 or 1 as the sign of each element.

    >>> import flambeau as fb
    >>> fb.sign(fb.tensor([-3.0, 0.0]))
    tensor([-1.,  0.])
    """,
    inplace="method",
    saves_self=False,
)
floor = _unary(
    _floor,
    """The largest integer not above each element.

    >>> import flambeau as fb
    >>> fb.floor(fb.tensor([-1.5, 1.5]))
    tensor([-2.,  1.])
    """,
    inplace="both",
    saves_self=False,
)
ceil = _unary(
    _ceil,
    """The smallest integer not below each element.

    >>> import flambeau as fb
    >>> fb.ceil(fb.tensor([-1.5, 1.5]))
    tensor([-1.,  2.])
    """,
    inplace="both",
    saves_self=False,
)
trunc = _unary(
    _trunc,
    """Each element without its fractional part.

    >>> import flambeau as fb
    >>> fb.trunc(fb.tensor([-1.5, 1.5]))
    tensor([-1.,  1.])
    """,
    inplace="both",
    saves_self=False,
)
square = _unary(
    _square,
    """x * x.

    >>> import flambeau as fb
    >>> fb.square(fb.tensor([3.0]))
    tensor([9.])
    """,
    inplace="both",
)
bitwise_not = _unary(
    _bitwise_not,
    """Bitwise complement of integers, logical complement of bools.

    >>> import flambeau as fb
    >>> fb.bitwise_not(fb.tensor([0, -1]))
    tensor([-1,  0])
    """,
    inplace="method",
)
isfinite = documented({"tensor": "input"})(
    _unary(
        _isfinite,
        """Whether each element is neither infinite nor nan.

    >>> import flambeau as fb
    >>> fb.isfinite(fb.tensor([1.0, fb.inf]))
    tensor([ True, False])
    """,
    )
)
negative, arcsin, arccos, arctan = neg, asin, acos, atan
absolute = alias("absolute", abs, inplace="method")
fix = alias("fix", trunc, inplace="both")

mul = documented({"value": "other"})(
    _binary(
        _mul,
        """input * other, elementwise.

    >>> import flambeau as fb
    >>> fb.mul(fb.tensor([1, 2]), 2.5)
    tensor([2.5000, 5.0000])
    """,
        names={"value": "other"},
        inplace="method",
    )
)
pow = documented({"exponent": "other"}, {"base": "input", "input": "other"})(
    _binary(
        _pow,
        """input raised to other, elementwise; either may be a number.

    Raises:
        RuntimeError: an integer tensor is raised to a negative integer number.

    >>> import flambeau as fb
    >>> fb.pow(fb.tensor([1.0, 2.0]), 3)
    tensor([1., 8.])
    """,
        names={"exponent": "other"},
        inplace="method",
    )
)
remainder = documented({"divisor": "other"})(
    _binary(
        _remainder,
        """The rest of a division whose quotient is floored: the sign of `other`.

    >>> import flambeau as fb
    >>> fb.remainder(fb.tensor([-3, 3]), 2)
    tensor([1, 1])
    """,
        names={"divisor": "other"},
        inplace="method",
    )
)
fmod = documented({"divisor": "other"})(
    _binary(
        _fmod,
        """The rest of a division whose quotient is truncated: the sign of `input`.

    >>> import flambeau as fb
    >>> fb.fmod(fb.tensor([-3, 3]), 2)
    tensor([-1,  1])
    """,
        names={"divisor": "other"},
        inplace="method",
    )
)
floor_divide = _binary(
    _floor_divide,
    """The floor of the quotient.

    >>> import flambeau as fb
    >>> fb.floor_divide(fb.tensor([-3, 3]), 2)
    tensor([-2,  1])
    """,
    inplace="method",
)
atan2 = documented({"input1": "input", "input2": "other"})(
    _binary(
        _atan2,
        """The angle in radians of the point (other, input).

    >>> import flambeau as fb
    >>> fb.atan2(fb.tensor([1.0]), fb.tensor([-1.0]))
    tensor([2.3562])
    """,
        inplace="method",
    )
)
arctan2 = alias("arctan2", atan2)
maximum = _binary(
    _maximum,
    """The larger of two elements; nan if either is.

    >>> import flambeau as fb
    >>> fb.maximum(fb.tensor([1, 5]), fb.tensor([3, 2]))
    tensor([3, 5])
    """,
)
minimum = _binary(
    _minimum,
    """The smaller of two elements; nan if either is.

    >>> import flambeau as fb
    >>> fb.minimum(fb.tensor([1, 5]), fb.tensor([3, 2]))
    tensor([1, 2])
    """,
)
eq = _binary(
    _eq,
    """Whether elements are equal.

    >>> import flambeau as fb
    >>> fb.eq(fb.tensor([1, 2]), 2)
    tensor([False,  True])
    """,
    inplace="method",
)
ne = _binary(
    _ne,
    """Whether elements differ.

    >>> import flambeau as fb
    >>> fb.ne(fb.tensor([1, 2]), 2)
    tensor([ True, False])
    """,
    inplace="method",
)
lt = _binary(
    _lt,
    """Whether input < other.

    >>> import flambeau as fb
    >>> fb.lt(fb.tensor([1, 2]), 2)
    tensor([ True, False])
    """,
    inplace="method",
)
le = _binary(
    _le,
    """Whether input <= other.

    >>> import flambeau as fb
    >>> fb.le(fb.tensor([1, 2]), 2)
    tensor([True, True])
    """,
    inplace="method",
)
gt = _binary(
    _gt,
    """Whether input > other.

    >>> import flambeau as fb
    >>> fb.gt(fb.tensor([1, 2]), 1)
    tensor([False,  True])
    """,
    inplace="method",
)
ge = _binary(
    _ge,
    """Whether input >= other.

    >>> import flambeau as fb
    >>> fb.ge(fb.tensor([1, 2]), 2)
    tensor([False,  True])
    """,
    inplace="method",
)
bitwise_and = _binary(
    _bitwise_and,
    """Bitwise and of integers, logical and of bools.

    >>> import flambeau as fb
    >>> fb.bitwise_and(fb.tensor([6]), 3)
    tensor([2])
    """,
    inplace="method",
)
bitwise_or = _binary(
    _bitwise_or,
    """Bitwise or of integers, logical or of bools.

    >>> import flambeau as fb
    >>> fb.bitwise_or(fb.tensor([6]), 3)
    tensor([7])
    """,
    inplace="method",
)
bitwise_xor = _binary(
    _bitwise_xor,
    """Bitwise exclusive or of integers, logical one of bools.

    >>> import flambeau as fb
    >>> fb.bitwise_xor(fb.tensor([6]), 3)
    tensor([5])
    """,
    inplace="method",
)
not_equal, less, less_equal, greater, greater_equal = ne, lt, le, gt, ge
multiply = alias("multiply", mul, inplace="method")


@public(inplace="both", saves_self=False)
def round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """Each element rounded to the nearest integer (or to `decimals` places), half to even.

    Raises:
        NotImplementedError: `decimals` are given and the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.round(fb.tensor([0.5, 1.5]))
    tensor([0., 2.])
    >>> fb.round(fb.tensor([1.25, 115.0]), decimals=-1)
    tensor([  0., 120.])
    """
    need_tensor(input, "round", "input")
    if decimals == 0:
        return deliver(slow_unary("round", input), out, input, exact=True)
    if not isinstance(decimals, int):
        raise TypeError(f"argument 'decimals' must be int, not {type(decimals).__name__}")
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f"round: decimals are not implemented for {input.dtype}")
    # Beyond the range of float64 lies infinity, as in C.
    ten = 10.0 ** builtins.abs(decimals) if builtins.abs(decimals) <= 308 else math.inf
    wide = cast(input, D.float32) if input.dtype.itemsize == 2 else input
    whole = slow_unary("round", wide * ten if decimals > 0 else wide / ten)
    result = cast(whole / ten if decimals > 0 else whole * ten, input.dtype)
    return deliver(result, out, input, exact=True)


@public(inplace="method", saves_self=False)
def add(
    input: Tensor | Number,
    other: Tensor | Number,
    *legacy: Tensor | Number,
    alpha: Number = 1,
    out: Tensor | None = None,
) -> Tensor:
    """input + alpha * other.  The old form ``add(input, alpha, other)`` is understood.

    Raises:
        RuntimeError: shapes do not broadcast, or alpha is a float and both operands are integers.

    >>> import flambeau as fb
    >>> fb.add(fb.tensor([1, 2]), fb.tensor([10, 20]), alpha=2)
    tensor([21, 42])
    """
    if legacy:
        other, alpha = legacy[0], other  # type: ignore[assignment]
    elif type(alpha) is int and alpha == 1 and type(input) is Tensor:
        result = input.__add__(other)  # it has a fast path
        if result is not NotImplemented:
            return result if out is None else deliver(result, out, input, other)
    return deliver(_plus("add", input, other, alpha), out, input, other)


@public(inplace="method", saves_self=False)
def sub(
    input: Tensor | Number,
    other: Tensor | Number,
    *legacy: Tensor | Number,
    alpha: Number = 1,
    out: Tensor | None = None,
) -> Tensor:
    """input - alpha * other.

    >>> import flambeau as fb
    >>> fb.sub(fb.tensor([1, 2]), 1)
    tensor([0, 1])
    """
    if legacy:
        other, alpha = legacy[0], other  # type: ignore[assignment]
    elif type(alpha) is int and alpha == 1 and type(input) is Tensor and type(other) is not bool:
        result = input.__sub__(other)  # it has a fast path
        if result is not NotImplemented:
            return result if out is None else deliver(result, out, input, other)
    _sub.check_dtype(D.int64, (input, other))  # a factor would hide a bool
    return deliver(_plus("sub", input, other, alpha), out, input, other)


subtract = sub


@public
def rsub(input: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """other - alpha * input.

    >>> import flambeau as fb
    >>> fb.rsub(fb.tensor([1, 2]), 1)
    tensor([ 0, -1])
    """
    _sub.check_dtype(D.int64, (need_tensor(input, "rsub", "input"), other))
    return _plus("sub", other, input, alpha)


def _plus(name: str, self: Any, other: Any, alpha: Any) -> Tensor:
    """self ± alpha * other, plus where `name` is add, minus where it is sub.

    Raises:
        RuntimeError: alpha is a float (or bool) and the operands are integers (or not bool).
    """
    if type(alpha) is int and alpha == 1:
        return binary(name, self, other)
    if isinstance(alpha, (list, tuple, str, bytes)):
        raise TypeError(f"argument 'alpha' must be Number, not {type(alpha).__name__}")
    if isinstance(alpha, Tensor):
        if alpha.dim() or alpha.requires_grad:
            raise TypeError("add(): argument 'alpha' must be Number, not Tensor")
        alpha = alpha.item()
    for role, operand in (("input", self), ("other", other)):
        if isinstance(operand, (list, tuple)):
            need_tensor(operand, "add", role)
    dtype = result_type(self, other)
    if isinstance(alpha, complex) and not dtype.is_complex:
        raise RuntimeError(
            "For non-complex input tensors, argument alpha must not be a complex number."
        )
    if isinstance(alpha, float) and dtype.category < 2:
        raise RuntimeError(
            "For integral input tensors, argument alpha must not be a floating point number."
        )
    if isinstance(alpha, bool) and dtype is not D.bool_:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    tensors = [x for x in (self, other) if isinstance(x, Tensor)]
    if tensors and dtype.is_floating_point and not any(x.is_sparse for x in tensors):
        _need_factor(alpha)
        factor = fitting(alpha, dtype)
        return multiply_add(name, self, other, factor if name == "add" else -factor, dtype)
    if not isinstance(other, Tensor):
        _need_factor(alpha)
        return binary(name, self, bool(other * alpha) if dtype is D.bool_ else other * alpha)
    return binary(name, self, times(cast(other, dtype), alpha))


def _need_factor(factor: Any) -> None:
    if not isinstance(factor, (int, float, complex)):
        with contextlib.suppress(OverflowError):  # `fitting` tells where that matters
            try:
                complex(factor)
            except (TypeError, ValueError):
                kind = type(factor).__name__
                raise TypeError(f"argument must be Number, not {kind}") from None


def times(x: Tensor, factor: complex, limit: DType | None = None) -> Tensor:
    """factor * x in the dtype of `x`; a bool tensor takes the factor's truth.

    Raises:
        RuntimeError: the dtype, or `limit`, cannot hold the factor.
        TypeError: it is a tensor that requires a gradient, or with dimensions.
    """
    if isinstance(factor, Tensor):
        if factor.requires_grad or factor.dim():
            raise TypeError("argument must be Number, not Tensor")
        factor = factor.item()
    _need_factor(factor)
    if type(factor) is not bool and factor == 1:
        return x
    factor = fitting(factor, limit or x.dtype)
    return x * (bool(factor) if x.dtype is D.bool_ else factor)


@public(inplace="method", names={"value": "other"})
@documented({"value": "other"})
def div(
    input: Tensor | Number,
    other: Tensor | Number,
    *,
    rounding_mode: str | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """input / other: true division, or rounded towards zero ("trunc") or down ("floor").

    >>> import flambeau as fb
    >>> fb.div(fb.tensor([7, -7]), 2)
    tensor([ 3.5000, -3.5000])
    >>> fb.div(fb.tensor([7, -7]), 2, rounding_mode="trunc")
    tensor([ 3, -3])
    """
    if rounding_mode is None:
        result = input.__truediv__(other) if type(input) is Tensor else NotImplemented
        if result is NotImplemented:
            result = binary("div", input, other)
        return result if out is None else deliver(result, out, input, other)
    if rounding_mode == "floor":
        return deliver(binary("floor_divide", input, other), out, input, other)
    if rounding_mode != "trunc":
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
            f"{rounding_mode!r}"
        )
    numbers = as_operands("div", input, other)
    if numbers is not None and not any(isinstance(x, Tensor) for x in numbers):
        input, other = full((), numbers[0], device="cpu"), numbers[1]
    dtype = result_type(input, other)
    if dtype is D.bool_:
        raise NotImplementedError("div: not implemented for bools with rounding_mode='trunc'")
    if dtype.category == 1:
        # (a - a fmod b) / b is exact in integers, and floor division of a multiple truncates.
        input = cast(input, dtype) if isinstance(input, Tensor) else int(input.real)
        rest = binary("fmod", input, other)
        return deliver(binary("floor_divide", binary("sub", input, rest), other), out, input, other)
    return deliver(slow_unary("trunc", binary("div", input, other)), out, input, other)


divide = alias("divide", div, inplace="method")


@public(inplace="method")
def true_divide(
    input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """input / other as floats.

    >>> import flambeau as fb
    >>> fb.true_divide(fb.tensor([1, 2]), 2)
    tensor([0.5000, 1.0000])
    """
    return div(input, other, out=out)


_NOT_GIVEN = object()


@overload
def where(condition: Tensor) -> tuple[Tensor, ...]: ...
@overload
def where(
    condition: Tensor,
    input: Tensor | Number,
    other: Tensor | Number,
    *,
    out: Tensor | None = None,
) -> Tensor: ...
@public(method=False)
def where(
    condition: Tensor,
    input: Any = _NOT_GIVEN,
    other: Any = _NOT_GIVEN,
    *,
    out: Tensor | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """Elements of `input` where `condition` holds, else of `other`; alone, where it holds.

    >>> import flambeau as fb
    >>> fb.where(fb.tensor([True, False]), fb.tensor([1, 2]), 0)
    tensor([1, 0])
    """
    need_tensor(condition, "where", "condition")
    if input is other is _NOT_GIVEN and out is None:
        return condition.nonzero(as_tuple=True)
    if input is _NOT_GIVEN or other is _NOT_GIVEN:
        raise TypeError("where() takes a condition, or a condition and two operands")
    if condition.dtype is not D.bool_:
        if condition.dtype is not D.uint8:
            raise RuntimeError(
                f"where expected condition to be a boolean tensor, but got {condition.dtype}"
            )
        warn(
            "where received a uint8 condition tensor. This behavior is deprecated and will be "
            "removed in a future version of PyTorch. Use a boolean condition instead."
        )
        condition = cast(condition, D.bool_)
    x, y = operands = (input, other)
    if type(x) is Tensor and type(y) in x.dtype.takes:
        if y not in x._be.consts[x.dtype]:
            fitting(y, alone(x.dtype))
        y = wrap(x._be, scalar_native(x._be, y, x.dtype), x.dtype)
    elif type(y) is Tensor and type(x) in y.dtype.takes:
        if x not in y._be.consts[y.dtype]:
            fitting(x, alone(y.dtype))
        x = wrap(y._be, scalar_native(y._be, x, y.dtype), y.dtype)
    if type(x) is Tensor is type(y) and x.dtype is y.dtype and condition._be is x._be is y._be:
        result = _where.run(condition, x, y)
        return result if out is None else deliver(result, out, condition, x, y, exact=True)
    dtype = result_type(*operands)
    for operand in operands:
        if not isinstance(operand, Tensor):
            fitting(operand, alone(dtype))
    if not any(isinstance(x, Tensor) for x in operands):
        operands = (full((), operands[0], dtype=dtype, device=condition.device), operands[1])
    x, y = common("where", operands, dtype)
    if condition._be is not x._be and condition._a.shape == ():
        condition = condition.to(x.device)
    return deliver(_where.run(condition, x, y), out, condition, *operands, exact=True)


@public
@documented({"tensor": "input"})
def isnan(input: Tensor) -> Tensor:
    """Whether each element is nan.

    >>> import flambeau as fb
    >>> fb.isnan(fb.tensor([1.0, float("nan")]))
    tensor([False,  True])
    """
    if type(input) is Tensor:
        return input != input
    return _ne.run(need_tensor(input, "isnan", "input"), input)


@public
@documented({"tensor": "input"})
def isinf(input: Tensor) -> Tensor:
    """Whether each element is plus or minus infinity.

    >>> import flambeau as fb
    >>> fb.isinf(fb.tensor([1.0, float("-inf")]))
    tensor([False,  True])
    """
    x = need_tensor(input, "isinf", "input")
    return _bitwise_not.run(_bitwise_or.run(_isfinite.run(x), _ne.run(x, x)))


def _as_bool(x: Tensor) -> Tensor:
    return cast(x, D.bool_)


@public(inplace="method")
def logical_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether each element is zero.

    >>> import flambeau as fb
    >>> fb.logical_not(fb.tensor([0, 2]))
    tensor([ True, False])
    """
    return deliver(
        _bitwise_not.run(_as_bool(need_tensor(input, "logical_not", "input"))), out, input
    )


@public(inplace="method")
def logical_and(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether both elements are nonzero.

    >>> import flambeau as fb
    >>> fb.logical_and(fb.tensor([0, 2]), fb.tensor([1, 1]))
    tensor([False,  True])
    """
    need_tensor(input, "logical_and", "input")
    need_tensor(other, "logical_and", "other")
    return deliver(binary("bitwise_and", _as_bool(input), _as_bool(other)), out, input, other)


@public(inplace="method")
def logical_or(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether either element is nonzero.

    >>> import flambeau as fb
    >>> fb.logical_or(fb.tensor([0, 2]), fb.tensor([0, 1]))
    tensor([False,  True])
    """
    need_tensor(input, "logical_or", "input")
    need_tensor(other, "logical_or", "other")
    return deliver(binary("bitwise_or", _as_bool(input), _as_bool(other)), out, input, other)


@public(inplace="method")
def logical_xor(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether exactly one element is nonzero.

    >>> import flambeau as fb
    >>> fb.logical_xor(fb.tensor([0, 2]), fb.tensor([1, 1]))
    tensor([ True, False])
    """
    need_tensor(input, "logical_xor", "input")
    need_tensor(other, "logical_xor", "other")
    return deliver(binary("bitwise_xor", _as_bool(input), _as_bool(other)), out, input, other)


@public(inplace="both")
def clamp(
    input: Tensor,
    min: Tensor | Number | None = None,
    max: Tensor | Number | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Each element moved into [min, max]; the bounds are numbers or tensors, one may be absent.

    The gradient passes where the element was inside, bounds included.

    Raises:
        RuntimeError: both are absent, or the dtype of the result cannot hold one.
        NotImplementedError: the elements are complex.

    >>> import flambeau as fb
    >>> fb.clamp(fb.tensor([-2, 0, 3]), -1, 1)
    tensor([-1,  0,  1])
    """
    x = input if type(input) is Tensor else need_tensor(input, "clamp", "input")
    if type(min) is float is type(max) and (kind := x.dtype).is_floating_point and out is None:
        if -(most := kind.largest) <= min <= most and -most <= max <= most:
            return put_into(_clamp, x, min, max)
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if x.dtype.is_complex:
        raise NotImplementedError("clamp is not supported for complex types")
    takes = x.dtype.takes
    if (min is None or type(min) in takes) and (max is None or type(max) in takes):
        # Neither nan, which takes the place of every element, nor integers, which promote.
        if x.dtype.is_floating_point and min == min and max == max:
            sure = builtins.min(x.dtype.largest, 1 << 63)
            for bound in (min, max):
                if isinstance(bound, (int, float)) and not -sure <= bound <= sure:
                    fitting(bound, x.dtype)
            return deliver(put_into(_clamp, x, min, max), out, input, exact=True)
    if _is_like(min, x) and _is_like(max, x):
        found = _within(x, min, max)
        return found if out is None else deliver(found, out, input, min, max)
    min, max = (b if isinstance(b, Tensor) else python_number(b) for b in (min, max))
    bounds = [b for b in (min, max) if b is not None]
    numbers = not all(isinstance(b, Tensor) for b in bounds)
    x = cast(x, result_type(x, *bounds))
    for bound in bounds:
        if numbers and not isinstance(bound, Tensor):
            fitting(bound, x.dtype)
    low, high = (b if b is None else common("clamp", (x, b), x.dtype)[1] for b in (min, max))
    return deliver(_within(x, low, high), out, input, *bounds, exact=numbers)


def _is_like(bound: object, x: Tensor) -> TypeGuard[Tensor | None]:
    """Whether a bound is absent, or a tensor of the dtype and the device of `x`."""
    return bound is None or (
        type(bound) is Tensor and bound.dtype is x.dtype and bound._be is x._be
    )


def _within(x: Tensor, low: Tensor | None, high: Tensor | None) -> Tensor:
    """`clamp` by tensors of one dtype; what nobody derives needs no op around its parts."""
    derived = x._rg or (low is not None and low._rg) or (high is not None and high._rg)
    if (derived and recording()) or not x._be.strided:  # as the levels of transforms are
        return _clamp_within.run(x, low, high)
    return _clamp_within.body(x, low, high)


clip = clamp


@public(inplace="both", function_only=())
def clamp_min(input: Tensor, min: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Each element, or `min` where it is smaller.

    >>> import flambeau as fb
    >>> fb.clamp_min(fb.tensor([-2, 3]), 0)
    tensor([0, 3])
    """
    return clamp(input, min, out=out)


@public(inplace="both")
def clamp_max(input: Tensor, max: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Each element, or `max` where it is larger.

    >>> import flambeau as fb
    >>> fb.clamp_max(fb.tensor([-2, 3]), 0)
    tensor([-2,  0])
    """
    return clamp(input, None, max, out=out)


@public(inplace="method", saves_self=False)
def masked_fill(input: Tensor, mask: Tensor, value: Tensor | Number) -> Tensor:
    """`value` (a number or 0-d tensor) where `mask` holds, else the element.

    Raises:
        RuntimeError: the mask is not bool, or value has dimensions.

    >>> import flambeau as fb
    >>> fb.masked_fill(fb.zeros(2), fb.tensor([True, False]), 7)
    tensor([7., 0.])
    """
    need_tensor(input, "masked_fill", "input")
    need_tensor(mask, "masked_fill", "mask")
    if mask.dtype not in (D.bool_, D.uint8):
        raise RuntimeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype}"
        )
    if isinstance(value, Tensor) and value.dim() > 0:
        raise RuntimeError(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value.dim()} dimension(s)."
        )
    if not isinstance(value, Tensor):
        value = fitting(value, input.dtype)
    elif value.dtype.is_complex and not input.dtype.is_complex:
        raise RuntimeError(f"masked_fill: a value of {value.dtype} does not fit {input.dtype}")
    elif value.dtype is not input.dtype and value.device.type == "cpu":
        fitting(value.detach().item(), input.dtype)
    found = replaced(input, cast(mask, D.bool_), value)
    return found if len(found._a.shape) < 2 else found.contiguous()


def replaced(x: Tensor, mask: Tensor, value: object) -> Tensor:
    """`masked_fill` without its checks, with the order of dimensions of `x` in memory."""
    x, v = common("masked_fill", (x, value), x.dtype)
    return _where.run(mask, v, x)


@public(method=False)
def clone(input: Tensor, *, memory_format: MemoryFormat | None = None) -> Tensor:
    """A copy that shares no memory, with history.

    >>> import flambeau as fb
    >>> x = fb.ones(2); y = fb.clone(x); y[0] = 5; x
    tensor([1., 1.])
    """
    return need_tensor(input, "clone", "input").clone(memory_format=memory_format)


@public
def positive(input: Tensor) -> Tensor:
    """The tensor itself.

    Raises:
        RuntimeError: it is bool.

    >>> import flambeau as fb
    >>> fb.positive(fb.tensor([-1]))
    tensor([-1])
    """
    if need_tensor(input, "positive", "input").dtype is D.bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input
