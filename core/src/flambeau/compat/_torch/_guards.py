"""Queries for the modes of PyTorch's compiler, of which none is ever on."""

from __future__ import annotations

__all__ = ["active_fake_mode", "detect_fake_mode"]


def active_fake_mode() -> None:
    """None: tensors without values are on the device ``meta``."""


def detect_fake_mode(inputs: object = None) -> None:
    """None, as of `active_fake_mode`."""
