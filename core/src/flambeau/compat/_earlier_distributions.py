"""Distributions as PyTorch 1.2 had them, for programs that are told that it is here.

A transform had one number of dimensions of an event, which said nothing of its domain.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import flambeau as fb
from flambeau.compat._earlier import _instead_of

if TYPE_CHECKING:
    from flambeau._tensor.tensor import Tensor


_PLACE = "flambeau.distributions"


def _value(path: str, make: Callable[[Any], Any]) -> None:
    """`make` gives the value of an attribute, and is called when that is first needed."""
    _instead_of(f"{_PLACE}.{path}")(make)


def _constraint(name: str) -> Callable[[Any], Any]:
    return lambda today: getattr(fb.distributions.constraints, name)


def _base(name: str) -> Callable[[Any], Any]:
    return lambda today: getattr(fb.distributions.Distribution, name)


_value("distribution:Distribution._validate_args", lambda today: False)

for _path in ("gamma:Gamma", "exponential:Exponential"):
    _value(f"{_path}.support", _constraint("positive"))
for _path in ("half_normal:HalfNormal", "half_cauchy:HalfCauchy"):
    _value(f"{_path}.support", _constraint("positive"))
for _path in (
    "multivariate_normal:MultivariateNormal",
    "lowrank_multivariate_normal:LowRankMultivariateNormal",
):
    _value(f"{_path}.support", _constraint("real"))
_value("one_hot_categorical:OneHotCategorical.support", _constraint("simplex"))
_value(
    "poisson:Poisson.arg_constraints",
    lambda today: {**today, "rate": fb.distributions.constraints.positive},
)

# Programs ask for these and catch that they are not implemented.
for _path in (
    "beta:Beta",
    "binomial:Binomial",
    "fishersnedecor:FisherSnedecor",
    "gamma:Gamma",
    "geometric:Geometric",
    "negative_binomial:NegativeBinomial",
    "poisson:Poisson",
    "studentT:StudentT",
):
    for _name in ("cdf", "icdf"):
        _value(f"{_path}.{_name}", _base(_name))
for _path in ("binomial:Binomial", "fishersnedecor:FisherSnedecor", "multinomial:Multinomial"):
    _value(f"{_path}.entropy", _base("entropy"))


@_instead_of(f"{_PLACE}.half_cauchy:HalfCauchy.mean")
def _(mean: Any) -> Any:
    return property(lambda self: fb.full_like(mean.fget(self), fb.nan))


@_instead_of(f"{_PLACE}._symmetric:Folded.log_prob")
def _(log_prob: Callable[..., Any]) -> Callable[..., object]:
    """Numbers below 0 have no density, and are not refused; the base refuses what it checks."""

    @wraps(log_prob)
    def anywhere(self: Any, value: object) -> Tensor:
        if type(self.base_dist)._validate_args:
            self.base_dist._validate_sample(value)
        value = fb.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        found = self.base_dist.log_prob(value) + math.log(2)
        return fb.where(value >= 0, found, -math.inf)

    return anywhere


@_instead_of(f"{_PLACE}.gamma:Gamma.log_prob")
def _(log_prob: Callable[..., Any]) -> Callable[..., object]:
    """Numbers are no values where arguments are checked."""

    @wraps(log_prob)
    def of_tensors(self: Any, value: object) -> object:
        if self._validate_args:
            self._validate_sample(value)
        return log_prob(self, value)

    return of_tensors


@_instead_of(f"{_PLACE}.geometric:Geometric.__init__")
def _(init: Callable[..., Any]) -> Callable[..., object]:
    """A probability of 0 is refused whether arguments are checked or not."""

    @wraps(init)
    def checked(self: Any, probs: Any = None, *args: object, **kwargs: object) -> None:
        init(self, probs, *args, **kwargs)
        if probs is not None and not bool((self.probs > 0).all()):
            raise ValueError("All elements of probs must be greater than 0")

    return checked


@_instead_of(f"{_PLACE}.binomial:Binomial.sample")
def _(sample: Callable[..., Any]) -> Callable[..., object]:
    """A count is a sum of as many Bernoulli variables, so that a seed gives the same counts."""

    @wraps(sample)
    @fb.no_grad()
    def by_trials(self: Any, sample_shape: Any = ()) -> object:
        count = max(int(self.total_count.max()) if self.total_count.numel() else 0, 1)
        shape = (*self._extended_shape(sample_shape), count)
        trials = fb.bernoulli(self.probs.unsqueeze(-1).expand(shape))
        place = fb.arange(count, dtype=trials.dtype, device=trials.device)
        return (trials * (place < self.total_count.unsqueeze(-1))).sum(-1)

    return by_trials


_value("transforms._base:Transform.event_dim", lambda today: 0)
for _name, _dims in (("StickBreaking", 1), ("Softmax", 1), ("LowerCholesky", 2)):
    _path = f"transforms._events:{_name}Transform"
    _value(f"{_path}.event_dim", lambda today, dims=_dims: dims)  # type: ignore[misc]
    _value(f"{_path}.domain", _constraint("real"))
for _name in ("domain", "codomain"):
    _value(f"transforms._elementwise:AffineTransform.{_name}", _constraint("real"))
for _path in (
    "_base:IndependentTransform",
    "_base:ReshapeTransform",
    "_events:CorrCholeskyTransform",
    "_events:PositiveDefiniteTransform",
):
    _value(
        f"transforms.{_path}.event_dim",
        lambda today: property(lambda self: self.codomain.event_dim),
    )
_value(
    "transforms._base:_InverseTransform.event_dim",
    lambda today: property(lambda self: self.inv.event_dim),
)
_COMPOSED = "transforms._base:ComposeTransform"
_value(
    f"{_COMPOSED}.event_dim",
    lambda today: property(lambda self: max((part.event_dim for part in self.parts), default=0)),
)


@_instead_of(f"{_PLACE}.{_COMPOSED}.domain")
def _(domain: object) -> Any:
    constraints = fb.distributions.constraints
    return constraints.dependent_property(
        lambda self: self.parts[0].domain if self.parts else constraints.real
    )


@_instead_of(f"{_PLACE}.{_COMPOSED}.codomain")
def _(codomain: object) -> Any:
    constraints = fb.distributions.constraints
    return constraints.dependent_property(
        lambda self: self.parts[-1].codomain if self.parts else constraints.real
    )


def _unreduced(transform: Any, x: Any, y: Any, event_dim: int) -> Any:
    """The logarithm of a determinant, summed as an event of a chain."""
    found = transform.log_abs_det_jacobian(x, y)
    return fb.distributions.utils._sum_rightmost(found, event_dim - transform.event_dim)


@_instead_of(f"{_PLACE}.{_COMPOSED}.log_abs_det_jacobian")
def _(log_abs_det_jacobian: Callable[..., Any]) -> Callable[..., object]:
    @wraps(log_abs_det_jacobian)
    def of_chain(self: Any, x: Any, y: Any) -> object:
        result = fb.zeros_like(x) if not self.parts else 0
        for part in self.parts:
            after = part(x)
            result = result + _unreduced(part, x, after, self.event_dim)
            x = after
        return result

    return of_chain


_value(
    "independent:Independent.support",
    lambda today: fb.distributions.constraints.dependent_property(
        lambda self: self.base_dist.support
    ),
)

_TRANSFORMED = "transformed_distribution:TransformedDistribution"
_value(
    f"{_TRANSFORMED}.support",
    lambda today: fb.distributions.constraints.dependent_property(
        lambda self: self.transforms[-1].codomain if self.transforms else self.base_dist.support
    ),
)


@_instead_of(f"{_PLACE}.{_TRANSFORMED}.__init__")
def _(init: Callable[..., Any]) -> Callable[..., object]:
    """The shape is that of the base distribution, which stays as it is given."""

    @wraps(init)
    def of_base(
        self: Any, base_distribution: Any, transforms: Any, validate_args: Any = None
    ) -> None:
        self.base_dist, self.transforms = (
            base_distribution,
            fb.distributions.transformed_distribution._listed(transforms),
        )
        event = base_distribution.event_shape
        shape = base_distribution.batch_shape + event
        cut = len(shape) - max(len(event), *(t.event_dim for t in self.transforms), 0)
        fb.distributions.Distribution.__init__(
            self, shape[:cut], shape[cut:], validate_args=validate_args
        )

    return of_base


@_instead_of(f"{_PLACE}.{_TRANSFORMED}.expand")
def _(expand: Callable[..., Any]) -> Callable[..., object]:
    @wraps(expand)
    def of_base(self: Any, batch_shape: Any, _instance: Any = None) -> object:
        owner = self._expanding_class()
        new = self._get_checked_instance(owner, _instance)
        batch_shape = fb.Size(batch_shape)
        self._expand_parameters(owner, new, batch_shape)
        rest = self.base_dist.batch_shape[len(self.batch_shape) :]
        new.base_dist, new.transforms = self.base_dist.expand(batch_shape + rest), self.transforms
        fb.distributions.Distribution.__init__(
            new, batch_shape, self.event_shape, validate_args=False
        )
        new._validate_args = self._validate_args
        return new

    return of_base


@_instead_of(f"{_PLACE}.{_TRANSFORMED}.log_prob")
def _(log_prob: Callable[..., Any]) -> Callable[..., object]:
    @wraps(log_prob)
    def of_base(self: Any, value: object) -> object:
        event_dim, result = len(self.event_shape), 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(value)
            result = result - _unreduced(transform, x, value, event_dim)
            value = x
        base = self.base_dist
        return result + fb.distributions.utils._sum_rightmost(
            base.log_prob(value), event_dim - len(base.event_shape)
        )

    return of_base


@_instead_of(f"{_PLACE}.logistic_normal:LogisticNormal.__init__")
def _(init: Callable[..., Any]) -> Callable[..., object]:
    @wraps(init)
    def of_numbers(self: Any, loc: Any, scale: Any, validate_args: Any = None) -> None:
        fb.distributions.TransformedDistribution.__init__(
            self,
            fb.distributions.Normal(loc, scale),
            fb.distributions.StickBreakingTransform(),
            validate_args=validate_args,
        )
        self._event_shape = fb.Size([size + 1 for size in self._event_shape])

    return of_numbers


for _name in ("loc", "scale"):
    _value(
        f"logistic_normal:LogisticNormal.{_name}",
        lambda today, name=_name: property(lambda self: getattr(self.base_dist, name)),  # type: ignore[misc]
    )
