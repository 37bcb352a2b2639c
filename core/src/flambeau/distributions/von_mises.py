"""The von Mises distribution of angles."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import Size, Tensor, linalg, special
from flambeau.distributions import constraints
from flambeau.distributions._symmetric import Located
from flambeau.distributions.utils import _implicit, _log_of_rest, broadcast_all, lazy_property

if TYPE_CHECKING:
    from collections.abc import Sequence


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

# From this concentration on the distribution is normal to all digits: it is narrowed by scaling.
_NORMAL = 1e12


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
    close = x < 3.75
    near, far = fb.where(close, x, 1.0), fb.where(close, 3.75, x)
    below = _polynomial((near / 3.75) ** 2, small)
    if order == 1:
        below = near.abs() * below
    above = far - 0.5 * far.log() + _polynomial(3.75 / far, large).log()
    return fb.where(close, below.log(), above)


@cache
def _gauss_legendre(count: int, device_type: str) -> tuple[list[float], list[float]]:
    """Nodes and weights of the quadrature over (0, 1), computed on a device.

    Source: Golub and Welsch, "Calculation of Gauss quadrature rules" (1969).
    """
    k = fb.arange(1, count, dtype=fb.double, device=device_type)
    beside = fb.diag(k / (4 * k * k - 1).sqrt(), 1)
    nodes, vectors = linalg.eigh(beside + beside.T)
    return (0.5 + 0.5 * nodes).tolist(), vectors[0].square().tolist()


class VonMises(Located):
    """The von Mises distribution of angles, p(x) = exp(κ·cos(x − loc)) / (2π·I₀(κ)).

    A value is any angle in radians; samples are in [−π, π).

    Args:
        loc: the mean angle.
        concentration: κ, positive.

    Samples by Best and Fisher, "Efficient simulation of the von Mises distribution" (1979).
    `variance` is the circular one, 1 − I₁(κ)/I₀(κ).  `cdf` is 0 at loc − π and grows by 1 with each
    turn, as in SciPy.  Beyond PyTorch there are it, its inverse, the entropy and `rsample`, whose
    gradient is the implicit one (Figurnov, Mohamed and Mnih, 2018).

    >>> from flambeau.distributions import VonMises
    >>> import flambeau as fb
    >>> VonMises(0.0, 1.0).log_prob(fb.tensor([0.0, 3.0]))
    tensor([-1.0738, -3.0638])
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(
        self, loc: Any, concentration: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: object = None) -> Any:
        validate_args = self.__dict__.get("_validate_args")
        loc, concentration = self.loc.expand(batch_shape), self.concentration.expand(batch_shape)
        return type(self)(loc, concentration, validate_args=validate_args)

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
        kappa = self._concentration.clamp(max=_NORMAL)
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        r = (1 + rho**2) / (2 * rho)
        # Near 0 the formula cancels; the first two terms of its series are exact there.
        return fb.where(kappa < 1e-5, 1 / kappa + kappa, r)

    @fb.no_grad()
    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x = fb.empty(shape, dtype=self._loc.dtype, device=self.loc.device)
        return self._accepted(x).to(self.loc.dtype)

    def _accepted(self, x: Tensor) -> Tensor:
        r, kappa = self._proposal_r, self._concentration.clamp(max=_NORMAL)
        # Where there is no such distribution nothing would ever be accepted.
        done = fb.zeros(x.shape, dtype=fb.bool, device=x.device) | ~(kappa >= 0)
        x = fb.where(done, math.nan, x)
        while not done.all():
            u = fb.rand((3, *x.shape), dtype=self._loc.dtype, device=x.device)
            u1, u2, u3 = u.unbind()
            z = fb.cos(math.pi * u1)
            f = fb.where(kappa == 0, z, (1 + r * z) / (r + z))
            c = fb.where(kappa == 0, 1.0, kappa * (r - f))
            accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
            if accept.any():
                x = fb.where(accept, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accept
        x = x * (_NORMAL / self._concentration.clamp(min=_NORMAL)).sqrt()
        return (x + math.pi + self._loc) % (2 * math.pi) - math.pi

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        value = self.sample(sample_shape)
        return _implicit(value, self._turned(value)[2], self._log_density(value).exp())

    def _log_density(self, value: Tensor) -> Tensor:
        """`log_prob` with all digits."""
        kappa, half = self._concentration, 0.5 * (value.double() - self._loc)
        return -2 * kappa * half.sin().square() - (2 * math.pi * special.i0e(kappa)).log()

    def _log_below(self, z: Tensor) -> Tensor:
        """The logarithm of what is between −π and z ≤ 0, by quadrature relative to the end at z."""
        kappa = self._concentration
        sine = (0.5 * z).sin().square()
        # From where the density is exp(−40) of that at z, if it is anywhere.
        ends = sine + 20 / kappa
        everywhere = ends >= 1
        end = 2 * fb.where(everywhere, 0.25, ends).sqrt().asin()
        cut = 2 * fb.asin((20 / kappa / (0.5 * (end - z)).sin()).clamp(max=1)).detach()
        length = fb.where(everywhere, math.pi + z, cut).unsqueeze(-1)
        rule = _gauss_legendre(40, z.device.type)
        nodes, weights = (fb.tensor(r, dtype=fb.double, device=z.device) for r in rule)
        step = 0.5 * length * nodes
        fall = 2 * kappa.unsqueeze(-1) * (z.unsqueeze(-1) - step).sin() * step.sin()
        mass = length.squeeze(-1) * (fall.exp() * weights).sum(-1)
        return mass.log() - 2 * kappa * sine - (2 * math.pi * special.i0e(kappa)).log()

    def _turned(self, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The logarithms of both tails within a turn, and the distribution function."""
        difference = value.double() - self._loc
        turns = ((difference + math.pi) / (2 * math.pi)).floor().detach()
        # Just below an end of a turn the sum is rounded up to it.
        turns = turns - (difference - 2 * math.pi * turns < -math.pi).to(turns)
        z = (difference - 2 * math.pi * turns).clamp(-math.pi, math.pi)
        tail = self._log_below(fb.where(z > 0, -z, z))
        lower = fb.where(z > 0, _log_of_rest(tail.clamp(max=-0.5)), tail)
        upper = fb.where(z > 0, tail, _log_of_rest(tail.clamp(max=-0.5)))
        one_turn = turns == 0
        cdf = turns + lower.exp()
        other = fb.where(one_turn, 1.0, cdf)
        lower = fb.where(one_turn, lower, other.log())
        return lower, fb.where(one_turn, upper, (1 - other).log()), cdf

    def _checked(self, value: Tensor) -> tuple[Tensor, ...]:
        if self._validate_args:
            self._validate_sample(value)
        return tuple(found.to(self.loc.dtype) for found in self._turned(value))

    def log_cdf(self, value: Tensor) -> Tensor:
        return self._checked(value)[0]

    def log_survival_function(self, value: Tensor) -> Tensor:
        return self._checked(value)[1]

    def cdf(self, value: Tensor) -> Tensor:
        return self._checked(value)[2]

    def survival_function(self, value: Tensor) -> Tensor:
        return self._checked(value)[1].exp()

    def icdf(self, value: Tensor) -> Tensor:
        level = value.double()
        above = level > 0.5
        tail = fb.where(above, 1 - level, level)
        with fb.no_grad():
            shape = fb.broadcast_tensors(tail, self._loc)[0].shape
            low = fb.full(shape, -math.pi, dtype=fb.double, device=value.device)
            high, wanted = fb.zeros_like(low), tail.log()
            middle = 0.5 * (low + high)
            for _ in range(64):  # Newton's steps, and halves where these lead too far
                mass = self._log_below(middle)
                small = mass < wanted
                low, high = fb.where(small, middle, low), fb.where(small, high, middle)
                slope = (self._log_density(self._loc + middle) - mass).exp()
                step = middle + (wanted - mass) / slope
                far = (mass - wanted).abs() > 1e-9 * (1 - wanted)
                before, within = middle, fb.minimum(fb.maximum(step, low), high)
                middle = fb.where(far & (within != step), 0.5 * (low + high), within)
                if not (far & (middle != before)).any():  # the last step doubles the digits
                    break
        density = (-2 * self._concentration * (0.5 * middle).sin().square()).exp()
        density = density / (2 * math.pi * special.i0e(self._concentration))
        z = _implicit(middle, self._log_below(middle).exp() - tail, density)
        z = fb.where(tail == 0, -math.pi, fb.where(tail >= 0, z, math.nan))
        return (self._loc + fb.where(above, -z, z)).to(self.loc.dtype)

    def entropy(self) -> Tensor:
        kappa = self._concentration
        # κ·(1 − I₁/I₀), whose parts cancel where κ is large.
        far = kappa > 1e3
        inverse = 1 / fb.where(far, kappa, 1e3)
        series = 0.5 + inverse * (
            1 / 8 + inverse * (1 / 8 + inverse * (25 / 128 + inverse * 13 / 32))
        )
        near = fb.where(far, 1.0, kappa)
        spread = near * (1 - special.i1e(near) / special.i0e(near))
        result = (2 * math.pi * special.i0e(kappa)).log() + fb.where(far, series, spread)
        return result.to(self.loc.dtype)
