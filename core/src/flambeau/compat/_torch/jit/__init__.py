"""What programs for PyTorch find in ``torch.jit`` beside what `flambeau.jit` has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flambeau.compat._torch.jit import annotations

__all__ = [
    "annotations",
    "enable_onednn_fusion",
    "fuser",
    "onednn_fusion_enabled",
    "optimized_execution",
    "set_fusion_strategy",
    "strict_fusion",
]

_enabled = False


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A block with or without a compiler's optimisations."""
    yield


fuser = optimized_execution


@contextmanager
def strict_fusion() -> Iterator[None]:
    """A block that should be one kernel."""
    yield


def set_fusion_strategy(strategy: Any) -> list[Any]:
    """The strategy before: none."""
    return []


def enable_onednn_fusion(enabled: bool) -> None:
    """Ask for fusion of what is scripted."""
    global _enabled
    _enabled = bool(enabled)


def onednn_fusion_enabled() -> bool:
    """Whether `enable_onednn_fusion` asked for it."""
    return _enabled
