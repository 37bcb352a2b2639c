"""How gamma and beta samples follow their parameters while their place in the distribution stays.

For a sample x with distribution function F(x; α) that is dx/dα = -(∂F/∂α) / (∂F/∂x) (implicit
reparameterisation; M. Figurnov, S. Mohamed and A. Mnih, 2018).  What is computed here, unless
`exact` asks for the derivative itself, are PyTorch's approximations, good to about 8e-4: a Taylor
series near the ends of the support, Rice's saddle point expansion for large parameters
(M. Jankowiak and F. Obermeyer, Pathwise derivatives beyond the reparameterization trick, 2018) and
fitted rational functions in between.  All in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.ops.declaration.table import composite
from flambeau.ops.pointwise.elementwise import exp, isnan, log, sqrt, where
from flambeau.ops.randomness.variates import need_dtype
from flambeau.ops.shapes.broadcasting import broadcast_tensors
from flambeau.ops.special_functions import gamma_quantiles, incomplete_beta
from flambeau.ops.special_functions.special import digamma

# The logarithm of the gradient as p/q, polynomials in log(x/α) (rows) and log α (columns).
_GAMMA_P = (
    (0.16009398, -0.094634809, 0.025146376, -0.0030648343),
    (0.53487893, 0.1298071, 0.065735949, -0.0015649758),
    (0.040121004, -0.0065914022, -0.0026286047, -0.0013441777),
)
_GAMMA_Q = (
    (1.0, 0.32668115, 0.10406089, 0.0014179084),
    (0.16639465, 0.020070113, -0.0035938915, -0.00058392623),
    (0.017050642, -0.0021309326, 0.00085092367, -1.5247877e-07),
)
# What corrects the limit of small x: p/q, polynomials in log x, log α - log x and the rest.
_BETA_P = (
    (
        (1.003668233, -0.01061107488, -0.0657888334, 0.01201642863),
        (0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033),
        (-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013),
    ),
    (
        (0.221950385, -0.3187676331, 0.01799915743, 0.01074823814),
        (-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057),
        (0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05),
    ),
    (
        (-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565),
        (0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181),
        (0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05),
    ),
)
_BETA_Q = (
    (
        (1.0, -0.02924021934, -0.04438342661, 0.007285809825),
        (0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521),
        (-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149),
    ),
    (
        (0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273),
        (0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956),
        (-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05),
    ),
    (
        (0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05),
        (0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05),
        (-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06),
    ),
)


@composite
def _standard_gamma_grad(self: Tensor, output: Tensor, exact: bool) -> Tensor:
    alpha, x = cast(self, D.float64), cast(output, D.float64)
    if exact:
        return cast(gamma_quantiles.sample_derivative(alpha, x), self.dtype)
    near, large = x < 0.8, alpha > 8
    found = _gamma_fitted(where(near | large, 1.0, alpha), where(near | large, 1.0, x))
    found = where(large, _gamma_saddle(where(large, alpha, 9.0), where(large, x, 9.0)), found)
    found = where(near, _gamma_near_zero(where(near, alpha, 1.0), where(near, x, 0.5)), found)
    return cast(found, self.dtype)


_standard_gamma_grad.gradient_missing(
    "the derivative for '_standard_gamma_grad' is not implemented."
)


@_standard_gamma_grad.samples(D.float32, D.float64)
def _(S):
    shape, sample = S.Arr((3, 5), low=0.25, high=20), S.Arr((3, 5), low=0.25, high=20, seed=1)
    return [
        S.Sample((shape, sample, False), "matrix", True),
        S.Sample((shape, sample, True), "exact"),
        S.Sample((S.Arr((), low=1, high=2), S.Arr((), low=1, high=2, seed=1), False), "scalar"),
        S.Sample((S.Arr((0, 3)), S.Arr((0, 3)), False), "empty"),
    ]


def _gamma_near_zero(alpha: Tensor, x: Tensor) -> Tensor:
    term, below = 1 / (alpha * 0 + 1), alpha
    first, second = term / below, term / (below * below)
    for k in range(1, 6):
        term = term * x * (-1 / k)
        below = below + 1
        first = first + term / below
        second = second + term / (below * below)
    power = x**alpha
    slope = (log(x) - digamma(alpha)) * (power * first) - power * second
    found = -slope / (x ** (alpha - 1) * exp(-x))
    return where(isnan(found), 0.0, found)


def _gamma_saddle(alpha: Tensor, x: Tensor) -> Tensor:
    central = (x >= 0.9 * alpha) & (x <= 1.1 * alpha)
    square = alpha * alpha
    middle = (1 + 24 * alpha * (1 + 12 * alpha)) * (
        1440 * square + 6 * x * (53 - 120 * x) - 65 * x * x / alpha + alpha * (107 + 3600 * x)
    )
    middle = middle / (1244160 * square * square)
    x = where(central, 0.5 * alpha, x)  # the formula below is singular at α
    root, ratio = sqrt(8 * alpha), log(x / alpha)
    far = (x - alpha - alpha * ratio) ** -1.5
    both = root / (alpha - x) + where(x < alpha, -far, far)
    outer = ratio * both - sqrt(2 / alpha) * (alpha + x) / ((alpha - x) * (alpha - x))
    stirling = 1 + (1 + 1 / (24 * alpha)) / (12 * alpha)
    return where(central, middle, -stirling * x * outer / root)


def _gamma_fitted(alpha: Tensor, x: Tensor) -> Tensor:
    u, v = log(x / alpha), log(alpha)
    p, q = (_polynomial([_polynomial(row, v) for row in c], u) for c in (_GAMMA_P, _GAMMA_Q))
    return exp(p / q)


@composite
def _dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor, exact: bool) -> Tensor:
    """How x of a Beta(α, total - α) follows α, divided by 1 - x."""
    dtype = x.dtype
    x, alpha, total = cast(x, D.float64), cast(alpha, D.float64), cast(total, D.float64)
    beta = total - alpha
    if exact:
        return cast(incomplete_beta.sample_derivative(x, alpha, beta), dtype)
    spread = total * x * (1 - x)
    low = (x <= 0.5) & (spread < 2.5)
    high = (x >= 0.5) & (spread < 0.75) & ~low
    large = (alpha > 6) & (beta > 6) & ~low & ~high
    apart = low | high | large
    plain = (where(apart, 0.5, x), where(apart, 1.0, alpha), where(apart, 1.0, beta))
    found = _beta_fitted(*plain)
    of_large = (where(large, x, 0.5), where(large, alpha, 7.0), where(large, beta, 8.0))
    found = where(large, _beta_saddle(*of_large), found)
    of_high = (where(high, 1 - x, 0.5), where(high, beta, 1.0), where(high, alpha, 1.0))
    found = where(high, -_beta_last(*of_high), found)
    of_low = (where(low, x, 0.5), where(low, alpha, 1.0), where(low, beta, 1.0))
    return cast(where(low, _beta_first(*of_low), found), dtype)


_dirichlet_grad.gradient_missing("the derivative for '_dirichlet_grad' is not implemented.")


@_dirichlet_grad.samples(D.float32, D.float64)
def _(S):
    x, alpha = S.Arr((3, 5), low=0.0625, high=0.9375), S.Arr((3, 5), low=0.25, high=16, seed=1)
    total = S.Arr((3, 5), low=17, high=32, seed=2)
    few = S.Arr((), low=0.25, high=0.75), S.Arr((), low=1, high=2), S.Arr((), low=3, high=4)
    return [
        S.Sample((x, alpha, total, False), "matrix", True),
        S.Sample((x, alpha, total, True), "exact"),
        S.Sample((*few, False), "scalar"),
        S.Sample((S.Arr((0, 3)), S.Arr((0, 3)), S.Arr((0, 3)), False), "empty"),
    ]


def _beta_first(x: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    """In the first parameter, from a series in small x."""
    factor = digamma(alpha) - digamma(alpha + beta) - log(x)
    term = x * 0 + 1
    series = term / alpha * (factor + 1 / alpha)
    for k in range(1, 11):
        term = term * ((k - beta) * x / k)
        below = alpha + k
        series = series + term / below * (factor + 1 / below)
    found = x * (1 - x) ** -beta * series
    return where(isnan(found), 0.0, found)


def _beta_last(x: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    """In the second parameter, from a series in small x."""
    factor = digamma(alpha + beta) - digamma(beta)
    term = x * 0 + 1
    product, slope, series = term, x * 0, factor / alpha
    for k in range(1, 9):
        term = term * (-x / k)
        slope = slope * (beta - k) + product
        product = product * (beta - k)
        series = series + term / (alpha + k) * (slope + factor * product)
    found = -((1 - x) ** (1 - beta)) * series
    return where(isnan(found), 0.0, found)


def _beta_saddle(x: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    total = alpha + beta
    mean, deviation = alpha / total, sqrt(alpha * beta / (total + 1)) / total
    central = (x >= mean - 0.1 * deviation) & (x <= mean + 0.1 * deviation)
    # Around the mean, where the formula below is singular: powers of α with coefficients in β, x.
    polynomial = _polynomial(
        [
            47 * x * beta**4,
            (43 + 20 * (16 + 27 * beta) * x) * beta**3,
            3 * (59 + 180 * beta - 90 * x) * beta**2,
            (453 + 1620 * beta * (1 - x) - 455 * x) * beta,
            8 * (1 - x) * (135 * beta - 11),
        ],
        alpha,
    )
    middle = (1 + 12 * alpha) * (1 + 12 * beta) / (total * total) / (1 - x) * polynomial
    middle = middle / (12960 * alpha**3 * beta**2 * (1 + 12 * total))

    x = where(central, 0.5 * mean, x)
    offset = alpha * (x - 1) + beta * x
    stirling = _stirling(alpha) * _stirling(beta) / _stirling(total)
    first = (2 * alpha * alpha + alpha * beta) * (x - 1) - x * beta * beta
    first = first / (sqrt(2 * alpha / beta) * total**1.5 * offset * offset)
    ratio = log(alpha / (total * x))
    far = (beta * log(beta / (total * (1 - x))) + alpha * ratio) ** -1.5
    second = sqrt(8 * alpha * beta / total) / offset + where(x < mean, far, -far)
    outer = -x / sqrt(2 * alpha * beta / total) * stirling * (first + 0.5 * ratio * second)
    return where(central, middle, outer)


def _stirling(a: Tensor) -> Tensor:
    return 1 + 1 / (12 * a) + 1 / (288 * a * a)


def _beta_fitted(x: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    total = alpha + beta
    u = log(x)
    a = log(alpha) - u
    b = log(total) - a
    p, q = (
        _polynomial([_polynomial([_polynomial(c, b) for c in row], a) for row in table], u)
        for table in (_BETA_P, _BETA_Q)
    )
    return p / q * (x * (digamma(total) - digamma(alpha)) / beta)


def _polynomial(coefficients: Sequence[Any], x: Tensor) -> Tensor:
    found = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        found = found * x + coefficient
    return found


def standard_gamma_grad(self: Tensor, output: Tensor, *, exact: bool = False) -> Tensor:
    """How a gamma number follows its shape; ``flambeau._standard_gamma_grad``.

    `self` has the shapes α and `output` samples x of `flambeau._standard_gamma`; the result is
    -(∂P(α, x)/∂α) / p(x; α), as PyTorch approximates it, or with `exact` to about 1e-12.

    Raises:
        NotImplementedError: the dtype is neither float32 nor float64.

    >>> import flambeau as fb
    >>> fb._standard_gamma_grad(fb.tensor([1.0]), fb.tensor([2.0]))
    tensor([1.6317])
    """
    alpha = need_tensor(self, "_standard_gamma_grad", "self")
    x = need_tensor(output, "_standard_gamma_grad", "output")
    alpha, x = _alike("_standard_gamma_grad", alpha, x)
    return _standard_gamma_grad(alpha, x, exact)


def dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor, *, exact: bool = False) -> Tensor:
    """How a part of a Dirichlet sample follows its concentration; ``flambeau._dirichlet_grad``.

    For `x` of a Beta(α, `total` - α) it is dx/dα / (1 - x), as PyTorch approximates it, or with
    `exact` to about 1e-10.  The gradient of a loss L in the concentrations of a Dirichlet sample x
    is this times ∂L/∂x - Σ x·∂L/∂x.

    Raises:
        NotImplementedError: the dtype is neither float32 nor float64.

    >>> import flambeau as fb
    >>> fb._dirichlet_grad(fb.tensor([0.5]), fb.tensor([1.0]), fb.tensor([2.0]))
    tensor([0.6931])
    """
    x, alpha, total = _alike(
        "_dirichlet_grad",
        need_tensor(x, "_dirichlet_grad", "x"),
        need_tensor(alpha, "_dirichlet_grad", "alpha"),
        need_tensor(total, "_dirichlet_grad", "total"),
    )
    return _dirichlet_grad(x, alpha, total, exact)


def _alike(name: str, first: Tensor, *others: Tensor) -> list[Tensor]:
    """The tensors in their common shape.

    Raises:
        NotImplementedError: the dtype is no float, or a half.  RuntimeError: they have several.
    """
    need_dtype(first, name + "_cpu")
    for other in others:
        if other.dtype is not first.dtype:
            raise RuntimeError(f"{name}: found dtype {other.dtype} but expected {first.dtype}")
    return list(broadcast_tensors(first, *others))
