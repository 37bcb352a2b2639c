"""Divergences of distributions, which are not there: rules can be registered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["register_kl"]


def register_kl(type_p: type, type_q: type) -> Callable[[Any], Any]:
    """A decorator that gives back its function."""
    return lambda rule: rule
