"""Functions of two tensors, element by element, beyond arithmetic."""

from __future__ import annotations

import math

from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._dispatch.halves import is_half
from flambeau._dispatch.promotion import result_type
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.hints import Number
from flambeau._writes.in_one import in_one
from flambeau._writes.out import deliver
from flambeau.ops.declaration.public import public
from flambeau.ops.pointwise.elementwise import (
    binary,
    exp,
    isinf,
    log1p,
    pow,
    remainder,
    sqrt,
    where,
)
from flambeau.ops.shapes.broadcasting import broadcast_tensors
from flambeau.ops.special_functions.special import exp2


def _two(
    name: str, input: object, other: object, *, to_float: bool = False
) -> tuple[Tensor, Tensor]:
    x = need_tensor(input, name, "input")
    y = need_tensor(other, name, "other")
    dtype = result_type(x, y)
    if to_float and not dtype.fp:
        dtype = D.get_default_dtype()
    return cast(x, dtype), cast(y, dtype)


@public
def logaddexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log(eˣ + eʸ), without overflow on the way.

    >>> import flambeau as fb
    >>> fb.logaddexp(fb.tensor([1000.0]), fb.tensor([1000.0]))
    tensor([1000.6932])
    """
    x, y = _two("logaddexp", input, other)
    high, gap = _high_and_gap(*_wide(x, y))
    return deliver(cast(high + log1p(exp(gap)), x.dtype), out, input, other)


@public
def logaddexp2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log₂(2ˣ + 2ʸ), without overflow on the way.

    >>> import flambeau as fb
    >>> fb.logaddexp2(fb.tensor([3.0]), fb.tensor([3.0]))
    tensor([4.])
    """
    x, y = _two("logaddexp2", input, other)
    high, gap = _high_and_gap(*_wide(x, y))
    return deliver(cast(high + log1p(exp2(gap)) * (1 / math.log(2)), x.dtype), out, input, other)


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


def _integers(name: str, input: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    x, y = _two(name, input, other)
    if x.dtype.category != 1 or x.dtype is D.bool_:
        raise NotImplementedError(f'"{name}" is not implemented for {x.dtype}: use integers')
    return x.abs(), y.abs()


@public(inplace="both")
def gcd(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The greatest common divisor of integers, not negative; gcd(0, 0) is 0.

    Raises:
        NotImplementedError: the dtype is not an integer one.

    >>> import flambeau as fb
    >>> fb.gcd(fb.tensor([12, 0]), fb.tensor([-18, 5]))
    tensor([6, 5])
    """
    x, y = _integers("gcd", input, other)
    x, y = broadcast_tensors(x, y)
    if not x.is_meta:
        while bool((y != 0).any()):
            more = y != 0
            rest = remainder(x, where(more, y, 1))
            x, y = where(more, y, x), where(more, rest, 0)
    return deliver(x, out, input, other)


@public(inplace="both")
def lcm(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The least common multiple of integers, not negative; 0 if one of them is 0.

    Raises:
        NotImplementedError: the dtype is not an integer one.

    >>> import flambeau as fb
    >>> fb.lcm(fb.tensor([4, 0]), fb.tensor([6, 5]))
    tensor([12,  0])
    """
    x, y = _integers("lcm", input, other)
    common = gcd(x, y)
    return deliver(x // where(common == 0, 1, common) * y, out, input, other)


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
