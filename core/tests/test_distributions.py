"""Distributions hold what their definitions promise: totals, moments, entropies, gradients."""

from __future__ import annotations

import contextlib
import copy
import itertools
import math
import pickle
import subprocess
import sys
import warnings
from typing import Any

import pytest

import flambeau as fb
import flambeau.distributions as D
from flambeau.distributions import _symmetric, _tails, relaxed_bernoulli, relaxed_categorical
from flambeau.distributions.kl import _registry

DEVICES = ("cpu", "ref")


@pytest.fixture(params=DEVICES)
def make(request: pytest.FixtureRequest) -> Any:
    if request.param == "cpu":
        pytest.importorskip("flambeau_numpy")
    return lambda values: fb.tensor(values, dtype=fb.float64, device=request.param)


def f64(values: Any) -> fb.Tensor:
    return fb.tensor(values, dtype=fb.float64, device="ref")


# A family, with the ends between which the integral over its density is taken.
LINES: dict[str, tuple[Any, float, float]] = {
    "Beta": (lambda f: D.Beta(f(2.5), f(3.0)), 0.0, 1.0),
    "Cauchy": (lambda f: D.Cauchy(f(0.5), f(1.5)), -math.inf, math.inf),
    "Chi2": (lambda f: D.Chi2(f(5.0)), 0.0, math.inf),
    "ContinuousBernoulli": (lambda f: D.ContinuousBernoulli(f(0.3)), 0.0, 1.0),
    "Exponential": (lambda f: D.Exponential(f(1.5)), 0.0, math.inf),
    "FisherSnedecor": (lambda f: D.FisherSnedecor(f(5.0), f(12.0)), 0.0, math.inf),
    "Gamma": (lambda f: D.Gamma(f(3.5), f(2.0)), 0.0, math.inf),
    "GeneralizedPareto": (lambda f: D.GeneralizedPareto(f(1.0), f(2.0), f(0.2)), 1.0, math.inf),
    "Gumbel": (lambda f: D.Gumbel(f(0.5), f(0.75)), -math.inf, math.inf),
    "HalfCauchy": (lambda f: D.HalfCauchy(f(1.5)), 0.0, math.inf),
    "HalfNormal": (lambda f: D.HalfNormal(f(1.5)), 0.0, math.inf),
    "InverseGamma": (lambda f: D.InverseGamma(f(4.5), f(2.0)), 0.0, math.inf),
    "Kumaraswamy": (lambda f: D.Kumaraswamy(f(2.0), f(3.0)), 0.0, 1.0),
    "LogNormal": (lambda f: D.LogNormal(f(0.25), f(0.5)), 0.0, math.inf),
    "Normal": (lambda f: D.Normal(f(0.5), f(1.5)), -math.inf, math.inf),
    "Pareto": (lambda f: D.Pareto(f(1.5), f(4.0)), 1.5, math.inf),
    "StudentT": (lambda f: D.StudentT(f(6.0), f(0.5), f(1.5)), -math.inf, math.inf),
    "Uniform": (lambda f: D.Uniform(f(-1.0), f(2.5)), -1.0, 2.5),
    "VonMises": (lambda f: D.VonMises(f(0.5), f(2.0)), -math.pi, math.pi),
    "Weibull": (lambda f: D.Weibull(f(1.5), f(2.5)), 0.0, math.inf),
}
DISCRETE: dict[str, Any] = {
    "Bernoulli": lambda f: D.Bernoulli(f(0.3)),
    "Binomial": lambda f: D.Binomial(7, f(0.3)),
    "Geometric": lambda f: D.Geometric(f(0.4)),
    "NegativeBinomial": lambda f: D.NegativeBinomial(f(2.5), f(0.4)),
    "Poisson": lambda f: D.Poisson(f(3.5)),
}


def nodes(low: float, high: float, count: int = 400) -> tuple[fb.Tensor, fb.Tensor]:
    """Points and weights of a rule that is exact to some ten digits for smooth densities.

    Double exponential quadrature (Takahasi and Mori, 1974).
    """
    points, weights, h = [], [], 8.0 / count
    for i in range(count + 1):
        t = -4.0 + i * h
        s = math.pi / 2 * math.sinh(t)
        ds = math.pi / 2 * math.cosh(t)
        if math.isinf(low):
            x, dx = math.sinh(s), math.cosh(s) * ds
        elif math.isinf(high):
            x, dx = low + math.exp(s), math.exp(s) * ds
        else:
            half = (high - low) / 2
            x, dx = low + half * (1 + math.tanh(s)), half / math.cosh(s) ** 2 * ds
        if low < x < high and abs(x) < 1e60:
            points.append(x)
            weights.append(dx * h)
    return f64(points), f64(weights)


def integral(values: fb.Tensor, weights: fb.Tensor) -> float:
    return float((values * weights).sum())


@pytest.mark.parametrize("name", LINES)
def test_densities_integrate_to_1_and_give_the_moments_and_the_entropy(name: str) -> None:
    build, low, high = LINES[name]
    d = build(f64)
    x, w = nodes(low, high)
    log_prob = d.log_prob(x)
    p = log_prob.exp()
    close = 1e-6 if name == "VonMises" else 1e-8  # Bessel functions of some seven digits
    assert integral(p, w) == pytest.approx(1.0, abs=close)
    if name not in ("Cauchy", "HalfCauchy", "VonMises"):
        mean = integral(p * x, w)
        assert mean == pytest.approx(float(d.mean), rel=close, abs=close)
        assert integral(p * (x - mean) ** 2, w) == pytest.approx(float(d.variance), rel=1e-6)
    try:
        entropy = float(d.entropy())
    except NotImplementedError:
        return
    finite = fb.where(p > 0, p * log_prob, 0.0)
    assert -integral(finite, w) == pytest.approx(entropy, rel=close, abs=close)


def counts(name: str) -> fb.Tensor:
    """All that are possible, or all that are not next to impossible."""
    most = {"Bernoulli": 2, "Binomial": 8}.get(name, 120)
    return fb.arange(most, device="ref").to(fb.float64)


@pytest.mark.parametrize("name", DISCRETE)
def test_probabilities_sum_to_1_and_give_the_moments(name: str) -> None:
    d, k = DISCRETE[name](f64), counts(name)
    log_p = d.log_prob(k)
    p = log_p.exp()
    if name != "NegativeBinomial":
        assert -float((p * log_p).sum()) == pytest.approx(float(d.entropy()), rel=1e-9)
    mean = float((p * k).sum())
    assert float(p.sum()) == pytest.approx(1.0, abs=1e-12)
    assert mean == pytest.approx(float(d.mean), rel=1e-9)
    assert float((p * (k - mean) ** 2).sum()) == pytest.approx(float(d.variance), rel=1e-9)


def test_every_family_with_an_entropy_is_integrated_or_summed() -> None:
    in_other_tests = {
        *("Categorical", "Dirichlet", "Independent", "Laplace", "LowRankMultivariateNormal"),
        *("Multinomial", "MultivariateNormal", "OneHotCategorical", "Wishart"),
        "OneHotCategoricalStraightThrough",  # that of its base
        "ExponentialFamily",  # by gradients, compared with the formulas of its families
    }
    families = {
        name
        for name in D.__all__
        if isinstance(family := getattr(D, name), type)
        and issubclass(family, D.Distribution)
        and family.entropy is not D.Distribution.entropy
    }
    assert families <= {*LINES, *DISCRETE} | in_other_tests


def of_another(build: Any) -> Any:
    return build(lambda v: f64(v * 1.125 + 0.0625))


def pairs(builders: dict[str, Any]) -> list[tuple[str, str]]:
    """Names of the families that have a divergence."""
    found = []
    for p, q in itertools.product(builders, repeat=2):
        with contextlib.suppress(NotImplementedError):
            D.kl_divergence(builders[p](f64), of_another(builders[q]))
            found.append((p, q))
    return found


KL_PAIRS = pairs({name: line[0] for name, line in LINES.items()})
COUNT_PAIRS = pairs(DISCRETE)


@pytest.mark.parametrize(("p", "q"), KL_PAIRS)
def test_divergences_are_the_integrals_that_define_them(p: str, q: str) -> None:
    build, low, high = LINES[p]
    one, other = build(f64), of_another(LINES[q][0])
    found = float(D.kl_divergence(one, other))
    x, w = nodes(low, high)
    if math.isinf(found):
        assert not other.support.check(x).all()
        return
    log_p = one.log_prob(x)
    difference = fb.where(log_p > -600, log_p.exp() * (log_p - other.log_prob(x)), 0.0)
    assert integral(difference, w) == pytest.approx(found, rel=1e-7, abs=1e-8)


def test_divergences_and_the_entropy_around_the_kink_of_laplace() -> None:
    laplace, normal = D.Laplace(f64(0.5), f64(1.5)), D.Normal(f64(-0.25), f64(2.0))
    above, w = nodes(0.5, math.inf)
    above, w = above[above < 700], w[above < 700]
    x, w = fb.cat([above, 1 - above]), fb.cat([w, w])
    log_p = laplace.log_prob(x)
    assert -integral(log_p.exp() * log_p, w) == pytest.approx(float(laplace.entropy()), rel=1e-9)
    for q in (normal, D.Laplace(f64(0.5), f64(0.75))):  # at another place there are two kinks
        wanted = integral(log_p.exp() * (log_p - q.log_prob(x)), w)
        assert float(D.kl_divergence(laplace, q)) == pytest.approx(wanted, rel=1e-9)
    log_p = normal.log_prob(x)
    inside = log_p > -600
    wanted = integral(fb.where(inside, log_p.exp() * (log_p - laplace.log_prob(x)), 0.0), w)
    assert float(D.kl_divergence(normal, laplace)) == pytest.approx(wanted, rel=1e-9)


PARTS_OF_THE_LINE = ("Beta", "ContinuousBernoulli", "Exponential", "Gamma", "Pareto", "Uniform")


@pytest.mark.parametrize("name", PARTS_OF_THE_LINE)
def test_laplace_variables_are_infinitely_far_from_those_on_a_part_of_the_line(name: str) -> None:
    laplace, other = D.Laplace(f64(0.5), f64(1.5)), LINES[name][0](f64)
    assert not other.support.check(f64([-1e3, 1e3])).all()
    assert math.isinf(float(D.kl_divergence(laplace, other)))


def test_the_divergence_of_exponential_families_is_that_of_their_formulas() -> None:
    general = _registry._KL_REGISTRY[D.ExponentialFamily, D.ExponentialFamily]
    for name in ("Beta", "Exponential", "Gamma", "Normal", "Bernoulli", "Poisson"):
        build = LINES[name][0] if name in LINES else DISCRETE[name]
        one, other = build(f64), of_another(build)
        wanted = float(D.kl_divergence(one, other))
        assert float(general(one, other)) == pytest.approx(wanted, rel=1e-10)


def test_every_pair_that_has_a_divergence_is_integrated() -> None:
    of_tests = {
        *((p, p) for p in ("Categorical", "Dirichlet", "OneHotCategorical", "Wishart")),
        *((p, p) for p in ("ExponentialFamily", "Independent", "Laplace")),
        *itertools.product(("LowRankMultivariateNormal", "MultivariateNormal"), repeat=2),
        *(("Laplace", q) for q in PARTS_OF_THE_LINE),
        *(("Laplace", "Normal"), ("Normal", "Laplace")),
        ("TransformedDistribution", "TransformedDistribution"),  # LogNormal's
    }
    registered = {
        (p.__name__, q.__name__)
        for p, q in _registry._KL_REGISTRY
        if p.__module__.startswith("flambeau.")  # other tests register classes of their own
    }
    assert len(registered) > 50
    assert registered <= of_tests | {*KL_PAIRS, *COUNT_PAIRS}


@pytest.mark.parametrize(("p", "q"), COUNT_PAIRS)
def test_divergences_of_counts_are_the_sums_that_define_them(p: str, q: str) -> None:
    one, other = DISCRETE[p](f64), of_another(DISCRETE[q])
    found, k = float(D.kl_divergence(one, other)), counts(p)
    if math.isinf(found):
        assert len(k) > len(counts(q))
        return
    log_p, log_q = one.log_prob(k), other.log_prob(k)
    assert float((log_p.exp() * (log_p - log_q)).sum()) == pytest.approx(found, rel=1e-9)


def test_divergences_and_entropies_of_categories_are_sums() -> None:
    p, q = f64([0.2, 0.3, 0.5]), f64([0.6, 0.3, 0.1])
    divergence, entropy = float((p * (p / q).log()).sum()), -float((p * p.log()).sum())
    for family in (D.Categorical, D.OneHotCategorical):
        assert float(D.kl_divergence(family(p), family(q))) == pytest.approx(divergence, rel=1e-12)
        assert float(family(p).entropy()) == pytest.approx(entropy, rel=1e-12)
    values = f64([[a, b, 3 - a - b] for a in range(4) for b in range(4 - a)])
    multinomial = D.Multinomial(3, p)
    log_p = multinomial.log_prob(values)
    wanted = -float((log_p.exp() * log_p).sum())
    assert float(multinomial.entropy()) == pytest.approx(wanted, rel=1e-6)  # lgamma in float32


def on_plane(low: float, high: float) -> tuple[fb.Tensor, fb.Tensor, fb.Tensor]:
    """Points of a plane, coordinate by coordinate, and their weights."""
    x, w = nodes(low, high, 120)
    first, second = fb.meshgrid(x, x, indexing="ij")
    return first.reshape(-1), second.reshape(-1), (w[:, None] * w).reshape(-1)


def test_divergences_and_entropies_of_vectors_are_the_integrals_that_define_them() -> None:
    one, other, w = on_plane(0.0, 1.0)
    # The corner beyond the diagonal is reached by taking the second part of what the first leaves.
    parts = fb.stack([one, (1 - one) * other, (1 - one) * (1 - other)], -1)
    cases: list[tuple[Any, Any, fb.Tensor, fb.Tensor]] = [
        (D.Dirichlet(f64([1.5, 2.5, 3.0])), D.Dirichlet(f64([2.0, 1.0, 0.5])), parts, w * (1 - one))
    ]
    one, other, w = on_plane(-math.inf, math.inf)
    near = (one.abs() < 40) & (other.abs() < 40)
    plane, w = fb.stack([one[near], other[near]], -1), w[near]
    cov, root = f64([[2.0, 0.5], [0.5, 1.25]]), f64([[1.5, 0.0], [-0.4, 0.8]])
    full = D.MultivariateNormal(f64([0.5, 1.0]), cov)
    low = D.LowRankMultivariateNormal(f64([0.0, 0.5]), f64([[0.3], [-0.5]]), f64([2.0, 0.7]))
    triangle = D.MultivariateNormal(f64([0.0, 0.3]), scale_tril=root)
    two = D.Independent(D.Normal(f64([0.5, -0.5]), f64([1.0, 1.5])), 1)
    cases += [(full, triangle, plane, w), (low, low.expand(()), plane, w)]
    cases += [(low, full, plane, w), (full, low, plane, w), (two, two.expand(()), plane, w)]
    for p, q, x, weights in cases:
        log_p = p.log_prob(x)
        density = log_p.exp()
        entropy = -integral(density * log_p, weights)
        assert float(p.entropy()) == pytest.approx(entropy, rel=1e-6)
        divergence = integral(density * (log_p - q.log_prob(x)), weights)
        assert float(D.kl_divergence(p, q)) == pytest.approx(divergence, rel=1e-6, abs=1e-8)


def test_divergences_and_entropies_of_matrices_are_integrals_over_their_factors() -> None:
    """W = L·A·Aᵀ·Lᵀ, the diagonal of A roots of χ² variables and the rest normal (Bartlett)."""
    pytest.importorskip("flambeau_numpy")

    def wishart(df: float, tril: list[list[float]]) -> Any:
        return D.Wishart(
            fb.tensor(df, dtype=fb.float64),
            scale_tril=fb.tensor(tril, dtype=fb.float64),
            validate_args=False,
        )

    p, q = wishart(4.5, [[1.5, 0.0], [-0.4, 0.8]]), wishart(3.25, [[1.0, 0.0], [0.3, 1.2]])
    # Sums over the logarithm of a root and over a normal variable are exact to ten digits.
    x = fb.arange(-8.0, 2.2, 0.16, dtype=fb.float64).exp()
    z = fb.arange(-7.7, 7.8, 0.7, dtype=fb.float64)
    first, second, third = (v.reshape(-1) for v in fb.meshgrid(x, x, z, indexing="ij"))
    weights = first * second * (0.16 * 0.16 * 0.7)
    log_density = -0.5 * third.square() - 0.5 * math.log(2 * math.pi)
    for root, df in ((first, 4.5), (second, 3.5)):
        density = D.Chi2(fb.tensor(df, dtype=fb.float64)).log_prob(root.square())
        log_density = log_density + density + (2 * root).log()
    zero = fb.zeros_like(first)
    factor = fb.stack([fb.stack([first, zero], -1), fb.stack([third, second], -1)], -2)
    factor = p.scale_tril @ factor
    matrix = factor @ factor.mT
    mass = log_density.exp() * weights
    log_p, log_q = p.log_prob(matrix), q.log_prob(matrix)
    assert float(mass.sum()) == pytest.approx(1.0, abs=1e-10)
    assert -float((mass * log_p).sum()) == pytest.approx(float(p.entropy()), rel=1e-9)
    wanted = float((mass * (log_p - log_q)).sum())
    assert float(D.kl_divergence(p, q)) == pytest.approx(wanted, rel=1e-9)


def test_a_wishart_matrix_of_one_entry_is_a_gamma_variable() -> None:
    def pair(df: float, scale: float) -> tuple[Any, Any]:
        wishart = D.Wishart(f64(df), covariance_matrix=f64([[scale]]))
        return wishart, D.Gamma(f64(df / 2), f64(0.5 / scale))

    (one, gamma), (other, another) = pair(3.0, 0.75), pair(4.5, 2.0)
    assert float(one.entropy()) == pytest.approx(float(gamma.entropy()), rel=1e-12)
    wanted = float(D.kl_divergence(gamma, another))
    assert float(D.kl_divergence(one, other)) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("name", ["Cauchy", "Exponential", "Gumbel", "Normal", "Uniform"])
def test_the_gradient_of_a_sample_is_the_implicit_one(name: str) -> None:
    # With u = F(x; θ) fixed, dx/dθ = −(∂F/∂θ)/p(x).
    leaves: list[fb.Tensor] = []

    def leaf(value: float) -> fb.Tensor:
        leaves.append(f64(value).requires_grad_())
        return leaves[-1]

    d = LINES[name][0](leaf)
    fb.manual_seed(4)
    x = d.rsample()
    pathwise = fb.autograd.grad(x, leaves)
    at = x.detach()
    of_cdf = fb.autograd.grad(d.cdf(at), leaves)
    density = d.log_prob(at).exp().detach()
    for one, other in zip(pathwise, of_cdf, strict=True):
        assert float(one) == pytest.approx(float(-other / density), rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("name", [*LINES, *DISCRETE])
def test_copies_and_pickles_are_the_same_distribution(name: str) -> None:
    d = LINES[name][0](f64) if name in LINES else DISCRETE[name](f64)
    x = f64(0.75) if name in LINES else f64(1.0)
    if name in ("Pareto", "GeneralizedPareto"):
        x = x + 1.5
    others = pickle.loads(pickle.dumps(d)), copy.deepcopy(d)
    assert {repr(other) for other in others} == {repr(d)}
    for other in others:
        assert other.log_prob(x).tolist() == d.log_prob(x).tolist()


def test_a_pickled_inverse_transform_still_has_its_transform() -> None:
    t = pickle.loads(pickle.dumps(D.ExpTransform().inv))
    assert t(f64(1.0)).item() == 0.0
    assert t.inv.inv.inv(f64(0.0)).item() == 1.0


def test_expanding_allocates_nothing(make: Any) -> None:
    d = D.Normal(make([0.0, 1.0]), make([1.0, 2.0])).expand((1000, 2))
    assert d.batch_shape == (1000, 2) and d.loc.stride()[0] == 0
    assert d.log_prob(make([0.0, 1.0])).shape == (1000, 2)


def test_an_attribute_is_computed_at_its_first_use_and_recorded() -> None:
    probs = f64([0.25, 0.5]).requires_grad_()
    d = D.Bernoulli(probs)
    assert "logits" not in d.__dict__
    with fb.no_grad():
        logits = d.logits
    assert d.logits is logits and logits.requires_grad
    assert isinstance(D.Bernoulli.logits, property)


def test_a_subclass_with_a_constructor_needs_an_expand_of_its_own() -> None:
    class Mine(D.Normal):
        def __init__(self) -> None:
            super().__init__(0.0, 1.0)

    with pytest.raises(NotImplementedError, match="must also define a custom .expand"):
        Mine().expand((2,))


def test_a_subclass_without_one_expands_to_its_own_class() -> None:
    class Mine(D.LogNormal):
        pass

    assert type(Mine(0.0, 1.0).expand((2,))) is Mine


def test_validation_can_be_switched_off_for_one_and_for_all() -> None:
    with pytest.raises(ValueError, match="parameter scale"):
        D.Normal(0.0, -1.0)
    assert D.Normal(0.0, -1.0, validate_args=False).scale == -1.0
    D.Distribution.set_default_validate_args(False)
    try:
        assert D.Normal(0.0, -1.0).scale == -1.0
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError):  # noqa: PT011 - as bare as PyTorch's
        D.Distribution.set_default_validate_args("yes")  # pyright: ignore[reportArgumentType]


def test_classes_without_constraints_or_support_are_told() -> None:
    class Bare(D.Distribution):
        def log_prob(self, value: fb.Tensor) -> fb.Tensor:
            self._validate_sample(value)
            return value

    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        bare = Bare()
    with pytest.warns(UserWarning, match="does not define `support`"):
        bare.log_prob(f64(1.0))


def test_the_most_specific_divergence_is_taken_and_ambiguity_is_told() -> None:
    class A(D.Normal):
        pass

    class B(A):
        pass

    D.register_kl(A, B)(lambda p, q: "A, B")
    D.register_kl(B, A)(lambda p, q: "B, A")
    assert D.kl_divergence(A(0.0, 1.0), B(0.0, 1.0)) == "A, B"
    with pytest.warns(RuntimeWarning, match="Ambiguous kl_divergence"):
        assert D.kl_divergence(B(0.0, 1.0), B(0.0, 1.0)) == "B, A"
    assert D.kl_divergence(A(0.0, 1.0), D.Normal(0.0, 1.0)) == 0
    with pytest.raises(TypeError, match="Distribution subclass"):
        D.register_kl(3, D.Normal)  # pyright: ignore[reportArgumentType]


def test_sample_n_warns_and_draws() -> None:
    with pytest.warns(FutureWarning, match="sample_n"):
        assert D.Normal(f64([0.0]), 1.0).sample_n(3).shape == (3, 1)


def test_entropy_of_an_exponential_family_is_that_of_its_formula() -> None:
    members = [
        D.Normal(f64(0.5), f64(2.0)),
        D.Gamma(f64(2.5), f64(2.0)),
        D.Beta(f64(2.5), f64(2.0)),
        D.Bernoulli(f64(0.3)),
        D.Exponential(f64(3.0)),
        D.Dirichlet(f64([1.5, 2.0, 0.5])),
    ]
    for d in members[:2] + members[3:5]:
        assert float(D.ExponentialFamily.entropy(d)) == pytest.approx(float(d.entropy()))
    for d in members:
        of_family = D.kl._kl_expfamily_expfamily(d, d)
        assert of_family.abs().max() < 1e-9


def test_onto_constraints_and_back() -> None:
    points = {
        D.constraints.positive: [0.5, -1.0],
        D.constraints.greater_than(2.0): [0.5, -1.0],
        D.constraints.less_than(2.0): [0.5, -1.0],
        D.constraints.interval(-1.0, 3.0): [0.5, -1.0],
        D.constraints.simplex: [0.5, -1.0],
        D.constraints.corr_cholesky: [0.5, -1.0, 0.25],
        D.constraints.independent(D.constraints.positive, 1): [0.5, -1.0],
    }
    for constraint, values in points.items():
        t = D.biject_to(constraint)
        x = f64(values)
        y = t(x)
        assert constraint.check(y).all()
        assert (t.inv(y) - x).abs().max() < 1e-9
        assert t.inv.log_abs_det_jacobian(y, x).tolist() == (-t.log_abs_det_jacobian(x, y)).tolist()


@pytest.mark.parametrize(
    ("transform", "values"),
    [
        (D.ExpTransform(), [0.5, -1.0]),
        (D.SigmoidTransform(), [0.5, -1.0]),
        (D.TanhTransform(), [0.5, -1.0]),
        (D.SoftplusTransform(), [0.5, -1.0]),
        (D.PowerTransform(f64(2.5)), [0.5, 1.5]),
        (D.AffineTransform(1.0, -3.0), [0.5, 1.5]),
        (D.ComposeTransform([D.ExpTransform(), D.AffineTransform(0.0, 2.0)]), [0.5, 1.5]),
    ],
    ids=lambda x: type(x).__name__,
)
def test_jacobians_are_the_derivatives(transform: Any, values: list[float]) -> None:
    x = f64(values).requires_grad_()
    y = transform(x)
    (slope,) = fb.autograd.grad(y.sum(), x)
    difference = transform.log_abs_det_jacobian(x, y) - slope.abs().log()
    assert difference.abs().max() < 1e-9


def test_the_jacobian_of_stick_breaking_is_the_determinant() -> None:
    x = f64([0.5, -1.0, 0.25])
    t = D.StickBreakingTransform()
    jacobian = fb.autograd.functional.jacobian(lambda x: t(x)[:-1], x)
    expected = fb.linalg.det(jacobian).abs().log()
    assert float(t.log_abs_det_jacobian(x, t(x))) == pytest.approx(float(expected))


def test_low_rank_is_the_full_normal_distribution(make: Any) -> None:
    factor, diagonal = make([[1.0], [0.5], [-0.25]]), make([0.5, 2.0, 1.0])
    loc, x = make([1.0, 2.0, 3.0]), make([0.0, 1.0, 5.0])
    low = D.LowRankMultivariateNormal(loc, factor, diagonal)
    full = D.MultivariateNormal(loc, low.covariance_matrix)
    assert (low.log_prob(x) - full.log_prob(x)).abs() < 1e-9
    assert (low.entropy() - full.entropy()).abs() < 1e-9
    assert (low.precision_matrix - full.precision_matrix).abs().max() < 1e-9
    assert (low.scale_tril - full.scale_tril).abs().max() < 1e-9
    for p in (low, full):
        for q in (low, full):
            assert D.kl_divergence(p, q).abs() < 1e-9


def test_samples_have_the_moments_of_their_distribution() -> None:
    pytest.importorskip("flambeau_numpy")

    def number(value: float) -> fb.Tensor:
        return fb.tensor(value, dtype=fb.float64)

    names = [n for n in LINES if n not in ("Cauchy", "HalfCauchy", "VonMises", "Pareto")]
    for name in names + list(DISCRETE):
        d = LINES[name][0](number) if name in LINES else DISCRETE[name](number)
        fb.manual_seed(9)
        x = d.sample((20_000,))
        assert d.support.check(x).all()
        error = float((x.mean() - d.mean).abs() / (d.stddev / math.sqrt(20_000)))
        assert error < 5, (name, error)


def test_a_singular_wishart_sample_is_drawn_anew() -> None:
    pytest.importorskip("flambeau_numpy")
    fb.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        d = D.Wishart(1.01, fb.eye(2))
        once, x = d._bartlett_sampling((300,)), d.sample((300,))
    # Some eleven draws in a row may be singular.
    assert d.support.check(once).float().mean() < 0.4
    assert d.support.check(x).float().mean() > 0.8


def test_importing_the_package_loads_no_family_and_all_names_are_there() -> None:
    program = """if True:
        import sys, flambeau.distributions as D
        assert not [m for m in sys.modules if m.startswith("flambeau.distributions.")]
        assert D.normal.Normal is D.Normal
        assert "flambeau.distributions.kl" not in sys.modules
        for name in D.__all__:
            assert getattr(D, name) is not None and name in dir(D), name
        p, q = D.Normal(0.0, 1.0), D.Normal(1.0, 1.0)
        assert D.kl_divergence(p, q).item() == 0.5
    """
    pytest.importorskip("flambeau_numpy")
    subprocess.run([sys.executable, "-c", program], check=True)
    # Programs walk through the dictionary for all families (pyro does).
    program = """if True:
        import flambeau.distributions as D
        found = {n for n, kind in D.__dict__.items() if isinstance(kind, type)}
        assert {n for n in D.__all__ if isinstance(getattr(D, n), type)} <= found
    """
    subprocess.run([sys.executable, "-c", program], check=True)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        D.Nothing  # noqa: B018 # pyright: ignore


def test_what_a_family_leaves_out_is_missed_by_name_or_made_of_its_cdf() -> None:
    class Half(D.Distribution):
        arg_constraints = {}  # noqa: RUF012

        def cdf(self, value: fb.Tensor) -> fb.Tensor:
            return value.clamp(0, 1) / 2

    d, x = Half(validate_args=False), f64(0.5)
    assert float(d.log_cdf(x)) == pytest.approx(math.log(0.25), rel=1e-15)
    assert float(d.survival_function(x)) == 0.75
    assert float(d.log_survival_function(x)) == pytest.approx(math.log(0.75), rel=1e-15)
    missing = {
        _symmetric.Symmetric: ("_upper", "_log_upper", "_upper_quantile"),
        _symmetric.Folded: ("_below", "_below_quantile"),
        _tails.BetaTails: ("_beta_place",),
        _tails.GammaTails: ("_gamma_place",),
    }
    for base, names in missing.items():
        for name in names:
            with pytest.raises(NotImplementedError):
                getattr(base, name)(d, x)


def test_tails_of_values_that_are_not_validated() -> None:
    geometric = D.Geometric(f64(0.5), validate_args=False)
    assert float(geometric.survival_function(f64(-3.0))) == 1.0
    uniform = D.Uniform(f64(0.0), f64(2.0), validate_args=False)
    assert uniform.survival_function(f64([-1.0, 0.5, 3.0])).tolist() == [1.0, 0.75, 0.0]


def test_quantiles_of_counts_beyond_whole_numbers_come_to_an_end() -> None:
    found = float(D.Poisson(f64(1e17)).icdf(f64(0.5)))
    assert found == pytest.approx(1e17, rel=1e-15)


def test_what_is_no_part_of_a_family_or_a_transform_is_told() -> None:
    class Bare(D.Distribution):
        arg_constraints = {"level": D.constraints.dependent}  # noqa: RUF012

    class Shift(D.Transform):
        def __init__(self, by: float) -> None:
            super().__init__()

    Bare(validate_args=True)  # what depends on others is not checked
    with pytest.raises(NotImplementedError):
        Bare(validate_args=False).expand((2,))
    with pytest.raises(NotImplementedError, match="with_cache"):
        Shift(1.0).with_cache()
    assert Shift(1.0) != Shift(1.0)
    with pytest.raises(TypeError, match="list of Transforms"):
        D.ComposeTransform([3])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="must be Distribution"):
        D.CumulativeDistributionTransform(3)


def test_divergences_are_ordered_by_the_first_type_that_differs() -> None:
    class Special(D.Normal):
        pass

    assert _registry._precedes((D.Normal, Special), (D.Normal, D.Normal))
    assert not _registry._precedes((D.Normal, D.Normal), (D.Normal, Special))
    assert _registry._precedes((D.Normal, D.Normal), (D.Normal, D.Normal))


@pytest.mark.parametrize(
    ("dtype", "df", "y"),
    [(fb.float16, 100.0, 17.0), (fb.float16, 100.0, 20.0), (fb.float32, 1e20, 1e10)],
)
def test_student_t_between_near_and_far_is_that_of_doubles(dtype: Any, df: float, y: float) -> None:
    wide = D.StudentT(fb.tensor(df, dtype=fb.float64)).log_prob(fb.tensor(y, dtype=fb.float64))
    own = D.StudentT(fb.tensor(df, dtype=dtype)).log_prob(fb.tensor(y, dtype=dtype))
    assert own.item() == pytest.approx(wide.item(), rel=4 * fb.finfo(dtype).eps)


@pytest.mark.parametrize("concentration", [1e-6, 300.0])
def test_the_inverse_of_von_mises_takes_few_quadratures(monkeypatch, concentration):
    quadratures, quadrature = [], D.VonMises._log_below

    def counted(self, z):
        quadratures.append(z)
        return quadrature(self, z)

    monkeypatch.setattr(D.VonMises, "_log_below", counted)
    levels = f64([1e-9, 1e-5, 1e-3, 0.1, 0.3, 0.4999, 0.5, 0.7, 0.999])
    law = D.VonMises(f64(0.3), f64(concentration))
    found = law.icdf(levels)
    assert len(quadratures) < 50  # 64 halvings of 262,144 levels took half a minute
    fb.testing.assert_close(law.cdf(found), levels, rtol=1e-6, atol=1e-15)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: D.ContinuousBernoulli(0.3, lims=(0.4,)), "lims must be two numbers"),
        (lambda: D.Normal(0.0, 1.0).expand((2,), _instance=3), "must be Distribution, not int"),
        (lambda: D.AffineTransform("a", 1.0), "'loc' must be a number or a Tensor, not str"),
        (lambda: D.AffineTransform(0.0, 1.0, event_dim="a"), "'event_dim' must be int, not str"),
    ],
)
def test_what_cannot_be_an_argument_is_named(call: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        call()


def test_a_temperature_may_be_a_number() -> None:
    parameters = {"logits": f64([0.5, -0.5])}
    for family, value in (
        (relaxed_bernoulli.LogitRelaxedBernoulli, 0.25),
        (relaxed_categorical.ExpRelaxedCategorical, [-0.3, -1.35]),
    ):
        plain, other = family(0.7, **parameters), family(f64(0.7), **parameters)
        fb.testing.assert_close(plain.log_prob(f64(value)), other.log_prob(f64(value)))
