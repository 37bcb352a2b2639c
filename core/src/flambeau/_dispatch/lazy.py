"""Modules that are imported when they are first used: what `import flambeau` need not load."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class LazyModule:
    """Stands for a module until one of its names is asked for.

    >>> from flambeau._dispatch.lazy import LazyModule
    >>> LazyModule("math").floor(2.5)
    2
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return getattr(import_module(self._name), name)
