"""The binomial distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.distributions import constraints
from flambeau.distributions._counts import least_count
from flambeau.distributions._odds import BinaryOdds, all_values
from flambeau.distributions._tails import BetaTails

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["Binomial"]


def _clamp_by_zero(x: Tensor) -> Tensor:
    """max(x, 0), with a gradient of 1/2 at 0."""
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Binomial(BinaryOdds, BetaTails):
    """The number of successes in n trials, P(k) = C(n, k)·p^k·(1 − p)^(n − k).

    Args:
        total_count: n, nonnegative; a number or a tensor.
        probs: the probability p of a success, within [0, 1].
        logits: the log-odds log(p/(1 − p)), instead of `probs`.

    Raises:
        ValueError: both or neither of `probs` and `logits` are given.
        NotImplementedError: `enumerate_support` where n differs over the batch.

    >>> from flambeau.distributions import Binomial
    >>> import flambeau as fb
    >>> d = Binomial(4, fb.tensor([0.5, 1.0]))
    >>> d.mean, d.log_prob(fb.tensor(4.0))
    (tensor([2., 4.]), tensor([-2.7726,  0.0000]))
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _batch_parameters = ("total_count", "probs", "logits", "_param")

    def __init__(
        self,
        total_count: Tensor | float = 1,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set_counted_odds(total_count, probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    @fb.no_grad()
    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        return fb.binomial(
            self._drawn_from(self.total_count, sample_shape),
            self._drawn_from(self.probs, sample_shape),
        )

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n, logits = self.total_count, self.logits
        log_factorial_n = fb.lgamma(n + 1)
        log_factorial_k = fb.lgamma(value + 1)
        log_factorial_nmk = fb.lgamma(n - value + 1)
        # −n·log(1 − p) = n·log(1 + exp(logits)), which does not overflow in this form.
        normalizer = (
            n * _clamp_by_zero(logits) + n * fb.log1p(fb.exp(-fb.abs(logits))) - log_factorial_n
        )
        return value * logits - log_factorial_k - log_factorial_nmk - normalizer

    def _beta_place(self, value: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        n, k, x, y = fb.broadcast_tensors(self.total_count, value.floor(), self._rest(), self.probs)
        none, inside = k < 0, (k >= 0) & (k < n)
        edge = none.to(x)
        a, b = fb.where(inside, n - k, 1.0), fb.where(inside, k + 1, 1.0)
        return a, b, fb.where(inside, x, 1 - edge), fb.where(inside, y, edge)

    def icdf(self, value: Tensor) -> Tensor:
        return least_count(self, value, self.total_count)

    def entropy(self) -> Tensor:
        """The entropy, also where n differs over the batch, which PyTorch refuses."""
        n, param = self.total_count, self._param
        count = 1 + (int(n.max()) if n.numel() else 0)
        k = all_values(count, param.dtype, param.device, self._batch_shape, False)
        possible = k <= n
        log_prob = self.log_prob(fb.where(possible, k, n))
        return -fb.where(possible, fb.exp(log_prob) * log_prob, 0.0).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count, param = int(self.total_count.max()), self._param
        if not self.total_count.min() == count:
            raise NotImplementedError(
                "Inhomogeneous total count not supported by `enumerate_support`."
            )
        return all_values(1 + count, param.dtype, param.device, self._batch_shape, expand)
