"""The von Mises distribution of angles."""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.distributions import constraints
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.utils import broadcast_all, lazy_property

__all__ = ["VonMises"]


_I0_SMALL = (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.360768e-1, 0.45813e-2)
_I0_LARGE = (
    0.39894228, 0.1328592e-1, 0.225319e-2, -0.157565e-2, 0.916281e-2, -0.2057706e-1, 0.2635537e-1,
    -0.1647633e-1, 0.392377e-2,
)  # fmt: skip
_I1_SMALL = (0.5, 0.87890594, 0.51498869, 0.15084934, 0.2658733e-1, 0.301532e-2, 0.32411e-3)
_I1_LARGE = (
    0.39894228, -0.3988024e-1, -0.362018e-2, 0.163801e-2, -0.1031555e-1, 0.2282967e-1,
    -0.2895312e-1, 0.1787654e-1, -0.420059e-2,
)  # fmt: skip


def _polynomial(y: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    result: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        result = c + y * result
    return result


def _log_bessel(x: Tensor, order: int) -> Tensor:
    """log I_0(x) or log I_1(x) for x ≥ 0, to some seven digits.

    Source: Abramowitz and Stegun, "Handbook of mathematical functions", 9.8.1 to 9.8.4.
    """
    small, large = ((_I0_SMALL, _I0_LARGE), (_I1_SMALL, _I1_LARGE))[order]
    below = _polynomial((x / 3.75) ** 2, small)
    if order == 1:
        below = x.abs() * below
    above = x - 0.5 * x.log() + _polynomial(3.75 / x, large).log()
    return fb.where(x < 3.75, below.log(), above)


class VonMises(Distribution):
    """The von Mises distribution of angles, p(x) = exp(κ·cos(x − loc)) / (2π·I₀(κ)).

    A value is any angle in radians; samples are in [−π, π).

    Args:
        loc: the mean angle.
        concentration: κ, positive.

    Samples by Best and Fisher, "Efficient simulation of the von Mises distribution" (1979).
    `variance` is the circular one, 1 − I₁(κ)/I₀(κ).

    >>> from flambeau.distributions import VonMises
    >>> import flambeau as fb
    >>> VonMises(0.0, 1.0).log_prob(fb.tensor([0.0, 3.0]))
    tensor([-1.0738, -3.0638])
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        validate_args = self.__dict__.get("_validate_args")
        loc, concentration = self.loc.expand(batch_shape), self.concentration.expand(batch_shape)
        return type(self)(loc, concentration, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return 1 - (_log_bessel(self.concentration, 1) - _log_bessel(self.concentration, 0)).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        log_prob = self.concentration * fb.cos(value - self.loc)
        return log_prob - math.log(2 * math.pi) - _log_bessel(self.concentration, 0)

    @lazy_property
    def _loc(self) -> Tensor:
        return self.loc.to(fb.double)

    @lazy_property
    def _concentration(self) -> Tensor:
        return self.concentration.to(fb.double)

    @lazy_property
    def _proposal_r(self) -> Tensor:
        """The parameter of the wrapped Cauchy distribution that proposals come from."""
        kappa = self._concentration
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        r = (1 + rho**2) / (2 * rho)
        # Near 0 the formula cancels; the first two terms of its series are exact there.
        return fb.where(kappa < 1e-5, 1 / kappa + kappa, r)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with fb.no_grad():
            x = fb.empty(shape, dtype=self._loc.dtype, device=self.loc.device)
            return self._accepted(x).to(self.loc.dtype)

    def _accepted(self, x: Tensor) -> Tensor:
        r = self._proposal_r
        done = fb.zeros(x.shape, dtype=fb.bool, device=x.device)
        while not done.all():
            u = fb.rand((3, *x.shape), dtype=self._loc.dtype, device=x.device)
            u1, u2, u3 = u.unbind()
            z = fb.cos(math.pi * u1)
            f = (1 + r * z) / (r + z)
            c = self._concentration * (r - f)
            accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
            if accept.any():
                x = fb.where(accept, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accept
        return (x + math.pi + self._loc) % (2 * math.pi) - math.pi
