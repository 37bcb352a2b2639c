"""The Cauchy (Lorentz) distribution."""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.utils import _log_of_part, broadcast_all

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """The Cauchy distribution, p(x) = 1/(π·scale·(1 + ((x − loc)/scale)²)).

    The ratio of two independent centred normal variables; it has no mean and no variance.

    Args:
        loc: the median and mode.
        scale: half of the width at half of the maximum, positive.

    >>> from flambeau.distributions import Cauchy
    >>> import flambeau as fb
    >>> d = Cauchy(0.0, 1.0)
    >>> d.cdf(fb.tensor([0.0, 1.0])), d.icdf(fb.tensor(0.75)), d.mean
    (tensor([0.5000, 0.7500]), tensor(1.), tensor(nan))
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
        return fb.full(
            self._extended_shape(), math.nan, dtype=self.loc.dtype, device=self.loc.device
        )

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return fb.full(
            self._extended_shape(), math.inf, dtype=self.loc.dtype, device=self.loc.device
        )

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        eps = self.loc.new(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + eps * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        standard = (value - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - (standard**2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return fb.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def _upper(self, standard: Tensor) -> Tensor:
        """P(X > x) as an angle over π: exact in the upper tail, where arctangents cancel."""
        return fb.atan2(fb.ones_like(standard), standard) / math.pi

    def _standardised(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return (value - self.loc) / self.scale

    def log_cdf(self, value: Tensor) -> Tensor:
        standard = self._standardised(value)
        return _log_of_part(self._upper(-standard), self._upper(standard))

    def survival_function(self, value: Tensor) -> Tensor:
        return self._upper(self._standardised(value))

    def log_survival_function(self, value: Tensor) -> Tensor:
        standard = self._standardised(value)
        return _log_of_part(self._upper(standard), self._upper(-standard))

    def icdf(self, value: Tensor) -> Tensor:
        return fb.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
