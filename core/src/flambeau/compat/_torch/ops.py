"""``torch.ops``: functions that a program defined by `torch.library`, and those of ``aten``."""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau.compat._parts import reason
from flambeau.compat._torch.library import DEFINED

__all__ = ["load_library"]


class _Namespace:
    """The ops of one namespace."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, op: str) -> Any:
        if op in DEFINED.get(self._name, {}):
            return DEFINED[self._name][op]
        if self._name == "aten" and not op.startswith("__"):
            for home in (fb, fb.nn.functional):
                if callable(found := getattr(home, op, None)):
                    return found
        raise AttributeError(f"'_OpNamespace' {self._name!r} object has no attribute {op!r}")

    def __dir__(self) -> list[str]:
        return sorted(DEFINED.get(self._name, {}))


def load_library(path: Any) -> None:
    """Load compiled ops.

    Raises:
        OSError: always, as of a library that does not fit.
    """
    raise OSError(f"load_library({path!r}): {reason('torch.utils.cpp_extension')}")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    found = globals()[name] = _Namespace(name)
    return found
