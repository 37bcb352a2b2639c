"""Functions of two tensors, element by element, beyond arithmetic."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._dispatch.halves import is_half
from flambeau._dispatch.promotion import result_type
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.dtype import INTEGER
from flambeau._types.hints import Number
from flambeau._writes.in_one import in_one
from flambeau._writes.out import deliver
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import OPS, composite
from flambeau.ops.pointwise.elementwise import (
    binary,
    exp,
    fmod,
    isinf,
    log1p,
    pow,
    sqrt,
    where,
)
from flambeau.ops.shapes.broadcasting import broadcast_tensors
from flambeau.ops.special_functions.special import exp2

if TYPE_CHECKING:
    from types import ModuleType

    from flambeau.testing.sample_arrays import Sample


def _two(
    name: str, input: object, other: object, *, to_float: bool = False
) -> tuple[Tensor, Tensor]:
    x = need_tensor(input, name, "input")
    y = need_tensor(other, name, "other")
    if x.dtype is y.dtype and not to_float:
        return x, y
    dtype = result_type(x, y)
    if to_float and not dtype.fp:
        dtype = D.get_default_dtype()
    return cast(x, dtype), cast(y, dtype)


@composite(promotes="any", refuses_complex='"logaddexp" is not implemented for complex numbers')
def _logaddexp(self: Tensor, other: Tensor) -> Tensor:
    high, gap = _high_and_gap(*_wide(self, other))
    return cast(high + log1p(exp(gap)), self.dtype)


@composite(promotes="any", refuses_complex='"logaddexp2" is not implemented for complex numbers')
def _logaddexp2(self: Tensor, other: Tensor) -> Tensor:
    high, gap = _high_and_gap(*_wide(self, other))
    return cast(high + log1p(exp2(gap)) * (1 / math.log(2)), self.dtype)


def _share(F, x, y, base):
    """How much of the sum is `x`'s; half of it where both are the same infinity."""
    same = F.bitwise_and(F.eq(x, y), F.bitwise_not(F.isfinite(x)))
    gap = F.where(same, F.scalar(0, x), F.sub(x, y))
    return F.sigmoid(gap if base is None else F.mul(gap, F.scalar(base, gap)))


@_logaddexp.gradient("self")
def _(F, g, self, other):
    return F.mul(g, _share(F, self, other, None))


@_logaddexp.gradient("other")
def _(F, g, self, other):
    return F.mul(g, _share(F, other, self, None))


@_logaddexp2.gradient("self")
def _(F, g, self, other):
    return F.mul(g, _share(F, self, other, math.log(2)))


@_logaddexp2.gradient("other")
def _(F, g, self, other):
    return F.mul(g, _share(F, other, self, math.log(2)))


def _float_samples(S: ModuleType) -> list[Sample]:
    return [
        S.Sample((S.Arr((2, 3)), S.Arr((2, 3))), "matrix", True),
        S.Sample((S.Arr((2, 1)), S.Arr((3,))), "broadcast", True),
        S.Sample((S.Arr(()), S.Arr(())), "scalar"),
        S.Sample((S.Arr((0, 3)), S.Arr((3,))), "empty"),
    ]


_logaddexp.samples(_float_samples)
_logaddexp2.samples(_float_samples)


@public
def logaddexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log(eˣ + eʸ), without overflow on the way.

    Raises:
        NotImplementedError: the dtype is not a real floating one.

    >>> import flambeau as fb
    >>> fb.logaddexp(fb.tensor([1000.0]), fb.tensor([1000.0]))
    tensor([1000.6932])
    """
    return deliver(_of_floats("logaddexp", input, other), out, input, other)


@public
def logaddexp2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log₂(2ˣ + 2ʸ), without overflow on the way.

    Raises:
        NotImplementedError: the dtype is not a real floating one.

    >>> import flambeau as fb
    >>> fb.logaddexp2(fb.tensor([3.0]), fb.tensor([3.0]))
    tensor([4.])
    """
    return deliver(_of_floats("logaddexp2", input, other), out, input, other)


def _of_floats(name: str, input: Tensor, other: Tensor) -> Tensor:
    x, y = _two(name, input, other)
    if not x.dtype.is_floating_point:
        raise NotImplementedError(f'"{name}" is not implemented for {x.dtype}: use real floats')
    return OPS[name](x, y)


def _wide(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Two tensors of one dtype as steps compute them: in float32 for 16-bit floats."""
    return (cast(x, D.float32), cast(y, D.float32)) if is_half(x.dtype) else (x, y)


def _high_and_gap(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The larger element, and the smaller one minus it; nan if one is.

    Chosen by `where`: `maximum` and `abs` have no second derivatives at equal elements.
    """
    swap = (y > x) | (y != y)
    high, low = where(swap, y, x), where(swap, x, y)
    return high, where(isinf(high) & (high == low), 0.0, low - high)


@public
def fmax(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The larger of two elements; nan only where both are.

    >>> import flambeau as fb
    >>> fb.fmax(fb.tensor([1.0, fb.nan]), fb.tensor([2.0, 2.0]))
    tensor([2., 2.])
    """
    x, y = _two("fmax", input, other)
    return deliver(where((x >= y) | (y != y), x, y), out, input, other)


@public
def fmin(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smaller of two elements; nan only where both are.

    >>> import flambeau as fb
    >>> fb.fmin(fb.tensor([1.0, fb.nan]), fb.tensor([2.0, 2.0]))
    tensor([1., 2.])
    """
    x, y = _two("fmin", input, other)
    return deliver(where((x <= y) | (y != y), x, y), out, input, other)


@public(inplace="method")
def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = None) -> Tensor:
    """0 below zero, 1 above, and `values` at zero.  Not differentiable.

    Raises:
        RuntimeError: dtypes differ.

    >>> import flambeau as fb
    >>> fb.heaviside(fb.tensor([-1.5, 0.0, 2.0]), fb.tensor(0.5))
    tensor([0.0000, 0.5000, 1.0000])
    """
    x, y = need_tensor(input, "heaviside", "input"), need_tensor(values, "heaviside", "values")
    if x.dtype is not y.dtype:
        raise RuntimeError(
            "heaviside is not yet implemented for tensors with different dtypes: "
            f"{x.dtype} and {y.dtype}"
        )
    x, y = x.detach(), y.detach()
    return deliver(where(x == 0, y, cast(x > 0, x.dtype)), out, input, values, exact=True)


@public(inplace="method")
def float_power(
    input: Tensor | Number, exponent: Tensor | Number, *, out: Tensor | None = None
) -> Tensor:
    """input ^ exponent in float64 (complex128 for complex numbers).

    >>> import flambeau as fb
    >>> fb.float_power(fb.tensor([2]), 0.5)
    tensor([1.4142], dtype=torch.float64)
    """
    # An integer has no dtype of its own here, whatever its size.
    given = [1.0 if type(x) is int else x for x in (input, exponent)]
    wide = D.complex128 if result_type(*given).is_complex else D.float64
    x = cast(input, wide) if isinstance(input, Tensor) else input
    if isinstance(exponent, Tensor):
        y = cast(exponent, wide)
    else:
        y = need_tensor(x, "float_power", "input").new_full((), exponent)
    return deliver(pow(x, y), out, input, exponent, exact=True)


@composite(promotes="any", integral=True, differentiable=False)
def _gcd(self: Tensor, other: Tensor) -> Tensor:
    x, y = broadcast_tensors(self.abs(), other.abs())
    if x.is_meta:
        return x + y
    while bool((x != 0).any()):
        more = x != 0
        x, y = where(more, fmod(y, where(more, x, 1)), 0), where(more, x, y)
    return y.contiguous()


@composite(promotes="any", integral=True, differentiable=False)
def _lcm(self: Tensor, other: Tensor) -> Tensor:
    common = _gcd(self, other)
    found = self.abs() // where(common == 0, 1, common) * other.abs()
    # PyTorch has no sign where the number wraps, but in the types that C widens first.
    return found.abs() if self.dtype.itemsize >= 4 else found


def _integer_samples(S: ModuleType) -> list[Sample]:
    return [
        S.Sample((S.Arr((2, 3), low=-100, high=100), S.Arr((2, 3), low=-9, high=9)), "matrix"),
        S.Sample((S.Arr((2, 1), low=-9, high=9), S.Arr((3,), low=0, high=40)), "broadcast"),
        S.Sample((S.Arr((), low=0, high=9), S.Arr((), low=0, high=9)), "scalar"),
        S.Sample((S.Arr((0, 3)), S.Arr((3,))), "empty"),
    ]


_gcd.samples(*INTEGER)(_integer_samples)
_lcm.samples(*INTEGER)(_integer_samples)


def _of_integers(name: str, input: Tensor, other: Tensor) -> Tensor:
    x, y = _two(name, input, other)
    if x.dtype.category != 1 or x.dtype is D.bool_:
        raise NotImplementedError(f'"{name}" is not implemented for {x.dtype}: use integers')
    return OPS[name](x, y)


@public(inplace="both")
def gcd(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The greatest common divisor of integers; gcd(0, 0) is 0.

    It is not negative, unless an operand is the least number of its dtype.

    Raises:
        NotImplementedError: the dtype is not an integer one.

    >>> import flambeau as fb
    >>> fb.gcd(fb.tensor([12, 0]), fb.tensor([-18, 5]))
    tensor([6, 5])
    """
    return deliver(_of_integers("gcd", input, other), out, input, other)


@public(inplace="both")
def lcm(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The least common multiple of integers, not negative; 0 if one of them is 0.

    Raises:
        NotImplementedError: the dtype is not an integer one.

    >>> import flambeau as fb
    >>> fb.lcm(fb.tensor([4, 0]), fb.tensor([6, 5]))
    tensor([12,  0])
    """
    return deliver(_of_integers("lcm", input, other), out, input, other)


@public(inplace="method")
def hypot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The length of the hypotenuse, sqrt(x² + y²), without overflow on the way.

    >>> import flambeau as fb
    >>> fb.hypot(fb.tensor([3.0]), fb.tensor([4.0]))
    tensor([5.])
    """
    if (found := in_one("hypot", input, other)) is not None:
        return deliver(found, out, input, other)
    x, y = _two("hypot", input, other)
    dtype = x.dtype
    x, y = _wide(x, y)
    with_scale = binary("maximum", x.detach().abs(), y.detach().abs())
    scale = where((with_scale == 0) | isinf(with_scale), 1.0, with_scale)
    a, b = x / scale, y / scale
    length = scale * sqrt(a * a + b * b)
    found = where(isinf(x) | isinf(y), math.inf, length)
    return deliver(cast(found, dtype) if is_half(dtype) else found, out, input, other)
