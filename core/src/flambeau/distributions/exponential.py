"""The exponential distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.distributions import constraints
from flambeau.distributions.exp_family import ExponentialFamily
from flambeau.distributions.utils import _log_of_rest, broadcast_all

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """The exponential distribution, p(x) = rate·exp(−rate·x) for x ≥ 0.

    Args:
        rate: the reciprocal of the mean, positive.

    >>> from flambeau.distributions import Exponential
    >>> import flambeau as fb
    >>> d = Exponential(2.0)
    >>> d.mean, d.log_prob(fb.tensor(1.0)), d.icdf(fb.tensor(0.5))
    (tensor(0.5000), tensor(-1.3069), tensor(0.3466))
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _batch_parameters = ("rate",)

    def __init__(self, rate: object, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        return fb.zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        rate = self.rate
        if sample_shape or not rate.is_contiguous():
            return rate.new(self._extended_shape(sample_shape)).exponential_() / rate
        return fb.empty_like(rate, requires_grad=False).exponential_() / rate

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        return -fb.expm1(self.log_survival_function(value))

    def log_cdf(self, value: Tensor) -> Tensor:
        return _log_of_rest(self.log_survival_function(value))

    def survival_function(self, value: Tensor) -> Tensor:
        return self.log_survival_function(value).exp()

    def log_survival_function(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -self.rate * value

    def icdf(self, value: Tensor) -> Tensor:
        return -fb.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        return 1.0 - fb.log(self.rate)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return -fb.log(-x)
