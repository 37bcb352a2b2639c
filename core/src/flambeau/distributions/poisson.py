"""The Poisson distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.distributions import constraints
from flambeau.distributions._counts import least_count
from flambeau.distributions._tails import GammaTails
from flambeau.distributions.exp_family import ExponentialFamily
from flambeau.distributions.utils import _at_pole, broadcast_all

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["Poisson"]


_WIDE = 200.0
_ENTROPY_SERIES = (1375 / 1008, 863 / 2520, 9 / 80, 19 / 360, 1 / 24, 1 / 12)  # last term first


class Poisson(GammaTails, ExponentialFamily):
    """The Poisson distribution, P(k) = rate^k · exp(−rate) / k! for k = 0, 1, ….

    Args:
        rate: the mean, nonnegative.

    >>> from flambeau.distributions import Poisson
    >>> import flambeau as fb
    >>> Poisson(4.0).log_prob(fb.tensor([0.0, 4.0])), Poisson(4.0).variance
    (tensor([-4.0000, -1.6329]), tensor(4.))
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _tails_exchanged = True
    _batch_parameters = ("rate",)

    def __init__(self, rate: object, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    @fb.no_grad()
    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        return fb.poisson(self._drawn_from(self.rate, sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        some = rate != 0  # there is no count but 0 at rate 0
        power = fb.where(some, value.xlogy(fb.where(some, rate, 1.0)), _at_pole(value))
        return power - rate - (value + 1).lgamma()

    def _gamma_place(self, value: Tensor) -> tuple[Tensor, Tensor]:
        rate, count = broadcast_all(self.rate, (value + 1).floor())
        inside = count > 0
        return fb.where(inside, count, 1.0), fb.where(inside, rate, math.inf)

    def icdf(self, value: Tensor) -> Tensor:
        return least_count(self, value)

    def entropy(self) -> Tensor:
        # The sum, or the series of large rates (Evans and Boersma, "The entropy of a Poisson
        # distribution", 1988).
        wide = self.rate > _WIDE
        rate = fb.where(wide, 1.0, self.rate).clamp(min=fb.finfo(self.rate.dtype).tiny)
        most = float(rate.detach().max()) if rate.numel() else 0.0
        k = fb.arange(int(most + 14 * math.sqrt(most) + 40), device=rate.device).to(rate.dtype)
        rates = rate.unsqueeze(-1)
        log_p = k * rates.log() - rates - (k + 1).lgamma()
        near = -(log_p.exp() * log_p).sum(-1)
        far = fb.where(wide, self.rate, _WIDE)
        series = 0.0
        for term in _ENTROPY_SERIES:
            series = (series + term) / far
        return fb.where(wide, 0.5 * (2 * math.pi * math.e * far).log() - series, near)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (fb.log(self.rate),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return fb.exp(x)
