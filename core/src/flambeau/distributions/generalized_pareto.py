"""The generalised Pareto distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.utils import _log_of_rest, _power_log1p, broadcast_all

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """The distribution of what exceeds a high threshold.

    P(X > x) = (1 + c·z)^(−1/c) with z = (x − loc)/scale ≥ 0 and c the concentration; exp(−z) for
    c = 0.  For c < 0 it ends at loc − scale/c.

    Args:
        loc: where it begins.
        scale: the scale, positive.
        concentration: the shape c; the mean exists for c < 1, the variance for c < 1/2.

    Source: Pickands, "Statistical inference using extreme order statistics" (1975).

    >>> from flambeau.distributions import GeneralizedPareto
    >>> import flambeau as fb
    >>> d = GeneralizedPareto(0.0, 1.0, 0.25)
    >>> d.mean, d.log_prob(fb.tensor(1.0)), d.cdf(fb.tensor(4.0))
    (tensor(1.3333), tensor(-1.1157), tensor(0.9375))
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True
    _batch_parameters = ("loc", "scale", "concentration")

    def __init__(
        self, loc: object, scale: object, concentration: object, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, fb.where(self.concentration < 0, end, math.inf))

    def _parts(self) -> tuple[Tensor, Tensor]:
        """Where the concentration counts as 0, and concentrations with 1 in these places."""
        is_zero = fb.isclose(self.concentration, fb.zeros_like(self.concentration))
        return is_zero, fb.where(is_zero, fb.ones_like(self.concentration), self.concentration)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(fb.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        is_zero, concentration = self._parts()
        y = 1 / concentration + fb.ones_like(z)
        power = _power_log1p(y, concentration * z)
        return -self.scale.log() - fb.where(is_zero, z, power)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """log P(X > value)."""
        if self._validate_args:
            self._validate_sample(value)
        above = value - self.loc
        z = above / self.scale
        is_zero, concentration = self._parts()
        growth = fb.log1p(concentration * z)
        far = growth.isinf() & above.isfinite() & (above > 0) & (concentration > 0)
        if far.any():  # the quotient overflows, its logarithm does not
            shown, part = fb.where(far, above, 1.0), fb.where(far, concentration, 1.0)
            distant = part.log() + shown.log() - self.scale.log()
            growth = fb.where(far, distant, growth)
        return fb.where(is_zero, -z, -growth / concentration)

    def log_cdf(self, value: Tensor) -> Tensor:
        """log P(X ≤ value)."""
        return _log_of_rest(self.log_survival_function(value))

    def survival_function(self, value: Tensor) -> Tensor:
        return self.log_survival_function(value).exp()

    def cdf(self, value: Tensor) -> Tensor:
        return -fb.expm1(self.log_survival_function(value))

    def icdf(self, value: Tensor) -> Tensor:
        is_zero, concentration = self._parts()
        log_survival = fb.log1p(-value)
        power = self.loc + self.scale / concentration * fb.expm1(-concentration * log_survival)
        return fb.where(is_zero, self.loc - self.scale * log_survival, power)

    @property
    def mean(self) -> Tensor:
        exists = self.concentration < 1
        concentration = fb.where(exists, self.concentration, 0.5)
        return fb.where(exists, self.loc + self.scale / (1 - concentration), math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        exists = self.concentration < 0.5
        concentration = fb.where(exists, self.concentration, 0.25)
        result = self.scale**2 / ((1 - concentration) ** 2 * (1 - 2 * concentration))
        return fb.where(exists, result, math.nan)

    def entropy(self) -> Tensor:
        return fb.broadcast_to(fb.log(self.scale) + self.concentration + 1, self._batch_shape)
