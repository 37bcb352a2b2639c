"""What functions of nn refuse: what is no tensor or module, and requests that no memory holds."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import flambeau as fb
from flambeau import Tensor

P = ParamSpec("P")
R = TypeVar("R")

_MANY = 1 << 14
_LEAST = 4096  # bytes that a module takes without its parameters
_KINDS = {"Tensor": "Tensor", "Tensor | None": "Tensor", "Module": "Module", "M": "Module"}


def require_tensors(where: str, **given: Any) -> None:
    """Refuse what is no tensor among the arguments of these names.

    Raises:
        TypeError: one is none.
    """
    for name, value in given.items():
        if not isinstance(value, Tensor):
            raise TypeError(
                f"{where}(): argument {name!r} must be Tensor, not {type(value).__name__}"
            )


def refused(error: AttributeError, where: str, **given: Any) -> Exception:
    """What to raise after an attribute was missing: an argument may be no tensor.

    For functions in which a check beforehand would be felt.
    """
    try:
        require_tensors(where, **given)
    except TypeError as worded:
        return worded
    return error


def takes_as_annotated(function: Callable[P, R]) -> Callable[P, R]:
    """A decorator: what is not the tensor or module that the signature tells ends in TypeError.

    Arguments are looked at only after an attribute of one was missing; it is for functions that
    are not called in inner loops.
    """

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except AttributeError as error:
            raise _misfit(function, args, kwargs) or error from None

    return checked


def _misfit(function: Callable[..., Any], args: Any, kwargs: Any) -> TypeError | None:
    parameters = inspect.signature(function).parameters
    given = inspect.signature(function).bind(*args, **kwargs).arguments
    for name, value in given.items():
        kind = _KINDS.get(str(parameters[name].annotation))
        if value is None and parameters[name].default is None:
            continue
        if kind and not isinstance(value, Tensor if kind == "Tensor" else fb.nn.Module):
            return TypeError(
                f"{function.__name__}(): argument {name!r} must be {kind}, "
                f"not {type(value).__name__}"
            )
    return None


def need_room(count: int, size: int) -> None:
    """Raise unless there is memory for `count` modules of `size` bytes of parameters each.

    Raises:
        RuntimeError: there is not; a MemoryError too.
    """
    if count > _MANY:
        fb.empty((count, max(size, _LEAST)), dtype=fb.uint8, device="cpu")
