"""What programs say of how their functions would be exported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["parse_args"]


def parse_args(*kinds: str) -> Callable[[Any], Any]:
    """A decorator for a function that is called with nodes of a graph: gives the function back."""
    return lambda function: function
