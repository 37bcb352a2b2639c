"""Names that are unique within one graph, and legal ones of Python."""

from __future__ import annotations

import builtins
import keyword
import re
from math import inf, nan
from typing import Any

import flambeau as fb

OWN_GLOBALS: dict[str, Any] = {
    "inf": inf,
    "nan": nan,
    "NoneType": type(None),
    "torch": fb,
    "device": fb.device,
}
"""What generated code may name without an import of its own."""

_TAKEN = {*keyword.kwlist, *dir(builtins), *OWN_GLOBALS}
_ILLEGAL = re.compile("[^0-9a-zA-Z_]+")
_NUMBERED = re.compile(r"(.*)_(\d+)$")
_HUMP = re.compile("(?<=[a-z])([A-Z])")


class Namespace:
    """Gives out names, each once."""

    def __init__(self) -> None:
        self._owners: dict[Any, str] = {}
        self._used: set[str] = set()
        self._counts: dict[str, int] = {}

    def create_name(self, candidate: str, obj: object) -> str:
        """A name like `candidate`, noted as the one of an object if there is one."""
        if obj is not None and obj in self._owners:
            return self._owners[obj]
        candidate = _ILLEGAL.sub("_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        numbered = _NUMBERED.match(candidate)
        base, number = (numbered[1], int(numbered[2])) if numbered else (candidate, None)
        candidate = base if number is None else f"{base}_{number}"
        number = number or self._counts.get(base, 0)
        while candidate in self._used or self._is_illegal(candidate, obj):
            number += 1
            candidate = f"{base}_{number}"
        self._used.add(candidate)
        self._counts[base] = number
        if obj is not None:
            self._owners[obj] = candidate
        return candidate

    def rename(self, obj: object, name: str) -> None:
        """Note that an object has this name from now on."""
        self._owners[obj] = name
        self._used.add(name)

    @staticmethod
    def _is_illegal(name: str, obj: object) -> bool:
        if name in keyword.kwlist:
            return True
        if name in vars(builtins):
            return vars(builtins)[name] is not obj
        return name in OWN_GLOBALS and OWN_GLOBALS[name] is not obj


def snake_case(text: str) -> str:
    """``layerNorm`` as ``layer_norm``."""
    return _HUMP.sub(r"_\1", text).lower()
