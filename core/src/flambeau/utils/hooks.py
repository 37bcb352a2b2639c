"""The handle that hook registrations return, and hooks that do not travel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from flambeau._autograd.node import RemovableHandle
from flambeau._dispatch.annotated import takes_as_annotated

__all__ = ["RemovableHandle", "unserializable_hook"]

F = TypeVar("F", bound=Callable[..., Any])


@takes_as_annotated
def unserializable_hook(f: F) -> F:
    """A decorator: the hook is to be left behind where its tensor is pickled, as all hooks are.

    >>> import flambeau as fb
    >>> @fb.utils.hooks.unserializable_hook
    ... def double(grad): return 2 * grad
    >>> double(3)
    6

    Raises:
        TypeError: it takes no attributes, as functions of C do not.
    """
    try:
        f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    except AttributeError as error:
        raise TypeError(
            f"unserializable_hook(): a function of Python is needed, got {type(f).__name__}"
        ) from error
    return f
