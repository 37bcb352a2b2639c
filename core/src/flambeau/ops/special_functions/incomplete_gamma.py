"""The regularised incomplete gamma functions and the zeta function of Hurwitz.

The decompositions compute in float64.  Source of the formulas: Abramowitz & Stegun, Handbook of
Mathematical Functions, chapters 6.5 and 23.2.
"""

from __future__ import annotations

import math
from typing import Any

from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._writes.out import deliver
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.pointwise.elementwise import (
    binary,
    exp,
    expm1,
    floor,
    isnan,
    log,
    where,
)
from flambeau.ops.special_functions.small_parameters import SMALL_SHAPE, log_lower_gamma
from flambeau.ops.special_functions.special import lgamma
from flambeau.ops.special_functions.tail_quadrature import gamma_tail

_LARGE = 100.0  # from here on the integral is taken by quadrature
_STEPS = 200  # terms of the series and of the continued fraction, enough below _LARGE
_TINY = 1e-300


def _both(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """P(a, x) and Q(a, x) of float64 numbers."""
    known = (a > 0) & (x > 0) & (a < math.inf) & (x < math.inf)
    safe_a, safe_x = where(known, a, 1.0), where(known, x, 1.0)
    small = safe_a < _LARGE
    p, q = _by_series(where(small, safe_a, 1.0), where(small, safe_x, 1.0))
    wide_p, wide_q = _by_quadrature(where(small, _LARGE, safe_a), where(small, _LARGE, safe_x))
    p, q = where(small, p, wide_p), where(small, q, wide_q)
    full = ((x == math.inf) & (a < math.inf)) | ((a == 0) & (x > 0))
    empty = ((x == 0) & (a > 0)) | ((a == math.inf) & (x < math.inf))
    wrong = isnan(a) | isnan(x) | (a < 0) | (x < 0) | ((a == 0) & (x == 0))
    wrong = wrong | ((a == math.inf) & (x == math.inf))
    p, q = where(full, 1.0, where(empty, 0.0, p)), where(full, 0.0, where(empty, 1.0, q))
    return where(wrong, math.nan, p), where(wrong, math.nan, q)


def _by_series(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    front = exp(a * log(x) - x - lgamma(a))
    below = x < a + 1
    near = where(below, x, a)
    term = 1 / a
    total = term
    for k in range(1, _STEPS):  # (6.5.29)
        term = term * near / (a + k)
        total = total + term
    far = where(below, a + 1, x)
    b = far + 1 - a
    c, d = b * 0 + 1 / _TINY, 1 / b
    fraction = d
    for k in range(1, _STEPS):  # (6.5.31), from the front by Lentz's method
        factor = (a - k) * k
        b = b + 2
        d = factor * d + b
        d = 1 / where(d.abs() < _TINY, _TINY, d)
        c = factor / c + b
        c = where(c.abs() < _TINY, _TINY, c)
        fraction = fraction * d * c
    lower, upper = front * total, front * fraction
    thin = below & (a < SMALL_SHAPE)
    log_lower = log_lower_gamma(where(thin, a, SMALL_SHAPE), where(thin, x, 1.0))
    rest = where(thin, -expm1(log_lower), 1 - lower)
    return where(below, where(thin, exp(log_lower), lower), 1 - upper), where(below, rest, upper)


def _by_quadrature(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    log_tail, below, _, _ = gamma_tail(a, x)
    tail, rest = exp(log_tail), -expm1(log_tail)
    return where(below, tail, rest), where(below, rest, tail)


@composite(promotes="float", refuses_complex='"igamma" is not implemented for complex numbers')
def _igamma(self: Tensor, other: Tensor) -> Tensor:
    return cast(_both(cast(self, D.float64), cast(other, D.float64))[0], self.dtype)


@composite(promotes="float", refuses_complex='"igammac" is not implemented for complex numbers')
def _igammac(self: Tensor, other: Tensor) -> Tensor:
    return cast(_both(cast(self, D.float64), cast(other, D.float64))[1], self.dtype)


def _density(F, a, x):
    power = F.mul(F.sub(a, F.scalar(1, a)), F.log(x))
    return F.exp(F.sub(F.sub(power, x), F.lgamma(a)))


@_igamma.gradient("other")
def _(F, g, self, other):
    return F.mul(g, _density(F, self, other))


@_igammac.gradient("other")
def _(F, g, self, other):
    return F.neg(F.mul(g, _density(F, self, other)))


def _follows(F, a, x):
    return F.mul(_density(F, a, x), F.standard_gamma_grad(a, x, True))


@_igamma.gradient("self")
def _(F, g, self, other):
    return F.neg(F.mul(g, _follows(F, self, other)))


@_igammac.gradient("self")
def _(F, g, self, other):
    return F.mul(g, _follows(F, self, other))


# B₂ₖ/(2k)! for k = 1 … 8 (23.1, 23.2.17)
_EULER_MACLAURIN = (
    *(1 / 12, -1 / 720, 1 / 30240, -1 / 1209600),
    *(1 / 47900160, -691 / 1307674368000, 1 / 74724249600, -3617 / 10670622842880000),
)


@composite(promotes="float", refuses_complex='"zeta" is not implemented for complex numbers')
def _zeta(self: Tensor, other: Tensor) -> Tensor:
    x, q = cast(self, D.float64), cast(other, D.float64)
    whole = q == floor(q)
    wrong = (x < 1) | ((q < 0) & ~whole & (x != floor(x))) | isnan(x) | isnan(q)
    pole = (x == 1) | ((q <= 0) & whole)
    safe_x = where(wrong | pole | (x > 1e3), 2.0, x)
    z = where(wrong | pole | (q.abs() == math.inf), 1.0, q)
    steps = 10
    if z.numel() and z.device.type != "meta":
        steps += max(0, math.ceil(-z.amin().item()))
    total = z * 0 + safe_x * 0
    for _ in range(steps):
        total = total + z**-safe_x
        z = z + 1
    power = z**-safe_x
    total = total + power * z / (safe_x - 1) + power * 0.5
    factor = safe_x * power / z
    for k, c in enumerate(_EULER_MACLAURIN, 1):
        total = total + factor * c
        factor = factor * (safe_x + 2 * k - 1) * (safe_x + 2 * k) / (z * z)
    # Of the sum only the term nearest to 0 is left.
    total = where(x > 1e3, q ** -where(x > 1e3, x, 2.0), total)
    total = where((q == math.inf) & ~wrong, 0.0, total)
    return cast(where(wrong, math.nan, where(pole, math.inf, total)), self.dtype)


@_zeta.gradient("other")
def _(F, g, self, other):
    return F.neg(F.mul(g, F.mul(self, F.zeta(F.add(self, F.scalar(1, self)), other))))


@_zeta.gradient("self")
def _(F, g, _self, _other):
    raise NotImplementedError("the gradient of 'zeta' in its first argument is not implemented")


@public(inplace="method")
def igamma(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The regularised lower incomplete gamma function P(a, x) of `input` a and `other` x.

    ∫₀ˣ tᵃ⁻¹·exp(-t) dt / Γ(a), for a and x of at least 0.  There are gradients in both, of
    which PyTorch has the one in x.

    Raises:
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.igamma(fb.tensor([1.0, 2.0]), fb.tensor([2.0, 2.0]))
    tensor([0.8647, 0.5940])
    """
    return deliver(_incomplete("igamma", input, other), out, input, other)


@public(inplace="method")
def igammac(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The regularised upper incomplete gamma function Q = 1 - P; see `igamma`.

    Raises:
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.igammac(fb.tensor([1.0, 2.0]), fb.tensor([2.0, 2.0]))
    tensor([0.1353, 0.4060])
    """
    return deliver(_incomplete("igammac", input, other), out, input, other)


def _incomplete(name: str, a: Tensor, x: Tensor) -> Tensor:
    a, x = need_tensor(a, name, "input"), need_tensor(x, name, "other")
    if not (a.dtype.fp or x.dtype.fp):
        raise NotImplementedError(f'"{name}" not implemented for {a.dtype}: use a float dtype')
    return binary(name, a, x)


def zeta(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The zeta function of Hurwitz, Σ 1/(k + q)ˣ over k = 0, 1, 2 … of `input` x and `other` q.

    Infinite for x = 1 and for q = 0, -1, -2 …; nan for x < 1.  The gradient is that in q.

    Raises:
        NotImplementedError: a gradient in `input` is wanted.

    >>> import flambeau as fb
    >>> fb.special.zeta(fb.tensor([2.0, 4.0]), 1)
    tensor([1.6449, 1.0823])
    """
    return deliver(binary("zeta", input, other), out, input, other)
