"""Divergences between members of different families.

Most are −H(p) − E_p[log q(x)]; infinite where q gives probability 0 to what p does not.
"""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.distributions.bernoulli import Bernoulli
from flambeau.distributions.beta import Beta
from flambeau.distributions.binomial import Binomial
from flambeau.distributions.continuous_bernoulli import ContinuousBernoulli
from flambeau.distributions.exponential import Exponential
from flambeau.distributions.gamma import Gamma
from flambeau.distributions.gumbel import Gumbel
from flambeau.distributions.kl._registry import register_kl
from flambeau.distributions.laplace import Laplace
from flambeau.distributions.normal import Normal
from flambeau.distributions.pareto import Pareto
from flambeau.distributions.poisson import Poisson
from flambeau.distributions.uniform import Uniform
from flambeau.distributions.utils import euler_constant

_LOG_2PI = math.log(2 * math.pi)
_HALF_LINE = (Exponential, Gamma)
_BOUNDED = (Beta, ContinuousBernoulli, Pareto, Uniform)
"""Families that lack part of (0, ∞)."""


def _infinite_like(tensor: Tensor) -> Tensor:
    return fb.full_like(tensor, math.inf)


def _register_infinite(type_p: type, types_q: tuple[type, ...], parameter: str) -> None:
    def infinite(p: object, q: object) -> Tensor:
        return _infinite_like(getattr(p, parameter))

    for type_q in types_q:
        register_kl(type_p, type_q)(infinite)


_register_infinite(Beta, (Pareto,), "concentration1")
_register_infinite(ContinuousBernoulli, (Pareto,), "probs")
_register_infinite(Exponential, _BOUNDED, "rate")
_register_infinite(Gamma, _BOUNDED, "concentration")
_register_infinite(Gumbel, _BOUNDED + _HALF_LINE, "loc")
_register_infinite(Laplace, _BOUNDED + _HALF_LINE, "loc")
_register_infinite(Normal, _BOUNDED + _HALF_LINE, "loc")
_register_infinite(Pareto, (Beta, ContinuousBernoulli, Uniform), "scale")
_register_infinite(Poisson, (Bernoulli, Binomial), "rate")


@register_kl(Bernoulli, Poisson)
def _(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
@register_kl(Uniform, ContinuousBernoulli)
def _(p: Any, q: Any) -> Tensor:
    result = -p.entropy() - p.mean * q.logits - fb.log1p(-q.probs) - q._cont_bern_log_norm()
    if isinstance(p, Uniform):
        outside = (p.high >= q.support.upper_bound) | (p.low <= q.support.lower_bound)
        result = result.masked_fill(outside, math.inf)
    return result


@register_kl(Beta, Exponential)
def _(p: Beta, q: Exponential) -> Tensor:
    mean = p.concentration1 / (p.concentration1 + p.concentration0)
    return -p.entropy() - q.rate.log() + q.rate * mean


@register_kl(Beta, Gamma)
def _(p: Beta, q: Gamma) -> Tensor:
    a, total = p.concentration1, p.concentration1 + p.concentration0
    normalizer = q.concentration.lgamma() - q.concentration * q.rate.log()
    mean_log = (q.concentration - 1) * (a.digamma() - total.digamma())
    return -p.entropy() + normalizer - mean_log + q.rate * a / total


@register_kl(Beta, Normal)
def _(p: Beta, q: Normal) -> Tensor:
    total = p.concentration1 + p.concentration0
    mean = p.concentration1 / total
    variance = q.scale.pow(2)
    second = (mean * (1 - mean) / (total + 1) + mean.pow(2)) * 0.5
    distance = (second - q.loc * mean + q.loc.pow(2) * 0.5) / variance
    return -p.entropy() + 0.5 * (variance * 2 * math.pi).log() + distance


@register_kl(Beta, Uniform)
def _(p: Beta, q: Uniform) -> Tensor:
    result = -p.entropy() + (q.high - q.low).log()
    return result.masked_fill((q.low > 0.0) | (q.high < 1.0), math.inf)


@register_kl(ContinuousBernoulli, Exponential)
def _(p: ContinuousBernoulli, q: Exponential) -> Tensor:
    return -p.entropy() - fb.log(q.rate) + q.rate * p.mean


@register_kl(ContinuousBernoulli, Normal)
def _(p: ContinuousBernoulli, q: Normal) -> Tensor:
    normalizer = 0.5 * (_LOG_2PI + fb.square(q.loc / q.scale)) + fb.log(q.scale)
    second = p.variance + fb.square(p.mean) - 2.0 * q.loc * p.mean
    return -p.entropy() + normalizer + second / (2.0 * fb.square(q.scale))


@register_kl(ContinuousBernoulli, Uniform)
def _(p: ContinuousBernoulli, q: Uniform) -> Tensor:
    result = -p.entropy() + (q.high - q.low).log()
    return result.masked_fill((q.low >= 0.0) | (q.high <= 1.0), math.inf)


@register_kl(Exponential, Gamma)
def _(p: Exponential, q: Gamma) -> Tensor:
    ratio, a = q.rate / p.rate, q.concentration
    return -a * fb.log(ratio) + ratio + a.lgamma() + a * euler_constant - (1 + euler_constant)


@register_kl(Exponential, Gumbel)
def _(p: Exponential, q: Gumbel) -> Tensor:
    product, location = p.rate * q.scale, q.loc / q.scale
    exponential = fb.exp(location) * product / (product + 1)
    return product.log() - 1 - location + exponential + product.reciprocal()


@register_kl(Exponential, Normal)
def _(p: Exponential, q: Normal) -> Tensor:
    variance, squared_rate = q.scale.pow(2), p.rate.pow(2)
    normalizer = 0.5 * fb.log(squared_rate * variance * 2 * math.pi)
    distance = squared_rate.reciprocal() - q.loc / p.rate + q.loc.pow(2) * 0.5
    return normalizer - 1 + distance / variance


@register_kl(Gamma, Exponential)
def _(p: Gamma, q: Exponential) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Gamma, Gumbel)
def _(p: Gamma, q: Gumbel) -> Tensor:
    a, product, location = p.concentration, p.rate * q.scale, q.loc / q.scale
    of_p = (a - 1) * a.digamma() - a.lgamma() - a
    exponential = fb.exp(location) * (1 + product.reciprocal()).pow(-a)
    return of_p + product.log() + a / product + exponential - location


@register_kl(Gamma, Normal)
def _(p: Gamma, q: Normal) -> Tensor:
    a, variance, squared_rate = p.concentration, q.scale.pow(2), p.rate.pow(2)
    normalizers = 0.5 * fb.log(squared_rate * variance * 2 * math.pi) - a - a.lgamma()
    second = 0.5 * (a.pow(2) + a) / squared_rate
    distance = second - q.loc * a / p.rate + 0.5 * q.loc.pow(2)
    return normalizers + (a - 1) * a.digamma() + distance / variance


@register_kl(Gumbel, Normal)
def _(p: Gumbel, q: Normal) -> Tensor:
    ratio = p.scale / q.scale
    variance = (math.pi * ratio * 0.5).pow(2) / 3
    distance = ((p.loc + p.scale * euler_constant - q.loc) / q.scale).pow(2) * 0.5
    return -(ratio / math.sqrt(2 * math.pi)).log() + variance + distance - (euler_constant + 1)


@register_kl(Laplace, Normal)
def _(p: Laplace, q: Normal) -> Tensor:
    variance = q.scale.pow(2)
    ratio = p.scale.pow(2) / variance
    distance = 0.5 * p.loc.pow(2) - p.loc * q.loc + 0.5 * q.loc.pow(2)
    return -0.5 * fb.log(2 * ratio / math.pi) + ratio + distance / variance - 1


@register_kl(Normal, Gumbel)
def _(p: Normal, q: Gumbel) -> Tensor:
    mean, location = p.loc / q.scale, q.loc / q.scale
    ratio = (p.scale / q.scale).pow(2)
    exponential = fb.exp(-mean + 0.5 * ratio + location)
    return -ratio.log() * 0.5 + (mean - location) + exponential - 0.5 * (1 + _LOG_2PI)


@register_kl(Normal, Laplace)
def _(p: Normal, q: Laplace) -> Tensor:
    diff = p.loc - q.loc
    standard = diff / p.scale
    near = math.sqrt(2 / math.pi) * p.scale * fb.exp(-0.5 * standard.pow(2))
    far = diff * fb.erf(math.sqrt(0.5) * standard)
    constant = 0.5 * (1 + math.log(0.5 * math.pi))
    return -fb.log(p.scale / q.scale) + (near + far) / q.scale - constant


@register_kl(Pareto, Exponential)
def _(p: Pareto, q: Exponential) -> Tensor:
    product = p.scale * q.rate
    mean = p.alpha * product / (p.alpha - 1)
    result = (p.alpha / product).log() - p.alpha.reciprocal() + mean - 1
    return result.masked_fill(p.alpha <= 1, math.inf)


@register_kl(Pareto, Gamma)
def _(p: Pareto, q: Gamma) -> Tensor:
    mean_log = p.scale.log() + p.alpha.reciprocal()
    normalizer = q.concentration.lgamma() - q.concentration * q.rate.log()
    mean = q.rate * p.alpha * p.scale / (p.alpha - 1)
    result = p.alpha.log() - mean_log + normalizer + (1 - q.concentration) * mean_log + mean - 1
    return result.masked_fill(p.alpha <= 1, math.inf)


@register_kl(Pareto, Normal)
def _(p: Pareto, q: Normal) -> Tensor:
    double_variance = 2 * q.scale.pow(2)
    common = p.scale / (p.alpha - 1)
    normalizer = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log()
    variance = p.alpha * common.pow(2) / (p.alpha - 2)
    distance = (p.alpha * common - q.loc).pow(2)
    result = normalizer - p.alpha.reciprocal() + (variance + distance) / double_variance - 1
    return result.masked_fill(p.alpha <= 2, math.inf)


def _mean_log(low: Tensor, high: Tensor) -> Tensor:
    """E[log x] for x uniform between `low` and `high`."""
    width = high - low
    return (fb.xlogy(high, high) - fb.xlogy(low, low) - width) / width


@register_kl(Uniform, Beta)
def _(p: Uniform, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    logs = (a - 1) * _mean_log(p.low, p.high) + (b - 1) * _mean_log(1 - p.high, 1 - p.low)
    normalizer = a.lgamma() + b.lgamma() - (a + b).lgamma()
    result = normalizer - fb.log(p.high - p.low) - logs
    return result.masked_fill((p.high > 1.0) | (p.low < 0.0), math.inf)


@register_kl(Uniform, Exponential)
def _(p: Uniform, q: Exponential) -> Tensor:
    result = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return result.masked_fill(p.low < 0.0, math.inf)


@register_kl(Uniform, Gamma)
def _(p: Uniform, q: Gamma) -> Tensor:
    normalizer = q.concentration.lgamma() - q.concentration * q.rate.log()
    mean_log = (1 - q.concentration) * _mean_log(p.low, p.high)
    mean = q.rate * (p.high + p.low) / 2
    result = -(p.high - p.low).log() + normalizer + mean_log + mean
    return result.masked_fill(p.low < 0.0, math.inf)


@register_kl(Uniform, Gumbel)
def _(p: Uniform, q: Gumbel) -> Tensor:
    ratio = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return ratio.log() + 0.5 * (high + low) - ratio * (fb.exp(-high) - fb.exp(-low))


@register_kl(Uniform, Normal)
def _(p: Uniform, q: Normal) -> Tensor:
    width = p.high - p.low
    normalizer = (math.sqrt(math.pi * 2) * q.scale / width).log()
    distance = ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    return normalizer + 0.5 * (width.pow(2) / 12 + distance) / q.scale.pow(2)


@register_kl(Uniform, Pareto)
def _(p: Uniform, q: Pareto) -> Tensor:
    normalizer = (q.alpha * q.scale.pow(q.alpha) * (p.high - p.low)).log()
    result = _mean_log(p.low, p.high) * (q.alpha + 1) - normalizer
    return result.masked_fill(p.low < q.scale, math.inf)
