"""Transforms from unconstrained numbers onto the set that a constraint describes.

`biject_to` looks for a bijection, `transform_to` for a transform that need only reach every
element (its domain may have a dimension too many, its inverse is then a right inverse).  Use the
first for Hamiltonian Monte Carlo, the second for optimisation.

>>> from flambeau.distributions import biject_to, constraints, transform_to
>>> transform_to(constraints.simplex), biject_to(constraints.simplex)
(SoftmaxTransform(), StickBreakingTransform())

Constraints of one's own are registered with a factory, which gets the constraint:

>>> from flambeau.distributions import ExpTransform
>>> class Mine(type(constraints.positive)):
...     pass
>>> @transform_to.register(Mine)
... def _(constraint):
...     return ExpTransform()
>>> transform_to(Mine(0.0))
ExpTransform()
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import TYPE_CHECKING, Any

from flambeau.distributions import constraints, transforms

if TYPE_CHECKING:
    from flambeau.distributions.transforms._base import ComposeTransform, IndependentTransform
    from flambeau.distributions.transforms._elementwise import SigmoidTransform
    from flambeau.distributions.transforms._events import (
        CorrCholeskyTransform,
        LowerCholeskyTransform,
        PositiveDefiniteTransform,
        SoftmaxTransform,
        StickBreakingTransform,
    )
    from flambeau.distributions.transforms._parts import CatTransform, StackTransform


__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Which transform leads onto which constraint, by the constraint's class.

    >>> from flambeau.distributions import constraints, identity_transform
    >>> from flambeau.distributions.constraint_registry import ConstraintRegistry
    >>> registry = ConstraintRegistry()
    >>> _ = registry.register(constraints.real, lambda constraint: identity_transform)
    >>> registry(constraints.real) is identity_transform
    True
    """

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Any]] = {}
        super().__init__()

    def register(
        self, constraint: object, factory: Callable[[Any], Any] | None = None
    ) -> Callable[[Any], Any]:
        """Register `factory` for a class of constraints, or for that of an object.

        Without a factory it is a decorator.

        Raises:
            TypeError: `constraint` is neither a class of constraints nor an object of one.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(constraint, constraints.Constraint):
            raise TypeError(
                "Expected constraint to be either a Constraint subclass or instance, "
                f"but got {constraint}"
            )
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint: object) -> transforms.Transform:
        """A transform from real numbers onto `constraint`.

        Raises:
            NotImplementedError: none is registered for its class.
        """
        try:
            factory = self._registry[type(constraint)]
        except KeyError:
            raise NotImplementedError(
                f"Cannot transform {type(constraint).__name__} constraints"
            ) from None
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*kinds: object) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a factory, which also gets the registry, with both registries."""

    def register(factory: Callable[..., Any]) -> Callable[..., Any]:
        for registry in (biject_to, transform_to):
            for kind in kinds:
                registry.register(kind, lambda c, registry=registry: factory(c, registry))
        return factory

    return register


@_both(constraints.real)
def _onto_reals(constraint: object, registry: object) -> ComposeTransform:
    return transforms.identity_transform


@_both(constraints.independent)
def _onto_independent(constraint: Any, registry: Any) -> IndependentTransform:
    base = registry(constraint.base_constraint)
    return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)


# `positive` and `greater_than(0.0)` are of one class: the later registration is the one found.
@_both(constraints.greater_than, constraints.greater_than_eq)
def _onto_greater_than(constraint: Any, registry: object) -> ComposeTransform:
    bound = constraint.lower_bound
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(bound, 1)]
    )


@_both(constraints.less_than)
def _onto_less_than(constraint: Any, registry: object) -> ComposeTransform:
    bound = constraint.upper_bound
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(bound, -1)]
    )


@_both(constraints.interval, constraints.half_open_interval)
def _onto_interval(constraint: Any, registry: object) -> SigmoidTransform | ComposeTransform:
    lower = constraint.lower_bound
    upper = constraint.upper_bound
    if isinstance(lower, Number) and lower == 0 and isinstance(upper, Number) and upper == 1:
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform(
        [
            transforms.SigmoidTransform(),
            transforms.AffineTransform(lower, constraint.upper_bound - constraint.lower_bound),
        ]
    )


@biject_to.register(constraints.simplex)
def _biject_to_simplex(constraint: object) -> StickBreakingTransform:
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _transform_to_simplex(constraint: object) -> SoftmaxTransform:
    return transforms.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def _transform_to_lower_cholesky(constraint: object) -> LowerCholeskyTransform:
    return transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _transform_to_positive_definite(constraint: object) -> PositiveDefiniteTransform:
    return transforms.PositiveDefiniteTransform()


@_both(constraints.corr_cholesky)
def _onto_corr_cholesky(constraint: object, registry: object) -> CorrCholeskyTransform:
    return transforms.CorrCholeskyTransform()


@_both(constraints.cat)
def _onto_cat(constraint: Any, registry: Any) -> CatTransform:
    parts = [registry(c) for c in constraint.cseq]
    return transforms.CatTransform(parts, constraint.dim, constraint.lengths)


@_both(constraints.stack)
def _onto_stack(constraint: Any, registry: Any) -> StackTransform:
    return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)
