"""Whether programs can be compiled."""

from __future__ import annotations

__all__ = ["is_dynamo_supported"]


def is_dynamo_supported() -> bool:
    """False."""
    return False
