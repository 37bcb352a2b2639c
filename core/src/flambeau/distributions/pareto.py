"""The Pareto distribution."""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.exponential import Exponential
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import AffineTransform, ExpTransform
from flambeau.distributions.utils import broadcast_all

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """The Pareto distribution (type 1), P(X > x) = (scale/x)^alpha for x ≥ scale.

    Args:
        scale: where it begins, positive.
        alpha: the shape, positive; the mean is finite above 1, the variance above 2.

    >>> from flambeau.distributions import Pareto
    >>> import flambeau as fb
    >>> d = Pareto(1.0, 3.0)
    >>> d.mean, d.variance, d.cdf(fb.tensor(2.0))
    (tensor(1.5000), tensor(0.7500), tensor(0.8750))
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    _batch_parameters = ("scale", "alpha")

    def __init__(self, scale: object, alpha: object, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        transforms = [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)  # up to which it is infinite: division by 0
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.greater_than_eq(self.scale)

    def _place(self, value: Tensor) -> Tensor:
        log_ratio = super()._place(value)
        # Next to the scale the difference is exact, and the quotient is not.
        near = value < 2 * self.scale
        beyond = fb.where(near, value - self.scale, 0.0) / self.scale
        return fb.where(near, beyond.log1p(), log_ratio)

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())
