"""Distribution functions that are incomplete beta or gamma functions, both tails exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import flambeau as fb
from flambeau import Tensor, special
from flambeau.distributions.distribution import Distribution

if TYPE_CHECKING:
    from collections.abc import Callable


LARGE = 1e3
"""Parameters from which on places in a beta distribution have too few digits for quantiles."""


@fb.no_grad()
def tail_steps(
    log_tail: Callable[[Tensor], Tensor], level: Tensor, x: Tensor, width: Tensor
) -> Tensor:
    """The factor that takes positive x to where the logarithm of a tail is `level`.

    Steps of Newton's method over log x, whose slopes are quotients of differences over `width`.
    """
    at = x
    for _ in range(4):
        high, here, low = (log_tail(at * (1 + width * sign)) for sign in (1, 0, -1))
        step = (level - here) * (fb.log1p(width) - fb.log1p(-width)) / (high - low)
        at = at * fb.where(step.abs() < 0.1, step, 0.0).exp()
    return at / x


class BetaTails(Distribution):
    """A distribution with P(X ≤ value) = I(x; a, b) of places in a beta distribution."""

    def _beta_place(self, value: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """a, b, x and 1 − x, of which either may be the more exact one."""
        raise NotImplementedError

    def _checked_place(self, value: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        if self._validate_args:
            self._validate_sample(value)
        return self._beta_place(value)

    def cdf(self, value: Tensor) -> Tensor:
        return special.betainc(*self._checked_place(value))

    def log_cdf(self, value: Tensor) -> Tensor:
        return special.log_betainc(*self._checked_place(value))

    def survival_function(self, value: Tensor) -> Tensor:
        a, b, x, y = self._checked_place(value)
        return special.betainc(b, a, y, x)

    def log_survival_function(self, value: Tensor) -> Tensor:
        a, b, x, y = self._checked_place(value)
        return special.log_betainc(b, a, y, x)


class GammaTails(Distribution):
    """A distribution with P(X ≤ value) = P(a, x), or Q(a, x), of places in a gamma distribution."""

    _tails_exchanged = False

    def _gamma_place(self, value: Tensor) -> tuple[Tensor, Tensor]:
        """a and x."""
        raise NotImplementedError

    def _checked_place(self, value: Tensor) -> tuple[Tensor, Tensor]:
        if self._validate_args:
            self._validate_sample(value)
        return self._gamma_place(value)

    def cdf(self, value: Tensor) -> Tensor:
        tail = special.gammaincc if self._tails_exchanged else special.gammainc
        return tail(*self._checked_place(value))

    def log_cdf(self, value: Tensor) -> Tensor:
        tail = special.log_gammaincc if self._tails_exchanged else special.log_gammainc
        return tail(*self._checked_place(value))

    def survival_function(self, value: Tensor) -> Tensor:
        tail = special.gammainc if self._tails_exchanged else special.gammaincc
        return tail(*self._checked_place(value))

    def log_survival_function(self, value: Tensor) -> Tensor:
        tail = special.log_gammainc if self._tails_exchanged else special.log_gammaincc
        return tail(*self._checked_place(value))
