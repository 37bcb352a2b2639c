"""Student's t distribution."""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau import Size, Tensor
from flambeau.distributions import constraints
from flambeau.distributions.chi2 import Chi2
from flambeau.distributions.distribution import Distribution
from flambeau.distributions.utils import _standard_normal, broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
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
    support = constraints.real
    has_rsample = True
    _batch_parameters = ("df", "loc", "scale", "_chi2")

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.df > 2
        df = fb.where(finite, self.df, 3.0)  # keeps the gradient of the others finite
        result = self.scale.pow(2) * df / (df - 2)
        return result.masked_fill(~finite, math.inf).masked_fill(self.df <= 1, math.nan)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        normal = _standard_normal(shape, dtype=self.df.dtype, device=self.df.device)
        chi2 = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (normal * fb.rsqrt(chi2 / self.df))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        normalizer = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + fb.lgamma(0.5 * self.df)
            - fb.lgamma(0.5 * (self.df + 1.0))
        )
        return -0.5 * (self.df + 1.0) * fb.log1p(y**2.0 / self.df) - normalizer

    def entropy(self) -> Tensor:
        log_beta = fb.lgamma(0.5 * self.df) + math.lgamma(0.5) - fb.lgamma(0.5 * (self.df + 1))
        return (
            self.scale.log()
            + 0.5 * (self.df + 1) * (fb.digamma(0.5 * (self.df + 1)) - fb.digamma(0.5 * self.df))
            + 0.5 * self.df.log()
            + log_beta
        )
