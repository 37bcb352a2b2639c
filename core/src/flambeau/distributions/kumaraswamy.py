"""The Kumaraswamy distribution."""

from __future__ import annotations

import math

import flambeau as fb
from flambeau import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import AffineTransform, PowerTransform
from flambeau.distributions.uniform import Uniform
from flambeau.distributions.utils import (
    _log_of_rest,
    _power_log,
    _power_log1p,
    broadcast_all,
    euler_constant,
)

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """The Kumaraswamy distribution, F(x) = 1 − (1 − x^a)^b for 0 ≤ x ≤ 1.

    It resembles the beta distribution, with functions in closed form.  Source: Kumaraswamy, "A
    generalized probability density function for double-bounded random processes" (1980).

    Args:
        concentration1: the parameter a, positive.
        concentration0: the parameter b, positive.

    >>> from flambeau.distributions import Kumaraswamy
    >>> import flambeau as fb
    >>> d = Kumaraswamy(2.0, 1.0)
    >>> d.mean, d.cdf(fb.tensor(0.5)), d.log_prob(fb.tensor(0.5))
    (tensor(0.6667), tensor(0.2500), tensor(0.))
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True
    _batch_parameters = ("concentration1", "concentration0")

    def __init__(
        self, concentration1: object, concentration0: object, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(
            fb.zeros_like(self.concentration0),
            fb.ones_like(self.concentration0),
            validate_args=validate_args,
        )
        transforms = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def _moment(self, n: int) -> Tensor:
        """E[x^n] = b·B(1 + n/a, b)."""
        a, b = self.concentration1, self.concentration0
        first = 1 + n / a
        return b * fb.exp(fb.lgamma(first) + fb.lgamma(b) - fb.lgamma(first + b))

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        # Evaluated in log space.
        log_mode = b.reciprocal() * (-b).log1p() - (-b * a).log1p()
        return log_mode.masked_fill((b < 1) | (a < 1), math.nan).exp()

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - fb.pow(self.mean, 2)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        inside = value != 0
        power = fb.where(inside, fb.where(inside, value, 1.0) ** a, 0.0)
        return (a * b).log() + _power_log(a - 1, value) + _power_log1p(b - 1, -power)

    def log_survival_function(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        inside = value.clamp(0.0, 1.0)
        return self.concentration0 * _log_of_rest(self.concentration1 * inside.log())

    def survival_function(self, value: Tensor) -> Tensor:
        return self.log_survival_function(value).exp()

    def cdf(self, value: Tensor) -> Tensor:
        return -fb.expm1(self.log_survival_function(value))

    def log_cdf(self, value: Tensor) -> Tensor:
        log_survival = self.log_survival_function(value)
        # Of a small power x^a it is log(b·x^a).
        far = log_survival > -1e-18
        rest = _log_of_rest(fb.where(far, -1.0, log_survival))
        first = self.concentration0.log() + self.concentration1 * value.clamp(min=0.0).log()
        return fb.where(far, first, rest)

    def icdf(self, value: Tensor) -> Tensor:
        power = -fb.expm1((-value).log1p() / self.concentration0)
        return power ** self.concentration1.reciprocal()

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = fb.digamma(b + 1) + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - fb.log(a) - fb.log(b)
