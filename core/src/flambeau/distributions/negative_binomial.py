"""The negative binomial distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.distributions import constraints
from flambeau.distributions._counts import least_count
from flambeau.distributions._odds import BinaryOdds
from flambeau.distributions._tails import BetaTails
from flambeau.distributions.gamma import Gamma
from flambeau.distributions.utils import _logsigmoid, lazy_property

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["NegativeBinomial"]


class NegativeBinomial(BinaryOdds, BetaTails):
    """The number of successes before the r-th failure, P(k) = Γ(k + r)/(k!·Γ(r))·p^k·(1 − p)^r.

    Args:
        total_count: r, nonnegative; need not be whole.
        probs: the probability p of a success, within [0, 1).
        logits: the log-odds log(p/(1 − p)), instead of `probs`.

    Samples are Poisson variables whose rate is gamma distributed.

    Raises:
        ValueError: both or neither of `probs` and `logits` are given.

    >>> from flambeau.distributions import NegativeBinomial
    >>> import flambeau as fb
    >>> d = NegativeBinomial(3.0, fb.tensor([0.5]))
    >>> d.mean, d.variance, d.log_prob(fb.tensor([0.0]))
    (tensor([3.]), tensor([6.]), tensor([-2.0794]))
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _batch_parameters = ("total_count", "probs", "logits", "_param")

    def __init__(
        self,
        total_count: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set_counted_odds(total_count, probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * fb.exp(self.logits)

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / fb.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Gamma:
        # A total count of 0 is allowed here but is no concentration.
        return Gamma(self.total_count, fb.exp(-self.logits), validate_args=False)

    @fb.no_grad()
    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        return fb.poisson(self._gamma.sample(sample_shape=sample_shape))

    def _beta_place(self, value: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        n, count, x, y = fb.broadcast_tensors(
            self.total_count, (value + 1).floor(), self._rest(), self._part()
        )
        inside = count > 0
        a, b = fb.where(inside, n, 1.0), fb.where(inside, count, 1.0)
        return a, b, fb.where(inside, x, 0.0), fb.where(inside, y, 1.0)

    def icdf(self, value: Tensor) -> Tensor:
        return least_count(self, value)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        unnormalized = self.total_count * _logsigmoid(-self.logits) + value * _logsigmoid(
            self.logits
        )
        # No failure to wait for and no success: Γ(0)/Γ(0) is to be 1.
        waits = (self.total_count != 0) | (value == 0)
        count = fb.where(self.total_count == 0, 1.0, self.total_count)
        normalizer = -fb.lgamma(count + value) + fb.lgamma(1.0 + value) + fb.lgamma(count)
        return unnormalized - fb.where(waits, normalizer, math.inf)
