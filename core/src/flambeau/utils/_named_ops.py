"""Ops that programs and libraries define under names of their own: what ``torch.ops`` finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as fb

__all__ = ["ALL", "COMPOSITE", "DEFINED", "KEYS", "CustomOp", "define", "device_of"]

DEFINED: dict[str, dict[str, CustomOp]] = {}
"""What programs and libraries defined, by namespace and name."""


ALL = "all devices"
KEYS = {"CPU": "cpu", "CUDA": "cuda", "XPU": "xpu", "MPS": "mps"}
COMPOSITE = ("", "default", "CompositeImplicitAutograd", "CompositeExplicitAutograd")


class CustomOp:
    """A function that can be given a gradient; `custom_op` and `define` make it.

    It has one function for all devices, or one for each type of devices, or both.
    """

    def __init__(self, name: str, function: Callable[..., Any] | None = None) -> None:
        self._name = name
        self.schema = ""
        self._kernels: dict[str, Callable[..., Any]] = {}
        self._apply: Callable[..., Any] = self._function
        self.__name__ = name.partition("::")[2]
        if function is not None:
            self._kernels[ALL] = function
            self.__doc__ = function.__doc__

    def _function(self, *args: Any, **kwargs: Any) -> Any:
        tensors = (a for a in (*args, *kwargs.values()) if isinstance(a, fb.Tensor))
        device = next((a.device.type for a in tensors), "cpu")
        kernel = self._kernels.get(device) or self._kernels.get(ALL)
        if kernel is None:
            raise NotImplementedError(
                f"Could not run '{self._name}' with arguments from the {device.upper()!r} backend: "
                f"it has kernels for {sorted(self._kernels) or 'no device'}"
            )
        return kernel(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._apply(*args, **kwargs)

    @property
    def default(self) -> CustomOp:
        """The overload without a name, the only one."""
        return self

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._name})>"

    def register_fake(self, fn: Any = None, /) -> Any:
        """Say which shape the result has; a compiler would ask."""
        return (lambda function: function) if fn is None else fn

    def register_kernel(self, device_types: Any, fn: Any = None, /) -> Any:
        """Give another function for a type of devices, or for several; all if None."""
        types = [device_types] if isinstance(device_types, str) else device_types or [ALL]

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            for device in types:
                self._kernels[device] = function
            return function

        return register if fn is None else register(fn)

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Give the gradient, as ``backward(ctx, *grads)`` of an `autograd.Function`."""
        function, setup = self._function, setup_context

        class Recorded(fb.autograd.Function):
            @staticmethod
            def forward(ctx: Any, *args: Any) -> Any:
                result = function(*args)
                if setup is not None:
                    setup(ctx, args, result)
                return result

        Recorded.backward = staticmethod(backward)
        Recorded.__name__ = self.__name__
        self._apply = Recorded.apply


def define(space: str, schema: str) -> CustomOp:
    """An op of a namespace from a schema or a name; the one that is there, if there is one."""
    short = schema.partition("(")[0].strip().partition(".")[0]
    ops = DEFINED.setdefault(space, {})
    if short not in ops:
        ops[short] = CustomOp(f"{space}::{short}")
    return ops[short]


def device_of(key: str) -> str | None:
    """The type of devices that a dispatch key is for; None for keys that are not used.

    Those are the keys of compilers, gradients and mixed precision.
    """
    return ALL if key in COMPOSITE else KEYS.get(key)
