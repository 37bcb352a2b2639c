"""The Laplace (double exponential) distribution."""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.utils import broadcast_all

__all__ = ["Laplace"]


class Laplace(Distribution):
    """The Laplace distribution, p(x) = exp(−|x − loc|/scale)/(2·scale).

    Args:
        loc: the mean.
        scale: the mean distance from it, positive.

    >>> from flambeau.distributions import Laplace
    >>> import flambeau as fb
    >>> d = Laplace(0.0, 1.0)
    >>> d.log_prob(fb.tensor([0.0, 1.0])), d.icdf(fb.tensor(0.5)), d.variance
    (tensor([-0.6931, -1.6931]), tensor(0.), tensor(2.))
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _batch_parameters = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Tensor:
        return (2**0.5) * self.scale

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        # Never −1 itself, whose logarithm below would be −∞.
        u = self.loc.new(shape).uniform_(fb.finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * fb.log1p(-u.abs())

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -fb.log(2 * self.scale) - fb.abs(value - self.loc) / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        diff = value - self.loc
        return 0.5 - 0.5 * diff.sign() * fb.expm1(-diff.abs() / self.scale)

    def _log_upper(self, standard: Tensor) -> Tensor:
        """log P(X > x): half an exponential tail, or the rest of one."""
        above = -standard.clamp(min=0) - math.log(2)
        below = fb.log1p(-0.5 * fb.exp(standard.clamp(max=0)))
        return fb.where(standard > 0, above, below)

    def _standardised(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return (value - self.loc) / self.scale

    def log_cdf(self, value: Tensor) -> Tensor:
        return self._log_upper(-self._standardised(value))

    def survival_function(self, value: Tensor) -> Tensor:
        return self.log_survival_function(value).exp()

    def log_survival_function(self, value: Tensor) -> Tensor:
        return self._log_upper(self._standardised(value))

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * fb.log1p(-2 * term.abs())

    def entropy(self) -> Tensor:
        return 1 + fb.log(2 * self.scale)
