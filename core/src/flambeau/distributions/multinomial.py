"""The multinomial distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.distributions import constraints
from flambeau.distributions._odds import CategoricalOdds
from flambeau.distributions.binomial import Binomial
from flambeau.distributions.categorical import Categorical
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.utils import broadcast_all

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["Multinomial"]


class Multinomial(CategoricalOdds, Distribution):
    """How often each category occurs in n draws, P(x) = n!/Πx_i! · Πp_i^x_i.

    Args:
        total_count: n, the number of draws; one number for the whole batch.
        probs: nonnegative weights of the categories; they are divided by their sum.
        logits: unnormalised log probabilities, instead of `probs`.

    `log_prob` takes n from the value, so that ``validate_args=False`` allows other totals.

    Raises:
        ValueError: both or neither of `probs` and `logits` are given.
        NotImplementedError: `total_count` is no int.

    >>> from flambeau.distributions import Multinomial
    >>> import flambeau as fb
    >>> d = Multinomial(4, fb.tensor([0.5, 0.5]))
    >>> d.mean, d.log_prob(fb.tensor([2.0, 2.0]))
    (tensor([2., 2.]), tensor(-0.9808))
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _batch_parameters = ("_categorical",)
    _shared_parameters = ("total_count",)

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        batch_shape, event_shape = self._categorical.batch_shape, self.param_shape[-1:]
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        sample_shape = Size(sample_shape)
        draws = self._categorical.sample(Size((self.total_count,)) + sample_shape).movedim(0, -1)
        counts = draws.new(self._extended_shape(sample_shape)).zero_()
        counts.scatter_add_(-1, draws, fb.ones_like(draws))
        return counts.type_as(self.probs)

    def entropy(self) -> Tensor:
        # −n!/Πx_i! in the mean: each x_i by itself is binomial.
        n = self.total_count
        binomial = Binomial(n, self.probs)
        support = binomial.enumerate_support(expand=False)[1:]
        weighted = fb.exp(binomial.log_prob(support)) * fb.lgamma(support + 1)
        return n * self._categorical.entropy() - math.lgamma(n + 1) + weighted.sum([0, -1])

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        log_factorial_n = fb.lgamma(value.sum(-1) + 1)
        log_factorial_xs = fb.lgamma(value + 1).sum(-1)
        # 0·log 0 is to be 0.
        logits = logits.masked_fill((value == 0) & (logits == -math.inf), 0)
        return log_factorial_n - log_factorial_xs + (logits * value).sum(-1)
