"""The package ``opt_einsum``, which `einsum` does not use: it has an order of its own."""

from __future__ import annotations

__all__ = ["enabled", "get_opt_einsum", "is_available", "strategy"]

enabled = False
strategy: str | None = None


def is_available() -> bool:
    """False."""
    return False


def get_opt_einsum() -> None:
    """The package: None."""
