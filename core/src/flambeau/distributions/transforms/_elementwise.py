"""Transforms of single numbers."""

from __future__ import annotations

import math
from numbers import Number
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau import Tensor
from flambeau.distributions import constraints
from flambeau.distributions.transforms._base import Transform
from flambeau.distributions.utils import _whole, broadcast_all, lazy_property

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flambeau.distributions.constraints import _IndependentConstraint, _Real


class ExpTransform(Transform):
    """y = exp(x).

    >>> from flambeau.distributions import ExpTransform
    >>> import flambeau as fb
    >>> ExpTransform().inv(fb.tensor([1.0, 2.0]))
    tensor([0.0000, 0.6931])
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExpTransform)

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """y = x^exponent, for positive x.

    >>> from flambeau.distributions import PowerTransform
    >>> import flambeau as fb
    >>> PowerTransform(2)(fb.tensor([1.0, 3.0]))
    tensor([1., 9.])
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: object, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return PowerTransform(self.exponent, cache_size=cache_size)

    @lazy_property
    def sign(self) -> Tensor | int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool(
            self.exponent.eq(other.exponent).all().item()
        )

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Sequence[int]) -> Any:
        return fb.broadcast_shapes(shape, self.exponent.shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return fb.broadcast_shapes(shape, self.exponent.shape)


class SigmoidTransform(Transform):
    """y = 1/(1 + exp(−x)), kept away from 0 and 1 by the least distances of the dtype.

    >>> from flambeau.distributions import SigmoidTransform
    >>> import flambeau as fb
    >>> SigmoidTransform()(fb.tensor([0.0, 1.0]))
    tensor([0.5000, 0.7311])
    """

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = +1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SigmoidTransform)

    def _call(self, x: Tensor) -> Tensor:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        y = _inside(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -fb.softplus(-x) - fb.softplus(x)


def _inside(y: Tensor) -> Tensor:
    finfo = fb.finfo(y.dtype)
    return fb.clamp(y, min=finfo.tiny, max=1.0 - finfo.eps)


def _clipped_sigmoid(x: Tensor) -> Tensor:
    return _inside(fb.sigmoid(x))


class SoftplusTransform(Transform):
    """y = log(1 + exp(x)), which is x itself beyond 20.

    >>> from flambeau.distributions import SoftplusTransform
    >>> import flambeau as fb
    >>> SoftplusTransform()(fb.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftplusTransform)

    def _call(self, x: Tensor) -> Tensor:
        return fb.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -fb.softplus(-x)


class TanhTransform(Transform):
    """y = tanh(x).

    It equals an affine transform, a sigmoid and another affine transform, which is worse where
    tanh is nearly ±1.  Use ``cache_size=1`` where values are inverted that were just computed.

    >>> from flambeau.distributions import TanhTransform
    >>> import flambeau as fb
    >>> t = TanhTransform()
    >>> t.log_abs_det_jacobian(fb.tensor([0.0, 50.0]), None)
    tensor([  0.0000, -98.6137])
    """

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = +1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TanhTransform)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return fb.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # log(1 − tanh²x) without the difference that rounds to 0 from |x| = 9 on.
        return 2.0 * (math.log(2.0) - x - fb.softplus(-2.0 * x))


class AbsTransform(Transform):
    """y = |x|; as inverse, of the two preimages, the nonnegative one.

    >>> from flambeau.distributions import AbsTransform
    >>> import flambeau as fb
    >>> AbsTransform()(fb.tensor([-1.0, 2.0]))
    tensor([1., 2.])
    """

    domain = constraints.real
    codomain = constraints.positive

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbsTransform)

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """y = loc + scale · x.

    Args:
        loc: a number or tensor.
        scale: a number or tensor; a negative one turns the order round.
        event_dim: how many dimensions on the right make one event.

    Raises:
        TypeError: `loc` or `scale` is neither a number nor an array of numbers, or `event_dim` is
            no whole number.

    >>> from flambeau.distributions import AffineTransform
    >>> import flambeau as fb
    >>> AffineTransform(1.0, 2.0)(fb.tensor([0.0, 1.0]))
    tensor([1., 3.])
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = _numbers(loc, "loc")
        self.scale = _numbers(scale, "scale")
        self._event_dim = _whole(event_dim, "AffineTransform", "event_dim")

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> constraints.Constraint:
        return _reals(self.event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> _Real | _IndependentConstraint:
        return _reals(self.event_dim)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AffineTransform)
            and _equal(self.loc, other.loc)
            and _equal(self.scale, other.scale)
        )

    @property
    def sign(self) -> Tensor | int:
        if isinstance(self.scale, Number):
            scale: Any = self.scale
            return (scale > 0) - (scale < 0)
        return self.scale.sign()

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        shape = x.shape
        if isinstance(self.scale, Number):
            scale: Any = self.scale
            result = fb.full_like(x, math.log(abs(scale)))
        else:
            result = fb.abs(self.scale).log()
        if self.event_dim:
            result = result.view((*result.shape[: -self.event_dim], -1)).sum(-1)
            shape = shape[: -self.event_dim]
        return result.expand(shape)

    def forward_shape(self, shape: Sequence[int]) -> Any:
        return fb.broadcast_shapes(
            shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ())
        )

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self.forward_shape(shape)


def _reals(event_dim: int) -> _Real | _IndependentConstraint:
    if event_dim == 0:
        return constraints.real
    return constraints.independent(constraints.real, event_dim)


def _numbers(value: Any, argument: str) -> Any:
    if isinstance(value, Tensor | Number):
        return value
    try:
        # NumPy's arrays would compute themselves, in their own way and words.
        return fb.as_tensor(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"AffineTransform(): argument {argument!r} must be a number or a Tensor, "
            f"not {type(value).__name__}"
        ) from error


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, Number) and isinstance(other, Number):
        return one == other
    return bool((one == other).all().item())


class CumulativeDistributionTransform(Transform):
    """y = F(x), the cumulative distribution function of a distribution.

    With a second distribution's inverse after it, it couples variables by a copula.

    >>> from flambeau.distributions import CumulativeDistributionTransform, Normal
    >>> import flambeau as fb
    >>> t = CumulativeDistributionTransform(Normal(0.0, 1.0))
    >>> t(fb.tensor([0.0, 1.0]))
    tensor([0.5000, 0.8413])
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        if not hasattr(distribution, "log_prob"):
            raise TypeError(
                "CumulativeDistributionTransform(): argument 'distribution' must be Distribution, "
                f"not {type(distribution).__name__}"
            )
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> constraints.Constraint:
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)
