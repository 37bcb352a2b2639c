"""The half-Cauchy distribution."""

from __future__ import annotations

import math

import flambeau as fb
from flambeau import Tensor
from flambeau.distributions._symmetric import Folded
from flambeau.distributions.cauchy import Cauchy

__all__ = ["HalfCauchy"]


class HalfCauchy(Folded):
    """The distribution of |X| for X ~ Cauchy(0, scale).

    Args:
        scale: the scale, positive.

    >>> from flambeau.distributions import HalfCauchy
    >>> import flambeau as fb
    >>> d = HalfCauchy(1.0)
    >>> d.cdf(fb.tensor(1.0)), d.log_prob(fb.tensor([0.0, 1.0]))
    (tensor(0.5000), tensor([-0.4516, -1.1447]))
    """

    _batch_parameters = ()
    _symmetric = Cauchy

    @property
    def mean(self) -> Tensor:
        shape, scale = self._extended_shape(), self.scale
        return fb.full(shape, math.inf, dtype=scale.dtype, device=scale.device)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def _below(self, z: Tensor) -> Tensor:
        return 2 * fb.atan(z) / math.pi

    def _below_quantile(self, part: Tensor) -> Tensor:
        return fb.tan(0.5 * math.pi * part)
