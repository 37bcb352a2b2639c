"""Probability distributions: densities, samples with gradients, divergences, transforms.

They serve stochastic computation graphs and estimators of gradients.  Where samples cannot be
differentiated, the score function serves: the gradient of ``-m.log_prob(action) * reward`` for a
sampled ``action`` (see `Categorical`).  Where they can, `rsample` gives the pathwise derivative
(see `Normal`).

>>> from flambeau.distributions import Normal, kl_divergence
>>> import flambeau as fb
>>> Normal(0.0, 1.0).log_prob(fb.tensor(0.0))
tensor(-0.9189)
>>> kl_divergence(Normal(0.0, 1.0), Normal(0.0, 2.0))
tensor(0.3181)
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flambeau.distributions import bernoulli as bernoulli
    from flambeau.distributions import beta as beta
    from flambeau.distributions import binomial as binomial
    from flambeau.distributions import categorical as categorical
    from flambeau.distributions import cauchy as cauchy
    from flambeau.distributions import chi2 as chi2
    from flambeau.distributions import constraint_registry as constraint_registry
    from flambeau.distributions import constraints as constraints
    from flambeau.distributions import continuous_bernoulli as continuous_bernoulli
    from flambeau.distributions import dirichlet as dirichlet
    from flambeau.distributions import distribution as distribution
    from flambeau.distributions import exp_family as exp_family
    from flambeau.distributions import exponential as exponential
    from flambeau.distributions import fishersnedecor as fishersnedecor
    from flambeau.distributions import gamma as gamma
    from flambeau.distributions import generalized_pareto as generalized_pareto
    from flambeau.distributions import geometric as geometric
    from flambeau.distributions import gumbel as gumbel
    from flambeau.distributions import half_cauchy as half_cauchy
    from flambeau.distributions import half_normal as half_normal
    from flambeau.distributions import independent as independent
    from flambeau.distributions import inverse_gamma as inverse_gamma
    from flambeau.distributions import kl as kl
    from flambeau.distributions import kumaraswamy as kumaraswamy
    from flambeau.distributions import laplace as laplace
    from flambeau.distributions import lkj_cholesky as lkj_cholesky
    from flambeau.distributions import log_normal as log_normal
    from flambeau.distributions import logistic_normal as logistic_normal
    from flambeau.distributions import lowrank_multivariate_normal as lowrank_multivariate_normal
    from flambeau.distributions import mixture_same_family as mixture_same_family
    from flambeau.distributions import multinomial as multinomial
    from flambeau.distributions import multivariate_normal as multivariate_normal
    from flambeau.distributions import negative_binomial as negative_binomial
    from flambeau.distributions import normal as normal
    from flambeau.distributions import one_hot_categorical as one_hot_categorical
    from flambeau.distributions import pareto as pareto
    from flambeau.distributions import poisson as poisson
    from flambeau.distributions import relaxed_bernoulli as relaxed_bernoulli
    from flambeau.distributions import relaxed_categorical as relaxed_categorical
    from flambeau.distributions import studentT as studentT
    from flambeau.distributions import transformed_distribution as transformed_distribution
    from flambeau.distributions import transforms as transforms
    from flambeau.distributions import uniform as uniform
    from flambeau.distributions import utils as utils
    from flambeau.distributions import von_mises as von_mises
    from flambeau.distributions import weibull as weibull
    from flambeau.distributions import wishart as wishart
    from flambeau.distributions._exact import exact_sampling
    from flambeau.distributions.bernoulli import Bernoulli
    from flambeau.distributions.beta import Beta
    from flambeau.distributions.binomial import Binomial
    from flambeau.distributions.categorical import Categorical
    from flambeau.distributions.cauchy import Cauchy
    from flambeau.distributions.chi2 import Chi2
    from flambeau.distributions.constraint_registry import biject_to, transform_to
    from flambeau.distributions.continuous_bernoulli import ContinuousBernoulli
    from flambeau.distributions.dirichlet import Dirichlet
    from flambeau.distributions.distribution import Distribution
    from flambeau.distributions.exp_family import ExponentialFamily
    from flambeau.distributions.exponential import Exponential
    from flambeau.distributions.fishersnedecor import FisherSnedecor
    from flambeau.distributions.gamma import Gamma
    from flambeau.distributions.generalized_pareto import GeneralizedPareto
    from flambeau.distributions.geometric import Geometric
    from flambeau.distributions.gumbel import Gumbel
    from flambeau.distributions.half_cauchy import HalfCauchy
    from flambeau.distributions.half_normal import HalfNormal
    from flambeau.distributions.independent import Independent
    from flambeau.distributions.inverse_gamma import InverseGamma
    from flambeau.distributions.kl import kl_divergence, register_kl
    from flambeau.distributions.kumaraswamy import Kumaraswamy
    from flambeau.distributions.laplace import Laplace
    from flambeau.distributions.lkj_cholesky import LKJCholesky
    from flambeau.distributions.log_normal import LogNormal
    from flambeau.distributions.logistic_normal import LogisticNormal
    from flambeau.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
    from flambeau.distributions.mixture_same_family import MixtureSameFamily
    from flambeau.distributions.multinomial import Multinomial
    from flambeau.distributions.multivariate_normal import MultivariateNormal
    from flambeau.distributions.negative_binomial import NegativeBinomial
    from flambeau.distributions.normal import Normal
    from flambeau.distributions.one_hot_categorical import (
        OneHotCategorical,
        OneHotCategoricalStraightThrough,
    )
    from flambeau.distributions.pareto import Pareto
    from flambeau.distributions.poisson import Poisson
    from flambeau.distributions.relaxed_bernoulli import RelaxedBernoulli
    from flambeau.distributions.relaxed_categorical import RelaxedOneHotCategorical
    from flambeau.distributions.studentT import StudentT
    from flambeau.distributions.transformed_distribution import TransformedDistribution
    from flambeau.distributions.transforms import *  # noqa: F403 - the names listed there
    from flambeau.distributions.uniform import Uniform
    from flambeau.distributions.von_mises import VonMises
    from flambeau.distributions.weibull import Weibull
    from flambeau.distributions.wishart import Wishart

# A module is loaded when one of its names is asked for.
_HOMES = {
    "_exact": "exact_sampling",
    "bernoulli": "Bernoulli",
    "beta": "Beta",
    "binomial": "Binomial",
    "categorical": "Categorical",
    "cauchy": "Cauchy",
    "chi2": "Chi2",
    "constraint_registry": "biject_to transform_to",
    "continuous_bernoulli": "ContinuousBernoulli",
    "dirichlet": "Dirichlet",
    "distribution": "Distribution",
    "exp_family": "ExponentialFamily",
    "exponential": "Exponential",
    "fishersnedecor": "FisherSnedecor",
    "gamma": "Gamma",
    "generalized_pareto": "GeneralizedPareto",
    "geometric": "Geometric",
    "gumbel": "Gumbel",
    "half_cauchy": "HalfCauchy",
    "half_normal": "HalfNormal",
    "independent": "Independent",
    "inverse_gamma": "InverseGamma",
    "kl": "kl_divergence register_kl",
    "kumaraswamy": "Kumaraswamy",
    "laplace": "Laplace",
    "lkj_cholesky": "LKJCholesky",
    "log_normal": "LogNormal",
    "logistic_normal": "LogisticNormal",
    "lowrank_multivariate_normal": "LowRankMultivariateNormal",
    "mixture_same_family": "MixtureSameFamily",
    "multinomial": "Multinomial",
    "multivariate_normal": "MultivariateNormal",
    "negative_binomial": "NegativeBinomial",
    "normal": "Normal",
    "one_hot_categorical": "OneHotCategorical OneHotCategoricalStraightThrough",
    "pareto": "Pareto",
    "poisson": "Poisson",
    "relaxed_bernoulli": "RelaxedBernoulli",
    "relaxed_categorical": "RelaxedOneHotCategorical",
    "studentT": "StudentT",
    "transformed_distribution": "TransformedDistribution",
    "transforms": """
        AbsTransform AffineTransform CatTransform ComposeTransform CorrCholeskyTransform
        CumulativeDistributionTransform ExpTransform IndependentTransform
        LowerCholeskyTransform PositiveDefiniteTransform PowerTransform ReshapeTransform
        SigmoidTransform SoftmaxTransform SoftplusTransform StackTransform
        StickBreakingTransform TanhTransform Transform identity_transform
    """,
    "uniform": "Uniform",
    "von_mises": "VonMises",
    "weibull": "Weibull",
    "wishart": "Wishart",
}
_MODULES = {name: home for home, names in _HOMES.items() for name in names.split()}
_PARTS = frozenset({*_HOMES, "constraints", "utils"})

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ContinuousBernoulli",
    "Dirichlet",
    "Distribution",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "StudentT",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "exact_sampling",
    "kl_divergence",
    "register_kl",
    "transform_to",
]
if TYPE_CHECKING:
    __all__ += transforms.__all__
else:
    __all__ += _HOMES["transforms"].split()

    def __getattr__(name: str) -> Any:
        if name in _PARTS:
            return import_module(f"{__name__}.{name}")
        if (home := _MODULES.get(name)) is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PARTS})


class _Package(ModuleType):
    """A module whose dictionary has all families, also those that are not loaded yet."""

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        for name in __all__:
            getattr(self, name)
        return globals()


sys.modules[__name__].__class__ = _Package
