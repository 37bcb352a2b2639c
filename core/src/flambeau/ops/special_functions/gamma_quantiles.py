"""Inverses of the incomplete gamma functions, and how gamma samples follow their shape.

Computed in float64.  The inverses are found by Newton's method on the logarithm of the smaller tail
over log x: there it is concave (the density of log x is log-concave), so that steps from the far
side of a bound never pass the solution.  Series and continued fraction: Abramowitz & Stegun 6.5.29
and 6.5.31.
"""

from __future__ import annotations

import math

from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._writes.out import deliver
from flambeau.ops.declaration.table import composite
from flambeau.ops.pointwise.elementwise import exp, expm1, isnan, log, log1p, sqrt, where
from flambeau.ops.special_functions.incomplete_beta import done, operands
from flambeau.ops.special_functions.small_parameters import SMALL_SHAPE, log_lower_gamma
from flambeau.ops.special_functions.special import digamma, lgamma
from flambeau.ops.special_functions.tail_quadrature import gamma_tail

_LARGE = 100.0  # from here on the integral is taken by quadrature
_MOST_STEPS = 500
_TINY = 1e-300


def tails(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The logarithm of the smaller tail at x, whether it is that below x, and dx/da.

    Of finite positive numbers; dx/da is how x follows a while its place stays.
    """
    large, below = a >= _LARGE, x < a + 1
    a1, x1 = where(large, 1.0, a), where(large, where(below, 1.0, 3.0), x)
    log_x, harmonic = log(x1), digamma(a1)
    total, slope = _series(where(below, a1, 1.0), where(below, x1, 1.0))
    front = a1 * log_x - x1 - lgamma(a1)
    follows_below = -x1 * ((log_x - harmonic) * total + slope)
    fraction, change = _fraction(where(below, 1.0, a1), where(below, 3.0, x1))
    follows_above = x1 * ((log_x - harmonic) * fraction + change)
    found = front + log(where(below, total, fraction))
    follows = where(below, follows_below, follows_above)
    thin = below & (a < SMALL_SHAPE)
    lower = log_lower_gamma(where(thin, a, SMALL_SHAPE), where(thin, x, 1.0))
    upper = thin & (lower > -0.5)
    rest = log(-expm1(where(upper, lower, -1.0)))
    found = where(thin, where(upper, rest, lower), found)
    below = below & ~upper
    wide = _wide(where(large, a, _LARGE), where(large, x, _LARGE))
    a, b, c = (where(large, w, n) for w, n in zip(wide, (found, below, follows), strict=True))
    return a, b, c


def _series(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Σ xᵏ/(a (a + 1) … (a + k)) and its derivative in a."""
    term = 1 / a
    weights = term
    total, slope = term, -term * weights
    for k in range(1, _MOST_STEPS):
        step = 1 / (a + k)
        term, weights = term * x * step, weights + step
        total, slope = total + term, slope - term * weights
        if k % 8 == 0 and done(where(term * weights > total * 1e-17, 1.0, 0.0 * term)):
            break
    return total, slope


def _fraction(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """The continued fraction by Lentz's method, and its derivative in a."""
    b = x + 1 - a
    c, d = b * 0 + 1 / _TINY, 1 / b
    c_a, d_a = b * 0, d * d
    value, log_a = d, d
    for k in range(1, _MOST_STEPS):
        factor = (a - k) * k
        b = b + 2
        below = factor * d + b
        new = 1 / where(below.abs() < _TINY, _TINY, below)
        d_a, d = -new * new * (k * d + factor * d_a - 1), new
        above = factor / c + b
        above = where(above.abs() < _TINY, _TINY, above)
        c_a, c = k / c - factor / (c * c) * c_a - 1, above
        change = c * d
        more = c_a / c + d_a / d
        value, log_a = value * change, log_a + more
        # Where a is whole, the fraction ends and its derivative goes on.
        if k % 8 == 0 and done((change - 1).abs() + (more / (1 + log_a.abs())).abs()):
            break
    return value, value * log_a


def _wide(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    tail, below, mass, moment = gamma_tail(a, x)
    follows = x / a + where(below, -x, x) * ((log(a) - digamma(a)) * mass + moment)
    return tail, below, follows


def sample_derivative(alpha: Tensor, x: Tensor) -> Tensor:
    """How a sample x of Gamma(α, 1) follows α while its place stays; float64."""
    inside = (alpha > 0) & (alpha < math.inf) & (x > 0) & (x < math.inf)
    follows = tails(where(inside, alpha, 1.0), where(inside, x, 1.0))[2]
    return where(inside, follows, where(x == 0, 0.0, math.nan))


def _inverse(a: Tensor, p: Tensor, q: Tensor) -> Tensor:
    """Where the lower tail is p and the upper q; one of the two is exact."""
    low = p <= 0.5
    level = where(low, log(where(low, p, 0.5)), log(where(low, 0.5, q)))
    # The lower tail is less than its first term; the upper one has a bound that is larger
    # (S. Boucheron, G. Lugosi and P. Massart, Concentration inequalities, 2013, section 2.4).
    first = (level + lgamma(a + 1)) / a
    last = log(a + sqrt(-2 * level * a) - level)
    u = where(low, first, last)
    norm, scale = lgamma(a), where(a > 1, 1 / sqrt(a), 1.0)
    for _ in range(100):
        x = exp(u)
        x = where(x > 0, x, _TINY)
        value, below, _ = tails(a, x)
        other = log1p(-exp(where(below == low, -1.0, value)))
        tail = where(below == low, value, other)
        step = (level - tail) * exp(tail - (a * u - x - norm))
        step = where(isnan(step), 0.0, where(low, step, -step))
        u = u + step
        # In deviations, what is left is about the square of the step.
        if done(step.abs() / (scale * (1 + u.abs())) * 1e-8):
            break
    return exp(u)


def _solved(a: Tensor, p: Tensor, q: Tensor) -> Tensor:
    inside = (a > 0) & (a < math.inf) & (p > 0) & (q > 0)
    found = _inverse(where(inside, a, 1.0), where(inside, p, 0.5), where(inside, q, 0.5))
    wrong = ~((a >= 0) & (p >= 0) & (q >= 0)) | ((a == math.inf) & (p > 0) & (q > 0))
    edge = where((q == 0) & (a > 0), math.inf, 0.0 * p)
    return where(inside, found, where(wrong, math.nan, edge))


@composite(promotes="float")
def _gammaincinv(a: Tensor, y: Tensor) -> Tensor:
    p = cast(y, D.float64)
    return cast(_solved(cast(a, D.float64), p, 1 - p), y.dtype)


@composite(promotes="float")
def _gammainccinv(a: Tensor, y: Tensor) -> Tensor:
    q = cast(y, D.float64)
    return cast(_solved(cast(a, D.float64), 1 - q, q), y.dtype)


def log_density(F, a, x):
    """The logarithm of the density of Gamma(a, 1) at x, for gradients."""
    power = F.mul(F.sub(a, F.scalar(1, a)), F.log(x))
    return F.sub(F.sub(power, x), F.lgamma(a))


def _follows(F, g, a, result):
    return F.mul(g, F.standard_gamma_grad(a, result, True))


@_gammaincinv.gradient("y")
def _(F, g, a, result):
    return F.div(g, F.exp(log_density(F, a, result)))


@_gammainccinv.gradient("y")
def _(F, g, a, result):
    return F.neg(F.div(g, F.exp(log_density(F, a, result))))


_gammaincinv.gradient("a")(_follows)
_gammainccinv.gradient("a")(_follows)


@_gammaincinv.samples(D.float32, D.float64)
@_gammainccinv.samples(D.float32, D.float64)
def _(S):
    a, y = S.Arr((2, 3), low=0.5, high=9, fixed=True), S.Arr((2, 3), low=0.125, high=0.875, seed=1)
    few = S.Arr((), low=1, high=2, fixed=True), S.Arr((), low=0.25, high=0.75)
    return [
        S.Sample((a, y), "matrix", True),
        S.Sample(few, "scalar"),
        S.Sample((S.Arr((0, 3), fixed=True), S.Arr((0, 3))), "empty"),
    ]


def gammaincinv(a: object, y: object, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `gammainc` in x: where the distribution function of Gamma(a, 1) is `y`.

    Shapes broadcast, and there are gradients in both.  PyTorch has no such function; the name is
    SciPy's.

    Raises:
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.special.gammaincinv(fb.tensor([1.0, 2.0]), fb.tensor([0.5, 0.5]))
    tensor([0.6931, 1.6783])
    """
    return deliver(_gammaincinv(*operands("gammaincinv", a=a, y=y)), out, a, y)


def gammainccinv(a: object, y: object, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `gammaincc` in x, which keeps its digits where `y` is small.

    Shapes broadcast, and there are gradients in both.  PyTorch has no such function; the name is
    SciPy's.

    Raises:
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.special.gammainccinv(fb.tensor([1.0, 2.0]), fb.tensor([0.5, 1e-20]))
    tensor([ 0.6931, 49.9832])
    """
    return deliver(_gammainccinv(*operands("gammainccinv", a=a, y=y)), out, a, y)
