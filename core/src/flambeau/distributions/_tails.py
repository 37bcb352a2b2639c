"""Distribution functions that are incomplete beta or gamma functions, both tails exact."""

from __future__ import annotations

from flambeau import Tensor, special
from flambeau.distributions.distribution import Distribution


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
