"""Whether programs can be compiled for a device."""

from __future__ import annotations

__all__ = ["is_compile_supported"]


def is_compile_supported(device_type: object) -> bool:
    """False."""
    return False
