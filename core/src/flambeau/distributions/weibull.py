"""The Weibull distribution."""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.exponential import Exponential
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import AffineTransform, PowerTransform
from flambeau.distributions.utils import _power_log, broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """The Weibull distribution, P(X > x) = exp(−(x/scale)^k) for x > 0.

    Args:
        scale: λ, positive.
        concentration: the shape k, positive.

    >>> from flambeau.distributions import Weibull
    >>> import flambeau as fb
    >>> d = Weibull(2.0, 1.0)
    >>> d.mean, d.cdf(fb.tensor(2.0)), d.log_prob(fb.tensor(2.0))
    (tensor(2.), tensor(0.6321), tensor(-1.6931))
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _batch_parameters = ("scale", "concentration", "concentration_reciprocal")

    def __init__(
        self, scale: object, concentration: object, validate_args: bool | None = None
    ) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(fb.ones_like(self.scale), validate_args=validate_args)
        transforms = [
            PowerTransform(exponent=self.concentration_reciprocal),
            AffineTransform(loc=0, scale=self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * fb.exp(fb.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1) / k) ** k.reciprocal()

    @property
    def variance(self) -> Tensor:
        r = self.concentration_reciprocal
        second = fb.exp(fb.lgamma(1 + 2 * r))
        return self.scale.pow(2) * (second - fb.exp(2 * fb.lgamma(1 + r)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        k, log_scale = self.concentration, self.scale.log()
        inside = value != 0
        # The difference first: in gradients two infinite powers would cancel.
        power = (k * (fb.where(inside, value, 1.0).log() - log_scale)).exp()
        power = fb.where(inside, power, 0.0)
        return k.log() - k * log_scale + _power_log(k - 1, value) - power

    def log_cdf(self, value: Tensor) -> Tensor:
        power = self._place(value)
        # A power next to 0 has no digits, or is 0; its logarithm has.
        far = power < 1e3 * fb.finfo(power.dtype).tiny
        log_power = self.concentration * (fb.where(far, value, 1.0) / self.scale).log()
        return fb.where(far, log_power, self.base_dist.log_cdf(fb.where(far, 1.0, power)))

    def entropy(self) -> Tensor:
        r = self.concentration_reciprocal
        return euler_constant * (1 - r) + fb.log(self.scale * r) + 1
