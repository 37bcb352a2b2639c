"""The arguments of calls in one form."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from flambeau.nn import Module
from flambeau.overrides import all_take_as_annotated

__all__ = ["ArgsKwargsPair", "normalize_function", "normalize_module"]


class ArgsKwargsPair(NamedTuple):
    """Arguments by place and by name."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@lru_cache(maxsize=4096)
def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):  # built in
        return None


def bound_arguments(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any] | None:
    """All arguments of a call by name, defaults included; None if the function does not tell."""
    signature = _signature(function)
    if signature is None:
        return None
    kinds = {p.kind for p in signature.parameters.values()}
    if inspect.Parameter.VAR_POSITIONAL in kinds or inspect.Parameter.VAR_KEYWORD in kinds:
        return None
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    return dict(bound.arguments)


def normalize_function(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a call, defaults included, by name where they have one.

    Args:
        arg_types: no effect, like `kwarg_types`: a function has one signature.
        normalize_to_only_use_kwargs: also those that were given by place.

    Returns:
        None if the function has no signature, or the call does not fit it.

    >>> import flambeau as fb
    >>> from flambeau.fx.operator_schemas import normalize_function
    >>> def scale(input, by=2.0): ...
    >>> normalize_function(scale, (1,), {}, normalize_to_only_use_kwargs=True)
    ArgsKwargsPair(args=(), kwargs={'input': 1, 'by': 2.0})
    """
    if not callable(target):
        raise AssertionError(f"target must be callable, got {type(target)}")
    bound = bound_arguments(target, args, kwargs or {})
    if bound is None:
        return None
    if normalize_to_only_use_kwargs:
        return ArgsKwargsPair((), bound)
    count = len(args)
    return ArgsKwargsPair(tuple(bound.values())[:count], dict(list(bound.items())[count:]))


def normalize_module(
    root: Module,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """As `normalize_function`, for the ``forward`` of a submodule.

    Raises:
        RuntimeError: there is no such submodule.
    """
    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(
            f"Tried to normalize arguments with module target {target} but root did not have that "
            "target!"
        ) from error
    return normalize_function(
        module.forward,
        args,
        kwargs,
        normalize_to_only_use_kwargs=normalize_to_only_use_kwargs,
    )


all_take_as_annotated(globals())
