"""Distributions for programs that are told that PyTorch 1.2 is here."""

from __future__ import annotations

import math

import pytest

from flambeau.compat import torch_alias

pytest.importorskip("flambeau.nn")
pytest.importorskip("flambeau_numpy")


@pytest.fixture
def torch():
    with torch_alias("1.2") as module:
        yield module


def test_arguments_are_checked_only_on_demand(torch):
    D = torch.distributions
    assert math.isnan(D.Normal(0.0, -1.0).log_prob(torch.zeros(())))
    with pytest.raises(ValueError, match="scale"):
        D.Normal(0.0, -1.0, validate_args=True)
    D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="scale"):
        D.Normal(0.0, -1.0)


def test_after_the_block_arguments_are_checked_again():
    with torch_alias("1.2") as torch:
        torch.distributions.Distribution.set_default_validate_args(False)
    with torch_alias() as torch, pytest.raises(ValueError, match="scale"):
        torch.distributions.Normal(0.0, -1.0)


@pytest.mark.parametrize(
    ("family", "names", "make"),
    [
        ("Beta", "cdf icdf", lambda D, t: D.Beta(t, t)),
        ("Binomial", "cdf icdf entropy", lambda D, t: D.Binomial(3, t)),
        ("Chi2", "cdf icdf", lambda D, t: D.Chi2(t)),
        ("FisherSnedecor", "cdf icdf entropy", lambda D, t: D.FisherSnedecor(t, t)),
        ("Gamma", "cdf icdf", lambda D, t: D.Gamma(t, t)),
        ("Geometric", "cdf icdf", lambda D, t: D.Geometric(t)),
        ("Multinomial", "entropy", lambda D, t: D.Multinomial(2, t)),
        ("NegativeBinomial", "cdf icdf", lambda D, t: D.NegativeBinomial(3, t)),
        ("Poisson", "cdf icdf", lambda D, t: D.Poisson(t)),
        ("StudentT", "cdf icdf", lambda D, t: D.StudentT(t)),
    ],
)
def test_what_families_could_not_do_is_not_implemented(torch, family, names, make):
    each = make(torch.distributions, torch.tensor([0.5, 0.5]))
    for name in names.split():
        with pytest.raises(NotImplementedError):
            getattr(each, name)(*[torch.tensor([0.5, 0.5])] * (name != "entropy"))


@pytest.mark.parametrize("name", ["HalfNormal", "HalfCauchy"])
def test_half_families_have_no_density_below_0_where_arguments_are_checked(torch, name):
    d = getattr(torch.distributions, name)(torch.ones(2), validate_args=True)
    found = d.log_prob(torch.tensor([-1.0, 0.0]))
    assert found[0] == -math.inf and found[1].isfinite()
    assert d.log_prob(-1).tolist() == [-math.inf, -math.inf]


@pytest.mark.parametrize("name", ["HalfNormal", "HalfCauchy"])
def test_half_families_refuse_shapes_and_numbers_where_all_is_checked(torch, name):
    d = getattr(torch.distributions, name)(torch.ones(2))
    base = torch.distributions.Distribution
    base.set_default_validate_args(True)
    try:
        assert d.log_prob(torch.tensor([-1.0, 0.0]))[0] == -math.inf
        with pytest.raises(ValueError, match="not broadcastable"):
            d.log_prob(torch.zeros(3))
        with pytest.raises(ValueError, match="must be a Tensor"):
            d.log_prob(1)
    finally:
        base.set_default_validate_args(False)


def test_supports_are_those_of_their_time(torch):
    D = torch.distributions
    c, one = D.constraints, torch.ones(())
    for each in (D.Gamma(one, one), D.Exponential(one), D.Chi2(one), D.HalfNormal(one)):
        assert each.support is c.positive
    assert D.MultivariateNormal(torch.zeros(2), torch.eye(2)).support is c.real
    assert D.Independent(D.Normal(torch.zeros(2), 1.0), 1).support is c.real
    relaxed = D.OneHotCategorical(torch.tensor([0.6, 0.4]), validate_args=True)
    assert relaxed.log_prob(torch.tensor([0.5, 0.5])).shape == ()
    with pytest.raises(ValueError, match="rate"):
        D.Poisson(torch.zeros(1), validate_args=True)
    with pytest.raises(ValueError, match="greater than 0"):
        D.Geometric(0)
    with pytest.raises(ValueError, match="must be a Tensor"):
        D.Gamma(1.0, 1.0, validate_args=True).log_prob(1)
    assert math.isnan(D.HalfCauchy(1.0).mean)


def test_domains_of_transforms_are_reals_beside_the_dimensions_of_their_events(torch):
    D = torch.distributions
    real = D.constraints.real
    facts = [
        (D.StickBreakingTransform(), 1),
        (D.SoftmaxTransform(), 1),
        (D.LowerCholeskyTransform(), 2),
        (D.AffineTransform(0.0, 1.0, event_dim=1), 1),
        (D.ExpTransform(), 0),
        (D.ComposeTransform([D.AffineTransform(0.0, 1.0), D.StickBreakingTransform()]), 1),
    ]
    for transform, event_dim in facts:
        assert transform.domain is real and transform.inv.codomain is real
        assert transform.event_dim == transform.inv.event_dim == event_dim


def test_a_chain_sums_determinants_to_the_events_of_its_largest_part(torch):
    D = torch.distributions
    x = torch.zeros(3, 2)
    chain = D.ComposeTransform([D.AffineTransform(0.0, 2.0), D.StickBreakingTransform()])
    y = chain(x)
    alone = D.StickBreakingTransform().log_abs_det_jacobian(x, y)
    expected = (alone + 2 * math.log(2)).tolist()
    assert chain.log_abs_det_jacobian(x, y).tolist() == pytest.approx(expected)
    assert D.ComposeTransform([]).log_abs_det_jacobian(x, x).tolist() == x.tolist()


def test_a_transform_of_a_program_says_its_events_by_a_number(torch):
    """As libraries of the time wrote them: the domain says nothing of the event."""
    D = torch.distributions

    class Doubled(D.Transform):
        domain = codomain = D.constraints.real
        bijective, event_dim = True, 1

        def _call(self, x):
            return 2 * x

        def _inverse(self, y):
            return y / 2

        def log_abs_det_jacobian(self, x, y):
            return torch.full(x.shape[:-1], math.log(2) * x.shape[-1])

    base = D.Normal(torch.zeros(4, 3), torch.ones(4, 3))
    each = D.TransformedDistribution(base, [Doubled(), D.ExpTransform()])
    assert (each.batch_shape, each.event_shape) == ((4,), (3,)) and each.base_dist is base
    y = each.sample()
    x = y.log() / 2
    expected = (base.log_prob(x) - y.log() - math.log(2)).sum(-1)
    assert torch.allclose(each.log_prob(y), expected, atol=1e-5)
    assert each.expand((5, 4)).sample((2,)).shape == (2, 5, 4, 3)
    assert each.expand((5, 4)).log_prob(y).shape == (5, 4)


def test_logistic_normal_numbers_have_no_dimension_until_they_are_drawn(torch):
    D = torch.distributions
    assert D.LogisticNormal(0.2, 0.6).sample((1,)).shape == (2,)
    each = D.LogisticNormal(torch.zeros(5, 3), torch.ones(5, 3))
    assert (each.batch_shape, each.event_shape, each.sample().shape) == ((5,), (4,), (5, 4))
    assert each.loc.shape == each.scale.shape == (5, 3)
    assert D.kl_divergence(each, each).tolist() == [0.0] * 5


def test_counts_of_successes_are_sums_of_bernoulli_variables(torch):
    D = torch.distributions
    torch.manual_seed(0)
    trials = torch.bernoulli(torch.full((2, 3, 4), 0.5))
    torch.manual_seed(0)
    many = D.Binomial(torch.tensor([4.0, 0.0, 2.0]), torch.full((2, 3), 0.5)).sample()
    cut = trials * (torch.arange(4.0) < torch.tensor([4.0, 0.0, 2.0]).unsqueeze(-1))
    assert many.tolist() == cut.sum(-1).tolist()
    assert D.Binomial(0, torch.ones(2)).sample().tolist() == [0.0, 0.0]


def test_negative_deviations_turn_numbers_round(torch):
    torch.manual_seed(0)
    there = torch.normal(torch.zeros(3), torch.ones(3))
    torch.manual_seed(0)
    assert torch.normal(torch.zeros(3), -torch.ones(3)).tolist() == (-there).tolist()
