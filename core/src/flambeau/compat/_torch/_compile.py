"""What keeps functions from PyTorch's compiler, which is not here."""

from __future__ import annotations

from typing import Any

__all__ = ["_disable_dynamo"]


def _disable_dynamo(fn: Any = None, recursive: bool = True) -> Any:
    """The function, or a decorator that gives it back."""
    return (lambda function: function) if fn is None else fn
