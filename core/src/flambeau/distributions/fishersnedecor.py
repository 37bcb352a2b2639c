"""The Fisher-Snedecor (F) distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import flambeau as fb
from flambeau import Size, Tensor, special
from flambeau.distributions import constraints
from flambeau.distributions._tails import LARGE, BetaTails, tail_steps
from flambeau.distributions.gamma import Gamma
from flambeau.distributions.utils import _power_log, broadcast_all

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["FisherSnedecor"]


class FisherSnedecor(BetaTails):
    """The distribution of the ratio of two chi-squared variables over their degrees of freedom.

    p(x) ∝ x^(df1/2 − 1) · (1 + df1·x/df2)^(−(df1 + df2)/2) for x > 0.

    Args:
        df1: degrees of freedom above, positive.
        df2: degrees of freedom below, positive; the mean exists for df2 > 2.

    >>> from flambeau.distributions import FisherSnedecor
    >>> import flambeau as fb
    >>> FisherSnedecor(1.0, 4.0).mean, FisherSnedecor(2.0, 4.0).log_prob(fb.tensor(1.0))
    (tensor(2.), tensor(-1.2164))
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _batch_parameters = ("df1", "df2", "_gamma1", "_gamma2")

    def __init__(self, df1: object, df2: object, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        df2 = self.df2.masked_fill(self.df2 <= 2, math.nan)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return mode.masked_fill(self.df1 <= 2, math.nan)

    @property
    def variance(self) -> Tensor:
        df2 = self.df2.masked_fill(self.df2 <= 4, math.nan)
        return 2 * df2.pow(2) * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        above = self._gamma1.rsample(sample_shape).view(shape)
        below = self._gamma2.rsample(sample_shape).view(shape)
        tiny = fb.finfo(below.dtype).tiny
        below.clamp_(min=tiny)
        ratio = above / below
        ratio.clamp_(min=tiny)
        return ratio

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        half1 = self.df1 * 0.5
        half2 = self.df2 * 0.5
        ratio = self.df1 / self.df2
        normalizer = (half1 + half2).lgamma() - half1.lgamma() - half2.lgamma()
        power = half1 * ratio.log() + _power_log(half1 - 1, value)
        product = ratio * value
        far = product.isinf()  # its logarithm is not
        distant = ratio.log() + fb.where(far, value, 1.0).log()
        log1p = fb.where(far, distant, fb.log1p(fb.where(far, 1.0, product)))
        return normalizer + power - (half1 + half2) * log1p

    def _beta_place(self, value: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        product = self.df1 * value
        far = product.isinf()
        product = fb.where(far, 1.0, product)
        total = product + self.df2
        x = fb.where(far, 1.0, product / total)
        y = fb.where(far, self.df2 / self.df1 / fb.where(far, value, 1.0), self.df2 / total)
        return self.df1 / 2, self.df2 / 2, x, y

    def icdf(self, value: Tensor) -> Tensor:
        half1, half2 = self.df1 / 2, self.df2 / 2
        x = special.betaincinv(half1, half2, value)
        y = special.betaincinv(half2, half1, 1 - value)
        # From 1 − x where x has few digits of it.
        upper = (x > 0.5) & (value > 0.01)
        x, y = fb.where(upper, 0.5, x), fb.where(upper, y, 0.5)
        found = self.df2 / self.df1 * fb.where(upper, (1 - y) / y, x / (1 - x))
        few = (fb.maximum(self.df1, self.df2) > LARGE) & (value > 0) & (value < 1)
        few = few & (found > 0) & (found < math.inf)
        if not few.any():
            return found
        value, low = fb.where(few, value, 0.5), value <= 0.5
        level = fb.where(low, value.log(), (-value).log1p())
        width = 1e-3 * (2 / self.df1 + 2 / self.df2).sqrt().clamp(max=1.0)

        def log_tail(at: Tensor) -> Tensor:
            a, b, x, y = self._beta_place(at)
            p, q = fb.where(low, a, b), fb.where(low, b, a)
            return special.log_betainc(p, q, fb.where(low, x, y), fb.where(low, y, x))

        factor = tail_steps(log_tail, level, fb.where(few, found, 1.0), width)
        return found * fb.where(few & factor.isfinite(), factor, 1.0)

    def entropy(self) -> Tensor:
        half1, half2 = self.df1 / 2, self.df2 / 2
        total = half1 + half2
        return (
            (self.df2 / self.df1).log()
            + half1.lgamma()
            + half2.lgamma()
            - total.lgamma()
            + (1 - half1) * half1.digamma()
            - (1 + half2) * half2.digamma()
            + total * total.digamma()
        )
