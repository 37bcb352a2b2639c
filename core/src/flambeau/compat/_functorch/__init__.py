"""Module ``functorch``: what was in a library of that name before it was `torch.func`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import flambeau as fb
from flambeau.func import (
    functional_call,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    stack_module_state,
    vjp,
    vmap,
)

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "vjp",
    "vmap",
]


class FunctionalModule:
    """A module as a function: ``f(params, *args)``."""

    def __init__(self, model: Any, names: Sequence[str], buffers: Sequence[str] = ()) -> None:
        self.stateless_model = model
        self.param_names = tuple(names)
        self.buffer_names = tuple(buffers)

    def __call__(self, params: Sequence[Any], *args: object, **kwargs: object) -> Any:
        given = dict(zip(self.param_names, params, strict=True))
        return functional_call(self.stateless_model, given, args, kwargs)


class FunctionalModuleWithBuffers(FunctionalModule):
    """A module as a function: ``f(params, buffers, *args)``."""

    def __call__(self, params: Sequence[Any], buffers: Any, *args: Any, **kwargs: Any) -> Any:
        given = dict(zip(self.param_names, params, strict=True))
        given.update(zip(self.buffer_names, buffers, strict=True))
        return functional_call(self.stateless_model, given, args, kwargs)


def _split(model: object, disable_autograd_tracking: bool) -> tuple[Any, dict[str, Any], Any]:
    if not isinstance(model, fb.nn.Module):
        raise TypeError(f"make_functional: expected a module, got {type(model).__name__}")
    params = dict(model.named_parameters())
    if disable_autograd_tracking:
        params = {name: p.detach() for name, p in params.items()}
    return copy.deepcopy(model), params, dict(model.named_buffers())


def make_functional(model: object, disable_autograd_tracking: bool = False) -> tuple[Any, Any]:
    """A module without buffers as a function of its parameters, and these.

    Raises:
        RuntimeError: the module has buffers.

    >>> import flambeau as fb
    >>> from flambeau.compat._functorch import make_functional
    >>> f, params = make_functional(fb.nn.Linear(2, 1, bias=False))
    >>> f((fb.ones(1, 2),), fb.tensor([1.0, 2.0]))
    tensor([3.])
    """
    stateless, params, buffers = _split(model, disable_autograd_tracking)
    if buffers:
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use "
            "make_functional_with_buffers(model) instead."
        )
    return FunctionalModule(stateless, tuple(params)), tuple(params.values())


def make_functional_with_buffers(
    model: object, disable_autograd_tracking: bool = False
) -> tuple[Any, Any, Any]:
    """A module as a function of its parameters and buffers, and these."""
    stateless, params, buffers = _split(model, disable_autograd_tracking)
    function = FunctionalModuleWithBuffers(stateless, tuple(params), tuple(buffers))
    return function, tuple(params.values()), tuple(buffers.values())


def combine_state_for_ensemble(
    models: Sequence[Any],
) -> tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]:
    """One function for models of one kind, and their parameters and buffers, stacked by name.

    Raises:
        RuntimeError: there is no model, or they differ in class or in training mode.
    """
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    params, buffers = stack_module_state(models)
    function, _, _ = make_functional_with_buffers(models[0])
    return function, tuple(params.values()), tuple(buffers.values())
