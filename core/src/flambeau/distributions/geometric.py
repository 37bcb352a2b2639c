"""The geometric distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.distributions import constraints
from flambeau.distributions._counts import least_count
from flambeau.distributions._odds import BinaryOdds
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.utils import (
    _binary_cross_entropy,
    _log_of_rest,
    _power_log1p,
    broadcast_all,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["Geometric"]


class Geometric(BinaryOdds, Distribution):
    """The number of failures before the first success, P(k) = (1 − p)^k·p for k = 0, 1, ….

    `flambeau.Tensor.geometric_` counts trials instead, from 1 on.

    Args:
        probs: the probability p of a success, within (0, 1].
        logits: the log-odds log(p/(1 − p)), instead of `probs`.

    Raises:
        ValueError: both are given, or neither is.

    >>> from flambeau.distributions import Geometric
    >>> import flambeau as fb
    >>> d = Geometric(fb.tensor([0.25]))
    >>> d.mean, d.log_prob(fb.tensor([2.0]))
    (tensor([3.]), tensor([-1.9617]))
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _batch_parameters = ("probs", "logits", "_param")

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set_odds(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)
        if self._validate_args and probs is not None:
            valid = self.probs > 0
            if not valid.all():
                raise ValueError(
                    "Expected parameter probs "
                    f"({type(self.probs).__name__} of shape {tuple(self.probs.shape)}) "
                    f"of distribution {self!r} "
                    f"to be positive but found invalid values:\n{self.probs.data[~valid]}"
                )

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return fb.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    @fb.no_grad()
    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = self.probs.new(shape).uniform_(fb.finfo(self.probs.dtype).tiny, 1)
        return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        return _power_log1p(value, -probs) + self.probs.log()

    def log_survival_function(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        count, probs = broadcast_all((value + 1).floor().clamp(min=0), self.probs)
        none = count == 0
        # 0·log(1 − 1) is to be 0.
        return fb.where(none, 0.0, count * (-fb.where(none, 0.0, probs)).log1p())

    def survival_function(self, value: Tensor) -> Tensor:
        return self.log_survival_function(value).exp()

    def cdf(self, value: Tensor) -> Tensor:
        return -fb.expm1(self.log_survival_function(value))

    def log_cdf(self, value: Tensor) -> Tensor:
        return _log_of_rest(self.log_survival_function(value))

    def icdf(self, value: Tensor) -> Tensor:
        return least_count(self, value)

    def entropy(self) -> Tensor:
        return _binary_cross_entropy(self.logits, self.probs) / self.probs
