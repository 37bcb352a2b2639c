"""Distributions of transformed variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.independent import Independent
from flambeau.distributions.transforms import ComposeTransform, Transform
from flambeau.distributions.utils import _sum_rightmost

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["TransformedDistribution"]


def _listed(transforms: Any) -> list[Transform]:
    """One transform, or several, as a list."""
    if isinstance(transforms, Transform):
        return [transforms]
    if not isinstance(transforms, list):
        raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
    if not all(isinstance(t, Transform) for t in transforms):
        raise ValueError("transforms must be a Transform or a list of Transforms")
    return transforms


class TransformedDistribution(Distribution):
    """The distribution of Y = f(X), for X of a base distribution and invertible transforms f.

    log p(y) = log p(x) − log |det ∂y/∂x|.  The event has as many dimensions as the base
    distribution's and the transforms' greatest.

    Args:
        base_distribution: the distribution of X.
        transforms: a transform, or a list of transforms, the first of which is applied first.

    Raises:
        ValueError: `transforms` is something else, or X has too few dimensions for them.

    The logistic distribution, from a uniform one:

    >>> from flambeau.distributions import AffineTransform, SigmoidTransform
    >>> from flambeau.distributions import TransformedDistribution, Uniform
    >>> import flambeau as fb
    >>> base = Uniform(fb.zeros(1), fb.ones(1))
    >>> transforms = [SigmoidTransform().inv, AffineTransform(loc=1.0, scale=2.0)]
    >>> logistic = TransformedDistribution(base, transforms)
    >>> logistic.log_prob(fb.tensor([1.0])), logistic.cdf(fb.tensor([1.0]))
    (tensor([-2.0794]), tensor([0.5000]))
    """

    arg_constraints: Any = {}
    _batch_parameters = ()

    def __init__(
        self, base_distribution: Distribution, transforms: object, validate_args: bool | None = None
    ) -> None:
        self.transforms = _listed(transforms)
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        base_event_dim = len(base_distribution.event_shape)
        transform = ComposeTransform(self.transforms)
        domain_dim = transform.domain.event_dim
        if len(base_shape) < domain_dim:
            raise ValueError(
                "base_distribution needs to have shape with size at least "
                f"{domain_dim}, but got {base_shape}."
            )
        forward_shape = transform.forward_shape(base_shape)
        expanded = transform.inverse_shape(forward_shape)
        if base_shape != expanded:
            base_distribution = base_distribution.expand(expanded[: len(expanded) - base_event_dim])
        if domain_dim > base_event_dim:
            base_distribution = Independent(base_distribution, domain_dim - base_event_dim)
        self.base_dist: Any = base_distribution
        codomain_dim = transform.codomain.event_dim
        event_dim = max(codomain_dim, base_event_dim + codomain_dim - domain_dim)
        if len(forward_shape) < event_dim:
            raise AssertionError(
                f"forward_shape length {len(forward_shape)} must be >= event_dim {event_dim}"
            )
        cut = len(forward_shape) - event_dim
        batch_shape, event_shape = Size(forward_shape[:cut]), Size(forward_shape[cut:])
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: object = None) -> Any:
        owner = self._expanding_class()
        new = self._get_checked_instance(owner, _instance)
        batch_shape = Size(batch_shape)
        self._expand_parameters(owner, new, batch_shape)
        shape = batch_shape + self.event_shape
        for t in reversed(self.transforms):
            shape = t.inverse_shape(shape)
        base_batch_shape = shape[: len(shape) - len(self.base_dist.event_shape)]
        new.base_dist = self.base_dist.expand(base_batch_shape)
        new.transforms = self.transforms
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    if TYPE_CHECKING:  # subclasses have properties or plain attributes of these names
        support: Any
        has_rsample: Any
    else:

        @constraints.dependent_property(is_discrete=False)
        def support(self) -> constraints.Constraint:
            if not self.transforms:
                return self.base_dist.support
            support = self.transforms[-1].codomain
            if len(self.event_shape) > support.event_dim:
                support = constraints.independent(
                    support, len(self.event_shape) - support.event_dim
                )
            return support

        @property
        def has_rsample(self) -> bool:
            return self.base_dist.has_rsample

    def _forward(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    @fb.no_grad()
    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        event_dim = len(self.event_shape)
        log_prob = 0.0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            domain_dim = transform.domain.event_dim
            event_dim += domain_dim - transform.codomain.event_dim
            jacobian = transform.log_abs_det_jacobian(x, y)
            log_prob = log_prob - _sum_rightmost(jacobian, event_dim - domain_dim)
            y = x
        base = self.base_dist.log_prob(y)
        return log_prob + _sum_rightmost(base, event_dim - len(self.base_dist.event_shape))

    def _sign(self) -> int | Tensor:
        """1 where the transforms together increase, −1 where they decrease."""
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return sign

    def _monotonize_cdf(self, value: Tensor) -> Tensor:
        """`value`, or 1 − value where the transforms decrease."""
        sign = self._sign()
        if isinstance(sign, int) and sign == 1:
            return value
        return fb.where(fb.as_tensor(sign) > 0, value, 1 - value)

    def _place(self, value: Tensor) -> Tensor:
        """Where the base distribution has been for this value."""
        for transform in self.transforms[::-1]:
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return value

    def cdf(self, value: Tensor) -> Tensor:
        return self._tail("cdf", "survival_function", value)

    def _tail(self, lower: str, upper: str, value: Tensor) -> Tensor:
        """A function of the base distribution, or its opposite where the transforms decrease."""
        value = self._place(value)
        sign = self._sign()
        if isinstance(sign, int):
            return getattr(self.base_dist, lower if sign == 1 else upper)(value)
        increasing = getattr(self.base_dist, lower)(value)
        return fb.where(sign > 0, increasing, getattr(self.base_dist, upper)(value))

    def log_cdf(self, value: Tensor) -> Tensor:
        return self._tail("log_cdf", "log_survival_function", value)

    def survival_function(self, value: Tensor) -> Tensor:
        return self._tail("survival_function", "cdf", value)

    def log_survival_function(self, value: Tensor) -> Tensor:
        return self._tail("log_survival_function", "log_cdf", value)

    def icdf(self, value: Tensor) -> Tensor:
        return self._forward(self.base_dist.icdf(self._monotonize_cdf(value)))
