"""Tails of gamma and beta distributions with large parameters, by Gauss's quadrature.

The integrands over log(t/a), and over log(t/(1 - t)), are nearly bells whose exponents are
differences of numbers as large as the parameters.  Their linear terms cancel exactly; so they are
left out, and what remains of exp and log without them (`exp_rest`, `log_rest`) is as small as the
exponents are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

from flambeau._tensor.tensor import Tensor
from flambeau.ops.pointwise.elementwise import exp, expm1, log, log1p, sqrt, where

_NODES = 40
_AT_ONCE = 2**16  # elements of the arrays over nodes
_LOST = 45.0  # of the logarithm of the integrand, at the end of the integral
_LOG_TERMS = [1 / k for k in range(3, 26, 2)]
_EXP_TERMS = [1 / math.factorial(k) for k in range(2, 17)]


@cache
def gauss_legendre(n: int) -> list[tuple[float, float]]:
    """Nodes in (-1, 1) and weights of the quadrature with `n` nodes."""
    found = []
    for i in range(n):
        x = math.cos(math.pi * (i + 0.75) / (n + 0.5))
        slope = 1.0
        for _ in range(8):
            before, value = 1.0, x
            for k in range(2, n + 1):
                before, value = value, ((2 * k - 1) * x * value - (k - 1) * before) / k
            slope = n * (x * value - before) / (x * x - 1)
            x -= value / slope
        found.append((x, 2 / ((1 - x * x) * slope * slope)))
    return found


def exp_rest(x: Tensor) -> Tensor:
    """exp(x) - 1 - x, with all its digits."""
    near = x.abs() < 0.5
    small = where(near, x, 0.5)
    series = _polynomial(_EXP_TERMS, small) * small * small
    return where(near, series, expm1(x) - x)


def log_rest(x: Tensor, above: Tensor | None = None) -> Tensor:
    """log(1 + x) - x, with all its digits; `above` is 1 + x where that has more of them."""
    near = (x > -0.3) & (x < 0.43)
    small = where(near, x, 0.25)
    r = small / (2 + small)  # log(1 + x) = 2·artanh(r)
    square = r * r
    series = r * (2 * square * _polynomial(_LOG_TERMS, square) - small)
    far = where(near, 0.5, x)
    if above is None:
        return where(near, series, log1p(far) - far)
    return where(near, series, where(x < 0, log(where(near, 0.5, above)), log1p(far)) - far)


def _polynomial(coefficients: list[float], x: Tensor) -> Tensor:
    value = x * coefficients[-1] + coefficients[-2]
    for c in coefficients[-3::-1]:
        value = value * x + c
    return value


def product_less(a: Tensor, b: Tensor, x: Tensor, less: Tensor) -> Tensor:
    """(a + b)·x - less, in about twice the digits (T. J. Dekker, 1971)."""
    total = a + b
    virtual = total - a
    end = (a - (total - virtual)) + (b - virtual)
    product = total * x
    high, low = _halves(total)
    high_x, low_x = _halves(x)
    error = ((high * high_x - product) + high * low_x + low * high_x) + low * low_x
    error = where(error.abs() <= product, error, 0.0)  # halves of numbers near 1e308 overflow
    return (product - less) + (error + end * x)


def _halves(x: Tensor) -> tuple[Tensor, Tensor]:
    shifted = x * 134217729.0
    high = shifted - (shifted - x)
    return high, x - high


def stirling_end(a: Tensor) -> Tensor:
    """What Stirling's formula leaves of lgamma (A&S 6.1.41), for numbers from 100 on."""
    inverse = 1 / a
    square = inverse * inverse
    return inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680))))


def _steps(end: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Places between 0 and `end`, and weights, with the nodes along a new first dimension."""
    rule = gauss_legendre(_NODES)
    block = max(1, min(_NODES, _AT_ONCE // max(1, end.numel())))
    for k in range(0, _NODES, block):
        nodes, weights = zip(*rule[k : k + block], strict=True)
        shape = (len(nodes), *(1 for _ in end.shape))
        places = end.new_tensor([0.5 + 0.5 * n for n in nodes]).reshape(shape)
        yield end * places, end.new_tensor([0.5 * w for w in weights]).reshape(shape)


def _length(rate: Tensor, deviation: Tensor) -> Tensor:
    """Ten deviations, or what counts of them where the integrand falls at `rate`."""
    return where(rate * 10 * deviation > _LOST, _LOST / where(rate > 0, rate, 1.0), 10 * deviation)


def gamma_tail(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The logarithm of the smaller tail of Gamma(a, 1), whether it is that below x, and two means.

    Of a from 100 on, over v = log(t/x).  The means are those of 1 and of log(t/a) - t/a + 1, times
    the density of v at x.
    """
    offset = (x - a) / a
    below = offset <= 0
    length = _length((x - a).abs(), 1 / sqrt(a))
    ratio = x / a
    start = log_rest(offset, ratio)
    mass, moment = a * 0, a * 0
    for v, weight in _steps(where(below, -length, length)):
        # What log(t/a) - t/a has lost since x.
        lost = -ratio * exp_rest(v) - offset * v
        density = exp(a * lost) * weight
        mass = mass + density.sum(0)
        moment = moment + (density * (start + lost)).sum(0)
    front = a * start + 0.5 * log(a / (2 * math.pi)) - stirling_end(a)
    return front + log(mass * length), below, mass * length, moment * length


def beta_tail(
    a: Tensor, b: Tensor, x: Tensor, y: Tensor, thin: Tensor, thin_below: Tensor, norm: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The logarithm of the smaller tail of Beta(a, b), whether it is that below x, and two means.

    Over v = log(t/(1 - t)).  Both parameters are from 100 on, or the place is `thin`: one is very
    large, the tail is that beyond the mean of it, and the density is that of the constant `norm`,
    log B(a, b).  Of x and y = 1 - x the smaller has the digits.  The means are those of 1 and of
    log(t/x), times the density of v at x.
    """
    left = x <= y
    p, q, near = where(left, a, b), where(left, b, a), where(left, x, y)
    far = 1 - near
    total = a + b
    over = product_less(p, q, near, p)  # how far the place is above the mean of p, times a + b
    below = where(thin, thin_below == left, over <= 0)  # in p's direction
    deviation = sqrt(total / (a * b))
    length = where(thin, _thin_length(p, q, near, far, below), _length(over.abs(), deviation))
    mass, moment = x * 0, x * 0
    for u, weight in _steps(where(below, -length, length)):
        rest = exp_rest(u)
        raised = near * (rest + u)  # what the odds add to 1, times `far`
        density = exp(total * (-log_rest(raised) - near * rest) - over * u) * weight
        mass = mass + density.sum(0)
        moment = moment + (density * (where(left, u, 0.0) - log1p(raised))).sum(0)
    front = p * log_rest(over / p, near * (total / p)) + q * log_rest(-over / q)
    front = front - 0.5 * log(2 * math.pi * deviation * deviation)
    front = front + stirling_end(total) - stirling_end(a) - stirling_end(b)
    log_near, log_far = log(near), log1p(-near)
    front = where(thin, p * log_near + q * log_far - norm, front)
    return front + log(mass * length), below == left, mass * length, moment * length


def _thin_length(p: Tensor, q: Tensor, near: Tensor, far: Tensor, below: Tensor) -> Tensor:
    """Until where the integrand has lost enough: about c·(exp(v) - 1) - d·v in its logarithm."""
    c, d = where(below, p * far, q * near), where(below, q, p)
    length = log1p(_LOST / c)
    for _ in range(4):
        length = log1p((_LOST + d * length) / c)
    return length
