"""The Bernoulli distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.distributions import constraints
from flambeau.distributions._odds import BinaryOdds, all_values
from flambeau.distributions.exp_family import ExponentialFamily
from flambeau.distributions.utils import _binary_cross_entropy, broadcast_all

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["Bernoulli"]


class Bernoulli(BinaryOdds, ExponentialFamily):
    """The Bernoulli distribution: 1 with probability p, else 0.

    Args:
        probs: p, within [0, 1].
        logits: the log-odds log(p/(1 − p)), instead of `probs`.

    Raises:
        ValueError: both are given, or neither is.

    >>> from flambeau.distributions import Bernoulli
    >>> import flambeau as fb
    >>> d = Bernoulli(fb.tensor([0.25]))
    >>> d.log_prob(fb.tensor([1.0])), d.entropy(), d.logits
    (tensor([-1.3863]), tensor([0.5623]), tensor([-1.0986]))
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    _batch_parameters = ("probs", "logits", "_param")

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set_odds(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return (self.probs >= 0.5).to(self.probs).masked_fill(self.probs == 0.5, math.nan)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    @fb.no_grad()
    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        return fb.bernoulli(self._drawn_from(self.probs, sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -_binary_cross_entropy(logits, value)

    def entropy(self) -> Tensor:
        return _binary_cross_entropy(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        param = self._param
        return all_values(2, param.dtype, param.device, self._batch_shape, expand)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (fb.logit(self.probs),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return fb.log1p(fb.exp(x))
