"""Special functions: the error functions, the gamma function's relatives, powers and logarithms.

The decompositions compute in float64. Sources of the formulas: Abramowitz & Stegun, Handbook of
Mathematical Functions, chapters 6, 7 and 23.
"""

from __future__ import annotations

import math
import operator

from flambeau._dispatch.arguments import need_number, need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.hints import Number
from flambeau._writes.out import deliver
from flambeau.ops.creation.ranges import arange
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.pointwise.elementwise import (
    binary,
    erf,
    exp,
    expm1,
    floor,
    isinf,
    isnan,
    log,
    log1p,
    sin,
    sqrt,
    tan,
    where,
)

_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
# Bernoulli numbers B₂ … B₂₀ of even index (A&S 23.1).
_BERNOULLI = (
    *(1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66),
    *(-691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330),
)
_SHIFT = 10  # from here on the asymptotic series have float64's precision


@composite(promotes="float", refuses_complex='"erfc" is not implemented for complex numbers')
def _erfc(self: Tensor) -> Tensor:
    x = cast(self, D.float64)
    # Above 1/2 the trapezoidal rule for (2x/π)·∫₀^∞ exp(-x²-t²)/(x²+t²) dt, whose error is
    # exp(-π²/h²), and the contribution of its pole at t = ix, which is negligible from 6 on.
    h = 0.5
    positive = where(x > 0.5, x, 1.0)
    squared = positive * positive
    total = 0.5 / squared
    for k in range(1, 14):
        t2 = (k * h) ** 2
        total = total + math.exp(-t2) / (squared + t2)
    tail = total * positive * exp(-squared) * (2 * h / math.pi)
    pole = 2 / expm1(where(positive < 6, positive, 6.0) * (2 * math.pi / h))
    tail = where(positive < 6, tail - pole, tail)
    tail = where(isinf(positive), 0.0, tail)
    return cast(where(x > 0.5, tail, 1 - erf(x)), self.dtype)


@_erfc.gradient
def _(F, g, self):
    slope = F.mul(F.exp(F.neg(F.mul(self, self))), F.scalar(-_TWO_OVER_ROOT_PI, self))
    return F.mul(g, slope)


@composite(promotes="float", refuses_complex='"erfinv" is not implemented for complex numbers')
def _erfinv(self: Tensor) -> Tensor:
    x = cast(self, D.float64)
    inside = where(x.abs() < 1, x, 0.0)
    # Winitzki's closed form has two digits; each Halley step triples their number.
    a = 0.147
    w = log1p(-inside * inside)
    b = 2 / (math.pi * a) + w * 0.5
    y = sqrt(sqrt(b * b - w / a) - b) * inside.sign()
    for _ in range(3):
        # By erfc of |y|, which stays accurate where erf rounds to 1.
        gap = where(
            y.abs() > 0.5,
            (_erfc(y.abs()) - (1 - inside.abs())) * inside.sign(),
            inside - erf(y),
        )
        step = gap / (_TWO_OVER_ROOT_PI * exp(-y * y))
        y = y + step / (1 - y * step)
    y = where(x == 1, math.inf, where(x == -1, -math.inf, y))
    return cast(where((x.abs() > 1) | isnan(x), math.nan, y), self.dtype)


@_erfinv.gradient
def _(F, g, result):
    slope = F.mul(F.exp(F.mul(result, result)), F.scalar(1 / _TWO_OVER_ROOT_PI, result))
    return F.mul(g, slope)


@composite(promotes="float", refuses_complex='"lgamma" is not implemented for complex numbers')
def _lgamma(self: Tensor) -> Tensor:
    x = cast(self, D.float64)
    mirrored = x < 0.5
    z = where(mirrored, 1 - x, x)
    # Near the zeros at 1 and 2 the difference of logarithms keeps the absolute precision.
    shift, product = z, x.new_ones(())
    for _ in range(_SHIFT):
        small = shift < _SHIFT
        product = where(small, product * shift, product)
        shift = where(small, shift + 1, shift)
    series = 0.5 * math.log(2 * math.pi) + (shift - 0.5) * log(shift) - shift
    power = 1 / shift
    for k, b in enumerate(_BERNOULLI[:8], 1):
        series = series + power * (b / (2 * k * (2 * k - 1)))
        power = power / (shift * shift)
    result = series - log(product)
    fraction = x - floor(x)
    reflected = math.log(math.pi) - log(sin(fraction * math.pi).abs()) - result
    result = where(mirrored, where(fraction == 0, math.inf, reflected), result)
    return cast(where(isinf(x), math.inf, result), self.dtype)


@_lgamma.gradient
def _(F, g, self):
    return F.mul(g, F.digamma(self))


@composite(promotes="float", refuses_complex='"digamma" is not implemented for complex numbers')
def _digamma(self: Tensor) -> Tensor:
    x = cast(self, D.float64)
    result = where(x == 0, -1 / x, _polygamma64(x, 0))
    return cast(where(x == math.inf, math.inf, result), self.dtype)


@_digamma.gradient
def _(F, g, self):
    return F.mul(g, F.polygamma(self, 1))


@composite(promotes="float")
def _polygamma(self: Tensor, n: int) -> Tensor:
    return cast(_polygamma64(cast(self, D.float64), n), self.dtype)


@_polygamma.gradient
def _(F, g, self, n):
    return F.mul(g, F.polygamma(self, n + 1))


def _polygamma64(x: Tensor, n: int) -> Tensor:
    """The n-th derivative of digamma: recurrence, asymptotic series, reflection below 1/2."""
    mirrored = x < 0.5
    z = where(mirrored, 1 - x, x)
    sign = -1 if n % 2 == 0 else 1
    shifted = x.new_zeros(())
    # Σ 1/(z+k)^(n+1) until z+k reaches where the series (A&S 6.3.18, 6.4.11) is precise.
    start = _SHIFT + n
    for _ in range(start):
        small = z < start
        shifted = where(small, shifted + z ** (-n - 1), shifted)
        z = where(small, z + 1, z)
    total = shifted * math.factorial(n)
    if n == 0:
        total = total + 0.5 / z - log(z)
    else:
        total = total + math.factorial(n - 1) * z**-n + 0.5 * math.factorial(n) * z ** (-n - 1)
    for k, b in enumerate(_BERNOULLI, 1):
        factor = b * math.factorial(2 * k + n - 1) / math.factorial(2 * k)
        total = total + factor * z ** (-2 * k - n)
    result = total * sign
    fraction = x - floor(x)
    # Away from its poles also where it is not chosen: their infinite slope would become nan.
    inside = where(mirrored & (fraction != 0), fraction, 0.5)
    reflected = (-1) ** n * result - _cotangent_derivative(inside, n)
    pole = sign * math.inf if n else math.nan
    reflected = where(fraction == 0, pole, reflected)
    return where(mirrored, reflected, result)


def _cotangent_derivative(x: Tensor, n: int) -> Tensor:
    """The n-th derivative of π·cot(πx), a polynomial in the cotangent."""
    cotangent = 1 / tan(x * math.pi)
    coefficients = [0, 1]
    for _ in range(n):  # d/dx p(c) = -π (1 + c²) p'(c)
        slope = [-k * c for k, c in enumerate(coefficients)][1:]
        coefficients = [a + b for a, b in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    total = x.new_zeros(())
    for c in reversed(coefficients):
        total = total * cotangent + c
    return total * math.pi ** (n + 1)


@composite(promotes="float", refuses_complex='"xlogy" is not implemented for complex numbers')
def _xlogy(self: Tensor, other: Tensor) -> Tensor:
    nothing = (self == 0) & (other == other)
    product = where(nothing, 0.0, self) * log(where(nothing, 1.0, other))
    return where(nothing, 0.0, product)  # never −0


@_xlogy.gradient("self")
def _(F, g, self, other):
    zero = F.scalar(0, g)
    nothing = F.bitwise_and(F.eq(self, zero), F.le(other, zero))
    return F.where(nothing, zero, F.xlogy(g, other))


@_xlogy.gradient("other")
def _(F, g, self, other):
    return F.div(F.mul(g, self), other)


@_xlogy.samples
def _(S):
    some, positive = S.Arr((2, 3)), S.Arr((2, 3), low=0.1, high=3)
    return [
        S.Sample((some, positive), "matrix", True),
        S.Sample((S.Arr((2, 1)), S.Arr((3,), low=0.1, high=3)), "broadcast", True),
        S.Sample((S.Arr(()), S.Arr((), low=0.1, high=3)), "scalar"),
        S.Sample((S.Arr((0, 3)), S.Arr((3,))), "empty"),
    ]


@public(inplace="both")
def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complementary error function 1 - erf(x), accurate in its tail.

    >>> import flambeau as fb
    >>> fb.erfc(fb.tensor([0.0, 5.0]))
    tensor([1.0000e+00, 1.5375e-12])
    """
    return deliver(need_tensor(input, "erfc", "input").erfc(), out, input)


@public(inplace="method")
def erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of erf on (-1, 1): infinite at the ends, nan outside.

    >>> import flambeau as fb
    >>> fb.erfinv(fb.tensor([0.0, 0.5, 1.0]))
    tensor([0.0000, 0.4769,    inf])
    """
    return deliver(need_tensor(input, "erfinv", "input").erfinv(), out, input)


@public(inplace="method")
def lgamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log |Γ(x)|, the logarithm of the gamma function.

    >>> import flambeau as fb
    >>> fb.lgamma(fb.tensor([3.0, 5.0]))
    tensor([0.6931, 3.1781])
    """
    return deliver(need_tensor(input, "lgamma", "input").lgamma(), out, input)


@public(inplace="method")
def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of log Γ(x).

    >>> import flambeau as fb
    >>> fb.digamma(fb.tensor([1.0, 0.5]))
    tensor([-0.5772, -1.9635])
    """
    return deliver(need_tensor(input, "digamma", "input").digamma(), out, input)


@public(method=False)
def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The n-th derivative of digamma.

    Raises:
        RuntimeError: `n` is negative.

    >>> import flambeau as fb
    >>> fb.polygamma(1, fb.tensor([1.0]))
    tensor([1.6449])
    """
    x, n = need_tensor(input, "polygamma", "input"), operator.index(n)
    if n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n, got {n}.")
    if n > 169:
        raise RuntimeError(f"polygamma(n, x): {n}! is no float64 number; n may be 169 at most")
    if n == 0:
        return digamma(x, out=out)
    x = x if x.dtype.fp else cast(x, D.get_default_dtype())
    return deliver(_polygamma.run(x, n), out, input)


@public(inplace="method")
def mvlgamma(input: Tensor, p: int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the multivariate gamma function of `p` dimensions.

    log(π)·p·(p-1)/4 + Σ_{i<p} lgamma(x - i/2)

    Raises:
        RuntimeError: `p` is less than 1.

    >>> import flambeau as fb
    >>> fb.mvlgamma(fb.tensor([2.0]), 2)
    tensor([0.4516])
    """
    x = need_tensor(input, "mvlgamma", "input")
    if need_number(p, "mvlgamma", "p") < 1:
        raise RuntimeError(f"p has to be greater than or equal to 1, got {p}")
    x = x if x.dtype.fp else cast(x, D.get_default_dtype())
    halves = arange(p, dtype=x.dtype, device=x.device) * -0.5
    total = lgamma(x.unsqueeze(-1) + halves).sum(-1)
    return deliver(total + 0.25 * p * (p - 1) * math.log(math.pi), out, input, share="anything")


@public(inplace="both")
def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """2 raised to each element.

    >>> import flambeau as fb
    >>> fb.exp2(fb.tensor([3.0]))
    tensor([8.])
    """
    x = need_tensor(input, "exp2", "input")
    return deliver(2.0 ** (x if x.dtype.fp else cast(x, D.get_default_dtype())), out, input)


@public(inplace="both")
def logit(input: Tensor, eps: float | None = None, *, out: Tensor | None = None) -> Tensor:
    """log(x / (1 - x)), the inverse of the sigmoid; `eps` moves `x` into [eps, 1 - eps] first.

    >>> import flambeau as fb
    >>> fb.logit(fb.tensor([0.5, 0.75]))
    tensor([0.0000, 1.0986])
    """
    x = need_tensor(input, "logit", "input")
    x = x if x.dtype.fp else cast(x, D.get_default_dtype())
    if eps is not None:
        need_number(eps, "logit", "eps")
        x = x.clamp(eps, 1 - eps)
    return deliver(log(x / (1 - x)), out, input)


@public(inplace="both")
def xlogy(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """x·log(y), 0 where x is 0 and y is no nan.

    >>> import flambeau as fb
    >>> fb.xlogy(fb.tensor([0.0, 2.0]), fb.tensor([0.0, 1.0]))
    tensor([0., 0.])
    """
    like = other if isinstance(other, Tensor) else need_tensor(input, "xlogy", "input")
    dtype = like.dtype if like.dtype.fp else D.get_default_dtype()
    if not isinstance(other, Tensor):
        other = like.new_tensor(other, dtype=dtype)
    x = input if isinstance(input, Tensor) else like.new_tensor(input, dtype=dtype)
    return deliver(binary("xlogy", x, other), out, input, other)
