"""What is said of libraries that flambeau does not use."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

__all__ = ["is_available", "switches"]


def is_available() -> bool:
    """False: it is not used."""
    return False


def switches(
    *names: str,
) -> tuple[Callable[..., tuple[bool, ...]], Callable[..., AbstractContextManager[None]]]:
    """Functions ``set_flags`` and ``flags`` that change nothing: all that can be set stays off."""

    def set_flags(*args: object, **kwargs: object) -> tuple[bool, ...]:
        return (False,) * len(names)

    def flags(*args: object, **kwargs: object) -> AbstractContextManager[None]:
        return nullcontext()

    return set_flags, flags
