"""Bessel functions of the orders 0 and 1, and Airy's function, of real arguments.

The decompositions compute in float64, without tables: for small arguments by the trapezoidal rule,
which for integrals of periodic and of rapidly decaying functions converges faster than any power of
the step; for large ones by Hankel's asymptotic series.  Source: Abramowitz & Stegun, Handbook of
Mathematical Functions, chapter 9; the numbers of its formulas stand at the code.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import cast, slow_unary
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._writes.out import deliver
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.pointwise.elementwise import cos, exp, expm1, isnan, log, sin, sqrt, where

_FAR = 25.0  # from here on twenty terms of Hankel's series have float64's precision
_TERMS = 20
_EULER = 0.57721566490153286061


def _hankel(order: int) -> list[float]:
    """Coefficients of (9.2.5) and (9.7.1): (4ν² - 1)(4ν² - 9)…(4ν² - (2k-1)²) / (k! 8ᵏ)."""
    found = [1.0]
    for k in range(1, _TERMS):
        found.append(found[-1] * (4 * order * order - (2 * k - 1) ** 2) / (8 * k))
    return found


_HANKEL = (_hankel(0), _hankel(1))


def _series(coefficients: list[float], z: Tensor) -> Tensor:
    total = z * 0
    for c in reversed(coefficients):
        total = total * z + c
    return total


def _quarter(points: int) -> list[tuple[float, float]]:
    """Angles of the rule over a whole period and their weights, folded into a quarter of it."""
    quarter = points // 4
    edges = (0, quarter)
    return [
        (2 * math.pi * k / points, (2 if k in edges else 4) / points) for k in range(quarter + 1)
    ]


def _half(points: int) -> list[tuple[float, float]]:
    """Angles of the rule over a whole period and their weights, folded into half of it."""
    half = points // 2
    return [
        (2 * math.pi * k / points, (1 if k in (0, half) else 2) / points) for k in range(half + 1)
    ]


def _waves(angle: float, count: int, sign: int) -> float:
    """Σ signᵏ·cos(2kθ)/k, by which (9.1.88) and (9.6.54) become integrals."""
    return sum(sign**k * math.cos(2 * k * angle) / k for k in range(1, count + 1))


_OSCILLATING = [(math.sin(t), w, w * _waves(t, 32, -1)) for t, w in _quarter(128)]
_BOTH_SIDES = [(math.cos(t), w / 2) for t, w in _quarter(64)]
_GROWING = [(math.cos(t), w) for t, w in _half(64)]
_DECAYING = [(math.cos(t), w * _waves(t, 10, 1)) for t, w in _half(48)]


def _oscillation(x: Tensor, order: int, second: bool) -> Tensor:
    """J or Y of positive float64 numbers."""
    near, far = where(x < _FAR, x, 1.0), where(x < _FAR, _FAR, x)
    first, log_part = x * 0, x * 0
    for sine, weight, wave in _OSCILLATING:  # (9.1.18)
        value = cos(near * sine) if order == 0 else sin(near * sine) * sine
        first = first + value * weight
        if second:
            log_part = log_part + value * wave
    if second:  # (9.1.88), and its derivative
        level = log(near * 0.5) + _EULER
        small = (level * first - 2 * log_part) * (2 / math.pi)
        if order == 1:
            small = small - (2 / math.pi) * _oscillation_zero(near) / near
    else:
        small = first
    inverse = 1 / far
    square = -inverse * inverse
    p = _series(_HANKEL[order][::2], square)
    q = _series(_HANKEL[order][1::2], square) * inverse
    c, s = cos(far), sin(far)  # of the angle itself: subtracting π/4 would round
    c, s = (c + s, s - c) if order == 0 else (s - c, -(s + c))
    wave = p * s + q * c if second else p * c - q * s
    return where(x < _FAR, small, wave * sqrt(inverse / math.pi))  # (9.2.5), (9.2.6)


def _oscillation_zero(near: Tensor) -> Tensor:
    total = near * 0
    for sine, weight, _ in _OSCILLATING:
        total = total + cos(near * sine) * weight
    return total


def _first_kind(self: Tensor, order: int) -> Tensor:
    x = cast(self, D.float64)
    found = _oscillation(x.abs(), order, False)
    return cast(where(x < 0, -found, found) if order else found, self.dtype)


def _second_kind(self: Tensor, order: int) -> Tensor:
    x = cast(self, D.float64)
    found = _oscillation(where(x > 0, x, 1.0), order, True)
    return cast(_right_half(x, found, -math.inf), self.dtype)


def _right_half(x: Tensor, found: Tensor, pole: float) -> Tensor:
    return where(x > 0, found, where(x == 0, pole, math.nan))


@composite(promotes="float", refuses_complex='"bessel_j0" is not implemented for complex numbers')
def _bessel_j0(self: Tensor) -> Tensor:
    return _first_kind(self, 0)


@_bessel_j0.gradient
def _(F, g, self):
    return F.neg(F.mul(g, F.bessel_j1(self)))


@composite(promotes="float", refuses_complex='"bessel_j1" is not implemented for complex numbers')
def _bessel_j1(self: Tensor) -> Tensor:
    return _first_kind(self, 1)


@_bessel_j1.gradient
def _(F, g, self, result):
    return F.mul(g, F.sub(F.bessel_j0(self), _over(F, result, self)))


def _over(F, value, x):
    """value / x, and the limit 1/2 at 0, for functions of the first kind."""
    zero = F.eq(x, F.scalar(0, x))
    quotient = F.div(value, F.where(zero, F.scalar(1, x), x))
    return F.where(zero, F.scalar(0.5, x), quotient)


@composite(promotes="float", refuses_complex='"bessel_y0" is not implemented for complex numbers')
def _bessel_y0(self: Tensor) -> Tensor:
    return _second_kind(self, 0)


@_bessel_y0.gradient
def _(F, g, self):
    return F.neg(F.mul(g, F.bessel_y1(self)))


@composite(promotes="float", refuses_complex='"bessel_y1" is not implemented for complex numbers')
def _bessel_y1(self: Tensor) -> Tensor:
    return _second_kind(self, 1)


@_bessel_y1.gradient
def _(F, g, self, result):
    return F.mul(g, F.sub(F.bessel_y0(self), F.div(result, self)))


def _growth(self: Tensor, order: int, scaled: bool) -> Tensor:
    """I, or exp(-|x|)·I."""
    x = cast(self, D.float64)
    size = x.abs()
    near, far = where(size < _FAR, size, 1.0), where(size < _FAR, _FAR, size)
    small = x * 0
    for cosine, weight in _BOTH_SIDES:  # (9.6.16), (9.6.19)
        if order == 0:
            value = exp(near * (cosine - 1)) + exp(near * (-1 - cosine))
        else:  # the difference of two numbers near 1 would be inaccurate
            value = (expm1(near * (cosine - 1)) - expm1(near * (-1 - cosine))) * cosine
        small = small + value * weight
    large = _series(_HANKEL[order], -1 / far) * sqrt(0.5 / (math.pi * far))  # (9.7.1)
    found = where(size < _FAR, small, large)
    if not scaled:
        found = where(size == math.inf, math.inf, found * exp(size))
    found = where(isnan(x), math.nan, found)
    return cast(where(x < 0, -found, found) if order else found, self.dtype)


def _decay(self: Tensor, order: int, scaled: bool) -> Tensor:
    """K, or exp(x)·K."""
    x = cast(self, D.float64)
    near = where((x > 0) & (x <= 2), x, 1.0)
    level = log(near * 0.5) + _EULER
    waves, first = near * 0, near * 0
    for cosine, weight in _DECAYING:  # (9.6.54), and its derivative
        waves = waves + exp(near * cosine) * (weight * cosine**order)
    for cosine, weight in _GROWING:
        first = first + exp(near * cosine) * (weight * cosine**order)
    if order == 0:
        small = 2 * waves - level * first
    else:
        zero = near * 0
        for cosine, weight in _GROWING:
            zero = zero + exp(near * cosine) * weight
        small = zero / near + level * first - 2 * waves
    small = small * exp(near)
    middle = where((x > 2) & (x <= _FAR), x, 2.0)
    step, between = 0.15, middle * 0 + 0.5
    for k in range(1, 26):  # (9.6.24)
        t = math.cosh(k * step)
        between = between + exp(middle * (1 - t)) * t**order
    between = between * step
    far = where(x > _FAR, x, _FAR)
    large = _series(_HANKEL[order], 1 / far) * sqrt(math.pi * 0.5 / far)  # (9.7.2)
    found = where(x <= 2, small, where(x <= _FAR, between, large))
    found = found if scaled else found * exp(-where(x > 0, x, 1.0))
    found = where(x == math.inf, 0.0, found)
    return cast(_right_half(x, found, math.inf), self.dtype)


@composite(promotes="float", refuses_complex='"i0" is not implemented for complex numbers')
def _i0(self: Tensor) -> Tensor:
    return _growth(self, 0, False)


@_i0.gradient
def _(F, g, self):
    return F.mul(g, F.i1(self))


@composite(promotes="float", refuses_complex='"i1" is not implemented for complex numbers')
def _i1(self: Tensor) -> Tensor:
    return _growth(self, 1, False)


@_i1.gradient
def _(F, g, self, result):
    return F.mul(g, F.sub(F.i0(self), _over(F, result, self)))


@composite(promotes="float", refuses_complex='"i0e" is not implemented for complex numbers')
def _i0e(self: Tensor) -> Tensor:
    return _growth(self, 0, True)


@_i0e.gradient
def _(F, g, self, result):
    return F.mul(g, F.sub(F.i1e(self), F.mul(F.sign(self), result)))


@composite(promotes="float", refuses_complex='"i1e" is not implemented for complex numbers')
def _i1e(self: Tensor) -> Tensor:
    return _growth(self, 1, True)


@_i1e.gradient
def _(F, g, self, result):
    slope = F.sub(F.i0e(self), _over(F, result, self))
    return F.mul(g, F.sub(slope, F.mul(F.sign(self), result)))


@composite(promotes="float", refuses_complex='"k0" is not implemented for complex numbers')
def _modified_bessel_k0(self: Tensor) -> Tensor:
    return _decay(self, 0, False)


@_modified_bessel_k0.gradient
def _(F, g, self):
    return F.neg(F.mul(g, F.modified_bessel_k1(self)))


@composite(promotes="float", refuses_complex='"k1" is not implemented for complex numbers')
def _modified_bessel_k1(self: Tensor) -> Tensor:
    return _decay(self, 1, False)


@_modified_bessel_k1.gradient
def _(F, g, self, result):
    return F.neg(F.mul(g, F.add(F.modified_bessel_k0(self), F.div(result, self))))


@composite(promotes="float", refuses_complex='"k0" is not implemented for complex numbers')
def _scaled_modified_bessel_k0(self: Tensor) -> Tensor:
    return _decay(self, 0, True)


@_scaled_modified_bessel_k0.gradient
def _(F, g, self, result):
    return F.mul(g, F.sub(result, F.scaled_modified_bessel_k1(self)))


@composite(promotes="float", refuses_complex='"k1" is not implemented for complex numbers')
def _scaled_modified_bessel_k1(self: Tensor) -> Tensor:
    return _decay(self, 1, True)


@_scaled_modified_bessel_k1.gradient
def _(F, g, self, result):
    slope = F.sub(F.sub(result, F.scaled_modified_bessel_k0(self)), F.div(result, self))
    return F.mul(g, slope)


_AIRY_FAR = -9.0  # below, twenty terms of the asymptotic series have float64's precision
_LIFT = 0.5


def _airy_series() -> list[float]:
    """Coefficients of (10.4.58): c_k = c_{k-1} (6k - 5)(6k - 3)(6k - 1) / (216 k (2k - 1))."""
    found = [1.0]
    for k in range(1, _TERMS):
        factor = (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216 * k * (2 * k - 1))
        found.append(found[-1] * factor)
    return found


_AIRY = _airy_series()


@composite(
    promotes="float",
    differentiable=False,
    refuses_complex='"airy_ai" is not implemented for complex numbers',
)
def _airy_ai(self: Tensor) -> Tensor:
    """Airy's integral (10.4.32) over a line above the real axis, on which it decays as a bell.

    For x >= 1 the line goes through the saddle i sqrt(x), below that through i/2.
    """
    x = cast(self, D.float64)
    near = where((x >= _AIRY_FAR) & (x < 1), x, 0.0)
    step, small = 0.08, near * 0 + 0.5
    for k in range(1, 110):
        t = k * step
        small = small + cos(near * t + (t**3 / 3 - _LIFT**2 * t)) * math.exp(-_LIFT * t * t)
    small = small * exp(_LIFT**3 / 3 - near * _LIFT) * (step / math.pi)
    above = where((x >= 1) & (x < 110), x, 1.0)
    root = sqrt(above)
    turn = 1 / (above * 3) / sqrt(root) * root  # x**(-3/4) / 3
    step, large = 0.1, above * 0 + 0.5
    for k in range(1, 65):
        t = k * step
        large = large + cos(turn * t**3) * math.exp(-t * t)
    large = large * exp(above * root * (-2 / 3)) / sqrt(root) * (step / math.pi)
    far = where(x < _AIRY_FAR, -x, -_AIRY_FAR)
    root = sqrt(far)
    angle = far * root * (2 / 3)
    inverse = 1 / angle
    square = -inverse * inverse
    p = _series(_AIRY[::2], square)
    q = _series(_AIRY[1::2], square) * inverse
    c, s = cos(angle), sin(angle)
    wave = ((s + c) * p - (c - s) * q) / sqrt(root * (2 * math.pi))  # (10.4.60)
    found = where(x < _AIRY_FAR, wave, where(x < 1, small, where(x < 110, large, 0.0)))
    return cast(where(isnan(x) | (x.abs() == math.inf), math.nan, found), self.dtype)


def _public(name: str, doc: str, example: str) -> Callable[..., Tensor]:
    def function(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        return deliver(slow_unary(name, need_tensor(input, name, "input")), out, input)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "flambeau" if name == "i0" else "flambeau.special"
    called = "i0" if name == "i0" else f"special.{name}"
    function.__doc__ = f"""{doc}

    >>> import flambeau as fb
    >>> fb.{called}(fb.tensor([1.0, 2.0]))
    {example}
    """
    return function


i0 = public(inplace="both")(
    _public("i0", "The modified Bessel function of the first kind, I₀.", "tensor([1.2661, 2.2796])")
)
i0e = _public("i0e", "exp(-|x|)·I₀(x).", "tensor([0.4658, 0.3085])")
i1 = _public(
    "i1", "The modified Bessel function of the first kind, I₁.", "tensor([0.5652, 1.5906])"
)
i1e = _public("i1e", "exp(-|x|)·I₁(x).", "tensor([0.2079, 0.2153])")
bessel_j0 = _public(
    "bessel_j0", "The Bessel function of the first kind, J₀.", "tensor([0.7652, 0.2239])"
)
bessel_j1 = _public(
    "bessel_j1", "The Bessel function of the first kind, J₁.", "tensor([0.4401, 0.5767])"
)
bessel_y0 = _public(
    "bessel_y0", "The Bessel function of the second kind, Y₀.", "tensor([0.0883, 0.5104])"
)
bessel_y1 = _public(
    "bessel_y1", "The Bessel function of the second kind, Y₁.", "tensor([-0.7812, -0.1070])"
)
modified_bessel_k0 = _public(
    "modified_bessel_k0",
    "The modified Bessel function of the second kind, K₀.",
    "tensor([0.4210, 0.1139])",
)
modified_bessel_k1 = _public(
    "modified_bessel_k1",
    "The modified Bessel function of the second kind, K₁.",
    "tensor([0.6019, 0.1399])",
)
scaled_modified_bessel_k0 = _public(
    "scaled_modified_bessel_k0", "exp(x)·K₀(x).", "tensor([1.1445, 0.8416])"
)
scaled_modified_bessel_k1 = _public(
    "scaled_modified_bessel_k1", "exp(x)·K₁(x).", "tensor([1.6362, 1.0335])"
)


airy_ai = _public(
    "airy_ai",
    "Airy's function Ai, the solution of y'' = x y that decays; it has no gradient.",
    "tensor([0.1353, 0.0349])",
)


def modified_bessel_i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`i0` by another name.

    >>> import flambeau as fb
    >>> fb.special.modified_bessel_i0(fb.tensor([0.0]))
    tensor([1.])
    """
    return i0(input, out=out)


def modified_bessel_i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`i1` by another name.

    >>> import flambeau as fb
    >>> fb.special.modified_bessel_i1(fb.tensor([0.0]))
    tensor([0.])
    """
    return i1(input, out=out)


def spherical_bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """sin(x)/x, 1 at 0 and 0 at infinity.

    >>> import flambeau as fb
    >>> fb.special.spherical_bessel_j0(fb.tensor([0.0, 1.0]))
    tensor([1.0000, 0.8415])
    """
    x = need_tensor(input, "spherical_bessel_j0", "input")
    x = x if x.dtype.fp else cast(x, D.get_default_dtype())
    infinite = x.abs() == math.inf
    regular = where((x == 0) | infinite, 1.0, x)
    found = where(x == 0, 1.0, sin(regular) / regular)
    return deliver(where(infinite, 0.0, found), out, input)


def log_i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of I₀, also where that overflows; its derivative is I₁/I₀.

    PyTorch has no such function.

    Raises:
        NotImplementedError: the dtype is complex.

    >>> import flambeau as fb
    >>> fb.special.log_i0(fb.tensor([1.0, 1000.0]))
    tensor([2.3591e-01, 9.9563e+02])
    """
    x = need_tensor(input, "log_i0", "input")
    return deliver(log(i0e(x)) + x.abs(), out, input)
