"""What keeps functions from PyTorch's compiler, which is not here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = ["_disable_dynamo"]


def _disable_dynamo(
    fn: Callable[..., Any] | None = None, recursive: bool = True
) -> Callable[..., Any]:
    """The function, or a decorator that gives it back."""
    return (lambda function: function) if fn is None else fn
