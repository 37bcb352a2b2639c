"""The inverse gamma distribution."""

from __future__ import annotations

import math

import flambeau as fb
from flambeau import Tensor, special
from flambeau.distributions import constraints
from flambeau.distributions.gamma import Gamma
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """The distribution of 1/X for X ~ Gamma(concentration, rate).

    Args:
        concentration: the shape, positive; the mean exists above 1, the variance above 2.
        rate: the scale of 1/X, positive.

    >>> from flambeau.distributions import InverseGamma
    >>> import flambeau as fb
    >>> d = InverseGamma(fb.tensor([3.0]), fb.tensor([2.0]))
    >>> d.mean, d.variance, d.log_prob(fb.tensor([1.0]))
    (tensor([1.]), tensor([1.]), tensor([-0.6137]))
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _batch_parameters = ()

    def __init__(
        self, concentration: object, rate: object, validate_args: bool | None = None
    ) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        reciprocal = PowerTransform(-base.rate.new_ones(()))
        super().__init__(base, reciprocal, validate_args=validate_args)

    @property
    def concentration(self) -> Tensor:
        """The shape."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The rate of the gamma distribution of 1/X."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        result = self.rate / (self.concentration - 1)
        return fb.where(self.concentration > 1, result, math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        result = self.rate.square() / ((a - 1).square() * (a - 2))
        return fb.where(a > 2, result, math.inf)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a, b = self.concentration, self.rate
        with fb.no_grad():
            beyond = b / value == math.inf  # next to 0, where the density is 0
        value = fb.where(beyond, 1.0, value)
        log_prob = a * b.log() - (a + 1) * value.log() - b / value - a.lgamma()
        return fb.where(beyond, -math.inf, log_prob)

    def icdf(self, value: Tensor) -> Tensor:
        return self.rate / special.gammainccinv(self.concentration, value)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
