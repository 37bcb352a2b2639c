"""The logistic normal distribution."""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.normal import Normal
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """The distribution on the simplex of a normal vector through the stick-breaking transform.

    Args:
        loc: the means, of shape batch_shape + (K,); samples have K + 1 entries.
        scale: the standard deviations, positive.

    >>> from flambeau.distributions import LogisticNormal
    >>> import flambeau as fb
    >>> d = LogisticNormal(fb.zeros(3), fb.ones(3))
    >>> d.event_shape, d.log_prob(fb.full((4,), 0.25))
    (torch.Size([4]), tensor(2.7884))
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True
    _batch_parameters = ()

    def __init__(self, loc: object, scale: object, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        # An edge of the simplex counts as the nearest normal numbers: logarithms of 0 would cancel.
        return super().log_prob(value.clamp(min=fb.finfo(value.dtype).tiny))

    @property
    def loc(self) -> Tensor:
        """The means of the normal vector."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviations of the normal vector."""
        return self.base_dist.base_dist.scale
