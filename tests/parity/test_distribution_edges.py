"""What is rarely asked of distributions is answered, or refused, as PyTorch does."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.distributions as theirs  # noqa: E402

import flambeau as fb  # noqa: E402
import flambeau.distributions as ours  # noqa: E402

Call = Callable[[Any, Any], Any]


def onto(d: Any, f: Any, registry: str) -> Any:
    parts = [d.constraints.positive, d.constraints.unit_interval]
    stacked = getattr(d, registry)(d.constraints.stack(parts, dim=-1))
    joined = getattr(d, registry)(d.constraints.cat(parts, dim=-1, lengths=[1, 2]))
    return [stacked(f([0.5, -1.0])), joined(f([0.5, -1.0, 2.0]))]


def joined(d: Any) -> Any:
    parts = [d.constraints.positive, d.constraints.integer_interval(0, 3)]
    return d.constraints.cat(parts, dim=-1, lengths=[1, 2])


def stacked(d: Any) -> Any:
    return d.constraints.stack([d.constraints.positive, d.constraints.boolean], dim=-1)


ANSWERED: dict[str, Call] = {
    "new": lambda d, f: [
        d.Bernoulli(f([0.5]))._new((2,)).shape,
        d.Categorical(f([0.5, 0.5]))._new((2,)).shape,
        d.OneHotCategorical(f([0.5, 0.5]))._new((2,)).shape,
    ],
    "param_shape": lambda d, f: d.Bernoulli(f([0.5])).param_shape,
    "onto parts, bijectively": lambda d, f: onto(d, f, "biject_to"),
    "onto parts": lambda d, f: onto(d, f, "transform_to"),
    "cat": lambda d, f: [joined(d).check(f([1.0, 2.0, 2.5])), joined(d).event_dim],
    "cat is discrete": lambda d, f: joined(d).is_discrete,
    "stack": lambda d, f: [stacked(d).check(f([[1.0, 0.0], [-1.0, 2.0]])), stacked(d).is_discrete],
    "dependent": lambda d, f: d.constraints.dependent(is_discrete=True, event_dim=1).event_dim,
    "mixture of counts": lambda d, f: (
        d.MixtureSameFamily(
            d.Categorical(f([0.5, 0.5])), d.Poisson(f([1.0, 2.0]))
        ).support.is_discrete
    ),
    "dependent and discrete": lambda d, f: d.constraints.dependent(is_discrete=True).is_discrete,
    "triangle of three": lambda d, f: tuple(
        d.CorrCholeskyTransform().forward_shape(f([0.0] * 3).shape)
    ),
    "equal chains": lambda d, f: [
        d.ComposeTransform([d.ExpTransform()]) == d.ComposeTransform([t])
        for t in (d.ExpTransform(), d.TanhTransform())
    ],
    "Dirichlet's function": lambda d, f: dirichlet_gradient(d, f([0.5, 2.0])),
    "one angle at a time": lambda d, f: [
        d.VonMises(f([0.5]), f([5.0])).sample() for _ in range(20)
    ],
    "perplexity": lambda d, f: d.Normal(f([0.0]), f([1.0])).perplexity(),
    "natural parameters": lambda d, f: [
        d.Poisson(f([2.0]))._natural_params[0],
        d.Poisson(f([2.0]))._log_normalizer(f([0.5])),
        d.ContinuousBernoulli(f([0.3, 0.5]))._natural_params[0],
        d.ContinuousBernoulli(f([0.3, 0.5]))._log_normalizer(f([-0.9, 1e-3])),
    ],
    "temperature": lambda d, f: [
        d.RelaxedBernoulli(f([0.7]), f([0.2])).temperature,
        d.RelaxedOneHotCategorical(f([0.7]), f([0.2, 0.8])).temperature,
    ],
    "no transforms": lambda d, f: d.TransformedDistribution(d.Normal(f([0.0]), 1.0), []).support,
    "events of a line": lambda d, f: (
        d.TransformedDistribution(
            d.Independent(d.Normal(f([0.0, 1.0]), 1.0), 1), d.ExpTransform()
        ).support
    ),
    "broadcast base": lambda d, f: (
        d.TransformedDistribution(
            d.Normal(f(0.0), 1.0), d.AffineTransform(f([0.0, 1.0]), f([1.0, 2.0]))
        ).batch_shape
    ),
    "equal": lambda d, f: [
        [x == y, x != y, x.inv == y.inv]
        for x in transforms(d)
        for y in (*transforms(d), d.ComposeTransform([d.ExpTransform()]))
    ],
    "square or not": lambda d, f: d.constraints.symmetric.check(f([[1.0, 2.0, 3.0]])),
    "cached twice": lambda d, f: [t.with_cache(1).with_cache(1)._cache_size for t in several(d, f)],
    "covariance of a triangle": lambda d, f: (
        d.MultivariateNormal(
            f([0.0, 1.0]), scale_tril=f([[1.0, 0.0], [0.5, 2.0]])
        ).covariance_matrix
    ),
    "triangle of a Wishart": lambda d, f: (
        d.Wishart(f(4.0), covariance_matrix=f([[1.0, 0.5], [0.5, 2.0]])).scale_tril
    ),
    "densities unchecked": lambda d, f: [
        d.MultivariateNormal(f([0.0]), f([[2.0]]), validate_args=False).log_prob(f([0.5])),
        d.LowRankMultivariateNormal(f([0.0]), f([[2.0]]), f([1.0]), validate_args=False).log_prob(
            f([0.5])
        ),
        d.Wishart(f(3.0), f([[2.0]]), validate_args=False).log_prob(f([[0.5]])),
        d.relaxed_bernoulli.LogitRelaxedBernoulli(f([0.7]), f([0.2]), validate_args=False).log_prob(
            f([0.5])
        ),
        d.MixtureSameFamily(
            d.Categorical(f([0.5, 0.5])), d.Normal(f([0.0, 1.0]), 1.0), validate_args=False
        ).log_prob(f(0.5)),
    ],
}


def transforms(d: Any) -> list[Any]:
    kinds = (
        d.ExpTransform,
        d.SigmoidTransform,
        d.SoftplusTransform,
        d.TanhTransform,
        d.SoftmaxTransform,
        d.StickBreakingTransform,
        d.LowerCholeskyTransform,
        d.PositiveDefiniteTransform,
    )
    return [kind() for kind in kinds]


def dirichlet_gradient(d: Any, concentration: Any) -> Any:
    concentration.requires_grad_()
    d.dirichlet._Dirichlet.apply(concentration)[0].backward()
    return concentration.grad


def several(d: Any, f: Any) -> list[Any]:
    return [
        d.AffineTransform(0.0, 1.0),
        d.PowerTransform(f(2.0)),
        d.IndependentTransform(d.ExpTransform(), 1),
        d.ReshapeTransform((2,), (1, 2)),
        d.CumulativeDistributionTransform(d.Normal(0.0, 1.0)),
        d.CatTransform([d.ExpTransform()]),
        d.StackTransform([d.ExpTransform()]),
    ]


def unknown(d: Any) -> Any:
    class Shape(d.ExponentialFamily):
        arg_constraints = {}  # noqa: RUF012

    return Shape(validate_args=False)


KINDS = AssertionError, IndexError, NotImplementedError, TypeError, ValueError
REFUSED: dict[str, Call] = {
    "0-d probs": lambda d, f: d.Categorical(f(0.5)),
    "0-d logits": lambda d, f: d.Categorical(logits=f(0.5)),
    "check": lambda d, f: d.constraints.Constraint().check(f([0.5])),
    "dependent check": lambda d, f: d.constraints.dependent.check(f([0.5])),
    "is it discrete": lambda d, f: d.constraints.dependent.is_discrete,
    "how many dims": lambda d, f: d.constraints.dependent.event_dim,
    "too few": lambda d, f: d.constraints.independent(d.constraints.real, 2).check(f([0.5])),
    "too few for a mixture": lambda d, f: d.MixtureSameFamily(
        d.Categorical(f([0.5, 0.5])), d.Dirichlet(f([[1.0, 1.0], [2.0, 2.0]]))
    ).support.check(f(0.5)),
    "cat's dim": lambda d, f: joined(d).check(f(1.0)),
    "probs": lambda d, f: d.ContinuousBernoulli(f([1.5]), validate_args=True),
    "log_prob": lambda d, f: d.Distribution(validate_args=False).log_prob(f([0.5])),
    "natural": lambda d, f: unknown(d)._natural_params,
    "normalizer": lambda d, f: unknown(d)._log_normalizer(f([0.5])),
    "carrier": lambda d, f: unknown(d)._mean_carrier_measure,
    "other events": lambda d, f: d.kl_divergence(
        d.MultivariateNormal(f([0.0]), f([[1.0]])),
        d.MultivariateNormal(f([0.0, 0.0]), f([[1.0, 0.0], [0.0, 1.0]])),
    ),
    "other counts": lambda d, f: d.kl_divergence(d.Binomial(3, f([0.5])), d.Binomial(4, f([0.5]))),
    "other independence": lambda d, f: d.kl_divergence(
        d.Independent(d.Normal(f([0.0]), 1.0), 1), d.Independent(d.Normal(f([0.0]), 1.0), 0)
    ),
    "0-d mean of low rank": lambda d, f: d.LowRankMultivariateNormal(f(0.0), f([[1.0]]), f([1.0])),
    "1-d factor": lambda d, f: d.LowRankMultivariateNormal(f([0.0]), f([1.0]), f([1.0])),
    "factor": lambda d, f: d.LowRankMultivariateNormal(f([0.0, 1.0]), f([[1.0]]), f([1.0, 1.0])),
    "diagonal": lambda d, f: d.LowRankMultivariateNormal(f([0.0]), f([[1.0]]), f([1.0, 1.0])),
    "batches": lambda d, f: d.LowRankMultivariateNormal(
        f([[0.0], [1.0]]), f([[[1.0]]] * 3), f([1.0])
    ),
    "no component": lambda d, f: d.MixtureSameFamily(d.Categorical(f([0.5, 0.5])), 3),
    "batches of a mixture": lambda d, f: d.MixtureSameFamily(
        d.Categorical(f([[0.5, 0.5]] * 2)), d.Normal(f([[0.0, 1.0]] * 3), 1.0)
    ),
    "count of a mixture": lambda d, f: d.MixtureSameFamily(
        d.Categorical(f([0.5, 0.5])), d.Normal(f([0.0, 1.0, 2.0]), 1.0)
    ),
    "counts of a multinomial": lambda d, f: d.Multinomial(f([1.0]), f([0.5, 0.5])),
    "0-d mean": lambda d, f: d.MultivariateNormal(f(0.0), f([[1.0]])),
    "1-d triangle": lambda d, f: d.MultivariateNormal(f([0.0]), scale_tril=f([1.0])),
    "1-d covariance": lambda d, f: d.MultivariateNormal(f([0.0]), f([1.0])),
    "1-d scale": lambda d, f: d.Wishart(f(2.0), f([1.0])),
    "no transforms": lambda d, f: d.TransformedDistribution(d.Normal(f(0.0), 1.0), [3]),
    "0-d base": lambda d, f: d.TransformedDistribution(
        d.Normal(f(0.0), 1.0), d.StickBreakingTransform()
    ),
    "cache": lambda d, f: d.ExpTransform(cache_size=2),
    "unknown transform": lambda d, f: d.Transform()._call(f(0.0)),
    "unknown inverse": lambda d, f: d.Transform()._inverse(f(0.0)),
    "few dims": lambda d, f: d.IndependentTransform(d.ExpTransform(), 1)(f(0.0)),
    "few dims back": lambda d, f: d.IndependentTransform(d.ExpTransform(), 1).inv(f(1.0)),
    "reshape": lambda d, f: d.ReshapeTransform((2,), (3,)),
    "few to reshape": lambda d, f: d.ReshapeTransform((2,), (1, 2)).forward_shape(()),
    "few for a stick": lambda d, f: d.StickBreakingTransform().forward_shape(()),
    "no triangle": lambda d, f: d.CorrCholeskyTransform().forward_shape((4,)),
    "no square": lambda d, f: d.CorrCholeskyTransform().inverse_shape((2, 3)),
    "diagonal outside": lambda d, f: d.utils.tril_matrix_to_vec(f([[1.0]]), 3),
}


def asked(call: Call, families: Any, lib: Any) -> Any:
    lib.manual_seed(3)
    return call(families, lambda values: lib.tensor(values, dtype=lib.float64))


def agree(mine: Any, reference: Any) -> None:
    if isinstance(reference, list):
        assert len(mine) == len(reference)
        for one, other in zip(mine, reference, strict=True):
            agree(one, other)
    elif isinstance(reference, torch.Tensor):
        values = torch.tensor(mine.tolist(), dtype=reference.dtype)
        torch.testing.assert_close(values, reference, rtol=1e-9, atol=1e-9)
    else:
        assert str(mine) == str(reference)


@pytest.mark.parametrize("name", ANSWERED)
def test_answers(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few degrees of freedom
        agree(asked(ANSWERED[name], ours, fb), asked(ANSWERED[name], theirs, torch))


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    with pytest.raises(KINDS) as wanted:
        asked(REFUSED[name], theirs, torch)
    with pytest.raises(wanted.type):
        asked(REFUSED[name], ours, fb)
