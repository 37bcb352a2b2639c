"""Modules whose attributes can be set and mean something."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from flambeau.plugin.accelerator import numerics


class Switch:
    """An attribute that stands for one of `flambeau.plugin.numerics`."""

    def __init__(self, field: str) -> None:
        self._field = field

    def __get__(self, owner: object, kind: type | None = None) -> Any:
        return getattr(numerics, self._field)

    def __set__(self, owner: object, value: bool) -> None:
        setattr(numerics, self._field, bool(value))


def switchable(module: str, **fields: str) -> None:
    """Let attributes of a module stand for fields of `numerics`."""
    kind = type("SwitchModule", (ModuleType,), {a: Switch(f) for a, f in fields.items()})
    sys.modules[module].__class__ = kind
