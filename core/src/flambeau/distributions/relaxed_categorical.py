"""Categories relaxed to points of the simplex."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.distributions import constraints
from flambeau.distributions._odds import CategoricalOdds, Relaxed, as_tensor_like
from flambeau.distributions.categorical import Categorical
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import ExpTransform
from flambeau.distributions.utils import broadcast_all, clamp_probs

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(CategoricalOdds, Distribution):
    """The logarithm of a relaxed one-hot category.

    Sources: Maddison, Mnih and Teh, "The concrete distribution" (2017); Jang, Gu and Poole,
    "Categorical reparameterization with Gumbel-softmax" (2017).

    Args:
        temperature: how relaxed, positive; towards 0 it becomes a category.
        probs: nonnegative weights; they are divided by their sum.
        logits: unnormalised log probabilities, instead of `probs`.

    Raises:
        ValueError: both or neither of `probs` and `logits` are given.

    >>> from flambeau.distributions.relaxed_categorical import ExpRelaxedCategorical
    >>> import flambeau as fb
    >>> d = ExpRelaxedCategorical(fb.tensor(1.0), fb.tensor([0.5, 0.5]))
    >>> d.log_prob(fb.tensor([0.5, 0.5]).log())
    tensor(-1.3863)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    # The logarithms of a vector that sums to 1; like PyTorch, no constraint says so.
    support = constraints.real_vector
    has_rsample = True
    _batch_parameters = ("_categorical",)
    _shared_parameters = ("temperature",)

    def __init__(
        self,
        temperature: Any,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        batch_shape, event_shape = self._categorical.batch_shape, self.param_shape[-1:]
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape, logits = self._extended_shape(sample_shape), self.logits
        uniforms = clamp_probs(fb.rand(shape, dtype=logits.dtype, device=logits.device))
        gumbels = -((-(uniforms.log())).log())
        scores = (logits + gumbels) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        k = self._categorical._num_events
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        temperature = as_tensor_like(self.temperature, logits)
        log_scale = fb.full_like(temperature, float(k)).lgamma() - temperature.log().mul(-(k - 1))
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + log_scale


class RelaxedOneHotCategorical(Relaxed, TransformedDistribution):
    """A one-hot category relaxed to a point of the simplex, so that samples have a gradient.

    Sources: as of `ExpRelaxedCategorical`.

    Args:
        temperature: how relaxed, positive; towards 0 it becomes a category.
        probs: nonnegative weights; they are divided by their sum.
        logits: unnormalised log probabilities, instead of `probs`.

    Raises:
        ValueError: both or neither of `probs` and `logits` are given.

    >>> from flambeau.distributions import RelaxedOneHotCategorical
    >>> import flambeau as fb
    >>> d = RelaxedOneHotCategorical(fb.tensor(1.0), fb.tensor([0.5, 0.5]))
    >>> d.log_prob(fb.tensor([0.5, 0.5]))
    tensor(0.)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True
    _batch_parameters = ()

    def __init__(
        self,
        temperature: Any,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        # A part of 0 has no logarithm; it counts as the least normal number.
        return super().log_prob(value.clamp(min=fb.finfo(value.dtype).tiny))
