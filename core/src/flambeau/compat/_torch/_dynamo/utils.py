"""Whether programs can be compiled for a device."""

from __future__ import annotations

import warnings
from functools import cache

__all__ = ["is_compile_supported", "warn_once"]


@cache
def warn_once(msg: str, stacklevel: int = 1) -> None:
    """Warn of something the first time."""
    warnings.warn(msg, stacklevel=stacklevel + 1)


def is_compile_supported(device_type: object) -> bool:
    """False."""
    return False
