"""The regularised incomplete beta function, its inverse, and how beta samples follow parameters.

The decompositions compute in float64: a continued fraction (NIST Digital Library of Mathematical
Functions, 8.17.22) on the side of the mean where it is fast, or, where both parameters are large,
or one is very large, the integral by quadrature over log(t/(1 - t)), in which the integrand is
nearly a bell, or falls faster than exponentially.  Inverses
are found by Newton's method on the logarithm of the smaller tail over log(x/(1 - x)): there it is
concave, so that steps from below never pass the solution.
"""

from __future__ import annotations

import math
from typing import Any

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._dispatch.promotion import result_type
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._writes.out import deliver
from flambeau.ops.declaration.table import composite
from flambeau.ops.pointwise.elementwise import exp, expm1, isnan, log, log1p, sqrt, where
from flambeau.ops.shapes.broadcasting import broadcast_tensors
from flambeau.ops.special_functions.small_parameters import SMALL_PARAMETER, log_lower_beta
from flambeau.ops.special_functions.special import digamma, lgamma
from flambeau.ops.special_functions.tail_quadrature import beta_tail

_LARGE = 100.0  # from here on, for both parameters, the integral is taken by quadrature
_VERY_LARGE = (
    3e3  # or for one, where the fraction of what lies beyond its mean takes its root's steps
)
_MOST_STEPS = 500
_TINY = 1e-300
_EPSILON = 2.0**-53


def tails(a: Tensor, b: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The logarithm of the smaller tail, whether it is that below x, and dx/da / (1 - x).

    Of finite positive numbers a and b, x in (0, 1) and y = 1 - x.  The second derivative, dx/db, is
    that of y in a Beta(b, a), negated.
    """
    large = (a >= _LARGE) & (b >= _LARGE)
    # Below the mean the fraction gives the lower tail, above the upper tail in exchanged roles.
    below = x * (a + b + 2) <= a + 1
    p, q, near, far = (where(below, *pair) for pair in ((a, b), (b, a), (x, y), (y, x)))
    thin = ~large & (p >= _VERY_LARGE)
    other = large | thin
    p1, q1, x1 = where(other, 1.0, p), where(other, 1.0, q), where(other, 0.25, near)
    fraction, slopes = _fraction(p1, q1, x1)
    y1 = where(other, 0.75, far)
    log_x1 = where(x1 > 0.5, log1p(-y1), log(x1))
    log_y1 = where(x1 > 0.5, log(y1), log1p(-x1))
    front = p1 * log_x1 + q1 * log_y1 - log(p1) - log_beta(p1, q1)
    harmonic = _digamma_difference(where(other, 1.0, a), where(other, 1.0, b))
    x2 = where(below, x1, y1)
    rate = where(below, log_x1, log_y1) - harmonic
    lower = -(x2 / p1) * ((rate - 1 / p1) * fraction + slopes[0])
    upper = (x2 / p1) * (rate * fraction + slopes[1])
    found, follows = front + log(fraction), where(below, lower, upper)
    small = ~other & (p < SMALL_PARAMETER)
    if any_of(small):
        p2, q2, x2 = where(small, p, SMALL_PARAMETER), where(small, q, 1.0), where(small, near, 0.1)
        log_large = log_lower_beta(p2, q2, x2)
        most = small & (log_large > -0.5)
        rest = log(-expm1(where(most, log_large, -1.0)))
        found = where(small, where(most, rest, log_large), found)
        below = where(most, ~below, below)
    wide_a, wide_b = where(other, a, 2e3), where(other, b, 2e3)
    wide_x, wide_y = where(other, x, 0.5), where(other, y, 0.5)
    norm = log_beta(where(thin, a, 1.0), where(thin, b, 1.0))
    wide, wide_below, mass, moment = beta_tail(wide_a, wide_b, wide_x, wide_y, thin, below, norm)
    start = where(wide_x > 0.5, log1p(-wide_y), log(wide_x)) - _digamma_difference(wide_a, wide_b)
    wide_follows = where(wide_below, -wide_x, wide_x) * (start * mass + moment)
    return (
        where(other, wide, found),
        where(other, wide_below, below),
        where(other, wide_follows, follows),
    )


def _fraction(a: Tensor, b: Tensor, x: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """The continued fraction by Lentz's method, and its derivatives in a and in b."""
    one, zero = x * 0 + 1, x * 0
    c, d = one, 1 - (a + b) * x / (a + 1)
    d = 1 / where(d.abs() < _TINY, _TINY, d)
    value = d
    dd_a = d * d * (x / (a + 1) - (a + b) * x / ((a + 1) * (a + 1)))
    dd_b = d * d * (x / (a + 1))
    log_a, log_b = dd_a / d, dd_b / d  # derivatives of log(value)
    dc_a, dc_b = zero, zero
    for m in range(1, _MOST_STEPS):
        even, odd = a + (2 * m - 1), a + (2 * m + 1)
        middle = a + 2 * m
        first = m * (b - m) * x / (even * middle)
        first_a, first_b = -first * (1 / even + 1 / middle), m * x / (even * middle)
        second = -(a + m) * (a + b + m) * x / (middle * odd)
        second_a = second * (1 / (a + m) + 1 / (a + b + m) - 1 / middle - 1 / odd)
        second_b = second / (a + b + m)
        change = more_a = more_b = one
        for e, e_a, e_b in ((first, first_a, first_b), (second, second_a, second_b)):
            below = 1 + e * d
            below = where(below.abs() < _TINY, _TINY, below)
            new = 1 / below
            dd_a, dd_b = -new * new * (e_a * d + e * dd_a), -new * new * (e_b * d + e * dd_b)
            d = new
            above = 1 + e / c
            above = where(above.abs() < _TINY, _TINY, above)
            dc_a, dc_b = e_a / c - e / (c * c) * dc_a, e_b / c - e / (c * c) * dc_b
            c = above
            change = c * d
            value = value * change
            more_a, more_b = dc_a / c + dd_a / d, dc_b / c + dd_b / d
            log_a, log_b = log_a + more_a, log_b + more_b
        # Where b is whole, the fraction ends and its derivatives go on.
        error = (more_a / (1 + log_a.abs())).abs() + (more_b / (1 + log_b.abs())).abs()
        if m % 8 == 0 and done((change - 1).abs() + error):
            break
    return value, (value * log_a, value * log_b)


def done(error: Tensor) -> bool:
    """Whether no element is worth another step."""
    if error.device.type == "meta" or not error.numel():
        return True
    return bool((error <= 8 * _EPSILON).all().item())


def any_of(mask: Tensor) -> bool:
    """Whether an element is true."""
    return mask.device.type != "meta" and bool(mask.any().item())


def _digamma_difference(a: Tensor, b: Tensor) -> Tensor:
    """ψ(a) - ψ(a + b); where a is large, by the expansions, whose logarithms cancel first."""
    wide = a >= _LARGE
    large, total = where(wide, a, _LARGE), where(wide, a, _LARGE) + b
    one, other = 1 / (large * large), 1 / (total * total)
    ends = (one - other) / 12 - (one**2 - other**2) / 120 + (one**3 - other**3) / 252
    series = -log1p(b / large) - b / (2 * large * total) - ends
    near = where(wide, 1.0, a)
    return where(wide, series, digamma(near) - digamma(near + b))


def log_beta(a: Tensor, b: Tensor) -> Tensor:
    """The logarithm of the beta function B(a, b) of float64 numbers.

    Where the larger is large, lgamma of it and of the sum would cancel: their expansions do first.
    """
    small, large = where(a < b, a, b), where(a < b, b, a)
    wide = large >= 10
    safe = where(wide, large, 10.0)
    thin = where(wide, small, 1.0)
    end = _stirling_end_10(safe) - _stirling_end_10(safe + thin)
    ratio = thin * (1 - log(safe + thin)) - (safe - 0.5) * log1p(thin / safe) + end
    near, far = where(wide, 1.0, small), where(wide, 1.0, large)
    plain = lgamma(near) + lgamma(far) - lgamma(near + far)
    return where(wide, lgamma(thin) + ratio, plain)


def _stirling_end_10(a: Tensor) -> Tensor:
    """What Stirling's formula leaves of lgamma (A&S 6.1.41), for numbers from 10 on."""
    inverse = 1 / a
    square = inverse * inverse
    series = 1 / 1188 - square * (691 / 360360 - square * (1 / 156 - square * (3617 / 122400)))
    series = 1 / 1260 - square * (1 / 1680 - square * series)
    return inverse * (1 / 12 - square * (1 / 360 - square * series))


@composite(promotes="float")
def _betainc(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    """As backends of API 1 know it, without what is exact beyond 1/2."""
    return _beta_tail(a, b, x, 1 - x)


@composite(promotes="float")
def _beta_tail(a: Tensor, b: Tensor, x: Tensor, y: Tensor) -> Tensor:
    dtype = x.dtype
    a, b = cast(a, D.float64), cast(b, D.float64)
    x, y = places(cast(x, D.float64), cast(y, D.float64))
    inside, plain = plain_inside(a, b, x, y)
    tail, below, _ = tails(*plain)
    found = where(below, exp(tail), -expm1(tail))
    low, wrong = masses_at_ends(a, b, x, y)
    edge = where((y <= 0) | ((x > 0) & low), 1.0, 0.0 * x)
    return cast(where(inside, found, where(wrong, math.nan, edge)), dtype)


def places(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Both with the digits of the smaller."""
    left = x <= y
    beyond = ~((x >= 0) & (y >= 0) & (x <= 1) & (y <= 1))
    return where(beyond, math.nan, where(left, x, 1 - y)), where(left, 1 - x, y)


def masses_at_ends(a: Tensor, b: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Where all mass is at 0, since a parameter is 0 or infinite; what are no arguments."""
    low = (a == 0) | (b == math.inf)
    high = (b == 0) | (a == math.inf)
    wrong = isnan(a) | isnan(b) | (a < 0) | (b < 0) | (low & high)
    return low, wrong | ~((x >= 0) & (y >= 0) & (x <= 1) & (y <= 1))


def plain_inside(
    a: Tensor, b: Tensor, x: Tensor, y: Tensor
) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Where all is finite and inside, and a, b, x, y there (something harmless elsewhere)."""
    inside = (a > 0) & (b > 0) & (a < math.inf) & (b < math.inf)
    inside = inside & (x > 0) & (y > 0) & (x <= 1) & (y <= 1)
    plain = where(inside, a, 1.0), where(inside, b, 1.0)
    return inside, (*plain, where(inside, x, 0.5), where(inside, y, 0.5))


def sample_derivative(x: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    """dx/dα / (1 - x) of a Beta(α, β) sample whose place in the distribution stays; float64."""
    inside, plain = plain_inside(alpha, beta, x, 1 - x)
    return where(inside, tails(*plain)[2], where((x == 0) | (x == 1), 0.0, math.nan))


@composite(promotes="float")
def _betaincinv(a: Tensor, b: Tensor, y: Tensor) -> Tensor:
    dtype = y.dtype
    a, b, p = cast(a, D.float64), cast(b, D.float64), cast(y, D.float64)
    inside, (a1, b1, p1, q1) = plain_inside(a, b, p, 1 - p)
    # From the smaller tail: the solution for 1 - x in exchanged roles.
    mirrored = p1 > 0.5
    level = log(where(mirrored, q1, p1))
    first, second = where(mirrored, b1, a1), where(mirrored, a1, b1)
    # The tail below v is less than its first term, exp(a·v) / (a·B(a, b)).
    v = (level + log(first) + log_beta(first, second)) / first
    deviation = sqrt((first + second) / first / second)
    scale = where(deviation < 1, deviation, 1.0)
    for _ in range(100):
        near, far = 1 / (1 + exp(-v)), 1 / (1 + exp(v))
        near, far = where(near > 0, near, _TINY), where(far > 0, far, _TINY)
        value, below, _ = tails(first, second, near, far)
        log_tail = where(below, value, log1p(-exp(where(below, -1.0, value))))
        density = first * log(near) + second * log(far) - log_beta(first, second)
        step = (level - log_tail) * exp(log_tail - density)
        step = where(isnan(step), 0.0, step)
        v = v + step
        # In deviations, what is left is about the square of the step.
        if done(step.abs() / (scale * (1 + v.abs())) * 1e-8):
            break
    near, far = 1 / (1 + exp(-v)), 1 / (1 + exp(v))
    near = where(v < -700, exp(v), near)
    found = where(mirrored, far, near)
    wrong = ~((p >= 0) & (p <= 1) & (a > 0) & (b > 0))
    edge = where(p >= 1, 1.0, 0.0 * p)
    return cast(where(inside, found, where(wrong, math.nan, edge)), dtype)


def log_density(F, a, b, x, y):
    """The logarithm of the density of Beta(a, b) at x = 1 - y, for gradients."""
    one = F.scalar(1, x)
    powers = F.add(F.mul(F.sub(a, one), F.log(x)), F.mul(F.sub(b, one), F.log(y)))
    return F.sub(powers, F.sub(F.add(F.lgamma(a), F.lgamma(b)), F.lgamma(F.add(a, b))))


def _density(F, a, b, x, y):
    return F.exp(log_density(F, a, b, x, y))


def _rest(F, x):
    return F.sub(F.scalar(1, x), x)


def exact_place(F, x, y):
    """Whether x is the smaller of x and y, and both, each with the digits of the smaller."""
    left = F.le(x, y)
    return left, F.where(left, x, _rest(F, y)), F.where(left, _rest(F, x), y)


def follows(F, a, b, x, y):
    """How x follows a, and y follows b, while the place stays."""
    total = F.add(a, b)
    of_a = F.mul(y, F.dirichlet_grad(x, a, total, True))
    return of_a, F.mul(x, F.dirichlet_grad(y, b, total, True))


@_betainc.gradient("x")
def _(F, g, a, b, x):
    return F.mul(g, _density(F, a, b, x, _rest(F, x)))


@_betainc.gradient("a")
def _(F, g, a, b, x):
    y = _rest(F, x)
    return F.neg(F.mul(g, F.mul(_density(F, a, b, x, y), follows(F, a, b, x, y)[0])))


@_betainc.gradient("b")
def _(F, g, a, b, x):
    y = _rest(F, x)
    return F.mul(g, F.mul(_density(F, a, b, x, y), follows(F, a, b, x, y)[1]))


@_beta_tail.gradient("x")
def _(F, g, a, b, x, y):
    left, x, y = exact_place(F, x, y)
    return F.where(left, F.mul(g, _density(F, a, b, x, y)), F.scalar(0, g))


@_beta_tail.gradient("y")
def _(F, g, a, b, x, y):
    left, x, y = exact_place(F, x, y)
    return F.where(left, F.scalar(0, g), F.neg(F.mul(g, _density(F, a, b, x, y))))


@_beta_tail.gradient("a")
def _(F, g, a, b, x, y):
    _, x, y = exact_place(F, x, y)
    return F.neg(F.mul(g, F.mul(_density(F, a, b, x, y), follows(F, a, b, x, y)[0])))


@_beta_tail.gradient("b")
def _(F, g, a, b, x, y):
    _, x, y = exact_place(F, x, y)
    return F.mul(g, F.mul(_density(F, a, b, x, y), follows(F, a, b, x, y)[1]))


@_betaincinv.gradient("y")
def _(F, g, a, b, result):
    return F.div(g, _density(F, a, b, result, _rest(F, result)))


@_betaincinv.gradient("a")
def _(F, g, a, b, result):
    return F.mul(g, follows(F, a, b, result, _rest(F, result))[0])


@_betaincinv.gradient("b")
def _(F, g, a, b, result):
    return F.neg(F.mul(g, follows(F, a, b, result, _rest(F, result))[1]))


def _samples(S, places):
    a, b = S.Arr((2, 3), low=0.5, high=6, fixed=True), S.Arr((2, 3), low=1, high=9, fixed=True)
    few = S.Arr((), low=1, high=2, fixed=True), S.Arr((), low=1, high=2, fixed=True)
    none = S.Arr((0, 3), fixed=True), S.Arr((0, 3), fixed=True)
    return [
        S.Sample((a, b, *places((2, 3))), "matrix", True),
        S.Sample((*few, *places(())), "scalar"),
        S.Sample((*none, *places((0, 3))), "empty"),
    ]


@_betainc.samples(D.float32, D.float64)
@_betaincinv.samples(D.float32, D.float64)
def _(S):
    return _samples(S, lambda shape: [S.Arr(shape, low=0.125, high=0.875, seed=1)])


@_beta_tail.samples(D.float32, D.float64)
def _(S):
    return beta_samples(S)


def beta_samples(S):
    """Parameters, and places of which the first is the smaller part of 1, and the second."""
    one = S.Arr((3,), low=0.5, high=6, fixed=True), S.Arr((3,), low=1, high=9, fixed=True)
    low, high = S.Arr((3,), low=0.125, high=0.375), S.Arr((3,), low=0.625, high=0.875, seed=1)
    return [
        *_samples(
            S, lambda s: [S.Arr(s, low=0.125, high=0.375), S.Arr(s, low=0.625, high=0.875, seed=1)]
        ),
        S.Sample((*one, high, low), "upper half", True),
    ]


@takes_as_annotated
def betainc(a: Any, b: Any, x: Any, y: object = None, *, out: Tensor | None = None) -> Tensor:
    """The regularised incomplete beta function I(x; a, b), the distribution function of Beta(a, b).

    ∫₀ˣ tᵃ⁻¹·(1 - t)ᵇ⁻¹ dt / B(a, b), for a, b ≥ 0 and x in [0, 1], nan elsewhere.  Where `x` is
    near to 1 the digits of `y` = 1 - x count: who knows more of them gives it, and of the two the
    smaller is the place.  The upper tail is betainc(b, a, y, x).  Shapes broadcast, and there are
    gradients in all.  PyTorch has no such function; the name is SciPy's.

    Raises:
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.special.betainc(fb.tensor([1.0, 2.0]), fb.tensor(3.0), fb.tensor(0.5))
    tensor([0.8750, 0.6875])
    """
    if y is None:
        y = 1 - x
    return deliver(_beta_tail(*operands("betainc", a=a, b=b, x=x, y=y)), out, a, b, x)


def betaincinv(a: object, b: object, y: object, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `betainc` in x: where the distribution function of Beta(a, b) is `y`.

    Shapes broadcast, and there are gradients in all three.  PyTorch has no such function; the name
    is SciPy's.

    Raises:
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.special.betaincinv(fb.tensor([1.0, 2.0]), fb.tensor(3.0), fb.tensor([0.875, 0.6875]))
    tensor([0.5000, 0.5000])
    """
    return deliver(_betaincinv(*operands("betaincinv", a=a, b=b, y=y)), out, a, b, y)


def operands(name: str, **values: Any) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of one floating dtype and shape."""
    like = next((v for v in values.values() if isinstance(v, Tensor)), None)
    if like is None:
        like = need_tensor(next(iter(values.values())), name, next(iter(values)))
    dtype = result_type(*values.values())
    if not dtype.is_floating_point:
        raise NotImplementedError(f'"{name}" not implemented for {dtype}: use a float dtype')
    tensors = [
        cast(v, dtype) if isinstance(v, Tensor) else like.new_full((), v, dtype=dtype)
        for v in values.values()
    ]
    return tuple(t.contiguous() for t in broadcast_tensors(*tensors))
