"""The Laplace (double exponential) distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.distributions._symmetric import Symmetric

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["Laplace"]


class Laplace(Symmetric):
    """The Laplace distribution, p(x) = exp(−|x − loc|/scale)/(2·scale).

    Args:
        loc: the mean.
        scale: the mean distance from it, positive.

    >>> from flambeau.distributions import Laplace
    >>> import flambeau as fb
    >>> d = Laplace(0.0, 1.0)
    >>> d.log_prob(fb.tensor([0.0, 1.0])), d.icdf(fb.tensor(0.5)), d.variance
    (tensor([-0.6931, -1.6931]), tensor(0.), tensor(2.))
    """

    _batch_parameters = Symmetric._batch_parameters

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Tensor:
        return (2**0.5) * self.scale

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        # Never −1 itself, whose logarithm below would be −∞.
        u = self.loc.new(shape).uniform_(fb.finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * fb.log1p(-u.abs())

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -fb.log(2 * self.scale) - fb.abs(value - self.loc) / self.scale

    def _upper(self, z: Tensor) -> Tensor:
        above, zero = z > 0, fb.zeros_like(z)
        below = 1 - 0.5 * fb.exp(fb.where(above, zero, z))
        return fb.where(above, 0.5 * fb.exp(-fb.where(above, z, zero)), below)

    def _log_upper(self, z: Tensor) -> Tensor:
        above = -z.clamp(min=0) - math.log(2)
        below = fb.log1p(-0.5 * fb.exp(z.clamp(max=0)))
        return fb.where(z > 0, above, below)

    def _upper_quantile(self, part: Tensor) -> Tensor:
        return -fb.log(2 * part)

    def entropy(self) -> Tensor:
        return 1 + fb.log(2 * self.scale)
