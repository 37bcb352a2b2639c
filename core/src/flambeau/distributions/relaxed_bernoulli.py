"""Bernoulli variables relaxed to numbers between 0 and 1."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.distributions import constraints
from flambeau.distributions._odds import BinaryOdds, Relaxed, as_tensor_like
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import SigmoidTransform
from flambeau.distributions.utils import broadcast_all, clamp_probs

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(BinaryOdds, Distribution):
    """The logit of a relaxed Bernoulli variable.

    Sources: Maddison, Mnih and Teh, "The concrete distribution" (2017); Jang, Gu and Poole,
    "Categorical reparameterization with Gumbel-softmax" (2017).

    Args:
        temperature: how relaxed, positive; towards 0 it becomes a Bernoulli variable.
        probs: the probability of 1.
        logits: the log-odds of it, instead of `probs`.

    Raises:
        ValueError: both or neither of `probs` and `logits` are given.

    >>> from flambeau.distributions.relaxed_bernoulli import LogitRelaxedBernoulli
    >>> import flambeau as fb
    >>> LogitRelaxedBernoulli(fb.tensor(2.0), fb.tensor([0.5])).log_prob(fb.zeros(1))
    tensor([-0.6931])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    _batch_parameters = ("probs", "logits", "_param")
    _shared_parameters = ("temperature",)

    def __init__(
        self,
        temperature: Any,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._set_odds(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        uniforms = clamp_probs(fb.rand(shape, dtype=probs.dtype, device=probs.device))
        logistic = uniforms.log() - (-uniforms).log1p()
        return (logistic + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        diff = logits - value.mul(self.temperature)
        temperature = as_tensor_like(self.temperature, diff)
        # log(1 + exp(x)) is x where the exponential is beyond what the dtype holds.
        most = math.log(fb.finfo(diff.dtype).max) - 1
        softplus = fb.where(diff < most, diff.clamp(max=most).exp().log1p(), diff)
        return temperature.log() + diff - 2 * softplus


class RelaxedBernoulli(Relaxed, TransformedDistribution):
    """A Bernoulli variable relaxed to a number between 0 and 1, so that samples have a gradient.

    Sources: as of `LogitRelaxedBernoulli`.

    Args:
        temperature: how relaxed, positive; towards 0 it becomes a Bernoulli variable.
        probs: the probability of 1.
        logits: the log-odds of it, instead of `probs`.

    Raises:
        ValueError: both or neither of `probs` and `logits` are given.

    >>> from flambeau.distributions import RelaxedBernoulli
    >>> import flambeau as fb
    >>> d = RelaxedBernoulli(fb.tensor(2.0), fb.tensor([0.5]))
    >>> d.log_prob(fb.tensor([0.5]))
    tensor([0.6931])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _batch_parameters = ()

    def __init__(
        self,
        temperature: Any,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)
