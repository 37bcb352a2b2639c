"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.cauchy import Cauchy
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import AbsTransform
from flambeau.distributions.utils import _log_of_part

__all__ = ["HalfCauchy"]


class HalfCauchy(TransformedDistribution):
    """The distribution of |X| for X ~ Cauchy(0, scale).

    Args:
        scale: the scale, positive.

    >>> from flambeau.distributions import HalfCauchy
    >>> import flambeau as fb
    >>> d = HalfCauchy(1.0)
    >>> d.cdf(fb.tensor(1.0)), d.log_prob(fb.tensor([0.0, 1.0]))
    (tensor(0.5000), tensor([-0.4516, -1.1447]))
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _batch_parameters = ()

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Cauchy(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The scale."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        shape, scale = self._extended_shape(), self.scale
        return fb.full(shape, math.inf, dtype=scale.dtype, device=scale.device)

    @property
    def mode(self) -> Tensor:
        return fb.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def log_prob(self, value: Any) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value = fb.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        log_prob = self.base_dist.log_prob(value) + math.log(2)
        return fb.where(value >= 0, log_prob, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value.clamp(min=0)) - 1

    def _below(self, value: Tensor) -> Tensor:
        """P(X ≤ value), exact near 0."""
        return 2 * fb.atan(value.clamp(min=0) / self.scale) / math.pi

    def log_cdf(self, value: Tensor) -> Tensor:
        return _log_of_part(self._below(value), self.survival_function(value))

    def survival_function(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.survival_function(value.clamp(min=0))

    def log_survival_function(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return _log_of_part(self.survival_function(value), self._below(value))

    def icdf(self, prob: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
