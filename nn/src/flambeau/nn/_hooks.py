"""Registration of a module's own hooks around forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.nn._handles import add_hook
from flambeau.nn._registry import Registry
from flambeau.utils.hooks import RemovableHandle


class HookRegistration(Registry):
    """The part of `Module` that takes hooks; `_call` runs them."""

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before forward; a result, tuple or not, replaces `args`.

        With `with_kwargs` the call is ``hook(module, args, kwargs)`` and a result is a pair
        ``(args, kwargs)``.  `prepend` puts the hook before those registered earlier.

        >>> import flambeau as fb
        >>> layer = fb.nn.Identity()
        >>> handle = layer.register_forward_pre_hook(lambda module, args: args[0] + 1)
        >>> layer(fb.ones(1))
        tensor([2.])
        """
        flags = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
        return add_hook(self._forward_pre_hooks, hook, *flags, prepend=prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after forward; a result replaces the output.

        With `with_kwargs` the call is ``hook(module, args, kwargs, output)``.  `prepend` puts the
        hook before those registered earlier; `always_call` runs it even when forward raises.

        >>> import flambeau as fb
        >>> layer = fb.nn.Identity()
        >>> with layer.register_forward_hook(lambda module, args, output: output * 2):
        ...     layer(fb.ones(1))
        tensor([2.])
        """
        flags = [self._forward_hooks_with_kwargs] if with_kwargs else []
        if always_call:
            flags.append(self._forward_hooks_always_called)
        return add_hook(self._forward_hooks, hook, *flags, prepend=prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` when the output gradients are known.

        `grad_output` is a tuple; a result replaces it in the rest of the backward.

        >>> import flambeau as fb
        >>> layer = fb.nn.Identity()
        >>> handle = layer.register_full_backward_pre_hook(lambda module, grads: (grads[0] * 3,))
        >>> x = fb.ones(1, requires_grad=True)
        >>> layer(x).backward(); x.grad
        tensor([3.])
        """
        return add_hook(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the input gradients are known.

        Both are tuples with one entry per positional argument and per output, None where that is
        not a tensor that requires a gradient.  A result replaces `grad_input`.

        Raises:
            RuntimeError: the module has hooks of `register_backward_hook`.

        >>> import flambeau as fb
        >>> layer = fb.nn.Identity()
        >>> handle = layer.register_full_backward_hook(lambda module, gin, gout: print(gin, gout))
        >>> layer(fb.ones(1, requires_grad=True)).backward()
        (tensor([1.]),) (tensor([1.]),)
        """
        self._choose_backward_kind(full=True)
        return add_hook(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The older form of `register_full_backward_hook`.

        `grad_input` holds the input gradients of the last operation of forward, which are the
        module's own only where forward is a single operation.

        Raises:
            RuntimeError: the module has hooks of `register_full_backward_hook`.

        >>> import flambeau as fb
        >>> layer = fb.nn.Sigmoid()
        >>> handle = layer.register_backward_hook(lambda module, gin, gout: print(gin, gout))
        >>> layer(fb.zeros(1, requires_grad=True)).backward()
        (tensor([0.2500]),) (tensor([1.]),)
        """
        self._choose_backward_kind(full=False)
        return add_hook(self._backward_hooks, hook)

    def _choose_backward_kind(self, *, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a "
                "single Module. Please use only one of them."
            )
        self._is_full_backward_hook = full
