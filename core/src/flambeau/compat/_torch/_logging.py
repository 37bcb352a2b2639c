"""Logs of PyTorch's compiler, which is not here."""

from __future__ import annotations

from typing import Any

__all__ = ["set_logs", "trace_structured"]


def set_logs(**levels: Any) -> None:
    """Do nothing."""


def trace_structured(name: str, *args: Any, **kwargs: Any) -> None:
    """Do nothing."""
