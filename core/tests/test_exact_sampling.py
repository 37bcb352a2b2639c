"""Samples follow parameters as the distribution function says; small ones are drawn well."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import flambeau as fb
import flambeau.distributions as D

pytest.importorskip("flambeau_numpy")


def f64(values: Any) -> fb.Tensor:
    return fb.tensor(values, dtype=fb.float64)


# Builders, and parameters that are differentiated.
FAMILIES: dict[str, tuple[Any, list[float]]] = {
    "Beta": (D.Beta, [0.7, 3.0]),
    "Beta large": (D.Beta, [120.0, 150.0]),
    "Cauchy": (D.Cauchy, [0.5, 1.5]),
    "Chi2": (D.Chi2, [3.0]),
    "ContinuousBernoulli": (D.ContinuousBernoulli, [0.2]),
    "Exponential": (D.Exponential, [1.5]),
    "Gamma": (D.Gamma, [8.1, 2.0]),
    "Gamma small": (D.Gamma, [0.05, 1.0]),
    "GeneralizedPareto": (D.GeneralizedPareto, [1.0, 2.0, 0.2]),
    "Gumbel": (D.Gumbel, [0.5, 0.75]),
    "HalfCauchy": (D.HalfCauchy, [1.5]),
    "HalfNormal": (D.HalfNormal, [1.5]),
    "InverseGamma": (D.InverseGamma, [4.5, 2.0]),
    "Kumaraswamy": (D.Kumaraswamy, [2.0, 3.0]),
    "Laplace": (D.Laplace, [0.5, 1.5]),
    "LogNormal": (D.LogNormal, [0.25, 0.5]),
    "Normal": (D.Normal, [0.5, 1.5]),
    "Pareto": (D.Pareto, [1.5, 4.0]),
    "Uniform": (D.Uniform, [-1.0, 2.5]),
    "VonMises": (D.VonMises, [0.3, 2.0]),
    "Weibull": (D.Weibull, [1.5, 2.5]),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_samples_follow_parameters_as_the_distribution_function_says(name: str) -> None:
    # Where F(x; θ) stays, dx/dθ = −(∂F/∂θ)/p(x).  Not Student's t and F, of several variables each.
    build, values = FAMILIES[name]
    leaves = [f64(v).requires_grad_() for v in values]
    fb.manual_seed(3)
    with D.exact_sampling():
        x = build(*leaves).rsample()
    found = fb.autograd.grad(x, leaves)
    at = x.detach()
    density = build(*values_of(values)).log_prob(at).exp().item()
    for i, slope in enumerate(found):
        h = 1e-5 * abs(values[i])
        sides = []
        for offset in (h, -h, 2 * h, -2 * h):
            moved = [v + offset * (i == j) for j, v in enumerate(values)]
            sides.append(build(*values_of(moved)).cdf(at).item())
        slope_of_cdf = (8 * (sides[0] - sides[1]) - (sides[2] - sides[3])) / (12 * h)
        # von Mises's log_prob has seven digits.
        close = 1e-6 if name == "VonMises" else 1e-8
        assert slope.item() == pytest.approx(-slope_of_cdf / density, rel=close, abs=1e-12)


def values_of(values: list[float]) -> list[fb.Tensor]:
    return [f64(v) for v in values]


def test_small_concentrations_are_in_the_corners() -> None:
    fb.manual_seed(0)
    with D.exact_sampling():
        halves = D.Beta(f64(1e-3).expand(4000), f64(1e-3)).sample()
        corners = D.Dirichlet(fb.full((2000, 3), 1e-4)).sample()
        plain = D.Beta(f64(2.0).expand(4000), f64(3.0)).sample()
    middle = ((halves > 0.01) & (halves < 0.99)).double().mean().item()
    assert middle < 0.012  # 0.0046 by the distribution function
    assert abs((halves > 0.5).double().mean().item() - 0.5) < 0.04
    assert (corners.amax(-1) > 0.999).float().mean() > 0.98
    share = (corners > 0.5).float().mean(0)
    assert ((share - 1 / 3).abs() < 0.05).all()
    assert plain.mean().item() == pytest.approx(0.4, abs=0.015)
    assert plain.var().item() == pytest.approx(0.04, abs=0.004)


def test_the_switch_is_of_the_thread_and_nests() -> None:
    shape = f64(8.1).requires_grad_()

    def slope() -> float:
        fb.manual_seed(5)
        return fb.autograd.grad(D.Gamma(shape, 1.0).rsample(), shape)[0].item()

    rough = slope()

    @D.exact_sampling()
    def exact() -> float:
        with D.exact_sampling():
            pass
        return slope()

    assert rough != exact()
    assert rough == pytest.approx(exact(), rel=2e-3)
    elsewhere: list[float] = []
    with D.exact_sampling():
        thread = threading.Thread(target=lambda: elsewhere.append(slope()))
        thread.start()
        thread.join()
    assert elsewhere == [rough] == [slope()]


# Where a density ends, in a pole, in 0 or in a step.
BOUNDARIES: dict[str, tuple[Any, list[Any], Any]] = {
    "Bernoulli": (D.Bernoulli, [[0.0, 1.0, 0.0, 1.0]], [0.0, 1.0, 1.0, 0.0]),
    "Beta": (D.Beta, [[2.0, 1.0, 3.0], [3.0, 1.0, 1.0]], [0.0, 0.0, 1.0]),
    "Binomial": (lambda p: D.Binomial(3, p), [[0.0, 1.0]], [0.0, 3.0]),
    "Categorical": (D.Categorical, [[0.5, 0.5, 0.0]], 2),
    "ContinuousBernoulli": (D.ContinuousBernoulli, [[0.0, 1.0, 0.3]], [0.0, 1.0, 1.0]),
    "Dirichlet": (D.Dirichlet, [[2.0, 1.0, 3.0]], [0.0, 0.25, 0.75]),
    "Exponential": (D.Exponential, [2.0], 0.0),
    "Gamma": (D.Gamma, [[1.0, 2.0], [1.0, 2.0]], [0.0, 0.0]),
    "Geometric": (D.Geometric, [[1.0, 0.5]], [0.0, 0.0]),
    "HalfCauchy": (D.HalfCauchy, [2.0], 0.0),
    "HalfNormal": (D.HalfNormal, [2.0], 0.0),
    "Laplace": (D.Laplace, [0.5, 2.0], 0.5),
    "NegativeBinomial": (D.NegativeBinomial, [[0.0, 2.0], [0.5, 0.0]], [0.0, 0.0]),
    "Poisson": (D.Poisson, [[0.0, 2.0]], [0.0, 0.0]),
    "Uniform": (D.Uniform, [0.0, 1.0], 0.0),
}


@pytest.mark.parametrize("name", BOUNDARIES)
def test_gradients_of_log_prob_are_finite_at_the_ends_of_the_support(name: str) -> None:
    build, values, at = BOUNDARIES[name]
    leaves = [f64(v).requires_grad_() for v in values]
    log_prob = build(*leaves).log_prob(f64(at))
    finite = fb.where(log_prob.isfinite(), log_prob, 0.0)
    for slope in fb.autograd.grad(finite.sum(), leaves, allow_unused=True):
        assert slope is None or slope.isfinite().all()
