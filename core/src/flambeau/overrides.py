"""For functions that let subclasses of Tensor, and look-alikes, take over their calls.

A class takes part by a class method ``__torch_function__(func, types, args, kwargs)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from flambeau import Tensor
from flambeau._dispatch.annotated import (
    all_take_as_annotated,
    methods_take_as_annotated,
    misfit,
    takes_as_annotated,
)
from flambeau._dispatch.arguments import check_values, checked
from flambeau._dispatch.warning import warn
from flambeau._tensor import function_modes
from flambeau._tensor.overrides import (
    call,
    looks_at,
    offer_calls,
    offering_calls,
    original,
    wanted,
)
from flambeau._types import dtype as D

__all__ = [
    "TorchFunctionMode",
    "all_take_as_annotated",
    "check_values",
    "checked",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
    "looks_at",
    "methods_take_as_annotated",
    "misfit",
    "offer_calls",
    "offering_calls",
    "original",
    "takes_as_annotated",
    "warn",
]


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of the arguments has a class that wants to see the calls made with it.

    >>> import flambeau as fb
    >>> from flambeau.overrides import has_torch_function
    >>> class Loud(fb.Tensor): ...
    >>> has_torch_function((fb.ones(2), 3)), has_torch_function((fb.ones(2).as_subclass(Loud),))
    (False, True)
    """
    return wanted(relevant_args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: object, **kwargs: object
) -> Any:
    """Offer the call ``public_api(*args, **kwargs)`` to the classes of the relevant arguments.

    Raises:
        TypeError: every class declines by returning NotImplemented.

    >>> from flambeau.overrides import handle_torch_function
    >>> class Number:
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         return func.__name__
    >>> def double(x): return handle_torch_function(double, (x,), x)
    >>> double(Number())
    'double'
    """
    return call(public_api, args, kwargs, relevant_args)


def is_tensor_like(inp: object) -> bool:
    """Whether this is a tensor or has ``__torch_function__``.

    >>> import flambeau as fb
    >>> fb.overrides.is_tensor_like(fb.ones(2)), fb.overrides.is_tensor_like([1.0, 1.0])
    (True, False)
    """
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def _assert(condition: object, message: str) -> None:
    """Raise AssertionError unless a condition holds; traced programs keep the call."""
    if wanted((condition,)):
        call(_assert, (condition, message), {})
    elif not condition:
        raise AssertionError(message)


def _assert_async(input: Tensor, assert_msg: str = "") -> None:
    """Raise RuntimeError if the one element of a tensor is zero; a plan asks in every run."""
    if input.numel() != 1:
        raise RuntimeError(f"_assert_async(): one element is expected, got {input.numel()}")
    true = input.detach() if input.dtype is D.bool_ else input.detach() != 0
    text = assert_msg or "Expected Tensor with single nonzero value, but got zero"
    check_values(true, 1, math.inf, text)


class TorchFunctionMode:
    """A block in which this thread's calls of functions and methods of tensors are seen.

    Derive from it and write ``__torch_function__(self, func, types, args, kwargs)``, which is
    called instead of `func` and returns the result.  While it runs, its mode is off and those
    around it are on, so that it may call `func`.  Not seen are attributes, such as ``shape``, and
    what the library calls itself.

    >>> import flambeau as fb
    >>> class Named(fb.overrides.TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return func(*args, **(kwargs or {}))
    >>> with Named():
    ...     y = fb.ones(2).exp()
    ones
    exp
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: object = None,
    ) -> Any:
        """What a call makes; derived classes say it.

        Raises:
            NotImplementedError: they do not.
        """
        raise NotImplementedError(f"{type(self).__name__} has no __torch_function__ of its own")

    def __enter__(self) -> TorchFunctionMode:
        function_modes.enter(self)
        return self

    def __exit__(self, *exc: object) -> None:
        function_modes.leave()
