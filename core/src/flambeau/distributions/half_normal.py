"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.normal import Normal
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import AbsTransform
from flambeau.distributions.utils import _log_of_part

__all__ = ["HalfNormal"]


class HalfNormal(TransformedDistribution):
    """The distribution of |X| for X ~ Normal(0, scale).

    Args:
        scale: the standard deviation of X, positive.

    >>> from flambeau.distributions import HalfNormal
    >>> import flambeau as fb
    >>> d = HalfNormal(1.0)
    >>> d.mean, d.log_prob(fb.tensor([0.0, 1.0]))
    (tensor(0.7979), tensor([-0.2258, -0.7258]))
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _batch_parameters = ()

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The standard deviation of X."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        return fb.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        log_prob = self.base_dist.log_prob(value) + math.log(2)
        return fb.where(value >= 0, log_prob, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value.clamp(min=0)) - 1

    def _below(self, value: Tensor) -> Tensor:
        """P(X ≤ value), exact near 0."""
        return fb.erf(value.clamp(min=0) / (self.scale * math.sqrt(2)))

    def log_cdf(self, value: Tensor) -> Tensor:
        return _log_of_part(self._below(value), self.survival_function(value))

    def survival_function(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.survival_function(value.clamp(min=0))

    def log_survival_function(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        below = self._below(value)
        tail = self.base_dist.log_survival_function(value.clamp(min=0)) + math.log(2)
        return fb.where(below < 0.5, (-below).log1p(), tail)

    def icdf(self, prob: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
