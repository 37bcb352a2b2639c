"""Distributions to compare: builders that take a library's namespace and its way to make tensors.

``build(d, f)`` gets the module of distributions and `f`, which turns lists of numbers into tensors
of the dtype under test; what is passed as a plain number stays one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Build = Callable[[Any, Any], Any]

SPD = [[2.0, 0.5], [0.5, 1.25]]
TRIL = [[1.5, 0.0], [-0.4, 0.8]]

CASES: dict[str, Build] = {
    "Bernoulli": lambda d, f: d.Bernoulli(f([0.2, 0.5, 0.9])),
    "Bernoulli ends": lambda d, f: d.Bernoulli(f([0.0, 1.0])),
    "Bernoulli logits": lambda d, f: d.Bernoulli(logits=f([[-1.5, 0.0], [2.0, 30.0]])),
    "Bernoulli number": lambda d, f: d.Bernoulli(0.3),
    "Beta": lambda d, f: d.Beta(f([0.5, 2.0, 30.0]), f([1.5, 1.0, 0.75])),
    "Beta numbers": lambda d, f: d.Beta(2.0, 3),
    "Beta small": lambda d, f: d.Beta(f([1e-3]), f([1e-3])),
    "Binomial": lambda d, f: d.Binomial(5, f([0.1, 0.5, 1.0])),
    "Binomial logits": lambda d, f: d.Binomial(f([7.0, 7.0]), logits=f([[0.3], [-2.0]])),
    "Binomial large": lambda d, f: d.Binomial(f([100.0, 60.0]), f([0.4, 0.75])),
    "Categorical": lambda d, f: d.Categorical(f([[1.0, 2.0, 3.0], [0.5, 0.0, 0.5]])),
    "Categorical logits": lambda d, f: d.Categorical(logits=f([0.1, -1.0, 4.0, 0.0])),
    "Cauchy": lambda d, f: d.Cauchy(f([0.0, -1.5]), f([1.0, 0.25])),
    "Cauchy number": lambda d, f: d.Cauchy(0.0, 1.0),
    "Chi2": lambda d, f: d.Chi2(f([0.5, 3.0, 40.0])),
    "Chi2 number": lambda d, f: d.Chi2(2.5),
    "ContinuousBernoulli": lambda d, f: d.ContinuousBernoulli(f([0.05, 0.4999, 0.5, 0.8])),
    "ContinuousBernoulli logits": lambda d, f: d.ContinuousBernoulli(logits=f([-2.0, 0.0, 1.0])),
    "Dirichlet": lambda d, f: d.Dirichlet(f([[0.5, 2.0, 1.5], [3.0, 0.75, 9.0]])),
    "Dirichlet corner": lambda d, f: d.Dirichlet(f([[0.5, 0.25], [1.0, 1.0]])),
    "Exponential": lambda d, f: d.Exponential(f([[0.5], [4.0]])),
    "Exponential number": lambda d, f: d.Exponential(2),
    "FisherSnedecor": lambda d, f: d.FisherSnedecor(f([1.0, 3.0, 5.0]), f([1.5, 3.0, 9.0])),
    "Gamma": lambda d, f: d.Gamma(f([0.3, 1.0, 25.0]), f([1.0, 2.0, 0.5])),
    "Gamma numbers": lambda d, f: d.Gamma(2, 3),
    "GeneralizedPareto": lambda d, f: d.GeneralizedPareto(
        f([0.0, 1.0, 0.0, 0.5]), f([1.0, 2.0, 0.5, 1.0]), f([0.25, 0.0, -0.5, 0.75])
    ),
    "Geometric": lambda d, f: d.Geometric(f([0.1, 0.5, 1.0])),
    "Geometric logits": lambda d, f: d.Geometric(logits=f([-2.0, 0.5])),
    "Gumbel": lambda d, f: d.Gumbel(f([0.0, 2.0]), f([1.0, 0.3])),
    "Gumbel numbers": lambda d, f: d.Gumbel(1.0, 2.0),
    "HalfCauchy": lambda d, f: d.HalfCauchy(f([1.0, 0.2])),
    "HalfCauchy number": lambda d, f: d.HalfCauchy(1.0),
    "HalfNormal": lambda d, f: d.HalfNormal(f([1.0, 3.0])),
    "HalfNormal number": lambda d, f: d.HalfNormal(2.0),
    "Independent": lambda d, f: d.Independent(d.Normal(f([[0.0, 1.0]]), f([[1.0], [2.0]])), 1),
    "Independent 0": lambda d, f: d.Independent(d.Bernoulli(f([0.25, 0.5])), 0),
    "InverseGamma": lambda d, f: d.InverseGamma(f([0.5, 1.5, 3.0]), f([1.0, 2.0, 0.7])),
    "Kumaraswamy": lambda d, f: d.Kumaraswamy(f([0.5, 2.0, 3.0]), f([1.5, 1.0, 4.0])),
    "LKJCholesky": lambda d, f: d.LKJCholesky(3, f([0.5, 2.0])),
    "LKJCholesky number": lambda d, f: d.LKJCholesky(4),
    "Laplace": lambda d, f: d.Laplace(f([0.0, 1.0]), f([1.0, 0.1])),
    "Laplace numbers": lambda d, f: d.Laplace(0.0, 1.0),
    "LogNormal": lambda d, f: d.LogNormal(f([0.0, -1.0]), f([1.0, 0.5])),
    "LogisticNormal": lambda d, f: d.LogisticNormal(f([[0.0, 1.0, -1.0]]), f([[1.0, 0.5, 2.0]])),
    "LogisticNormal number": lambda d, f: d.LogisticNormal(0.5, 1.0),
    "LowRankMultivariateNormal": lambda d, f: d.LowRankMultivariateNormal(
        f([[0.0, 1.0, -1.0], [2.0, 0.0, 0.0]]), f([[1.0], [0.5], [-0.3]]), f([1.0, 0.2, 2.0])
    ),
    "MixtureSameFamily": lambda d, f: d.MixtureSameFamily(
        d.Categorical(f([0.2, 0.3, 0.5])), d.Normal(f([-1.0, 0.0, 3.0]), f([1.0, 0.5, 2.0]))
    ),
    "MixtureSameFamily vectors": lambda d, f: d.MixtureSameFamily(
        d.Categorical(logits=f([[0.1, 0.4], [1.0, -1.0]])),
        d.Independent(d.Normal(f([[[0.0, 1.0], [2.0, 3.0]]] * 2), f([1.0, 2.0])), 1),
    ),
    "Multinomial": lambda d, f: d.Multinomial(10, f([[1.0, 2.0, 1.0], [0.0, 0.5, 0.5]])),
    "Multinomial logits": lambda d, f: d.Multinomial(3, logits=f([0.3, -1.0])),
    "MultivariateNormal": lambda d, f: d.MultivariateNormal(f([[0.0, 1.0], [2.0, 3.0]]), f(SPD)),
    "MultivariateNormal precision": lambda d, f: d.MultivariateNormal(
        f([0.5, 1.0]), precision_matrix=f([SPD, [[1.0, 0.0], [0.0, 3.0]]])
    ),
    "MultivariateNormal tril": lambda d, f: d.MultivariateNormal(f([0.5, 1.0]), scale_tril=f(TRIL)),
    "NegativeBinomial": lambda d, f: d.NegativeBinomial(f([3.0, 0.5]), f([0.5, 0.2])),
    "NegativeBinomial logits": lambda d, f: d.NegativeBinomial(f([0.0, 4.0]), logits=f([0.5, -1])),
    "Normal": lambda d, f: d.Normal(f([[0.0, 1.5], [-3.0, 2.0]]), f([1.0, 0.25])),
    "Normal numbers": lambda d, f: d.Normal(0.0, 2),
    "Normal mixed": lambda d, f: d.Normal(f([0.0, 1.0, 2.0]), 1.0),
    "Normal wide": lambda d, f: d.Normal(f([0.0, 1.0]).expand(20, 2), f([1.0, 2.0])),
    "OneHotCategorical": lambda d, f: d.OneHotCategorical(f([[1.0, 2.0, 3.0], [0.5, 0.2, 0.3]])),
    "OneHotCategoricalStraightThrough": lambda d, f: d.OneHotCategoricalStraightThrough(
        logits=f([0.3, -1.0, 2.0])
    ),
    "Pareto": lambda d, f: d.Pareto(f([1.0, 2.0, 0.5]), f([0.5, 1.5, 4.0])),
    "Poisson": lambda d, f: d.Poisson(f([0.3, 4.0, 30.0])),
    "Poisson number": lambda d, f: d.Poisson(3.0),
    "RelaxedBernoulli": lambda d, f: d.RelaxedBernoulli(f([0.7]), f([0.2, 0.9])),
    "RelaxedBernoulli logits": lambda d, f: d.RelaxedBernoulli(f(2.0), logits=f([0.2, -3.0])),
    "LogitRelaxedBernoulli": lambda d, f: d.relaxed_bernoulli.LogitRelaxedBernoulli(
        f([0.7]), f([0.2, 0.9])
    ),
    "RelaxedOneHotCategorical": lambda d, f: d.RelaxedOneHotCategorical(
        f([0.7]), f([[1.0, 2.0, 3.0], [0.5, 0.2, 0.3]])
    ),
    "ExpRelaxedCategorical": lambda d, f: d.relaxed_categorical.ExpRelaxedCategorical(
        f(1.5), logits=f([0.3, -1.0])
    ),
    "StudentT": lambda d, f: d.StudentT(
        f([0.5, 1.5, 4.0]), f([0.0, 1.0, -1.0]), f([1.0, 2.0, 0.5])
    ),
    "StudentT defaults": lambda d, f: d.StudentT(f([3.0])),
    "TransformedDistribution": lambda d, f: d.TransformedDistribution(
        d.Normal(f([0.0, 1.0]), f([1.0, 0.5])),
        [d.AffineTransform(f([1.0, 2.0]), -2.0), d.TanhTransform(), d.AffineTransform(1.0, 0.5)],
    ),
    "TransformedDistribution stick": lambda d, f: d.TransformedDistribution(
        d.Normal(f([[0.0, 1.0]]), f([1.0, 0.5])), d.StickBreakingTransform()
    ),
    "TransformedDistribution reshape": lambda d, f: d.TransformedDistribution(
        d.Normal(f([0.0, 1.0, 2.0, 3.0]), 1.0), [d.ExpTransform(), d.ReshapeTransform((4,), (2, 2))]
    ),
    "Uniform": lambda d, f: d.Uniform(f([0.0, -2.0]), f([1.0, 5.0])),
    "Uniform numbers": lambda d, f: d.Uniform(1, 3.5),
    "VonMises": lambda d, f: d.VonMises(f([0.0, 2.0, -1.0]), f([0.5, 8.0, 1e-6])),
    "Weibull": lambda d, f: d.Weibull(f([1.0, 2.0, 0.5]), f([0.5, 1.0, 3.0])),
    "Wishart": lambda d, f: d.Wishart(f([3.0, 7.5]), f(SPD)),
    "Wishart number": lambda d, f: d.Wishart(4, scale_tril=f(TRIL)),
    "Wishart precision": lambda d, f: d.Wishart(f(3.5), precision_matrix=f(SPD)),
}

# Two of each family with one shape of batch, for divergences of all pairs.
PAIRS: dict[str, tuple[Build, Build]] = {
    "Bernoulli": (lambda d, f: d.Bernoulli(f([0.2, 1.0])), lambda d, f: d.Bernoulli(f([0.0, 0.5]))),
    "Beta": (
        lambda d, f: d.Beta(f([0.5, 2.0]), f([1.5, 1.0])),
        lambda d, f: d.Beta(f([3.0, 0.7]), f([0.5, 1.0])),
    ),
    "Binomial": (
        lambda d, f: d.Binomial(f([5.0, 7.0]), f([0.1, 0.5])),
        lambda d, f: d.Binomial(f([5.0, 3.0]), f([0.3, 0.25])),
    ),
    "Categorical": (
        lambda d, f: d.Categorical(f([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7]])),
        lambda d, f: d.Categorical(f([[0.2, 0.3, 0.5], [0.0, 0.5, 0.5]])),
    ),
    "Cauchy": (
        lambda d, f: d.Cauchy(f([0.0, 1.0]), f([1.0, 0.5])),
        lambda d, f: d.Cauchy(f([1.0, 1.0]), f([2.0, 0.5])),
    ),
    "ContinuousBernoulli": (
        lambda d, f: d.ContinuousBernoulli(f([0.2, 0.5])),
        lambda d, f: d.ContinuousBernoulli(f([0.7, 0.4])),
    ),
    "Dirichlet": (
        lambda d, f: d.Dirichlet(f([[0.5, 2.0, 1.5], [3.0, 0.75, 9.0]])),
        lambda d, f: d.Dirichlet(f([[1.5, 1.0, 0.5], [2.0, 2.0, 2.0]])),
    ),
    "Exponential": (
        lambda d, f: d.Exponential(f([0.5, 4.0])),
        lambda d, f: d.Exponential(f([1.5, 2.0])),
    ),
    "Gamma": (
        lambda d, f: d.Gamma(f([0.5, 4.0]), f([2.0, 1.0])),
        lambda d, f: d.Gamma(f([1.5, 2.0]), f([0.5, 3.0])),
    ),
    "Geometric": (lambda d, f: d.Geometric(f([0.2, 0.9])), lambda d, f: d.Geometric(f([0.7, 0.5]))),
    "Gumbel": (
        lambda d, f: d.Gumbel(f([0.0, 1.0]), f([1.0, 0.5])),
        lambda d, f: d.Gumbel(f([1.0, -1.0]), f([2.0, 1.5])),
    ),
    "HalfNormal": (
        lambda d, f: d.HalfNormal(f([1.0, 0.5])),
        lambda d, f: d.HalfNormal(f([2.0, 0.75])),
    ),
    "Independent": (
        lambda d, f: d.Independent(d.Normal(f([[0.0, 1.0], [2.0, 3.0]]), 1.0), 1),
        lambda d, f: d.Independent(d.Normal(f([[1.0, 1.0], [0.0, 3.0]]), 2.0), 1),
    ),
    "Laplace": (
        lambda d, f: d.Laplace(f([0.0, 1.0]), f([1.0, 0.5])),
        lambda d, f: d.Laplace(f([1.0, -1.0]), f([2.0, 1.5])),
    ),
    "LogNormal": (
        lambda d, f: d.LogNormal(f([0.0, 1.0]), f([1.0, 0.5])),
        lambda d, f: d.LogNormal(f([1.0, -1.0]), f([2.0, 1.5])),
    ),
    "LowRankMultivariateNormal": (
        lambda d, f: d.LowRankMultivariateNormal(
            f([[0.0, 1.0], [2.0, 0.0]]), f([[1.0], [0.5]]), f([1.0, 0.2])
        ),
        lambda d, f: d.LowRankMultivariateNormal(
            f([[0.5, 1.0], [0.0, 0.0]]), f([[0.3], [-0.5]]), f([[2.0, 0.7], [1.0, 1.0]])
        ),
    ),
    "MultivariateNormal": (
        lambda d, f: d.MultivariateNormal(f([[0.0, 1.0], [2.0, 3.0]]), f(SPD)),
        lambda d, f: d.MultivariateNormal(f([[1.0, 1.0], [0.0, 0.0]]), scale_tril=f(TRIL)),
    ),
    "Normal": (
        lambda d, f: d.Normal(f([0.0, 1.0]), f([1.0, 0.5])),
        lambda d, f: d.Normal(f([1.0, -1.0]), f([2.0, 1.5])),
    ),
    "OneHotCategorical": (
        lambda d, f: d.OneHotCategorical(f([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7]])),
        lambda d, f: d.OneHotCategorical(logits=f([[0.2, 0.3, 0.5], [0.0, 0.5, 0.5]])),
    ),
    "Pareto": (
        lambda d, f: d.Pareto(f([1.0, 2.0]), f([0.5, 3.5])),
        lambda d, f: d.Pareto(f([1.5, 0.5]), f([2.0, 1.0])),
    ),
    "Poisson": (lambda d, f: d.Poisson(f([0.3, 4.0])), lambda d, f: d.Poisson(f([2.0, 1.0]))),
    "Uniform": (
        lambda d, f: d.Uniform(f([0.0, 0.25]), f([1.0, 0.75])),
        lambda d, f: d.Uniform(f([-1.0, 0.5]), f([1.5, 2.0])),
    ),
    "Weibull": (
        lambda d, f: d.Weibull(f([1.0, 2.0]), f([0.5, 1.0])),
        lambda d, f: d.Weibull(f([1.0, 2.0]), f([0.5, 1.0])),
    ),
    "Wishart": (
        lambda d, f: d.Wishart(f([3.0, 7.5]), f(SPD)),
        lambda d, f: d.Wishart(f([4.0, 5.5]), scale_tril=f(TRIL)),
    ),
}
