"""The Gumbel distribution."""

from __future__ import annotations

import math
from numbers import Number

import flambeau as fb
from flambeau import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import AffineTransform, ExpTransform
from flambeau.distributions.uniform import Uniform
from flambeau.distributions.utils import _log_of_rest, broadcast_all, euler_constant

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The Gumbel distribution of extremes, F(x) = exp(−exp(−(x − loc)/scale)).

    Args:
        loc: the mode.
        scale: the scale, positive.

    >>> from flambeau.distributions import Gumbel
    >>> import flambeau as fb
    >>> d = Gumbel(0.0, 1.0)
    >>> d.mean, d.log_prob(fb.tensor(0.0)), d.cdf(fb.tensor(0.0))
    (tensor(0.5772), tensor(-1.), tensor(0.3679))
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    _batch_parameters = ("loc", "scale")

    def __init__(self, loc: object, scale: object, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        finfo = fb.finfo(self.loc.dtype)
        low = finfo.tiny
        high = 1 - finfo.eps
        if not (isinstance(loc, Number) and isinstance(scale, Number)):
            low, high = fb.full_like(self.loc, low), fb.full_like(self.loc, high)
        base = Uniform(low, high, validate_args=validate_args)
        transforms = [
            ExpTransform().inv,
            AffineTransform(loc=0, scale=-fb.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(loc=loc, scale=-self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    def log_cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -fb.exp((self.loc - value) / self.scale)

    def cdf(self, value: Tensor) -> Tensor:
        return self.log_cdf(value).exp()

    def survival_function(self, value: Tensor) -> Tensor:
        return -fb.expm1(self.log_cdf(value))

    def log_survival_function(self, value: Tensor) -> Tensor:
        log_cdf = self.log_cdf(value)
        far = log_cdf > -1e-18
        rest = _log_of_rest(fb.where(far, -1.0, log_cdf))
        return fb.where(far, (self.loc - value) / self.scale, rest)

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
