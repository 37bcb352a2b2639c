"""Special-function kernels: SciPy's, in float32 or wider."""

from __future__ import annotations

from collections.abc import Callable
from math import factorial, pi
from typing import Any

import numpy as np
from scipy import special

from flambeau_numpy.casts import copy_order, wide
from flambeau_numpy.kernels import tail_quadrature
from flambeau_numpy.silence import quiet

Array = np.ndarray[Any, Any]


def _widened(function: np.ufunc) -> Callable[[Array], Array]:
    @quiet
    def kernel(a: Array) -> Array:
        return np.asarray(function(wide(a)), a.dtype)

    return kernel


@quiet
def erfinv(a: Array) -> Array:
    """The inverse of erf; arguments outside of [-1, 1] would take SciPy's slow path for errors."""
    x = wide(a)
    result = np.asarray(special.erfinv(np.clip(x, -1, 1)))
    result[np.abs(x) > 1] = np.nan
    return result.astype(a.dtype, copy=False)


@quiet
def digamma(a: Array) -> Array:
    """ψ(x), reflected at negative arguments, for which SciPy takes a hundred times as long."""
    x = a.astype(np.float64, copy_order(a))
    negative = x < 0
    result = np.asarray(special.psi(np.where(negative, 1 - x, x)))
    if negative.any():
        fraction = x[negative] - np.floor(x[negative])
        reflected = result[negative] - pi / np.tan(pi * fraction)
        result[negative] = np.where(fraction == 0, np.nan, reflected)
    return result.astype(a.dtype, copy=False)


@quiet
def lgamma(a: Array) -> Array:
    """log |Γ|, infinite also at minus infinity, where SciPy says -inf."""
    x = wide(a)
    result = special.gammaln(x)
    return np.asarray(np.where(np.isneginf(x), np.inf, result), a.dtype)


@quiet
def polygamma(a: Array, n: int) -> Array:
    """(-1)ⁿ⁺¹·n!·ζ(n+1, x), and below 1/2 by reflection with derivatives of the cotangent."""
    x = a.astype(np.float64, copy_order(a))
    mirrored = x < 0.5
    result = np.where(mirrored, 1 - x, x)
    result = np.asarray((-1) ** (n + 1) * factorial(n) * special.zeta(n + 1, result))
    if mirrored.any():
        fraction = x[mirrored] - np.floor(x[mirrored])
        cotangent = 1 / np.tan(pi * fraction)
        polynomial = np.polynomial.Polynomial([0, 1])
        for _ in range(n):
            polynomial = polynomial.deriv() * np.polynomial.Polynomial([-1, 0, -1])
        reflected = (-1) ** n * result[mirrored] - pi ** (n + 1) * polynomial(cotangent)
        result[mirrored] = np.where(fraction == 0, (-1) ** (n + 1) * np.inf, reflected)
    return np.asarray(result, a.dtype)


def _widened_pair(function: Callable[..., Any]) -> Callable[[Array, Array], Array]:
    @quiet
    def kernel(a: Array, b: Array) -> Array:
        return np.asarray(function(wide(a), wide(b)), a.dtype)

    return kernel


def _in_double(function: Callable[..., Any]) -> Callable[..., Array]:
    @quiet
    def kernel(*arrays: Array) -> Array:
        doubles = [a.astype(np.float64, copy_order(a)) for a in arrays]
        return np.asarray(function(*doubles), arrays[-1].dtype)

    return kernel


def _gamma_tail(function: Callable[..., Any], lower: bool) -> Callable[[Array, Array], Array]:
    """SciPy's incomplete gamma function, which for large a loses digits, in the tail below all."""

    @quiet
    def tail(a: Array, x: Array) -> Array:
        a, x = np.broadcast_arrays(wide(a), wide(x))
        found = np.asarray(function(a, x))
        large = (a > 3e4) & (a < 1e300) & (x > 0) & np.isfinite(x)
        if large.any():
            parts = a[large].astype(np.float64), x[large].astype(np.float64)
            found[large] = tail_quadrature.gamma_tail(*parts, lower)
        return found

    return tail


_gammainc, _gammaincc = _gamma_tail(special.gammainc, True), _gamma_tail(special.gammaincc, False)


def _gamma_quantile(a: Array, level: Array, inverse: Callable[..., Any], lower: bool) -> Array:
    """SciPy's inverse, which for large a has few digits, and four steps of Newton's method there.

    By the smaller tail, which has all digits.
    """
    found = np.asarray(inverse(a, level))
    wide = (a > 1e3) & np.isfinite(found) & (found > 0)
    if wide.any():
        a, level, x = a[wide], level[wide], found[wide]
        below = (level <= 0.5) == lower
        level = np.where(level <= 0.5, level, 1 - level)
        for _ in range(4):
            offset = (x - a) / a
            density = np.exp(a * (np.log1p(offset) - offset)) * np.sqrt(a / (2 * pi)) / x
            reached = np.where(below, _gammainc(a, x), _gammaincc(a, x))
            step = np.where(below, 1, -1) * reached * np.log(level / reached) / density
            x = x + np.where(np.abs(step) < 0.1 * x, step, 0)  # nan where the density underflows
        found[wide] = x
    return found


def gammaincinv(a: Array, y: Array) -> Array:
    return _gamma_quantile(a, y, special.gammaincinv, True)


def gammainccinv(a: Array, y: Array) -> Array:
    return _gamma_quantile(a, y, special.gammainccinv, False)


def beta_tail(a: Array, b: Array, x: Array, y: Array) -> Array:
    """SciPy's, of the smaller of x and y = 1 - x; by quadrature where SciPy's loses digits."""
    beyond = ~((x >= 0) & (x <= 1) & (y >= 0) & (y <= 1))
    x, y = np.where(x <= y, x, 1 - y), np.where(x <= y, 1 - x, y)
    left = x <= y
    a, b, near = np.where(left, a, b), np.where(left, b, a), np.where(left, x, y)
    found = np.where(left, special.betainc(a, b, near), special.betaincc(a, b, near))
    large = _wide_beta(a, b) & (near > 0)
    if large.any():
        found[large] = tail_quadrature.beta_tail(a[large], b[large], near[large], left[large])[0]
    return np.where(beyond, np.nan, found)


def betaincinv(a: Array, b: Array, level: Array) -> Array:
    """SciPy's, and steps of Newton's method where that has few digits."""
    found = np.asarray(special.betaincinv(a, b, level))
    large = _wide_beta(a, b) & (found > 0) & (found < 1)
    if large.any():
        found[large] = tail_quadrature.beta_quantile(a[large], b[large], level[large], found[large])
    # Next to 0 two terms of the series say all; SciPy has NaN for some, and no zeros.
    inside = (a > 0) & (b > 0) & (level > 0) & (level < 1)
    log_first = (np.log(level) + np.log(a) + tail_quadrature.log_beta(a, b)) / a
    near = inside & (log_first + np.log1p(b) < -18)
    first = np.exp(np.where(near, log_first, 0))
    return np.where(near, first * (1 - (1 - b) / (a + 1) * first), found)


def _wide_beta(a: Array, b: Array) -> Array:
    return (a >= 100) & (b >= 100) & (a + b >= 1e6) & (a + b < 1e300)


def airy_ai(x: Array) -> Array:
    """SciPy's Airy function, and its asymptotic form (10.4.60) where SciPy has none."""
    found = np.asarray(special.airy(x)[0])
    far = np.isinf(x) | (x < -1e5)
    if far.any():
        root = np.sqrt(-x[far])
        angle = x[far] * root * (-2 / 3)
        sine, cosine = np.sin(angle), np.cos(angle)
        wave = sine + cosine - (cosine - sine) * (5 / 72) / angle
        found[far] = wave / np.sqrt(root * (2 * pi))
    return found


KERNELS = {
    "airy_ai": _in_double(airy_ai),
    "erfcx": _in_double(special.erfcx),
    "ndtri": _in_double(special.ndtri),
    "log_ndtr": _in_double(special.log_ndtr),
    "beta_tail": _in_double(beta_tail),
    "betaincinv": _in_double(betaincinv),
    "gammaincinv": _in_double(gammaincinv),
    "gammainccinv": _in_double(gammainccinv),
    "igamma": _widened_pair(_gammainc),
    "igammac": _widened_pair(_gammaincc),
    "zeta": _widened_pair(special.zeta),
    "erfc": _widened(special.erfc),
    "erfinv": erfinv,
    "lgamma": lgamma,
    "digamma": digamma,
    "polygamma": polygamma,
    "i0": _widened(special.i0),
    "i0e": _widened(special.i0e),
    "i1": _widened(special.i1),
    "i1e": _widened(special.i1e),
    "bessel_j0": _widened(special.j0),
    "bessel_j1": _widened(special.j1),
    "bessel_y0": _widened(special.y0),
    "bessel_y1": _widened(special.y1),
    "modified_bessel_k0": _widened(special.k0),
    "modified_bessel_k1": _widened(special.k1),
    "scaled_modified_bessel_k0": _widened(special.k0e),
    "scaled_modified_bessel_k1": _widened(special.k1e),
}
