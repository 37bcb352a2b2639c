"""Categories as vectors of zeros with a single one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.distributions import constraints
from flambeau.distributions._odds import CategoricalOdds
from flambeau.distributions.categorical import Categorical
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.utils import _one_hot

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(CategoricalOdds, Distribution):
    """A category as a vector that is 1 at its index and 0 elsewhere.

    Args:
        probs: nonnegative weights; they are divided by their sum.
        logits: unnormalised log probabilities, instead of `probs`.

    Raises:
        ValueError: both or neither are given, or the parameter has no dimension.

    >>> from flambeau.distributions import OneHotCategorical
    >>> import flambeau as fb
    >>> d = OneHotCategorical(fb.tensor([0.25, 0.75]))
    >>> d.log_prob(fb.tensor([0.0, 1.0])), d.mode
    (tensor(-0.2877), tensor([0., 1.]))
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True
    _batch_parameters = ("_categorical",)

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits)
        batch_shape, event_shape = self._categorical.batch_shape, self.param_shape[-1:]
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return _one_hot(self.probs.argmax(dim=-1), self.probs.shape[-1], self.probs)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        indices = self._categorical.sample(Size(sample_shape))
        return _one_hot(indices, self._categorical._num_events, self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.event_shape[0]
        values = fb.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.view((n, *(1 for _ in self.batch_shape), n))
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot categories whose samples have the gradient of the probabilities.

    The estimator is biased; source: Bengio, Léonard and Courville, "Estimating or propagating
    gradients through stochastic neurons for conditional computation" (2013).

    >>> from flambeau.distributions import OneHotCategoricalStraightThrough
    >>> import flambeau as fb
    >>> logits = fb.zeros(2, requires_grad=True)
    >>> OneHotCategoricalStraightThrough(logits=logits).rsample()[0].backward()
    >>> logits.grad
    tensor([ 0.2500, -0.2500])
    """

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        samples = self.sample(sample_shape)
        return samples + (self.probs - self.probs.detach())
