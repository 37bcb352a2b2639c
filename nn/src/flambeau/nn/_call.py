"""A module's call when hooks are registered; `Module.__call__` handles the case without."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from flambeau.nn import _global_hooks
from flambeau.nn._backward_hooks import BackwardHooks, attach_legacy_hooks
from flambeau.nn._global_hooks import CallHook
from flambeau.overrides import misfit

if TYPE_CHECKING:
    from flambeau.nn.module import Module


def refused_call(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception | None:
    """What to raise after an attribute was missing in a module of ours; None if not for that.

    In modules of others the annotations of `forward` say what their authors mean by them.
    """
    forward = type(module).forward
    if not str(getattr(forward, "__module__", "")).startswith("flambeau."):
        return None
    return misfit(forward, (module, *args), kwargs, type(module).__name__)


def watched(module: Module) -> bool:
    """Whether hooks see the calls of a module, its own or global ones."""
    own = module.__dict__
    return bool(
        _global_hooks.CALL_HOOKS
        or own["_forward_hooks"]
        or own["_forward_pre_hooks"]
        or own["_backward_hooks"]
        or own["_backward_pre_hooks"]
    )


class HookedCall:
    """One call in progress: its arguments and result as the hooks have left them.

    The module calls its own `forward` between `begin` and `end`, so that models with hooks may be
    as deep as others: no frame of ours is on the stack meanwhile.
    """

    def __init__(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.module = module
        self.args = args
        self.kwargs = kwargs
        self.result: Any = None
        self.begun: set[int] = set()  # the always_call hooks that need no second chance
        self.backward: BackwardHooks | None = None
        self.legacy: list[Any] = []

    def begin(self) -> None:
        """Run what sees the arguments."""
        full, self.legacy, pre = _backward_hooks(self.module)
        for hook in _forward_pre_hooks(self.module):
            self.run_forward_pre(hook)
        if full or pre:
            self.backward = BackwardHooks(self.module, full, pre)
            self.args = self.backward.wrap_inputs(self.args)

    def end(self, result: object) -> Any:
        """What the hooks make of the result."""
        self.result = result
        for key, hook in _forward_hooks(self.module):
            if hook.always_call:
                self.begun.add(key)
            self.run_forward(hook)
        if self.backward is not None:
            self.result = self.backward.wrap_outputs(self.result)
        if self.legacy:
            attach_legacy_hooks(self.module, self.args, self.result, self.legacy)
        return self.result

    def run_forward_pre(self, hook: CallHook) -> None:
        if not hook.with_kwargs:
            args = hook.function(self.module, self.args)
            if args is not None:
                self.args = args if isinstance(args, tuple) else (args,)
            return
        both = hook.function(self.module, self.args, self.kwargs)
        if both is not None:
            if not (isinstance(both, tuple) and len(both) == 2):
                raise RuntimeError(
                    "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                    f"but got {both}."
                )
            self.args, self.kwargs = both

    def run_forward(self, hook: CallHook) -> None:
        if hook.with_kwargs:
            result = hook.function(self.module, self.args, self.kwargs, self.result)
        else:
            result = hook.function(self.module, self.args, self.result)
        if result is not None:
            self.result = result

    def run_always_called(self) -> None:
        """The always_call hooks that have not begun; the error that is under way goes first."""
        for key, hook in _forward_hooks(self.module):
            if hook.always_call and key not in self.begun:
                try:
                    self.run_forward(hook)
                except Exception as error:
                    warnings.warn(
                        "module forward hook with ``always_call=True`` raised an exception that "
                        f"was silenced as another error was raised in forward: {error}",
                        stacklevel=3,
                    )


def _forward_pre_hooks(module: Module) -> Iterator[CallHook]:
    for _, hook in _global_hooks.of_kind("forward_pre"):
        yield hook
    for key, function in list(module._forward_pre_hooks.items()):
        yield CallHook("forward_pre", function, key in module._forward_pre_hooks_with_kwargs)


def _forward_hooks(module: Module) -> Iterator[tuple[int, CallHook]]:
    yield from _global_hooks.of_kind("forward")
    for key, function in list(module._forward_hooks.items()):
        with_kwargs = key in module._forward_hooks_with_kwargs
        always_call = key in module._forward_hooks_always_called
        yield key, CallHook("forward", function, with_kwargs, always_call)


def _backward_hooks(module: Module) -> tuple[list[Any], list[Any], list[Any]]:
    """The full, the legacy and the pre hooks of backward, the global ones first."""
    full, legacy, pre = (
        [hook.function for _, hook in _global_hooks.of_kind(kind)]
        for kind in ("backward", "legacy_backward", "backward_pre")
    )
    own = full if module._is_full_backward_hook else legacy
    own.extend(module._backward_hooks.values())
    pre.extend(module._backward_pre_hooks.values())
    return full, legacy, pre
