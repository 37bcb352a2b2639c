"""Logarithms of both tails agree with SciPy's, to ten digits where PyTorch has 0 or −∞."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as fb
import flambeau.distributions as D

stats = pytest.importorskip("scipy.stats")


def f64(values: Any) -> fb.Tensor:
    return fb.tensor(values, dtype=fb.float64)


BOTH = [-300.0, -20.0, -5.0, -0.5, 0.0, 1e-8, 0.75, 4.0, 20.0, 300.0]
POSITIVE = [1e-300, 1e-12, 0.01, 0.7, 1.0, 3.0, 30.0, 700.0]
CASES: dict[str, tuple[Any, Any, list[float]]] = {
    "Normal": (D.Normal(f64(0.5), f64(1.5)), stats.norm(0.5, 1.5), BOTH),
    "Cauchy": (D.Cauchy(f64(0.0), f64(1.5)), stats.cauchy(0.0, 1.5), [*BOTH, -1e200, 1e200]),
    "Laplace": (D.Laplace(f64(0.5), f64(1.5)), stats.laplace(0.5, 1.5), BOTH),
    "Gumbel": (D.Gumbel(f64(0.5), f64(1.5)), stats.gumbel_r(0.5, 1.5), BOTH[2:]),
    "Exponential": (D.Exponential(f64(2.0)), stats.expon(scale=0.5), POSITIVE),
    "HalfNormal": (D.HalfNormal(f64(2.0)), stats.halfnorm(scale=2.0), POSITIVE[1:-1]),
    "HalfCauchy": (D.HalfCauchy(f64(2.0)), stats.halfcauchy(scale=2.0), POSITIVE[1:]),
    "LogNormal": (D.LogNormal(f64(0.0), f64(0.5)), stats.lognorm(0.5), POSITIVE),
    "Weibull": (D.Weibull(f64(2.0), f64(1.5)), stats.weibull_min(1.5, scale=2.0), POSITIVE[:-1]),
    "Pareto": (D.Pareto(f64(1.0), f64(2.5)), stats.pareto(2.5), [1.001, 2.0, 1e10, 1e100]),
    "Gamma": (D.Gamma(f64(2.5), f64(1.0)), stats.gamma(2.5), [0.01, 0.7, 3.0, 30.0, 500.0]),
}


@pytest.mark.parametrize("name", CASES)
def test_tails(name: str) -> None:
    d, reference, points = CASES[name]
    x = f64(points)
    for ours, theirs in (
        ("log_cdf", "logcdf"),
        ("survival_function", "sf"),
        ("log_survival_function", "logsf"),
    ):
        found = getattr(d, ours)(x).tolist()
        wanted = getattr(reference, theirs)(points).tolist()
        assert found == pytest.approx(wanted, rel=1e-10, abs=1e-300), ours


@pytest.mark.parametrize("build", [D.HalfNormal, D.HalfCauchy])
def test_nothing_is_below_the_half_line(build: Any) -> None:
    d = build(f64(2.0), validate_args=False)
    x = f64([-1.0, -0.5])
    assert d.cdf(x).tolist() == [0.0, 0.0]
    assert d.survival_function(x).tolist() == [1.0, 1.0]
