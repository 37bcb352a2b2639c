"""For type checkers."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["not_none"]

_T = TypeVar("_T")


def not_none(obj: _T | None) -> _T:
    """The object.

    Raises:
        TypeError: it is None.
    """
    if obj is None:
        raise TypeError("Invariant encountered: value was None when it should not be")
    return obj
