"""Both tails and quantiles agree with SciPy's, to ten digits where PyTorch has 0, −∞ or nothing."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest

import flambeau as fb
import flambeau.distributions as D

stats = pytest.importorskip("scipy.stats")
np = pytest.importorskip("numpy")


def f64(values: Any) -> fb.Tensor:
    return fb.tensor(values, dtype=fb.float64)


FAR = [1e-300, 1e-156, 1e-12, 0.01, 0.7, 1.0, 3.0, 37.0, 700.0, 1e12, 1e144, 1e300]
BOTH = [*(-x for x in reversed(FAR)), 0.0, *FAR]
UNIT = [1e-300, 1e-156, 1e-12, 0.01, 0.3, 0.5, 0.9, 1 - 1e-9, 1 - 1e-15]
COUNTS = [0.0, 1.0, 2.0, 5.0, 20.0, 100.0, 1e5, 1e9, 1e14]
LEVELS = [1e-300, 1e-30, 1e-9, 0.01, 0.3, 0.5, 0.9, 1 - 1e-9]


class Truncated:
    """SciPy's exponential variable over [0, 1], whose `sf` is 1 - cdf there."""

    def __init__(self, rate: float) -> None:
        self.rate, self.whole = rate, stats.truncexpon(rate, scale=1 / rate)
        self.cdf, self.ppf = self.whole.cdf, self.whole.ppf

    def sf(self, x: Any) -> Any:
        rest = np.expm1(-self.rate * (1 - np.asarray(x))) / np.expm1(-self.rate)
        return np.exp(-self.rate * np.asarray(x)) * rest


CASES: dict[str, tuple[Any, Any, list[float]]] = {
    "Normal": (D.Normal(f64(0.5), f64(1.5)), stats.norm(0.5, 1.5), BOTH),
    "Cauchy": (D.Cauchy(f64(0.5), f64(1.5)), stats.cauchy(0.5, 1.5), BOTH),
    "Laplace": (D.Laplace(f64(0.5), f64(1.5)), stats.laplace(0.5, 1.5), BOTH),
    "Gumbel": (D.Gumbel(f64(0.5), f64(1.5)), stats.gumbel_r(0.5, 1.5), BOTH),
    "Exponential": (D.Exponential(f64(2.0)), stats.expon(scale=0.5), FAR),
    "HalfNormal": (D.HalfNormal(f64(2.0)), stats.halfnorm(scale=2.0), FAR),
    "HalfCauchy": (D.HalfCauchy(f64(2.0)), stats.halfcauchy(scale=2.0), FAR),
    "LogNormal": (D.LogNormal(f64(0.0), f64(0.5)), stats.lognorm(0.5), FAR),
    "Weibull": (D.Weibull(f64(2.0), f64(1.5)), stats.weibull_min(1.5, scale=2.0), FAR),
    "Pareto": (D.Pareto(f64(1.0), f64(2.5)), stats.pareto(2.5), [1.001, 2.0, 1e10, 1e100]),
    "Uniform": (D.Uniform(f64(0.0), f64(2.0)), stats.uniform(0.0, 2.0), UNIT),
    "GeneralizedPareto": (
        D.GeneralizedPareto(f64(0.0), f64(2.0), f64(0.3)),
        stats.genpareto(0.3, scale=2.0),
        FAR,
    ),
    "Kumaraswamy": (D.Kumaraswamy(f64(1.0), f64(3.0)), stats.beta(1.0, 3.0), UNIT),
    "Chi2": (D.Chi2(f64(3.0)), stats.chi2(3.0), FAR),
    **{
        f"ContinuousBernoulli {p}": (
            D.ContinuousBernoulli(f64(p)),
            Truncated(math.log1p(-p) - math.log(p)),
            UNIT,
        )
        for p in (1e-12, 0.01, 0.45, 0.49)
    },
    "VonMises": (D.VonMises(f64(0.0), f64(2.0)), stats.vonmises(2.0), [-3.0, -1.0, 1e-9, 2.0]),
    **{
        f"Gamma {a}": (D.Gamma(f64(a), f64(1.0)), stats.gamma(a), FAR)
        for a in (1e-9, 1e-3, 0.5, 2.5, 1e4)
    },
    **{
        f"InverseGamma {a}": (D.InverseGamma(f64(a), f64(1.0)), stats.invgamma(a), FAR)
        for a in (0.01, 2.5, 40.0)
    },
    **{
        f"Beta {a} {b}": (D.Beta(f64(a), f64(b)), stats.beta(a, b), UNIT)
        for a, b in (
            *((1e-3, 1e-3), (0.5, 2.0), (30.0, 0.25), (200.0, 500.0)),
            *((1e-9, 1e-6), (2e3, 1e-7), (1e-8, 3.0)),
        )
    },
    **{
        f"StudentT {df}": (D.StudentT(f64(df), f64(0.5), f64(1.5)), stats.t(df, 0.5, 1.5), BOTH)
        for df in (0.5, 4.0, 1e5)
    },
    **{
        f"FisherSnedecor {a} {b}": (D.FisherSnedecor(f64(a), f64(b)), stats.f(a, b), FAR)
        for a, b in ((1.0, 1.5), (50.0, 0.5), (1e3, 2e3))
    },
    **{
        f"Poisson {rate}": (D.Poisson(f64(rate)), stats.poisson(rate), COUNTS)
        for rate in (1e-3, 4.0, 1e6)
    },
    **{
        f"Binomial {n} {p}": (D.Binomial(n, f64(p)), stats.binom(n, p), COUNTS[:most])
        for n, p, most in ((5, 0.1, 4), (300, 0.5, 6), (10**6, 1e-3, 7))
    },
    **{
        f"NegativeBinomial {n} {p}": (
            D.NegativeBinomial(f64(n), f64(p)),
            stats.nbinom(n, 1 - p),
            COUNTS,
        )
        for n, p in ((3.0, 0.5), (0.5, 0.2), (200.0, 0.9))
    },
    **{f"Geometric {p}": (D.Geometric(f64(p)), stats.geom(p, loc=-1), COUNTS) for p in (1e-5, 0.9)},
}


def agree(found: fb.Tensor, wanted: Any) -> None:
    """Equal to ten digits where the reference is neither 0 nor infinite."""
    known = np.isfinite(wanted) & (np.abs(wanted) > 1e-290)
    mine = np.array(found.tolist())[known].tolist()
    assert mine == pytest.approx(wanted[known].tolist(), rel=1e-10, abs=0)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")  # SciPy overflows
def test_both_tails_and_their_logarithms(name: str) -> None:
    d, reference, points = CASES[name]
    points = [*points, *reference.ppf([0.01, 0.3, 0.97]).tolist()]
    x = f64(points)
    below, above = reference.cdf(points), reference.sf(points)
    assert ((below > 1e-290) & (above > 1e-290)).any()
    agree(d.cdf(x), below)
    agree(d.survival_function(x), above)
    # SciPy's logarithms are exact where they come from the smaller tail.
    agree(d.log_cdf(x), np.where(below < 0.5, np.log(below), np.log1p(-above)))
    agree(d.log_survival_function(x), np.where(above < 0.5, np.log(above), np.log1p(-below)))


def test_every_family_with_a_distribution_function_is_compared() -> None:
    compared = {name.split()[0] for name in CASES}
    made_of_others = {"MixtureSameFamily", "TransformedDistribution"}
    none = {"LogisticNormal", "RelaxedBernoulli", "RelaxedOneHotCategorical"}  # of their base
    has = {
        name
        for name in D.__all__
        if isinstance(family := getattr(D, name), type)
        and issubclass(family, D.Distribution)
        and family.cdf is not D.Distribution.cdf
    }
    assert has == compared | made_of_others | none


@pytest.mark.parametrize("name", [n for n in CASES if CASES[n][2] is not COUNTS])
def test_a_quantile_has_its_level_below(name: str) -> None:
    d, reference, _ = CASES[name]
    if name.startswith("Binomial"):
        return counted(d, reference)
    levels = f64(LEVELS)
    x = d.icdf(levels)
    for level, at in zip(LEVELS, x.tolist(), strict=True):
        if not 1e-290 < abs(at) < 1e290:
            continue  # a place that no number has
        for function, wanted in ((reference.cdf, level), (reference.sf, 1 - level)):
            # Numbers beside `at` are less and more.
            beside = [at * (1 - 1e-10), at * (1 + 1e-10)]
            low, high = sorted(float(function(place)) for place in beside)
            assert low * (1 - 1e-10) <= wanted <= high * (1 + 1e-10), (level, at)


def counted(d: Any, reference: Any) -> None:
    levels = [1e-30, 1e-9, 0.01, 0.3, 0.5, 0.9, 1 - 1e-9]
    found = d.icdf(f64(levels)).tolist()
    for level, k in zip(levels, found, strict=True):
        assert reference.cdf(k) >= level * (1 - 1e-12)
        assert k == 0 or reference.cdf(k - 1) < level * (1 + 1e-12)


@pytest.mark.parametrize("name", [n for n in CASES if CASES[n][2] is COUNTS])
def test_the_quantile_of_a_count_is_the_first_to_have_its_level(name: str) -> None:
    counted(*CASES[name][:2])


def test_quantiles_of_0_and_1_are_the_ends() -> None:
    ends, beyond = f64([0.0, 1.0]), f64([-0.1, 1.1, math.nan])
    expected = {
        "Poisson 4.0": [0, math.inf],
        "Binomial 5 0.1": [0, 5],
        "Beta 0.5 2.0": [0, 1],
        "Gamma 2.5": [0, math.inf],
        "InverseGamma 2.5": [0, math.inf],
        "FisherSnedecor 1.0 1.5": [0, math.inf],
        "StudentT 4.0": [-math.inf, math.inf],
        "VonMises": [-math.pi, math.pi],
    }
    for name, wanted in expected.items():
        d = CASES[name][0]
        assert d.icdf(ends).tolist() == pytest.approx(wanted), name
        assert d.icdf(beyond).isnan().all(), name


@pytest.mark.parametrize("name", [n for n in CASES if CASES[n][2] in (BOTH, FAR)])
def test_all_is_below_infinity(name: str) -> None:
    x = f64(math.inf)
    d = CASES[name][0]
    found = d.cdf(x), d.survival_function(x), d.log_cdf(x), d.log_survival_function(x)
    assert [t.item() for t in found] == [1.0, 0.0, 0.0, -math.inf]


@pytest.mark.parametrize("value", [-3.5, -1e-9, 1 + 1e-9, 1e300])
def test_kumaraswamy_variables_are_between_0_and_1(value: float) -> None:
    d = D.Kumaraswamy(f64(0.5), f64(3.0), validate_args=False)
    below, x = float(value > 1), f64(value)
    assert (d.cdf(x).item(), d.survival_function(x).item()) == (below, 1 - below)
    assert d.log_cdf(x).item() == (0.0 if below else -math.inf)
    assert d.log_survival_function(x).item() == (-math.inf if below else 0.0)


def test_a_mixture_has_the_tails_of_its_parts() -> None:
    parts = D.Normal(f64([0.0, 1.0]), f64([1.0, 2.0]))
    d = D.MixtureSameFamily(D.Categorical(f64([0.25, 0.75])), parts)
    x = f64(-60.0)
    far = parts.log_cdf(x)[1].item() + math.log(0.75)
    assert d.log_cdf(x).item() == pytest.approx(far, rel=1e-13)
    assert d.log_survival_function(f64(62.0)).item() == pytest.approx(far, rel=1e-13)
    total = d.survival_function(f64(0.3)) + d.cdf(f64(0.3))
    assert total.item() == pytest.approx(1.0, rel=1e-14)


# What SciPy has as 0 or −∞; mpmath with 40 digits.
BEYOND: list[tuple[Any, str, float, float]] = [
    (D.Normal(f64(0.0), f64(1.0)), "log_cdf", -1e10, -5.0000000000000000024e19),
    (D.Gamma(f64(300.0), f64(1.0)), "log_survival_function", 1e4, -8655.27994330599158),
    (D.Gamma(f64(5000.0), f64(1.0)), "log_cdf", 50.0, -18081.0184334403683),
    (D.Beta(f64(300.0), f64(2.0)), "log_cdf", 0.001, -2066.62047060464663),
    (D.StudentT(f64(1.0)), "survival_function", 1e200, 1e-200 / math.pi),
    (D.StudentT(f64([100.0])), "icdf", 1e-12, -8.02582559449325306),
    (D.StudentT(f64([29201100000.0])), "icdf", 2.895347690850757e-111, -22.3827891574267649),
    (
        D.FisherSnedecor(f64(183307000000.0), f64(0.0234117)),
        "icdf",
        5.1568769485082105e-17,
        0.000394401399947135181,
    ),
    # (1 + 5x)^-0.2, where df1·x overflows.
    (D.FisherSnedecor(f64(2.0), f64(0.4)), "survival_function", 1.5e308, 1.67875665497076184e-62),
    (D.FisherSnedecor(f64(2.0), f64(0.4)), "log_survival_function", 1.5e308, -142.242222332541675),
    (D.FisherSnedecor(f64(49700.0), f64(57.25)), "icdf", 3.75e-298, 0.0350938596938139203),
    (D.FisherSnedecor(f64(835e6), f64(77.75)), "icdf", 3e-298, 0.0464166700357867206),
    (
        D.GeneralizedPareto(f64(0.0), f64(0.125), f64(900.0)),
        "survival_function",
        1e308,
        0.450289533928806948,
    ),
    (D.Beta(f64(2.9), f64(3.0)), "icdf", 1e-250, 2.85162796492891428e-87),
    (D.Beta(f64(2.9), f64(3e3)), "icdf", 1e-285, 3.13769370216595021e-102),
    (D.Beta(f64(0.5), f64(3.0)), "icdf", 1e-250, 0.0),
    (D.StudentT(f64([1e5])), "icdf", 1e-12, -7.03537174239357634),
    (D.Weibull(f64(1.0), f64(341.535)), "log_cdf", 2.50754e-204, -160114.35967164522),
    (D.ContinuousBernoulli(f64(0.5)), "cdf", 1e-200, 1e-200),
    (D.ContinuousBernoulli(f64(0.4999)), "cdf", 0.25, 0.250037501250406274),
    (D.ContinuousBernoulli(logits=f64(1000.0)), "log_cdf", 0.25, -750.0),
    (D.ContinuousBernoulli(logits=f64(-1000.0)), "log_survival_function", 0.75, -750.0),
    (D.ContinuousBernoulli(logits=f64(1000.0)), "icdf", 1e-300, 0.3092244721017863),
    (D.VonMises(f64(0.0), f64(60.0)), "log_cdf", -3.14, -125.316195619814525),
]


@pytest.mark.parametrize("case", BEYOND, ids=lambda c: f"{type(c[0]).__name__} {c[1]}")
def test_tails_where_scipy_has_none(case: Any) -> None:
    d, function, at, wanted = case
    assert getattr(d, function)(f64(at)).item() == pytest.approx(wanted, rel=1e-12, abs=0)


ENTROPIES = {
    "Poisson": (lambda v: D.Poisson(f64(v)), stats.poisson, [0.01, 4.0, 199.0, 201.0]),
    "Binomial": (lambda v: D.Binomial(f64([3, v, 40]), f64(0.3)), None, [7.0]),
    "FisherSnedecor": (
        lambda v: D.FisherSnedecor(f64(v), f64(12.0)),
        lambda v: stats.f(v, 12.0),
        [1.0, 5.0, 60.0],
    ),
    "VonMises": (lambda v: D.VonMises(f64(0.0), f64(v)), stats.vonmises, [1e-3, 2.0, 500.0]),
}


@pytest.mark.parametrize("name", ENTROPIES)
def test_entropies_that_pytorch_lacks(name: str) -> None:
    build, reference, values = ENTROPIES[name]
    for value in values:
        if reference is None:  # counts that differ over the batch
            wanted = [float(stats.binom(n, 0.3).entropy()) for n in (3, value, 40)]
            assert build(value).entropy().tolist() == pytest.approx(wanted, rel=1e-12)
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = float(reference(value).entropy())
        assert build(value).entropy().item() == pytest.approx(wanted, rel=1e-10)


def test_entropies_of_narrow_distributions_are_those_of_the_normal_one() -> None:
    half = 0.5 * math.log(2 * math.pi * math.e)
    assert D.VonMises(f64(0.0), f64(1e12)).entropy().item() == pytest.approx(
        half - 0.5 * math.log(1e12), rel=1e-12
    )
    assert D.Poisson(f64(1e12)).entropy().item() == pytest.approx(
        half + 0.5 * math.log(1e12), rel=1e-12
    )


@pytest.mark.parametrize("build", [D.HalfNormal, D.HalfCauchy])
def test_nothing_is_below_the_half_line(build: Any) -> None:
    d = build(f64(2.0), validate_args=False)
    x = f64([-1.0, -0.5])
    assert d.cdf(x).tolist() == [0.0, 0.0]
    assert d.survival_function(x).tolist() == [1.0, 1.0]


def test_an_angle_next_to_the_end_of_a_turn_is_within_one_of_them() -> None:
    d = D.VonMises(f64(0.0), f64(2.0))
    for turn in range(-20, 20):
        end = (2 * turn + 1) * math.pi
        for x in (math.nextafter(end, -math.inf), end, math.nextafter(end, math.inf)):
            assert d.cdf(f64(x)).item() == pytest.approx(turn + 1, abs=1e-14)
    below = math.nextafter(math.pi, 0)
    assert -1e-16 < d.log_cdf(f64(below)).item() <= 0
    density = d.log_prob(f64(below)).item()
    assert d.log_survival_function(f64(below)).item() == pytest.approx(
        density + math.log(math.pi - below), rel=1e-5
    )


SMOOTH = [name for name in CASES if CASES[name][2] is not COUNTS and "Binomial" not in name]


@pytest.mark.parametrize("name", SMOOTH)
def test_the_derivative_of_the_distribution_function_is_the_density(name: str) -> None:
    d = CASES[name][0]
    x = d.icdf(f64([0.01, 0.3, 0.5, 0.9])).detach().requires_grad_()
    density = d.log_prob(x.detach()).exp()
    inside = (x.abs() > 1e-200) & (x != 1)  # where a density is a number
    close = 1e-6 if name == "VonMises" else 1e-9
    for function, sign in (("cdf", 1), ("survival_function", -1)):
        (slope,) = fb.autograd.grad(getattr(d, function)(x).sum(), x)
        error = (sign * slope / density - 1).abs()
        assert fb.where(inside, error, 0.0).max().item() < close, function
