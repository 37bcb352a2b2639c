"""Logs of PyTorch's compiler, which is not here."""

from __future__ import annotations

__all__ = ["set_logs", "trace_structured"]


def set_logs(**levels: object) -> None:
    """Do nothing."""


def trace_structured(name: str, *args: object, **kwargs: object) -> None:
    """Do nothing."""
