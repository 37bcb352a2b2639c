"""The beta distribution."""

from __future__ import annotations

from numbers import Number
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import Size, Tensor, special
from flambeau.distributions import constraints
from flambeau.distributions._tails import BetaTails
from flambeau.distributions.dirichlet import Dirichlet
from flambeau.distributions.exp_family import ExponentialFamily
from flambeau.distributions.utils import broadcast_all

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["Beta"]


class Beta(BetaTails, ExponentialFamily):
    """The beta distribution, p(x) ∝ x^(a−1)·(1 − x)^(b−1) for 0 ≤ x ≤ 1.

    Args:
        concentration1: the parameter a (alpha), positive.
        concentration0: the parameter b (beta), positive.

    >>> from flambeau.distributions import Beta
    >>> import flambeau as fb
    >>> d = Beta(2.0, 3.0)
    >>> d, d.mean, d.log_prob(fb.tensor(0.5))
    (Beta(), tensor(0.4000), tensor(0.4055))
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True
    _batch_parameters = ("_dirichlet",)

    def __init__(
        self, concentration1: object, concentration0: object, validate_args: bool | None = None
    ) -> None:
        if isinstance(concentration1, Number) and isinstance(concentration0, Number):
            one: Any = concentration1
            zero: Any = concentration0
            both = fb.tensor([float(one), float(zero)])
        else:
            both = fb.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    @property
    def concentration1(self) -> Tensor:
        """The parameter a (alpha)."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        """The parameter b (beta)."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._dirichlet.log_prob(fb.stack([value, 1.0 - value], -1))

    def _beta_place(self, value: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.concentration1, self.concentration0, value, 1 - value

    def icdf(self, value: Tensor) -> Tensor:
        return special.betaincinv(self.concentration1, self.concentration0, value)

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return fb.lgamma(x) + fb.lgamma(y) - fb.lgamma(x + y)
