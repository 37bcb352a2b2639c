"""The log-normal distribution."""

from __future__ import annotations

import math

import flambeau as fb
from flambeau import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.normal import Normal
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import ExpTransform

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """The distribution of exp(X) for X ~ Normal(loc, scale).

    Args:
        loc: the mean of the logarithm.
        scale: the standard deviation of the logarithm, positive.

    >>> from flambeau.distributions import LogNormal
    >>> import flambeau as fb
    >>> d = LogNormal(0.0, 1.0)
    >>> d.mean, d.mode, d.log_prob(fb.tensor(1.0))
    (tensor(1.6487), tensor(0.3679), tensor(-0.9189))
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _batch_parameters = ()

    def __init__(self, loc: object, scale: object, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.pow(2) / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        squared = self.scale.pow(2)
        return squared.expm1() * (2 * self.loc + squared).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        inside = value != 0  # where the logarithm is of no use, and the density 0
        log_prob = super().log_prob(fb.where(inside, value, 1.0))
        return fb.where(inside, log_prob, -math.inf)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc
