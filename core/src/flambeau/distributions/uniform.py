"""The continuous uniform distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.utils import _log_of_part, broadcast_all

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["Uniform"]


class Uniform(Distribution):
    """The uniform distribution, p(x) = 1/(high − low) for low ≤ x < high.

    Args:
        low: where it begins.
        high: where it ends, greater than `low`; no sample reaches it.

    >>> from flambeau.distributions import Uniform
    >>> import flambeau as fb
    >>> d = Uniform(0.0, fb.tensor([1.0, 4.0]))
    >>> d.mean, d.entropy(), d.icdf(fb.tensor(0.25))
    (tensor([0.5000, 2.0000]), tensor([0.0000, 1.3863]), tensor([0.2500, 1.0000]))
    """

    has_rsample = True
    _batch_parameters = ("low", "high")

    def __init__(self, low: object, high: object, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.size(), validate_args=validate_args)

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        return {
            "low": constraints.less_than(self.high),
            "high": constraints.greater_than(self.low),
        }

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        return math.nan * self.high

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).pow(2) / 12

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        rand = fb.rand(shape, dtype=self.low.dtype, device=self.low.device)
        return self.low + rand * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        above = self.low.le(value).type_as(self.low)
        below = self.high.gt(value).type_as(self.low)
        return fb.log(above.mul(below)) - fb.log(self.high - self.low)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def survival_function(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return ((self.high - value) / (self.high - self.low)).clamp(min=0, max=1)

    def log_cdf(self, value: Tensor) -> Tensor:
        return _log_of_part(self.cdf(value), self.survival_function(value))

    def log_survival_function(self, value: Tensor) -> Tensor:
        return _log_of_part(self.survival_function(value), self.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return fb.log(self.high - self.low)
