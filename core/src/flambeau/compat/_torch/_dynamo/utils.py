"""Whether programs can be compiled for a device."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from contextlib import AbstractContextManager, nullcontext
from functools import cache

__all__ = ["counters", "disable_cache_limit", "is_compile_supported", "warn_once"]

counters: defaultdict[str, Counter[str]] = defaultdict(Counter)
"""What a compiler met, by kind: nothing is ever counted."""


@cache
def warn_once(msg: str, stacklevel: int = 1) -> None:
    """Warn of something the first time."""
    warnings.warn(msg, stacklevel=stacklevel + 1)


def is_compile_supported(device_type: object) -> bool:
    """False."""
    return False


def disable_cache_limit() -> AbstractContextManager[None]:
    """A block without a bound on how often something is compiled again: nothing is."""
    return nullcontext()
