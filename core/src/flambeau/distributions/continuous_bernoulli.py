"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.distributions import constraints
from flambeau.distributions._odds import BinaryOdds, need_one
from flambeau.distributions.exp_family import ExponentialFamily
from flambeau.distributions.utils import (
    _binary_cross_entropy,
    _log_of_rest,
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["ContinuousBernoulli"]


_NEAR = 0.1  # log-odds up to which quotients of exponentials are replaced by series


def _tail(logits: Tensor, part: Tensor, rest: Tensor) -> Tensor:
    """expm1(l·x)/expm1(l), of x and 1 − x."""
    near, size, small, ends = _pieces(logits, rest)
    ratio = fb.expm1(-size * part) / fb.expm1(-size)
    far = fb.exp(fb.where(logits > 0, -size * rest, 0.0)) * ratio
    return fb.where(near, part * fb.exp(ends) * _sinhc(small * part) / _sinhc(small), far)


def _log_tail(logits: Tensor, part: Tensor, rest: Tensor) -> Tensor:
    """The logarithm of `_tail`."""
    other = _tail(-logits, rest, part)
    large = other < 0.5
    near, size, small, ends = _pieces(logits, rest)
    ratio = _log_of_rest(-size * part) - _log_of_rest(-size)
    far = fb.where(logits > 0, -size * rest, 0.0) + ratio
    bend = fb.log(_sinhc(small * part) / _sinhc(small))
    close = fb.where(large, 1.0, part).log() + ends + bend
    return fb.where(large, fb.log1p(-fb.where(large, other, 0.0)), fb.where(near, close, far))


def _pieces(logits: Tensor, rest: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Where l is near to 0, |l| elsewhere, l/2 there, and −l·(1 − x)/2 there."""
    near = logits.abs() < _NEAR
    small = fb.where(near, logits, 0.0) / 2
    return near, fb.where(near, 1.0, logits.abs()), small, -small * rest


def _sinhc(x: Tensor) -> Tensor:
    """sinh(x)/x of |x| ≤ 0.05, by its series."""
    y = x.square()
    return 1 + y / 6 * (1 + y / 20 * (1 + y / 42 * (1 + y / 72)))


class ContinuousBernoulli(BinaryOdds, ExponentialFamily):
    """The continuous Bernoulli distribution, p(x) ∝ λ^x·(1 − λ)^(1−x) for 0 ≤ x ≤ 1.

    λ is no probability and not the mean.  Source: Loaiza-Ganem and Cunningham, "The continuous
    Bernoulli: fixing a pervasive error in variational autoencoders" (2019).

    Args:
        probs: λ, within (0, 1).
        logits: log(λ/(1 − λ)), instead of `probs`.
        lims: between these, around 1/2, the normaliser comes from its Taylor series.

    Raises:
        ValueError: both or neither of `probs` and `logits` are given.

    >>> from flambeau.distributions import ContinuousBernoulli
    >>> import flambeau as fb
    >>> d = ContinuousBernoulli(fb.tensor([0.25]))
    >>> d.mean, d.log_prob(fb.tensor([0.0])), d.cdf(fb.tensor([0.5]))
    (tensor([0.4102]), tensor([0.4995]), tensor([0.6340]))
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _batch_parameters = ("probs", "logits", "_param")
    _shared_parameters = ("_lims",)

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        need_one(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
            # Before they are moved into the interval, which would hide it.
            if validate_args is not None:
                if not self.arg_constraints["probs"].check(self.probs).all():
                    raise ValueError("The parameter probs has invalid values")
            self.probs = self._param = clamp_probs(self.probs)
        else:
            (self.logits,) = broadcast_all(logits)
            self._param = self.logits
        if not isinstance(lims, (tuple, list)) or len(lims) != 2:
            raise TypeError(f"ContinuousBernoulli: lims must be two numbers, got {lims!r:.80}")
        self._lims = lims
        super().__init__(self._param.size(), validate_args=validate_args)

    if TYPE_CHECKING:  # subclasses have properties or plain attributes of these names
        probs: Any
    else:

        @lazy_property
        def probs(self) -> Tensor:
            """λ."""
            return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside_unstable_region(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self) -> Tensor:
        """λ, or the lower limit where λ is so near to 1/2 that formulas cancel."""
        return fb.where(
            self._outside_unstable_region(), self.probs, self._lims[0] * fb.ones_like(self.probs)
        )

    def _cont_bern_log_norm(self) -> Tensor:
        """log(2·atanh(1 − 2λ)/(1 − 2λ)), the normaliser."""
        cut = self._cut_probs()
        below = fb.where(cut <= 0.5, cut, fb.zeros_like(cut))
        above = fb.where(cut >= 0.5, cut, fb.ones_like(cut))
        log_norm = fb.log(fb.abs(fb.log1p(-cut) - fb.log(cut))) - fb.where(
            cut <= 0.5, fb.log1p(-2.0 * below), fb.log(2.0 * above - 1.0)
        )
        x = fb.pow(self.probs - 0.5, 2)
        taylor = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return fb.where(self._outside_unstable_region(), log_norm, taylor)

    @property
    def mean(self) -> Tensor:
        cut = self._cut_probs()
        mean = cut / (2.0 * cut - 1.0) + 1.0 / (fb.log1p(-cut) - fb.log(cut))
        x = self.probs - 0.5
        taylor = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * fb.pow(x, 2)) * x
        return fb.where(self._outside_unstable_region(), mean, taylor)

    @property
    def stddev(self) -> Tensor:
        return fb.sqrt(self.variance)

    @property
    def variance(self) -> Tensor:
        cut = self._cut_probs()
        variance = cut * (cut - 1.0) / fb.pow(1.0 - 2.0 * cut, 2) + 1.0 / fb.pow(
            fb.log1p(-cut) - fb.log(cut), 2
        )
        x = fb.pow(self.probs - 0.5, 2)
        taylor = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return fb.where(self._outside_unstable_region(), variance, taylor)

    @fb.no_grad()
    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        level = fb.rand(shape, dtype=self.probs.dtype, device=self.probs.device)
        # The quantile as PyTorch computes it: the level itself where λ is next to 1/2.
        cut = self._cut_probs()
        log_rest = fb.log1p(-cut)
        x = (fb.log1p(-cut + level * (2.0 * cut - 1.0)) - log_rest) / (fb.log(cut) - log_rest)
        return fb.where(self._outside_unstable_region(), x, level)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -_binary_cross_entropy(logits, value) + self._cont_bern_log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        return _tail(self.logits, *self._places(value))

    def log_cdf(self, value: Tensor) -> Tensor:
        below, above = self._places(value)
        return _log_tail(self.logits, below, above)

    def survival_function(self, value: Tensor) -> Tensor:
        below, above = self._places(value)
        return _tail(-self.logits, above, below)

    def log_survival_function(self, value: Tensor) -> Tensor:
        below, above = self._places(value)
        return _log_tail(-self.logits, above, below)

    def _places(self, value: Tensor) -> tuple[Tensor, Tensor]:
        if self._validate_args:
            self._validate_sample(value)
        inside = value.clamp(0, 1)
        return inside, 1 - inside

    def icdf(self, value: Tensor) -> Tensor:
        logits = self.logits
        # The cumulants of a Bernoulli variable, where the quotient would have no derivative.
        near, wide = logits.abs() < 1e-5, logits > 30
        one = fb.where(near, 1.0, logits)
        change = value * fb.expm1(fb.where(wide, 1.0, one))
        little = change < -0.5  # of 1, where the sum of what is left has more digits
        left = fb.where(little, (1 - value) + value * fb.exp(fb.where(little, one, 0.0)), 1.0)
        found = fb.where(little, left.log(), fb.where(little, 0.0, change).log1p()) / one
        least = fb.where(near, logits, 0.0)
        first = value * (1 - value)
        cumulants = value + first * least / 2 + first * (1 - 2 * value) * least.square() / 6
        far = fb.where(wide, logits, 30.0)
        steep = fb.softplus(value.log() + far + fb.log1p(-fb.exp(-far))) / far
        inside = (value >= 0) & (value <= 1)
        found = fb.where(near, cumulants, fb.where(wide, steep, found))
        return fb.where(inside, found, math.nan)

    def entropy(self) -> Tensor:
        log_rest, log_probs = fb.log1p(-self.probs), fb.log(self.probs)
        return self.mean * (log_rest - log_probs) - self._cont_bern_log_norm() - log_rest

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        low, high = self._lims[0] - 0.5, self._lims[1] - 0.5
        outside = (x <= low) | (x > high)
        cut = fb.where(outside, x, low * fb.ones_like(x))
        log_norm = fb.log(fb.abs(fb.expm1(cut))) - fb.log(fb.abs(cut))
        taylor = 0.5 * x + fb.pow(x, 2) / 24.0 - fb.pow(x, 4) / 2880.0
        return fb.where(outside, log_norm, taylor)
