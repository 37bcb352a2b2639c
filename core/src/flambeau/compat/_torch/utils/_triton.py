"""Whether programs of Triton can run: none is made here."""

from __future__ import annotations

__all__ = ["has_triton", "has_triton_package", "has_triton_tma", "has_triton_tma_device"]


def has_triton() -> bool:
    """False."""
    return False


def has_triton_package() -> bool:
    """False, also where the package is installed."""
    return False


def has_triton_tma() -> bool:
    """False."""
    return False


def has_triton_tma_device() -> bool:
    """False."""
    return False
