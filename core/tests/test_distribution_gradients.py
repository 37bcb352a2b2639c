"""Gradients of samples follow the distribution function; those of densities have no holes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import flambeau as fb
import flambeau.distributions as D
from flambeau.distributions import relaxed_bernoulli, relaxed_categorical

pytest.importorskip("flambeau_numpy")

Build = Callable[..., Any]


def f64(values: Any) -> fb.Tensor:
    return fb.tensor(values, dtype=fb.float64)


# Families on a line whose samples are a function of their parameters and of their level alone.
LEVELS: dict[str, tuple[Build, tuple[float, ...]]] = {
    "Beta": (D.Beta, (2.5, 0.75)),
    "Beta small": (D.Beta, (0.2, 0.3)),
    "Cauchy": (D.Cauchy, (0.5, 1.5)),
    "Chi2": (D.Chi2, (5.0,)),
    "ContinuousBernoulli": (D.ContinuousBernoulli, (0.3,)),
    "Exponential": (D.Exponential, (1.5,)),
    "Gamma": (D.Gamma, (8.1, 2.0)),
    "Gamma small": (D.Gamma, (0.15, 2.0)),
    "GeneralizedPareto": (D.GeneralizedPareto, (1.0, 2.0, 0.2)),
    "Gumbel": (D.Gumbel, (0.5, 0.75)),
    "HalfCauchy": (D.HalfCauchy, (1.5,)),
    "HalfNormal": (D.HalfNormal, (1.5,)),
    "InverseGamma": (D.InverseGamma, (4.5, 2.0)),
    "Kumaraswamy": (D.Kumaraswamy, (2.0, 3.0)),
    "Laplace": (D.Laplace, (0.5, 1.5)),
    "LogNormal": (D.LogNormal, (0.25, 0.5)),
    "Normal": (D.Normal, (0.5, 1.5)),
    "Pareto": (D.Pareto, (1.5, 4.0)),
    "Uniform": (D.Uniform, (-1.0, 2.5)),
    "VonMises": (D.VonMises, (0.5, 2.0)),
    "Weibull": (D.Weibull, (1.5, 2.5)),
    "Wishart": (lambda df, scale, **k: WishartNumber(df, scale[..., None, None], **k), (3.5, 0.75)),
}


class WishartNumber(D.Wishart):
    """A Wishart matrix of one entry, as the number that it is: a gamma variable."""

    def rsample(self, *args: Any) -> fb.Tensor:
        return super().rsample(*args)[..., 0, 0]

    def as_gamma(self) -> D.Gamma:
        return D.Gamma(self.df / 2, 0.5 / self.covariance_matrix[..., 0, 0])

    def log_prob(self, value: fb.Tensor) -> fb.Tensor:
        return super().log_prob(value[..., None, None])

    def cdf(self, value: fb.Tensor) -> fb.Tensor:
        return self.as_gamma().cdf(value)


def difference(function: Callable[[float], fb.Tensor], at: float) -> fb.Tensor:
    """The derivative by central differences of two steps (Richardson's fourth order)."""
    h = 2e-3 * max(abs(at), 0.5)
    wide, near = ((function(at + s) - function(at - s)) / (2 * s) for s in (h, h / 2))
    return (4 * near - wide) / 3


@pytest.mark.parametrize("name", LEVELS)
def test_a_sample_follows_the_distribution_function(name: str) -> None:
    """With F(x; θ) fixed dx/dθ = −(∂F/∂θ)/p(x), where ∂F/∂θ is a quotient of differences."""
    family, values = LEVELS[name]
    leaves = [f64(value).expand(6).clone().requires_grad_() for value in values]
    fb.manual_seed(4)
    with D.exact_sampling():
        x = family(*leaves).rsample()
    pathwise = fb.autograd.grad(x.sum(), leaves)
    x = x.detach()
    density = family(*map(f64, values)).log_prob(x).exp()
    for i, found in enumerate(pathwise):

        def moved(value: float, i: int = i) -> fb.Tensor:
            at = [f64(value if i == j else other) for j, other in enumerate(values)]
            return family(*at, validate_args=False).cdf(x)

        wanted = -difference(moved, values[i]) / density
        close = 1e-6 if name == "VonMises" else 1e-8  # PyTorch has Bessel functions of seven digits
        fb.testing.assert_close(found, wanted, rtol=close, atol=close)


# Families of several variables or of quotients, whose samples move with more than their level.
SEVERAL: dict[str, tuple[Build, tuple[Any, ...]]] = {
    "LogisticNormal": (D.LogisticNormal, ([0.3, -0.2], [1.0, 0.5])),
    "LogitRelaxedBernoulli": (relaxed_bernoulli.LogitRelaxedBernoulli, (0.7, 0.3)),
    "RelaxedBernoulli": (D.RelaxedBernoulli, (0.7, 0.3)),
    "ExpRelaxedCategorical": (relaxed_categorical.ExpRelaxedCategorical, (0.7, [0.2, 0.3, 0.5])),
    "RelaxedOneHotCategorical": (D.RelaxedOneHotCategorical, (0.7, [0.2, 0.3, 0.5])),
    "LowRankMultivariateNormal": (
        D.LowRankMultivariateNormal,
        ([0.5, 1.0], [[0.3], [-0.5]], [2.0, 0.7]),
    ),
    "MultivariateNormal": (D.MultivariateNormal, ([0.5, 1.0], [[2.0, 0.5], [0.5, 1.25]])),
    "MultivariateNormal precision": (
        lambda m, p, **k: D.MultivariateNormal(m, precision_matrix=p, **k),
        ([0.5, 1.0], [[2.0, 0.5], [0.5, 1.25]]),
    ),
    "MultivariateNormal tril": (
        lambda m, t, **k: D.MultivariateNormal(m, scale_tril=t, **k),
        ([0.5, 1.0], [[1.5, 0.0], [-0.4, 0.8]]),
    ),
    "Wishart": (
        lambda t, **k: D.Wishart(f64(4.5), scale_tril=t, **k),
        ([[1.5, 0.0], [-0.4, 0.8]],),
    ),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_a_sample_follows_the_parameters_with_its_noise(name: str) -> None:
    """The derivative of what one seed draws, by differences along a direction."""
    family, values = SEVERAL[name]
    leaves = [f64(value).requires_grad_() for value in values]

    def drawn(parameters: Any) -> fb.Tensor:
        fb.manual_seed(4)
        return family(*parameters, validate_args=False).rsample((3,))

    weights = f64([math.cos(k) for k in range(drawn(leaves).numel())])
    weights = weights.reshape(drawn(leaves).shape)
    found = fb.autograd.grad((drawn(leaves) * weights).sum(), leaves)
    for i, leaf in enumerate(leaves):
        start = leaf.detach()
        direction = start + 0.1 * (start != 0)  # symmetric where `start` is, and as triangular

        def moved(step: float, i: int = i, s: Any = start, v: Any = direction) -> fb.Tensor:
            there = [s + step * v if i == j else x.detach() for j, x in enumerate(leaves)]
            return (drawn(there) * weights).sum()

        wanted = difference(moved, 0.0)
        fb.testing.assert_close((found[i] * direction).sum(), wanted, rtol=1e-8, atol=1e-9)


def test_a_wishart_matrix_follows_its_degrees_of_freedom_on_average() -> None:
    """E[log det W] = Σ ψ((ν − i)/2) + …, so its derivative in ν is half the sum of ψ′."""
    df = fb.full((2000,), 4.5, dtype=fb.float64).requires_grad_()
    fb.manual_seed(4)
    with D.exact_sampling():
        w = D.Wishart(df, covariance_matrix=f64([[2.0, 0.5], [0.5, 1.25]])).rsample()
    (found,) = fb.autograd.grad(fb.linalg.det(w).log().sum(), df)
    wanted = fb.special.polygamma(1, f64([2.25, 1.75])).sum().item() / 2
    error = found.std().item() / math.sqrt(len(found))
    assert abs(found.mean().item() - wanted) < 5 * error


def test_every_family_with_pathwise_samples_is_differentiated() -> None:
    averaged = {"StudentT", "FisherSnedecor", "Dirichlet"}
    of_others = {"Independent", "TransformedDistribution"}
    bent = {"OneHotCategoricalStraightThrough"}  # its gradient is another one on purpose
    compared = {name.split()[0] for name in (*LEVELS, *SEVERAL)} | averaged | of_others | bent
    for name in D.__all__:
        family = getattr(D, name)
        if isinstance(family, type) and issubclass(family, D.Distribution) and family.has_rsample:
            assert name in compared


@pytest.mark.parametrize("name", ["StudentT", "FisherSnedecor", "Dirichlet"])
def test_quotients_of_gamma_variables_follow_their_distribution_on_average(name: str) -> None:
    """E[f′(x) dx/dθ] = −∫ f′ ∂F/∂θ, where f is the arc tangent; within 5 standard errors."""
    families: dict[str, tuple[Build, tuple[float, ...]]] = {
        "StudentT": (D.StudentT, (4.0, 0.5, 1.5)),
        "FisherSnedecor": (D.FisherSnedecor, (5.0, 7.0)),
        # The first of three parts is Beta(a, b + c).
        "Dirichlet": (D.Beta, (1.5, 2.5)),
    }
    family, values = families[name]
    count = 1500
    leaves = [fb.full((count,), v, dtype=fb.float64).requires_grad_() for v in values]
    fb.manual_seed(4)
    with D.exact_sampling():
        if name == "Dirichlet":
            a, rest = leaves
            x = D.Dirichlet(fb.stack([a, rest * 0.4, rest * 0.6], -1)).rsample()[:, 0]
        else:
            x = family(*leaves).rsample()
    pathwise = fb.autograd.grad(fb.atan(x).sum(), leaves)
    t = (fb.arange(1000, dtype=fb.float64) + 0.5) / 1000  # x = tan θ: f′ dx = dθ
    low = 0.0 if name != "StudentT" else -math.pi / 2
    high = math.pi / 4 if name == "Dirichlet" else math.pi / 2
    at = fb.tan(low + (high - low) * t)
    for i, found in enumerate(pathwise):

        def moved(value: float, i: int = i) -> fb.Tensor:
            there = [value if i == j else other for j, other in enumerate(values)]
            given = [f64(v) for v in there]
            return family(*given, validate_args=False).cdf(at)

        wanted = -difference(moved, values[i]).mean().item() * (high - low)
        error = found.std().item() / math.sqrt(count)
        assert abs(found.mean().item() - wanted) < 5 * error + 1e-6


# Where densities end: families with values on the boundary of their support and beside it.
TINY = 5e-324
BOUNDARIES: dict[str, tuple[Build, list[tuple[Any, ...]], list[Any]]] = {
    "Bernoulli": (D.Bernoulli, [(0.0,), (1.0,), (0.5,)], [0.0, 1.0]),
    "Beta": (D.Beta, [(0.5, 0.5), (1.0, 1.0), (2.0, 1.0), (3.0, 3.0)], [0.0, TINY, 1.0]),
    "Binomial": (lambda p, **k: D.Binomial(3, p, **k), [(0.0,), (1.0,), (0.5,)], [0.0, 3.0]),
    "Categorical": (D.Categorical, [([0.0, 1.0],)], [0, 1]),
    "Cauchy": (D.Cauchy, [(0.0, 1.0)], [0.0, 1e300]),
    "Chi2": (D.Chi2, [(1.0,), (2.0,), (5.0,)], [0.0, TINY]),
    "ContinuousBernoulli": (D.ContinuousBernoulli, [(0.0,), (0.5,), (1.0,)], [0.0, 1.0]),
    "Dirichlet": (
        D.Dirichlet,
        [([0.5, 1.0, 2.0],), ([1.0, 1.0, 1.0],)],
        [[0.0, 0.0, 1.0], [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]],
    ),
    "Exponential": (D.Exponential, [(1.5,)], [0.0, 1e300]),
    "FisherSnedecor": (D.FisherSnedecor, [(1.0, 3.0), (2.0, 3.0), (5.0, 3.0)], [0.0, TINY]),
    "Gamma": (D.Gamma, [(0.5, 1.0), (1.0, 1.0), (2.0, 1.0)], [0.0, TINY]),
    "GeneralizedPareto": (
        D.GeneralizedPareto,
        [(1.0, 2.0, 0.5), (1.0, 2.0, 0.0), (1.0, 2.0, -0.5), (1.0, 2.0, -1.0)],
        [1.0],
    ),
    "GeneralizedPareto end": (D.GeneralizedPareto, [(1.0, 2.0, -0.5)], [5.0]),
    "Geometric": (D.Geometric, [(1.0,), (0.5,)], [0.0, 1.0]),
    "Gumbel": (D.Gumbel, [(0.0, 1.0)], [-700.0, 1e300]),
    "HalfCauchy": (D.HalfCauchy, [(1.0,)], [0.0, 1e300]),
    "HalfNormal": (D.HalfNormal, [(1.0,)], [0.0]),
    "InverseGamma": (D.InverseGamma, [(0.5, 1.0), (2.0, 1.0)], [0.0, TINY, 1e-300, 1e300]),
    "Kumaraswamy": (
        D.Kumaraswamy,
        [(a, b) for a in (0.3, 1.0, 2.0) for b in (0.5, 1.0, 3.0)],
        [0.0, 1.0],
    ),
    "LKJCholesky": (
        lambda c, **k: D.LKJCholesky(2, c, **k),
        [(0.5,), (1.0,), (2.0,)],
        [[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]],
    ),
    "Laplace": (D.Laplace, [(0.5, 1.0)], [0.5]),
    "LogNormal": (D.LogNormal, [(0.0, 1.0)], [0.0, TINY, 1e300]),
    "LogisticNormal": (
        D.LogisticNormal,
        [([0.0], [1.0])],
        [[1e-300, 1.0], [0.5, 0.5], [0.0, 1.0], [1.0, 0.0]],
    ),
    "LogisticNormal corner": (
        D.LogisticNormal,
        [([0.0, 1.0], [1.0, 0.5])],
        [[0.0, 0.5, 0.5], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]],
    ),
    "MixtureSameFamily": (
        lambda a, w, **k: D.MixtureSameFamily(
            D.Categorical(w, validate_args=False), D.Beta(a, f64(2.0), **k), **k
        ),
        [([2.0, 3.0], [0.25, 0.75]), ([0.5, 3.0], [0.25, 0.75])],
        [0.0, 1.0],
    ),
    "Multinomial": (
        lambda p, **k: D.Multinomial(2, p, **k),
        [([0.0, 1.0],)],
        [[0.0, 2.0], [1.0, 1.0]],
    ),
    "NegativeBinomial": (D.NegativeBinomial, [(3.0, 0.0), (3.0, 0.5), (0.0, 0.5)], [0.0, 1.0]),
    "Normal": (D.Normal, [(0.0, 1.0)], [0.0, 1e150]),
    "OneHotCategorical": (D.OneHotCategorical, [([0.0, 1.0],)], [[0.0, 1.0], [1.0, 0.0]]),
    "Pareto": (D.Pareto, [(1.5, 2.0)], [1.5, 1e300]),
    "Poisson": (D.Poisson, [(0.0,), (2.0,)], [0.0, 4.0]),
    "RelaxedBernoulli": (
        D.RelaxedBernoulli,
        [(t, p) for t in (0.1, 0.7, 3.0, 50.0) for p in (0.0, 0.3, 1.0)],
        [0.0, 1.0],
    ),
    "RelaxedOneHotCategorical": (
        D.RelaxedOneHotCategorical,
        [(0.7, [0.3, 0.7])],
        [[0.0, 1.0], [1.0, 0.0]],
    ),
    "StudentT": (D.StudentT, [(1.0, 0.0, 1.0)], [0.0, 1e200]),
    "Uniform": (D.Uniform, [(-1.0, 2.5)], [-1.0, 2.5]),
    "VonMises": (D.VonMises, [(0.5, 2.0), (0.5, 1e-300), (0.5, 1e300)], [-math.pi, math.pi]),
    "Weibull": (D.Weibull, [(1.0, 0.5), (1.0, 1.0), (1.0, 3.0)], [0.0, TINY]),
}


@pytest.mark.parametrize("name", BOUNDARIES)
def test_densities_have_gradients_at_the_ends_of_their_support(name: str) -> None:
    """Finite in the parameters; in the value no NaN, since the density may rise without bound."""
    family, parameters, values = BOUNDARIES[name]
    wrong = []
    for given in parameters:
        for value in values:
            leaves = [f64(x).requires_grad_() for x in given]
            x = f64(value).requires_grad_()
            d = family(*leaves, validate_args=False)
            log_prob = d.log_prob(x)
            *found, of_value = fb.autograd.grad(
                log_prob.sum(), [*leaves, x], allow_unused=True, retain_graph=True
            )
            finite = all(g is None or g.isfinite().all() for g in found)
            holes = log_prob.isnan().any() or (of_value is not None and of_value.isnan().any())
            if holes or not finite:
                wrong.append((given, value, log_prob.tolist(), found, of_value))
    assert not wrong


def _far_cauchy(scale: float, x: float) -> float:
    """log p(x) of Cauchy(0, scale) far away, where p(x) = scale/(π·x²)."""
    return math.log(scale / math.pi) - 2 * math.log(x)


FAR: dict[str, tuple[Build, tuple[float, ...], float, float]] = {
    # With the logarithm of what the density is there, up to a relative error of 1e-150.
    "Cauchy": (D.Cauchy, (0.5, 1.5), -1e203, math.log(1.5 / math.pi) - 406 * math.log(10)),
    "HalfCauchy": (D.HalfCauchy, (1.5,), 1e203, math.log(3 / math.pi) - 406 * math.log(10)),
    # The quotient overflows as well.
    "Cauchy narrow": (D.Cauchy, (0.5, 0.06), 5e307, _far_cauchy(0.06, 5e307)),
    "HalfCauchy narrow": (D.HalfCauchy, (0.06,), 5e307, _far_cauchy(0.06, 5e307) + math.log(2)),
    "StudentT narrow": (D.StudentT, (1.0, 0.5, 0.06), -5e307, _far_cauchy(0.06, 5e307)),
    "StudentT": (D.StudentT, (1.0, 0.5, 1.5), 1e203, math.log(1.5 / math.pi) - 406 * math.log(10)),
    # p(x) = (1 + 5x)⁻² · 5 for df1 = 2 and df2 = 0.4, to the power of (df1 + df2)/2 = 1.2.
    "FisherSnedecor": (
        D.FisherSnedecor,
        (2.0, 0.4),
        1e308,
        -1.2 * (math.log(5) + 308 * math.log(10)),
    ),
}


@pytest.mark.parametrize("name", FAR)
def test_densities_and_their_gradients_are_finite_where_squares_and_quotients_overflow(name):
    family, given, value, wanted = FAR[name]
    leaves, x = [f64(v).requires_grad_() for v in given], f64(value).requires_grad_()
    log_prob = family(*leaves).log_prob(x)
    assert float(log_prob) == pytest.approx(wanted, rel=1e-12)
    *found, of_value = fb.autograd.grad(log_prob, [*leaves, x])
    assert all(g.isfinite() for g in found)
    power = -2.0 if name != "FisherSnedecor" else -1.2  # p(x) ∝ x^power
    assert float(of_value) == pytest.approx(power / value, rel=1e-12)


def test_an_infinite_power_of_weibull_variables_has_gradients_without_holes() -> None:
    scale, k, x = (f64(v).requires_grad_() for v in (1.3, 2.0, 1e308))
    log_prob = D.Weibull(scale, k).log_prob(x)
    assert float(log_prob) == -math.inf
    found = [g.item() for g in fb.autograd.grad(log_prob, (scale, k, x))]
    assert found == [math.inf, -math.inf, -math.inf]


def test_every_family_whose_support_ends_is_looked_at_there() -> None:
    endless = {"LowRankMultivariateNormal", "MultivariateNormal"}
    open_ends = {"Wishart"}  # singular matrices are no values of it
    of_others = {"Independent", "TransformedDistribution", "OneHotCategoricalStraightThrough"}
    general = {"Distribution", "ExponentialFamily"}
    families = {
        name
        for name in D.__all__
        if isinstance(family := getattr(D, name), type) and issubclass(family, D.Distribution)
    }
    looked_at = {name.split()[0] for name in BOUNDARIES}
    assert families == looked_at | endless | open_ends | of_others | general
