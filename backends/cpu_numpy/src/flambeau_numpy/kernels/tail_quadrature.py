"""Tails of gamma and beta distributions with large parameters, where SciPy's lose digits.

By quadrature of the smaller tail over log(t/a), or log(t/(1 - t)), where the integrand is nearly a
bell; relative to its value at the end nothing cancels but the linear terms, which are left out.
"""

from __future__ import annotations

from functools import cache
from math import factorial, pi
from typing import Any

import numpy as np
from scipy.special import betaln, gammaln

Array = np.ndarray[Any, Any]

_LOST = 45.0  # of the logarithm of the integrand, at the end of the integral
_LOG_TERMS = np.array([1 / k for k in range(25, 2, -2)])
_EXP_TERMS = np.array([1 / factorial(k) for k in range(16, 1, -1)])


@cache
def _rule() -> tuple[Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(40)
    return 0.5 + 0.5 * nodes, 0.5 * weights


def _exp_rest(x: Array) -> Array:
    """exp(x) - 1 - x."""
    near = np.abs(x) < 0.5
    small = np.where(near, x, 0.0)
    return np.where(near, np.polyval(_EXP_TERMS, small) * small * small, np.expm1(x) - x)


def _log_rest(x: Array, above: Array | None = None) -> Array:
    """log(1 + x) - x; `above` is 1 + x where that has more digits."""
    near = (x > -0.3) & (x < 0.43)
    small = np.where(near, x, 0.0)
    r = small / (2 + small)  # log(1 + x) = 2·artanh(r)
    series = r * (2 * r * r * np.polyval(_LOG_TERMS, r * r) - small)
    far = np.log1p(x) if above is None else np.where(x < 0, np.log(above), np.log1p(x))
    return np.where(near, series, far - x)


def _stirling_end(a: Array) -> Array:
    """What Stirling's formula leaves of log Γ (A&S 6.1.41)."""
    return (1 / 12 - 1 / (360 * a * a)) / a


def log_beta(a: Array, b: Array) -> Array:
    """log B(a, b); of a large number two logarithms of Γ cancel, and their series do before."""
    small, large = np.minimum(a, b), np.maximum(a, b)
    wide = (large >= 100) & (small < 100)
    safe, thin = np.where(wide, large, 100.0), np.where(wide, small, 1.0)
    end = _stirling_end(safe) - _stirling_end(safe + thin)
    ratio = thin * (1 - np.log(safe + thin)) - (safe - 0.5) * np.log1p(thin / safe) + end
    return np.where(wide, gammaln(thin) + ratio, betaln(a, b))


def _halves(x: Array) -> tuple[Array, Array]:
    shifted = x * 134217729.0
    high = shifted - (shifted - x)
    return high, x - high


def _product_less(p: Array, q: Array, x: Array) -> Array:
    """(p + q)·x - p, in about twice the digits (T. J. Dekker, 1971)."""
    total = p + q
    virtual = total - p
    end = (p - (total - virtual)) + (q - virtual)
    product = total * x
    (high, low), (high_x, low_x) = _halves(total), _halves(x)
    error = ((high * high_x - product) + high * low_x + low * high_x) + low * low_x
    return (product - p) + (np.where(np.abs(error) <= product, error, 0) + end * x)


def _lengths(rate: Array, deviation: Array) -> Array:
    """Ten deviations, or what counts of them where the integrand falls at `rate`."""
    return _LOST / np.maximum(rate, _LOST / 10 / deviation)


def gamma_tail(a: Array, x: Array, lower: bool) -> Array:
    """A tail of Gamma(a, 1) at x, for a from 100 on."""
    nodes, weights = _rule()
    offset, ratio = (x - a) / a, x / a
    below = offset <= 0
    length = _lengths(np.abs(x - a), 1 / np.sqrt(a))
    v = np.where(below, -length, length)[:, None] * nodes
    lost = -ratio[:, None] * _exp_rest(v) - offset[:, None] * v
    front = a * _log_rest(offset, ratio) + 0.5 * np.log(a / (2 * pi)) - _stirling_end(a)
    tail = np.exp(front) * length * (np.exp(a[:, None] * lost) @ weights)
    return np.where(below == lower, tail, 1 - tail)


def beta_tail(p: Array, q: Array, near: Array, lower: Array) -> tuple[Array, Array]:
    """A tail of Beta(p, q) at a place of at most 1/2, for p and q from 100 on.

    And the density of the log-odds there.
    """
    nodes, weights = _rule()
    total = p + q
    over = _product_less(p, q, near)  # how far the place is above the mean, times p + q
    below = over <= 0
    deviation = np.sqrt(total / p / q)
    length = _lengths(np.abs(over), deviation)
    u = np.where(below, -length, length)[:, None] * nodes
    rest = _exp_rest(u)
    raised = near[:, None] * (rest + u)
    lost = total[:, None] * (-_log_rest(raised) - near[:, None] * rest) - over[:, None] * u
    front = p * _log_rest(over / p, near * (total / p)) + q * _log_rest(-over / q)
    front += _stirling_end(total) - _stirling_end(p) - _stirling_end(q)
    density = np.exp(front) / (np.sqrt(2 * pi) * deviation)
    tail = density * length * (np.exp(lost) @ weights)
    return np.where(below == lower, tail, 1 - tail), density


def beta_quantile(a: Array, b: Array, level: Array, x: Array) -> Array:
    """Four steps of Newton's method from x to where the tail below is `level`."""
    left = x <= 0.5
    p, q, near = np.where(left, a, b), np.where(left, b, a), np.where(left, x, 1 - x)
    low = level <= 0.5
    wanted = np.where(low, level, 1 - level)
    for _ in range(4):
        tail, density = beta_tail(p, q, near, low == left)
        step = tail * np.log(wanted / tail) / density * (1 - near)
        step = np.where(low == left, step, -step)
        near = near * (1 + np.where(np.abs(step) < 0.1, step, 0))  # nan where the tail underflows
    return np.where(left, near, 1 - near)
