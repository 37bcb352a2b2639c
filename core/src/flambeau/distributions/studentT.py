"""Student's t distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import flambeau as fb
from flambeau import Size, Tensor, special
from flambeau.distributions import constraints
from flambeau.distributions._symmetric import Symmetric
from flambeau.distributions._tails import LARGE, tail_steps
from flambeau.distributions.chi2 import Chi2
from flambeau.distributions.utils import (
    _log1p_square,
    _log_of_rest,
    _standard_normal,
    broadcast_all,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["StudentT"]


class StudentT(Symmetric):
    """Student's t distribution, p(x) ∝ (1 + y²/df)^(−(df+1)/2) with y = (x − loc)/scale.

    Args:
        df: degrees of freedom, positive; the mean exists for df > 1, the variance for df > 2.
        loc: the median.
        scale: the scale, positive.

    >>> from flambeau.distributions import StudentT
    >>> import flambeau as fb
    >>> d = StudentT(fb.tensor([1.0, 4.0]))
    >>> d.mean, d.variance, d.log_prob(fb.tensor(0.0))
    (tensor([nan, 0.]), tensor([nan, 2.]), tensor([-1.1447, -0.9808]))
    """

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    _batch_parameters = ("df", "loc", "scale", "_chi2")

    def __init__(
        self, df: object, loc: object = 0.0, scale: object = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.loc, self.scale, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def variance(self) -> Tensor:
        finite = self.df > 2
        df = fb.where(finite, self.df, 3.0)  # keeps the gradient of the others finite
        result = self.scale.pow(2) * df / (df - 2)
        return result.masked_fill(~finite, math.inf).masked_fill(self.df <= 1, math.nan)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        normal = _standard_normal(shape, dtype=self.df.dtype, device=self.df.device)
        chi2 = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (normal * fb.rsqrt(chi2 / self.df))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        normalizer = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + fb.lgamma(0.5 * self.df)
            - fb.lgamma(0.5 * (self.df + 1.0))
        )
        power = _log1p_square(value - self.loc, self.scale, self.df.sqrt())
        return -0.5 * (self.df + 1.0) * power - normalizer

    def _log_tail(self, z: Tensor) -> Tensor:
        """log P(Z > |z|)."""
        size = fb.where(z < 0, -z, z)
        finfo = fb.finfo(size.dtype)
        # Not quite 0, where the beta distribution has a pole that z² would have to cancel.
        size = fb.where(size < finfo.tiny**0.5, size + finfo.tiny**0.5, size)
        root = self.df.sqrt()
        far = size / root > finfo.tiny**-0.25
        ratio = fb.where(far, 1.0, size / root)
        square = ratio * ratio
        near = special.log_betainc(0.5 * self.df, 0.5, 1 / (1 + square), square / (1 + square))
        first = -self.df * (size / root).log() - fb.log(0.5 * self.df) - self._log_beta()
        return fb.where(far, first, near) - math.log(2)

    def _log_beta(self) -> Tensor:
        """log B(df/2, 1/2)."""
        half = 0.5 * self.df
        return fb.lgamma(half) + math.lgamma(0.5) - fb.lgamma(half + 0.5)

    def _upper(self, z: Tensor) -> Tensor:
        tail = self._log_tail(z).exp()
        return fb.where(z < 0, 1 - tail, tail)

    def _log_upper(self, z: Tensor) -> Tensor:
        log_tail = self._log_tail(z)
        return fb.where(z < 0, _log_of_rest(log_tail), log_tail)

    def _upper_quantile(self, part: Tensor) -> Tensor:
        half = 0.5 * self.df
        # The first term of the tail, which is all of it far out.
        log_x = (fb.log(2 * part) + half.log() + self._log_beta()) / half
        far = log_x < -80
        x = special.betaincinv(half, 0.5, fb.where(far, 0.5, 2 * part))
        y = special.betaincinv(0.5, half, 1 - 2 * part + fb.finfo(part.dtype).tiny ** 0.5)
        outer = (x < 0.5) | (part < 1e-5)
        ratio = fb.where(outer, (1 - x) / x, y / (1 - fb.where(outer, 0.5, y)))
        z = self.df.sqrt() * fb.where(far, fb.exp(-0.5 * log_x), ratio.sqrt())
        few = outer & ~far & (self.df > LARGE) & (part > 0)  # digits of 1 − x
        if not few.any():
            return z
        at, level = fb.where(few, z, 5.0), fb.where(few, part, 0.25).log()
        factor = tail_steps(self._log_tail, level, at, fb.full_like(at, 1e-5))
        return z * fb.where(few, factor, 1.0)

    def entropy(self) -> Tensor:
        return (
            self.scale.log()
            + 0.5 * (self.df + 1) * (fb.digamma(0.5 * (self.df + 1)) - fb.digamma(0.5 * self.df))
            + 0.5 * self.df.log()
            + self._log_beta()
        )
