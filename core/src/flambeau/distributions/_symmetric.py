"""What distributions share that are symmetric around a location, and those folded there."""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import AbsTransform
from flambeau.distributions.utils import _log_of_rest, broadcast_all


class Located(Distribution):
    """A distribution whose mean and mode are its location."""

    loc: Tensor

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc


class Symmetric(Located):
    """A distribution of loc + scale·Z with Z as likely as −Z.

    A family says what Z has above a number (`_upper`, `_log_upper`), and where it has a given part
    of at most 1/2 (`_upper_quantile`); both tails are exact then.
    """

    scale: Tensor

    arg_constraints: Any = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _batch_parameters = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def _upper(self, z: Tensor) -> Tensor:
        """P(Z > z)."""
        raise NotImplementedError

    def _log_upper(self, z: Tensor) -> Tensor:
        """log P(Z > z)."""
        raise NotImplementedError

    def _upper_quantile(self, part: Tensor) -> Tensor:
        """Where Z has a part of at most 1/2 above."""
        raise NotImplementedError

    def _standardised(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return (value - self.loc) / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        return self._upper(-self._standardised(value))

    def log_cdf(self, value: Tensor) -> Tensor:
        return self._log_upper(-self._standardised(value))

    def survival_function(self, value: Tensor) -> Tensor:
        return self._upper(self._standardised(value))

    def log_survival_function(self, value: Tensor) -> Tensor:
        return self._log_upper(self._standardised(value))

    def icdf(self, value: Tensor) -> Tensor:
        above = value > 0.5
        z = self._upper_quantile(fb.where(above, 1 - value, value))
        return self.loc + self.scale * fb.where(above, z, -z)


class Folded(TransformedDistribution):
    """The distribution of |X| for X of a symmetric distribution around 0.

    A family says what lies below a number (`_below`) and where a given part is below
    (`_below_quantile`), exact near 0.
    """

    arg_constraints: Any = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _batch_parameters = ()
    _symmetric: type[Symmetric]

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = self._symmetric(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The scale of X."""
        return self.base_dist.scale

    @property
    def mode(self) -> Tensor:
        return fb.zeros_like(self.scale)

    def _below(self, z: Tensor) -> Tensor:
        """P(|X|/scale ≤ z)."""
        raise NotImplementedError

    def _below_quantile(self, part: Tensor) -> Tensor:
        """Where |X|/scale has a part of at most 1/2 below."""
        raise NotImplementedError

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value = fb.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        log_prob = self.base_dist.log_prob(value) + math.log(2)
        return fb.where(value >= 0, log_prob, -math.inf)

    def _standardised(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return value.clamp(min=0) / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        return self._below(self._standardised(value))

    def log_cdf(self, value: Tensor) -> Tensor:
        z = self._standardised(value)
        below = self._below(z)
        small = below < 0.5
        above = math.log(2) + self.base_dist._log_upper(z)
        return fb.where(small, fb.where(small, below, 0.5).log(), _log_of_rest(above))

    def survival_function(self, value: Tensor) -> Tensor:
        return 2 * self.base_dist._upper(self._standardised(value))

    def log_survival_function(self, value: Tensor) -> Tensor:
        z = self._standardised(value)
        below = self._below(z)
        above = math.log(2) + self.base_dist._log_upper(z)
        return fb.where(below < 0.5, (-below).log1p(), above)

    def icdf(self, prob: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        above = prob > 0.5
        far = self.base_dist._upper_quantile(fb.where(above, (1 - prob) / 2, 0.25))
        return self.scale * fb.where(above, far, self._below_quantile(fb.where(above, 0.5, prob)))

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
