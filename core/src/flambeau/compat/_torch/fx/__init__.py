"""Traced programs, of which there are none."""

from __future__ import annotations

from typing import Any

__all__ = ["wrap"]


def wrap(fn_or_name: Any) -> Any:
    """A function as it is, which a tracer would not look into."""
    return fn_or_name
