"""Batches in page-locked memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flambeau as fb


def pin_memory(data: Any, device: str | None = None) -> Any:
    """The tensors in nested containers pinned; what has a method ``pin_memory`` is asked itself."""
    if isinstance(data, fb.Tensor):
        return data.pin_memory(device)
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        entries = {key: pin_memory(value, device) for key, value in data.items()}
        try:
            return type(data)(entries)  # type: ignore[call-arg]
        except TypeError:  # the type is not made from a mapping
            return entries
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(entry, device) for entry in data))
    if isinstance(data, (list, tuple)):
        return type(data)([pin_memory(entry, device) for entry in data])
    return data
