"""The categorical distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.distributions import constraints
from flambeau.distributions._odds import all_values, need_one
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.utils import lazy_property, logits_to_probs, probs_to_logits

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["Categorical"]


class Categorical(Distribution):
    """A category 0, …, K − 1, with the probability at its index of the last dimension.

    Args:
        probs: nonnegative weights, not all 0; they are divided by their sum.
        logits: unnormalised log probabilities, instead of `probs`.

    The attributes `probs` and `logits` are normalised.  Samples are drawn by `multinomial`.

    Raises:
        ValueError: both or neither are given, or the parameter has no dimension.

    >>> from flambeau.distributions import Categorical
    >>> import flambeau as fb
    >>> d = Categorical(fb.tensor([1.0, 1.0, 2.0]))
    >>> d.probs, d.log_prob(fb.tensor(2)), d.entropy()
    (tensor([0.2500, 0.2500, 0.5000]), tensor(-0.6931), tensor(1.0397))

    The score function gives the gradient of an expectation that samples cannot give:

    >>> weights = fb.tensor([0.5, 0.5], requires_grad=True)
    >>> policy = Categorical(weights)
    >>> action = fb.tensor(1)  # policy.sample()
    >>> loss = -policy.log_prob(action) * 3.0  # times the reward of the action
    >>> loss.backward()
    >>> weights.grad
    tensor([ 3., -3.])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _batch_parameters = ("probs", "logits", "_param")
    _shared_parameters = ("_num_events",)

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        need_one(probs, logits)
        if probs is not None:
            if probs.dim() < 1:
                raise ValueError("`probs` parameter must be at least one-dimensional.")
            self.probs = self._param = probs / probs.sum(-1, keepdim=True)
        else:
            assert logits is not None
            if logits.dim() < 1:
                raise ValueError("`logits` parameter must be at least one-dimensional.")
            # Normalised: log probabilities.
            self.logits = self._param = logits - logits.logsumexp(dim=-1, keepdim=True)
        shape = self._param.size()
        self._num_events = shape[-1]
        super().__init__(shape[:-1], validate_args=validate_args)

    def _new(self, *args: object, **kwargs: object) -> Tensor:
        return self._param.new(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    if TYPE_CHECKING:  # subclasses have properties or plain attributes of these names
        logits: Any
        probs: Any
    else:

        @lazy_property
        def logits(self) -> Tensor:
            """The logarithms of the probabilities."""
            return probs_to_logits(self.probs)

        @lazy_property
        def probs(self) -> Tensor:
            """The probabilities."""
            return logits_to_probs(self.logits)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter that was given."""
        return self._param.size()

    def _not_a_number(self) -> Tensor:
        shape, probs = self._extended_shape(), self.probs
        return fb.full(shape, math.nan, dtype=probs.dtype, device=probs.device)

    @property
    def mean(self) -> Tensor:
        """NaN: categories have no order."""
        return self._not_a_number()

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Tensor:
        """NaN: categories have no order."""
        return self._not_a_number()

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        if not isinstance(sample_shape, Size):
            sample_shape = Size(sample_shape)
        probs, shape = self.probs, self._extended_shape(sample_shape)
        dim = probs.dim()
        if dim > 2:
            probs = probs.reshape(-1, self._num_events)
        samples = fb.multinomial(probs, sample_shape.numel(), True)
        if dim == 1 == len(shape):
            return samples
        return (samples if dim == 1 else samples.T).reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, logits = fb.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        # 0·log 0 is 0: −∞ becomes finite before it is multiplied.
        logits = fb.clamp(self.logits, min=fb.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count, device = self._num_events, self._param.device
        return all_values(count, fb.long, device, self._batch_shape, expand)
