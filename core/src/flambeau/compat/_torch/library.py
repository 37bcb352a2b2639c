"""Functions with a name in ``torch.ops``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as fb
from flambeau.compat._parts import reason

__all__ = ["custom_op", "register_autograd", "register_fake", "register_kernel"]

DEFINED: dict[str, dict[str, CustomOp]] = {}
"""What `custom_op` made, by namespace and name."""


class CustomOp:
    """A function that can be given a gradient; `custom_op` makes it."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self._name = name
        self._function = function
        self._apply: Callable[..., Any] = function
        self.__name__ = name.partition("::")[2]
        self.__doc__ = function.__doc__

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
        """Give another function for a type of devices.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(f"register_kernel: {reason('torch.library')}")

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


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: Any = (),
    device_types: Any = None,
    schema: str | None = None,
) -> Any:
    """A function as an op ``namespace::name``; without one, a decorator.

    Raises:
        ValueError: the name has no namespace.
    """
    space, colons, short = name.partition("::")
    if not colons:
        raise ValueError(f"Expected {name!r} to be of the form 'namespace::name'")

    def define(function: Callable[..., Any]) -> CustomOp:
        op = CustomOp(name, function)
        DEFINED.setdefault(space, {})[short] = op
        return op

    return define if fn is None else define(fn)


def _op(op: Any) -> CustomOp:
    if isinstance(op, CustomOp):
        return op
    space, _, short = op.partition("::")
    found = DEFINED.get(space, {}).get(short)
    if found is None:
        raise RuntimeError(f"flambeau has no op {op!r}: `torch.library.custom_op` defines one")
    return found


def register_fake(op: Any, func: Any = None, /, **settings: Any) -> Any:
    """As `CustomOp.register_fake`, by the op's name."""
    return _op(op).register_fake(func)


def register_autograd(op: Any, backward: Any, /, *, setup_context: Any = None, **kw: Any) -> None:
    """As `CustomOp.register_autograd`, by the op's name."""
    _op(op).register_autograd(backward, setup_context=setup_context)


def register_kernel(op: Any, device_types: Any, func: Any = None, /, **settings: Any) -> Any:
    """As `CustomOp.register_kernel`, by the op's name."""
    return _op(op).register_kernel(device_types, func)
