"""Distributions agree with PyTorch's: densities, moments, gradients, streams, errors and repr."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.distributions as theirs  # noqa: E402

import flambeau as fb  # noqa: E402
import flambeau.distributions as ours  # noqa: E402
import flambeau.distributions.relaxed_bernoulli  # noqa: E402
import flambeau.distributions.relaxed_categorical  # noqa: E402
from distribution_cases import CASES, PAIRS, Build  # noqa: E402
from oracle import ours_of  # noqa: E402

FACTS = "batch_shape event_shape has_rsample has_enumerate_support support".split()
# What families have that PyTorch does not implement for them.
COUNTS = {"Binomial", "Geometric", "NegativeBinomial", "Poisson"}
GAMMAS = {"Chi2", "FisherSnedecor", "Gamma", "InverseGamma"}
BEYOND = {
    "cdf": {"Beta", "FisherSnedecor", "StudentT", "VonMises", *COUNTS},
    "icdf": {"Beta", "StudentT", "VonMises", *GAMMAS, *COUNTS},
    "entropy": {"Binomial", "FisherSnedecor", "Poisson", "VonMises"},
    "rsample": {"VonMises"},
    "has_rsample": {"VonMises"},
}
MOMENTS = "mean mode variance stddev".split()
ROUNDING = 16 * 2.0**-52


class Sides:
    """One distribution of both libraries, with the parameters that were made for it."""

    def __init__(self, build: Build) -> None:
        self.our_parameters: list[Any] = []
        self.their_parameters: list[Any] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few degrees of freedom
            self.ours = build(ours, self._ours)
            self.theirs = build(theirs, self._theirs)

    def _ours(self, values: Any) -> Any:
        self.our_parameters.append(fb.tensor(values, dtype=fb.float64, requires_grad=True))
        return self.our_parameters[-1]

    def _theirs(self, values: Any) -> Any:
        made = torch.tensor(values, dtype=torch.float64, requires_grad=True)
        self.their_parameters.append(made)
        return made

    def compare(
        self, call: Any, tolerance: float = 1e-9, gradients: bool = True, name: str = ""
    ) -> None:
        """The same of both: results, what they give parameters, or the class of the error."""
        mine, reference = outcome(call, self.ours), outcome(call, self.theirs)
        lacks = isinstance(reference, NotImplementedError) or str(reference) == "False"
        if lacks and self.goes_beyond(name):
            assert isinstance(mine, fb.Tensor | ValueError) or mine is True
            return
        if isinstance(self.theirs, theirs.Gumbel) and name in ("cdf", "icdf"):
            if isinstance(reference, ValueError) and not mine.isnan().any():
                return  # PyTorch's uniform base ends at ε
            tolerance, gradients = 1e-6, False
        if isinstance(self.theirs, theirs.Laplace) and name == "cdf":
            gradients = False  # PyTorch's is 0 at the location, where the density is not
        log_prob = name == "log_prob" and isinstance(reference, torch.Tensor)
        if isinstance(self.theirs, theirs.Kumaraswamy) and log_prob:
            if reference.isnan().all() and not mine.isnan().any():
                return  # PyTorch has no density at 1
        if "did not match" in str(reference):
            return  # PyTorch's GeneralizedPareto compares with a number of the default dtype
        if isinstance(reference, Exception):
            assert type(mine).__name__ == type(reference).__name__, mine
            return
        assert not isinstance(mine, Exception), mine
        if not isinstance(reference, torch.Tensor):
            assert str(mine) == str(reference)
            return
        if isinstance(self.theirs, theirs.ContinuousBernoulli) and name in ("cdf", "icdf"):
            outside = self.theirs._outside_unstable_region()  # where PyTorch's is no formula
            mine, reference = mine[..., ours_of(outside)], reference[..., outside]
        assert_close(mine, reference, tolerance)
        assert mine.requires_grad == reference.requires_grad
        if gradients and reference.requires_grad:
            self.compare_gradients(mine, reference, 10 * tolerance)

    def goes_beyond(self, name: str) -> bool:
        return type(self.theirs).__name__ in BEYOND.get(name, ())

    def compare_gradients(self, mine: Any, reference: Any, tolerance: float) -> None:
        try:
            wanted = torch.autograd.grad(reference.sum(), self.their_parameters, allow_unused=True)
        except RuntimeError:
            return  # PyTorch has none: of Wishart samples, and of `igamma` in its first argument
        found = fb.autograd.grad(mine.sum(), self.our_parameters, allow_unused=True)
        for one, other in zip(found, wanted, strict=True):
            if one is None or other is None:
                assert all(g is None or not g.any() for g in (one, other))
            elif other.isfinite().all():
                if isinstance(self.theirs, theirs.Wishart) and one.ndim == 2:
                    # PyTorch has a gradient above the diagonal, which is not looked at.
                    one, other = one.tril(), other.tril()
                assert_close(one, other, tolerance)


def outcome(call: Any, distribution: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call(distribution)
        except (AssertionError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
            return error


def assert_close(mine: Any, reference: Any, tolerance: float) -> None:
    assert tuple(mine.shape) == tuple(reference.shape)
    assert str(mine.dtype) == str(reference.dtype)
    if reference.dtype == torch.float32:  # what is made of numbers only
        tolerance = max(tolerance * 2.0**29, 1e-5)
    values = torch.tensor(mine.detach().flatten().tolist(), dtype=reference.dtype)
    torch.testing.assert_close(
        values.reshape(reference.shape),
        reference.detach(),
        rtol=tolerance,
        atol=tolerance,
        equal_nan=True,
    )


@pytest.fixture(params=CASES)
def sides(request: Any) -> Sides:
    return Sides(CASES[request.param])


def test_facts_and_moments(sides: Sides) -> None:
    assert repr(sides.ours) == repr(sides.theirs).replace("torch.distributions.", "")
    for name in FACTS:
        sides.compare(lambda d, name=name: getattr(d, name), name=name)
    for name in MOMENTS:
        sides.compare(lambda d, name=name: getattr(d, name), gradients=name in ("mean", "variance"))
    # PyTorch takes lgamma(n + 1) of a multinomial variable in float32.
    single = isinstance(sides.theirs, theirs.Multinomial)
    sides.compare(lambda d: d.entropy(), 1e-6 if single else 1e-9, name="entropy")
    for expand in (True, False):
        sides.compare(lambda d, expand=expand: d.enumerate_support(expand))


@pytest.mark.parametrize("shape", [(), (2, 3)])
def test_samples_are_those_of_the_same_seed(sides: Sides, shape: Any) -> None:
    # Exponentials and powers of the same random bits differ in their last digits.
    for method in ("sample", "rsample"):
        fb.manual_seed(11)
        torch.manual_seed(11)
        sides.compare(lambda d, method=method: getattr(d, method)(shape), ROUNDING, False, method)
        if not sides.goes_beyond(method):
            assert fb.get_rng_state().tolist() == torch.get_rng_state().tolist()


def test_densities_quantiles_and_their_gradients(sides: Sides) -> None:
    d = sides.theirs
    torch.manual_seed(2)
    samples = outcome(lambda d: d.sample((3,)), d)
    values = [samples, samples[0]]
    if not d.event_shape:
        values += [torch.ones_like(samples), samples + 0.3, -samples - 1]
    for value in values:
        both = {id(sides.ours): ours_of(value), id(d): value}
        sides.compare(lambda x, both=both: x.log_prob(both[id(x)]), name="log_prob")
        sides.compare(lambda x, both=both: x.cdf(both[id(x)]), name="cdf")
    if not d.event_shape:
        levels = torch.tensor([0.01, 0.3, 0.97], dtype=torch.float64)
        levels = levels.reshape((3, *(1 for _ in d.batch_shape)))
        both = {id(sides.ours): ours_of(levels), id(d): levels}
        sides.compare(lambda x: x.icdf(both[id(x)]), name="icdf")


def test_an_expanded_distribution_is_as_the_original(sides: Sides) -> None:
    shape = (2, *sides.theirs.batch_shape)
    for name in ("batch_shape", "event_shape", "mean"):
        sides.compare(lambda d, name=name: getattr(d.expand(shape), name), gradients=False)
    fb.manual_seed(3)
    torch.manual_seed(3)
    sides.compare(lambda d: d.expand(shape).sample((2,)), ROUNDING)


@pytest.mark.parametrize("name", PAIRS)
def test_divergences_of_every_pair(name: str) -> None:
    p = Sides(PAIRS[name][0])
    for other, (_, build) in PAIRS.items():
        q = Sides(build)
        mine = outcome(lambda one, q=q: ours.kl_divergence(one, q.ours), p.ours)
        reference = outcome(lambda one, q=q: theirs.kl_divergence(one, q.theirs), p.theirs)
        if isinstance(reference, Exception):
            assert type(mine).__name__ == type(reference).__name__, (other, mine)
        else:
            assert_close(mine, reference, 1e-9)


def test_the_same_pairs_are_registered() -> None:
    def names(registry: Any) -> set[tuple[str, str]]:
        return {
            (p.__name__, q.__name__)
            for p, q in registry
            if "test" not in p.__module__ and "__main__" not in p.__module__
        }

    assert names(theirs.kl._KL_REGISTRY) <= names(ours.kl._KL_REGISTRY)


TRANSFORMS = {
    "abs": lambda d, f: d.AbsTransform(),
    "affine": lambda d, f: d.AffineTransform(f([0.5, 1.0]), -2.0),
    "affine event": lambda d, f: d.AffineTransform(1.0, f([2.0, 0.5]), event_dim=1),
    "cat": lambda d, f: d.CatTransform([d.ExpTransform(), d.TanhTransform()], dim=-1),
    "compose": lambda d, f: d.ComposeTransform([d.ExpTransform(), d.AffineTransform(1.0, 2.0)]),
    "correlation": lambda d, f: d.CorrCholeskyTransform(),
    "cumulative": lambda d, f: d.CumulativeDistributionTransform(d.Normal(0.0, f(1.0))),
    "exp inverse": lambda d, f: d.ExpTransform().inv,
    "identity": lambda d, f: d.identity_transform,
    "independent": lambda d, f: d.IndependentTransform(d.ExpTransform(), 1),
    "lower": lambda d, f: d.LowerCholeskyTransform(),
    "positive": lambda d, f: d.PositiveDefiniteTransform(),
    "power": lambda d, f: d.PowerTransform(f([2.0, 0.5])),
    "reshape": lambda d, f: d.ReshapeTransform((2,), (2, 1)),
    "sigmoid": lambda d, f: d.SigmoidTransform(),
    "softmax": lambda d, f: d.SoftmaxTransform(),
    "softplus": lambda d, f: d.SoftplusTransform(),
    "stack": lambda d, f: d.StackTransform([d.ExpTransform(), d.TanhTransform()], dim=-1),
    "stick": lambda d, f: d.StickBreakingTransform(),
    "tanh": lambda d, f: d.TanhTransform(),
}
INPUTS = [[[0.3, 1.2], [2.0, 0.1]], [[-0.4, 0.2, 1.5]], [[0.5], [-1.0]]]


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name: str) -> None:
    t = TRANSFORMS[name](ours, lambda x: fb.tensor(x, dtype=fb.float64))
    r = TRANSFORMS[name](theirs, lambda x: torch.tensor(x, dtype=torch.float64))
    assert repr(t) == repr(r)
    for fact in ("bijective", "sign", "domain", "codomain", "event_dim"):
        compared(lambda x, lib, fact=fact: getattr(x, fact), t, r)
    for values, cached in itertools.product(INPUTS, (False, True)):
        one, other = (t.with_cache(), r.with_cache()) if cached else (t, r)

        compared(lambda x, lib, v=values: x(given(lib, v)), one, other)
        compared(lambda x, lib, v=values: x.inv(x(given(lib, v)).clone()), one, other)
        compared(lambda x, lib, v=values: jacobian(x, given(lib, v)), one, other)
        for shape in ("forward_shape", "inverse_shape"):
            compared(lambda x, lib, shape=shape: getattr(x, shape)(lib.Size([2, 2])), one, other)


def given(lib: Any, values: Any) -> Any:
    return lib.tensor(values, dtype=lib.float64)


def jacobian(t: Any, x: Any) -> Any:
    return t.log_abs_det_jacobian(x, t(x))


def compared(call: Any, mine: Any, reference: Any) -> None:
    found = outcome(lambda x: call(x, fb), mine)
    wanted = outcome(lambda x: call(x, torch), reference)
    if isinstance(wanted, Exception):
        assert isinstance(found, Exception)
    elif isinstance(wanted, torch.Tensor):
        assert_close(found, wanted, 1e-10)
    else:
        assert str(found) == str(wanted)


CONSTRAINTS = """boolean corr_cholesky lower_cholesky lower_triangular nonnegative
    nonnegative_integer one_hot positive positive_definite positive_integer positive_semidefinite
    real real_vector simplex square symmetric unit_interval""".split()
PROBES = [
    [[0.25, 0.75], [0.75, 0.25]],
    [[1.0, 0.0], [0.0, 1.0]],
    [[1.0, 0.0], [0.6, 0.8]],
    [[2.0, 1.0], [-1.0, 3.0]],
    [[float("nan"), 0.5], [float("inf"), -float("inf")]],
    [[1.0, 2.0], [2.0, 4.0]],
]


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_constraints_and_the_transforms_onto_them(name: str) -> None:
    mine = getattr(ours.constraints, name)
    reference = getattr(theirs.constraints, name)
    assert (repr(mine), mine.is_discrete, mine.event_dim) == (
        repr(reference),
        reference.is_discrete,
        reference.event_dim,
    )
    for probe in PROBES:
        compared(lambda c, lib, probe=probe: c.check(lib.tensor(probe)), mine, reference)
    for registry in ("biject_to", "transform_to"):
        found = outcome(getattr(ours, registry), mine)
        wanted = outcome(getattr(theirs, registry), reference)
        if isinstance(wanted, Exception):
            assert str(found) == str(wanted)
        else:
            assert repr(found) == repr(wanted)


REFUSED = {
    "scale": lambda d, f: d.Normal(f([0.0, 1.0]), f([1.0, -1.0])),
    "nan": lambda d, f: d.Normal(float("nan"), 1.0),
    "simplex": lambda d, f: d.Categorical(f([-1.0, 2.0])),
    "both": lambda d, f: d.Bernoulli(f([0.5]), f([0.5])),
    "neither": lambda d, f: d.Geometric(),
    "probability 0": lambda d, f: d.Geometric(f([0.0, 0.5])),
    "low": lambda d, f: d.Uniform(f([1.0]), f([0.0])),
    "0-d": lambda d, f: d.Dirichlet(f(1.0)),
    "no tensor": lambda d, f: d.Normal("0", 1.0),
    "two": lambda d, f: d.MultivariateNormal(f([0.0]), f([[1.0]]), f([[1.0]])),
    "definite": lambda d, f: d.MultivariateNormal(f([0.0, 0.0]), f([[1.0, 2.0], [2.0, 1.0]])),
    "value": lambda d, f: d.Exponential(f([1.0])).log_prob(f([-1.0])),
    "event": lambda d, f: d.Dirichlet(f([1.0, 1.0])).log_prob(f([0.5, 0.25, 0.25])),
    "shape": lambda d, f: d.Normal(f([0.0, 1.0, 2.0]), 1.0).log_prob(f([0.0, 1.0])),
    "number": lambda d, f: d.Normal(0.0, 1.0).log_prob(1.0),
    "value of the base": lambda d, f: d.LogisticNormal(f([0.0, 1.0]), f([1.0, 1.0])).cdf(
        f([float("nan"), 0.5, 0.5])
    ),
    "whole": lambda d, f: d.Poisson(f([2.0])).log_prob(f([0.5])),
    "LKJ": lambda d, f: d.LKJCholesky(1),
    "ndims": lambda d, f: d.Independent(d.Normal(0.0, 1.0), 1),
    "mixture": lambda d, f: d.MixtureSameFamily(d.Normal(0.0, 1.0), d.Normal(0.0, 1.0)),
    "transforms": lambda d, f: d.TransformedDistribution(d.Normal(0.0, 1.0), "exp"),
    "degrees": lambda d, f: d.Wishart(f(0.5), f([[1.0, 0.0], [0.0, 1.0]])),
    "divergence": lambda d, f: d.kl_divergence(d.Normal(0.0, 1.0), d.Poisson(1.0)),
    "counts": lambda d, f: d.Binomial(f([1.0, 2.0]), f([0.5, 0.5])).enumerate_support(),
    "cartesian": lambda d, f: d.Independent(d.Bernoulli(f([0.5])), 1).enumerate_support(),
    "mode": lambda d, f: d.Distribution(validate_args=False).mode,
    "register": lambda d, f: d.transform_to.register(int, None)(3),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_refused_in_the_same_words(name: str) -> None:
    def f(values: Any) -> Any:
        return torch.tensor(values)

    with pytest.raises((ValueError, NotImplementedError, AssertionError, TypeError)) as wanted:
        REFUSED[name](theirs, f)
    with pytest.raises(wanted.type) as found:
        REFUSED[name](ours, fb.tensor)
    mine, reference = str(found.value), str(wanted.value)
    assert mine.replace("flambeau.", "torch.").split() == reference.split()
