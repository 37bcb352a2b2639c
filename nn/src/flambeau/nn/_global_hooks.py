"""Hooks that every module calls, for debugging and profiling."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from flambeau.nn._handles import add_hook
from flambeau.utils.hooks import RemovableHandle


class CallHook(NamedTuple):
    """One hook of a module call; `kind` names the moment, the flags say how it is called."""

    kind: str
    function: Callable[..., Any]
    with_kwargs: bool = False
    always_call: bool = False


# One table for all four kinds, so that a module call without hooks tests a single object.
CALL_HOOKS: OrderedDict[int, CallHook] = OrderedDict()

# Called as hook(module, name, value) before a registration; what they return replaces the value.
PARAMETER_REGISTRATION: OrderedDict[int, Callable[..., Any]] = OrderedDict()
BUFFER_REGISTRATION: OrderedDict[int, Callable[..., Any]] = OrderedDict()
MODULE_REGISTRATION: OrderedDict[int, Callable[..., Any]] = OrderedDict()


def of_kind(kind: str) -> list[tuple[int, CallHook]]:
    """The global call hooks of one kind, in order of registration."""
    return [(key, hook) for key, hook in CALL_HOOKS.items() if hook.kind == kind]


def registered(
    hooks: OrderedDict[int, Callable[..., Any]], module: object, name: str, value: object
) -> Any:
    """`value` after the registration hooks have seen, and perhaps replaced, it."""
    for hook in hooks.values():
        replacement = hook(module, name, value)
        if replacement is not None:
            value = replacement
    return value


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, args)`` before the forward of every module; a result replaces `args`.

    >>> import flambeau as fb
    >>> from flambeau.nn.modules.module import register_module_forward_pre_hook
    >>> with register_module_forward_pre_hook(lambda module, args: print(module)):
    ...     _ = fb.nn.Identity()(fb.ones(1))
    Identity()
    """
    return add_hook(CALL_HOOKS, CallHook("forward_pre", hook))


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after every forward; a result replaces the output.

    With `with_kwargs` the call is ``hook(module, args, kwargs, output)``; with `always_call` the
    hook also runs when the forward raises.

    >>> import flambeau as fb
    >>> from flambeau.nn.modules.module import register_module_forward_hook
    >>> with register_module_forward_hook(lambda module, args, output: output + 1):
    ...     fb.nn.Identity()(fb.ones(1))
    tensor([2.])
    """
    return add_hook(CALL_HOOKS, CallHook("forward", hook, with_kwargs, always_call))


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` when a module's output gradients are known.

    A result replaces the output gradients.

    >>> import flambeau as fb
    >>> from flambeau.nn.modules.module import register_module_full_backward_pre_hook
    >>> x = fb.ones(1, requires_grad=True)
    >>> with register_module_full_backward_pre_hook(lambda module, grad: print(grad)):
    ...     fb.nn.Identity()(x).backward()
    (tensor([1.]),)
    """
    return add_hook(CALL_HOOKS, CallHook("backward_pre", hook))


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` in every module's backward.

    A result replaces the input gradients.

    Raises:
        RuntimeError: a hook of `register_module_backward_hook` is still registered.

    >>> import flambeau as fb
    >>> from flambeau.nn.modules.module import register_module_full_backward_hook
    >>> x = fb.ones(1, requires_grad=True)
    >>> with register_module_full_backward_hook(lambda module, gin, gout: (gin[0] * 5,)):
    ...     fb.nn.Identity()(x).backward()
    >>> x.grad
    tensor([5.])
    """
    _refuse_other("legacy_backward")
    return add_hook(CALL_HOOKS, CallHook("backward", hook))


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """The older form of `register_module_full_backward_hook`.

    The hook sees the gradients of the last autograd node of the forward, which are the module's
    input gradients only where the forward is a single operation.

    Raises:
        RuntimeError: a hook of `register_module_full_backward_hook` is still registered.

    >>> import flambeau as fb
    >>> from flambeau.nn.modules.module import register_module_backward_hook
    >>> x = fb.ones(1, requires_grad=True)
    >>> with register_module_backward_hook(lambda module, gin, gout: print(gout)):
    ...     fb.nn.Sigmoid()(x).backward()
    (tensor([1.]),)
    """
    _refuse_other("backward")
    return add_hook(CALL_HOOKS, CallHook("legacy_backward", hook))


def _refuse_other(kind: str) -> None:
    if of_kind(kind):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a "
            "global Module hook. Please use only one of them."
        )


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, param)`` whenever a parameter is registered; a result replaces it.

    >>> import flambeau as fb
    >>> from flambeau.nn.modules.module import register_module_parameter_registration_hook
    >>> with register_module_parameter_registration_hook(lambda module, name, p: print(name)):
    ...     _ = fb.nn.Linear(1, 1)
    weight
    bias
    """
    return add_hook(PARAMETER_REGISTRATION, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` whenever a buffer is registered; a result replaces it.

    >>> import flambeau as fb
    >>> from flambeau.nn.modules.module import register_module_buffer_registration_hook
    >>> with register_module_buffer_registration_hook(lambda module, name, b: print(name)):
    ...     fb.nn.Module().register_buffer("mean", fb.zeros(1))
    mean
    """
    return add_hook(BUFFER_REGISTRATION, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, child)`` whenever a child is registered; a result replaces it.

    >>> import flambeau as fb
    >>> from flambeau.nn.modules.module import register_module_module_registration_hook
    >>> with register_module_module_registration_hook(lambda module, name, child: print(name)):
    ...     _ = fb.nn.Sequential(fb.nn.Identity())
    0
    """
    return add_hook(MODULE_REGISTRATION, hook)
