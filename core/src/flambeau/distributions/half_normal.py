"""The half-normal distribution."""

from __future__ import annotations

import math

import flambeau as fb
from flambeau import Tensor
from flambeau.distributions._symmetric import Folded
from flambeau.distributions.normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(Folded):
    """The distribution of |X| for X ~ Normal(0, scale).

    Args:
        scale: the standard deviation of X, positive.

    >>> from flambeau.distributions import HalfNormal
    >>> import flambeau as fb
    >>> d = HalfNormal(1.0)
    >>> d.mean, d.log_prob(fb.tensor([0.0, 1.0]))
    (tensor(0.7979), tensor([-0.2258, -0.7258]))
    """

    _batch_parameters = ()
    _symmetric = Normal

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)

    def _below(self, z: Tensor) -> Tensor:
        return fb.erf(z * math.sqrt(0.5))

    def _below_quantile(self, part: Tensor) -> Tensor:
        return math.sqrt(2) * fb.erfinv(part)
