"""The registry of divergences: which formula is the one for a pair of types."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from flambeau import Tensor
from flambeau.distributions.distribution import Distribution

_KL_REGISTRY: dict[tuple[type, type], Callable[..., Any]] = {}
_KL_MEMOIZE: dict[tuple[type, type], Any] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that registers a function of (p, q) as the divergence of a pair of types.

    The most specific registration counts, ordered by subclass.  Where two fit equally, a
    RuntimeWarning says which registration would decide; the one whose first type is more specific
    is taken.

    Raises:
        TypeError: one of them is no class.

    >>> from flambeau.distributions import Normal, kl_divergence, register_kl
    >>> import flambeau as fb
    >>> class Standard(Normal):
    ...     pass
    >>> @register_kl(Standard, Standard)
    ... def _(p, q):
    ...     return fb.tensor(0.0)
    >>> kl_divergence(Standard(0.0, 1.0), Standard(0.0, 1.0))
    tensor(0.)
    """
    # Any class will do: programs register base classes of their own, which are no `Distribution`.
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()  # what was found may no longer be the most specific
        return function

    return decorator


def _precedes(one: tuple[type, ...], other: tuple[type, ...]) -> bool:
    """Whether a tuple of types is at least as specific as another; earlier types count more."""
    for x, y in zip(one, other, strict=True):
        if not issubclass(x, y):
            return False
        if x is not y:
            break
    return True


def _most_specific(matches: list[tuple[type, type]]) -> tuple[type, type]:
    best = matches[0]
    for match in matches[1:]:
        if match != best and _precedes(match, best):
            best = match
    return best


def _dispatch_kl(type_p: type, type_q: type) -> Callable[..., Any]:
    """The function for a pair of types, or NotImplemented."""
    matches = [
        (super_p, super_q)
        for super_p, super_q in _KL_REGISTRY
        if issubclass(type_p, super_p) and issubclass(type_q, super_q)
    ]
    if not matches:
        return NotImplemented
    left_p, left_q = _most_specific(matches)
    right_q, right_p = _most_specific([(q, p) for p, q in matches])
    left, right = _KL_REGISTRY[left_p, left_q], _KL_REGISTRY[right_p, right_q]
    if left is not right:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({left_p.__name__}, {right_q.__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return left


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The divergence KL(p ‖ q) = E_p[log p(x) − log q(x)], of shape batch_shape.

    Raises:
        NotImplementedError: nothing is registered for the types (`register_kl`).

    >>> from flambeau.distributions import Gamma, Normal, kl_divergence
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)
    >>> kl_divergence(Gamma(1.0, 1.0), Normal(0.0, 1.0))
    tensor(0.9189)
    """
    key = type(p), type(q)
    try:
        function = _KL_MEMOIZE[key]
    except KeyError:
        function = _KL_MEMOIZE[key] = _dispatch_kl(*key)
    if function is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {p.__class__.__name__} "
            f"and q type {q.__class__.__name__}"
        )
    return function(p, q)
