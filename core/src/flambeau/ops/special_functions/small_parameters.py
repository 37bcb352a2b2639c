"""Incomplete gamma and beta functions of a parameter next to 0, with nearly all mass at one end.

The large tail is found as exp(L) with all digits of L, so that the small one is -expm1(L).
Computed in float64.
"""

from __future__ import annotations

from flambeau._tensor.tensor import Tensor
from flambeau.ops.pointwise.elementwise import log, log1p
from flambeau.ops.special_functions.special import digamma, polygamma

SMALL_SHAPE = 1e-2
"""Shapes of gamma variables below which `log_lower_gamma` is exact."""
SMALL_PARAMETER = 1e-3
"""First parameters of beta variables below which `log_lower_beta` is exact."""
# -γ and (-1)ᵏ ζ(k)/k for k = 2 … 8 (Abramowitz & Stegun, 6.1.33)
_LOG_GAMMA = (
    *(-0.57721566490153286061, 0.82246703342411321824, -0.40068563438653142847),
    *(0.27058080842778454788, -0.20738555102867398527, 0.16955717699740818995),
    *(-0.14404989676884611812, 0.12550966952474304242),
)
_GAMMA_TERMS = 20  # of places up to 1.01
_BETA_TERMS = 64  # of places up to 1/2


def log_lower_gamma(a: Tensor, x: Tensor) -> Tensor:
    """log P(a, x) for a below `SMALL_SHAPE` and x up to a + 1 (A&S 6.5.4, 6.5.29)."""
    term = -x
    total = term / (a + 1)
    for k in range(2, _GAMMA_TERMS):
        term = term * (-x / k)
        total = total + term / (a + k)
    return a * log(x) - _log_gamma_1p(a) + log1p(a * total)


def log_lower_beta(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    """log I(x; a, b) for a below `SMALL_PARAMETER` and x(b + 2) up to 1 (DLMF 8.17.7)."""
    term = (1 - b) * x
    total = term / (a + 1)
    for k in range(2, _BETA_TERMS):
        term = term * ((k - b) / k * x)
        total = total + term / (a + k)
    # log Γ(a + b)/Γ(b), by Taylor's series around 1 + b
    c = 1 + b
    second, third = polygamma(1, c) / 2, polygamma(2, c) / 6
    rise = a * (digamma(c) + a * (second + a * (third + a * polygamma(3, c) / 24)))
    return a * log(x) - _log_gamma_1p(a) + rise - log1p(a / b) + log1p(a * total)


def _log_gamma_1p(a: Tensor) -> Tensor:
    """log Γ(1 + a) for small a, with the digits of a."""
    total = a * 0
    for coefficient in reversed(_LOG_GAMMA):
        total = (total + coefficient) * a
    return total
