"""Questions for other libraries."""

from __future__ import annotations

import importlib.util

__all__ = ["_check_module_exists", "dill_available"]


def _check_module_exists(name: str) -> bool:
    """Whether a library could be imported."""
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def dill_available() -> bool:
    """Whether `dill` could be imported."""
    return _check_module_exists("dill")
