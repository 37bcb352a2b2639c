"""The Cauchy (Lorentz) distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.distributions._symmetric import Symmetric
from flambeau.distributions.utils import _log1p_square, _log_of_part

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["Cauchy"]


class Cauchy(Symmetric):
    """The Cauchy distribution, p(x) = 1/(π·scale·(1 + ((x − loc)/scale)²)).

    The ratio of two independent centred normal variables; it has no mean and no variance.

    Args:
        loc: the median and mode.
        scale: half of the width at half of the maximum, positive.

    >>> from flambeau.distributions import Cauchy
    >>> import flambeau as fb
    >>> d = Cauchy(0.0, 1.0)
    >>> d.cdf(fb.tensor([0.0, 1.0])), d.icdf(fb.tensor(0.75)), d.mean
    (tensor([0.5000, 0.7500]), tensor(1.), tensor(nan))
    """

    _batch_parameters = Symmetric._batch_parameters

    @property
    def mean(self) -> Tensor:
        return fb.full(
            self._extended_shape(), math.nan, dtype=self.loc.dtype, device=self.loc.device
        )

    @property
    def variance(self) -> Tensor:
        return fb.full(
            self._extended_shape(), math.inf, dtype=self.loc.dtype, device=self.loc.device
        )

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        eps = self.loc.new(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + eps * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        power = _log1p_square(value - self.loc, self.scale)
        return -math.log(math.pi) - self.scale.log() - power

    def _upper(self, z: Tensor) -> Tensor:
        # As an angle: arctangents would cancel.
        return fb.atan2(fb.ones_like(z), z) / math.pi

    def _log_upper(self, z: Tensor) -> Tensor:
        return _log_of_part(self._upper(z), self._upper(-z))

    def _upper_quantile(self, part: Tensor) -> Tensor:
        far = part < 0.25
        near = fb.tan(math.pi * (0.5 - fb.where(far, 0.5, part)))
        return fb.where(far, 1 / fb.tan(math.pi * fb.where(far, part, 0.25)), near)

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
