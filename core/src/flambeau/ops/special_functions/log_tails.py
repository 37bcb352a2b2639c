"""Logarithms of the incomplete gamma and beta functions, also where these underflow.

Computed in float64 by what `gamma_quantiles` and `incomplete_beta` find quantiles with: the
logarithm of the smaller tail, of which the larger one is the rest.
"""

from __future__ import annotations

import math
from typing import Any

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._writes.out import deliver
from flambeau.ops.declaration.table import composite
from flambeau.ops.pointwise.elementwise import exp, expm1, isnan, log, log1p, where
from flambeau.ops.special_functions import gamma_quantiles, incomplete_beta
from flambeau.ops.special_functions.incomplete_beta import operands


def _log_rest(tail: Tensor) -> Tensor:
    """log(1 - exp(tail)), exact for small and for large tails (M. Mächler, 2012)."""
    near = tail > -math.log(2)
    far = log1p(-exp(where(near, -1.0, tail)))
    return where(near, log(-expm1(where(near, tail, -1.0))), far)


def _log_gamma_tail(a: Tensor, x: Tensor, lower: bool) -> Tensor:
    dtype = x.dtype
    a, x = cast(a, D.float64), cast(x, D.float64)
    inside = (a > 0) & (x > 0) & (a < math.inf) & (x < math.inf)
    tail, below, _ = gamma_quantiles.tails(where(inside, a, 1.0), where(inside, x, 1.0))
    found = where(below if lower else ~below, tail, _log_rest(tail))
    full = (x == math.inf) | (a == 0)  # no mass is above x
    edge = where(full, 0.0, -math.inf) if lower else where(full, -math.inf, 0.0)
    wrong = isnan(a) | isnan(x) | (a < 0) | (x < 0) | ((a == 0) & (x == 0))
    wrong = wrong | ((a == math.inf) & (x == math.inf))
    return cast(where(inside, found, where(wrong, math.nan, edge)), dtype)


@composite(promotes="float")
def _log_gammainc(a: Tensor, x: Tensor) -> Tensor:
    return _log_gamma_tail(a, x, True)


@composite(promotes="float")
def _log_gammaincc(a: Tensor, x: Tensor) -> Tensor:
    return _log_gamma_tail(a, x, False)


@composite(promotes="float")
def _log_betainc(a: Tensor, b: Tensor, odds: Tensor) -> Tensor:
    """As backends of API 1 know it: log-odds have fewer digits than places do."""
    return _log_beta_tail(a, b, 1 / (1 + exp(-odds)), 1 / (1 + exp(odds)))


@composite(promotes="float")
def _log_beta_tail(a: Tensor, b: Tensor, x: Tensor, y: Tensor) -> Tensor:
    dtype = x.dtype
    a, b = cast(a, D.float64), cast(b, D.float64)
    x, y = incomplete_beta.places(cast(x, D.float64), cast(y, D.float64))
    inside, plain = incomplete_beta.plain_inside(a, b, x, y)
    tail, below, _ = incomplete_beta.tails(*plain)
    found = where(below, tail, _log_rest(tail))
    low, wrong = incomplete_beta.masses_at_ends(a, b, x, y)
    edge = where((y <= 0) | ((x > 0) & low), 0.0, -math.inf)
    return cast(where(inside, found, where(wrong, math.nan, edge)), dtype)


def _gamma_rate(F, a, x, result):
    """The density at x over the tail."""
    return F.exp(F.sub(gamma_quantiles.log_density(F, a, x), result))


@_log_gammainc.gradient("x")
def _(F, g, a, x, result):
    return F.mul(g, _gamma_rate(F, a, x, result))


@_log_gammaincc.gradient("x")
def _(F, g, a, x, result):
    return F.neg(F.mul(g, _gamma_rate(F, a, x, result)))


@_log_gammainc.gradient("a")
def _(F, g, a, x, result):
    rate = _gamma_rate(F, a, x, result)
    return F.neg(F.mul(g, F.mul(rate, F.standard_gamma_grad(a, x, True))))


@_log_gammaincc.gradient("a")
def _(F, g, a, x, result):
    return F.mul(g, F.mul(_gamma_rate(F, a, x, result), F.standard_gamma_grad(a, x, True)))


def _beta_rate(F, g, a, b, x, y, result):
    """`g` times the density over the tail."""
    return F.mul(g, F.exp(F.sub(incomplete_beta.log_density(F, a, b, x, y), result)))


@_log_betainc.gradient("odds")
def _(F, g, a, b, odds, result):
    x, y = F.sigmoid(odds), F.sigmoid(F.neg(odds))
    return F.mul(_beta_rate(F, g, a, b, x, y, result), F.mul(x, y))


@_log_betainc.gradient("a")
def _(F, g, a, b, odds, result):
    x, y = F.sigmoid(odds), F.sigmoid(F.neg(odds))
    follows = incomplete_beta.follows(F, a, b, x, y)[0]
    return F.neg(F.mul(_beta_rate(F, g, a, b, x, y, result), follows))


@_log_betainc.gradient("b")
def _(F, g, a, b, odds, result):
    x, y = F.sigmoid(odds), F.sigmoid(F.neg(odds))
    follows = incomplete_beta.follows(F, a, b, x, y)[1]
    return F.mul(_beta_rate(F, g, a, b, x, y, result), follows)


@_log_beta_tail.gradient("x")
def _(F, g, a, b, x, y, result):
    left, x, y = incomplete_beta.exact_place(F, x, y)
    return F.where(left, _beta_rate(F, g, a, b, x, y, result), F.scalar(0, g))


@_log_beta_tail.gradient("y")
def _(F, g, a, b, x, y, result):
    left, x, y = incomplete_beta.exact_place(F, x, y)
    return F.where(left, F.scalar(0, g), F.neg(_beta_rate(F, g, a, b, x, y, result)))


@_log_beta_tail.gradient("a")
def _(F, g, a, b, x, y, result):
    _, x, y = incomplete_beta.exact_place(F, x, y)
    follows = incomplete_beta.follows(F, a, b, x, y)[0]
    return F.neg(F.mul(_beta_rate(F, g, a, b, x, y, result), follows))


@_log_beta_tail.gradient("b")
def _(F, g, a, b, x, y, result):
    _, x, y = incomplete_beta.exact_place(F, x, y)
    follows = incomplete_beta.follows(F, a, b, x, y)[1]
    return F.mul(_beta_rate(F, g, a, b, x, y, result), follows)


@_log_gammainc.samples(D.float32, D.float64)
@_log_gammaincc.samples(D.float32, D.float64)
def _(S):
    a, x = S.Arr((3,), low=0.5, high=9, fixed=True), S.Arr((3,), low=0.5, high=9, seed=1)
    few = S.Arr((), low=1, high=2, fixed=True), S.Arr((), low=0.25, high=0.75)
    return [
        S.Sample((a, x), "vector", True),
        S.Sample(few, "scalar"),
        S.Sample((S.Arr((0, 3), fixed=True), S.Arr((0, 3))), "empty"),
    ]


@_log_betainc.samples(D.float32, D.float64)
def _(S):
    a, b = S.Arr((3,), low=0.5, high=6, fixed=True), S.Arr((3,), low=1, high=9, fixed=True)
    few = S.Arr((), low=1, high=2, fixed=True), S.Arr((), low=1, high=2, fixed=True)
    none = S.Arr((0, 3), fixed=True), S.Arr((0, 3), fixed=True)
    return [
        S.Sample((a, b, S.Arr((3,), low=-2, high=2, seed=1)), "vector", True),
        S.Sample((*few, S.Arr((), low=-1, high=1)), "scalar"),
        S.Sample((*none, S.Arr((0, 3))), "empty"),
    ]


@_log_beta_tail.samples(D.float32, D.float64)
def _(S):
    return incomplete_beta.beta_samples(S)


def log_gammainc(a: object, x: object, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of `gammainc`, the distribution function of Gamma(a, 1), also where that is 0.

    Shapes broadcast, and there are gradients in both.  PyTorch has no such function.

    Raises:
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.special.log_gammainc(fb.tensor([1.0, 300.0]), fb.tensor([2.0, 1.0]))
    tensor([-1.4541e-01, -1.4159e+03])
    """
    return deliver(_log_gammainc(*operands("log_gammainc", a=a, x=x)), out, a, x)


def log_gammaincc(a: object, x: object, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of `gammaincc`, which Gamma(a, 1) has above `x`, also where that is 0.

    Shapes broadcast, and there are gradients in both.  PyTorch has no such function.

    Raises:
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.special.log_gammaincc(fb.tensor([1.0, 2.0]), fb.tensor([2.0, 1000.0]))
    tensor([  -2.0000, -993.0912])
    """
    return deliver(_log_gammaincc(*operands("log_gammaincc", a=a, x=x)), out, a, x)


@takes_as_annotated
def log_betainc(
    a: object, b: object, x: Any, y: object = None, *, out: Tensor | None = None
) -> Tensor:
    """The logarithm of `betainc`, the distribution function of Beta(a, b), also where that is 0.

    Of `x` and `y` = 1 - x the smaller is the place, as in `betainc`.  The upper tail is
    log_betainc(b, a, y, x).  Shapes broadcast, and there are gradients in all.  PyTorch has no such
    function.

    Raises:
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.special.log_betainc(fb.tensor([1.0, 300.0]), 2.0, fb.tensor([0.5, 0.001]))
    tensor([-2.8768e-01, -2.0666e+03])
    """
    if y is None:
        y = 1 - x
    return deliver(_log_beta_tail(*operands("log_betainc", a=a, b=b, x=x, y=y)), out, a, b, x)
