"""The normal (Gaussian) distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import flambeau as fb
from flambeau import Size, Tensor, special
from flambeau.distributions._symmetric import Symmetric
from flambeau.distributions.exp_family import ExponentialFamily
from flambeau.distributions.utils import _standard_normal

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["Normal"]


_HALF_LOG_2PI = math.log(math.sqrt(2 * math.pi))


class Normal(Symmetric, ExponentialFamily):
    """The normal distribution, p(x) = exp(−(x − loc)²/(2·scale²)) / (scale·√(2π)).

    Args:
        loc: the mean.
        scale: the standard deviation, positive.

    >>> from flambeau.distributions import Normal
    >>> import flambeau as fb
    >>> d = Normal(0.0, 2.0)
    >>> d, d.log_prob(fb.tensor([0.0, 2.0])), d.cdf(fb.tensor(0.0))
    (Normal(loc: 0.0, scale: 2.0), tensor([-1.6121, -2.1121]), tensor(0.5000))

    A sample by `rsample` is differentiable in the parameters: the pathwise derivative.

    >>> loc = fb.tensor(1.0, requires_grad=True)
    >>> action = Normal(loc, 1.0).rsample((5,))
    >>> loss = -action.sum()  # minus a reward that can be differentiated
    >>> loss.backward()
    >>> loc.grad
    tensor(-5.)
    """

    _mean_carrier_measure = 0
    _batch_parameters = ("loc", "scale")

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    @fb.no_grad()
    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return fb.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        eps = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + eps * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        return z * z * -0.5 - self.scale.log() - _HALF_LOG_2PI

    def _upper(self, z: Tensor) -> Tensor:
        return 0.5 * fb.erfc(z * math.sqrt(0.5))

    def _log_upper(self, z: Tensor) -> Tensor:
        return special.log_ndtr(-z)

    def _upper_quantile(self, part: Tensor) -> Tensor:
        return -special.ndtri(part)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + fb.log(self.scale)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal()

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return -0.25 * x.pow(2) / y + 0.5 * fb.log(-math.pi / y)
