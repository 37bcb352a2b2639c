"""The parts of the compiler, which need each other as the forms of a language do.

An expression contains calls, a call functions, a function statements, a statement expressions: each
module here reaches those above it through `compiler`, when it first needs them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType


_HERE = frozenset(
    """archive code decorators execute graph modules old_reader planned reader schemas script
    types""".split()
)
"""The parts in this folder; the others are in `_frontend`."""
_TRACING = frozenset("interpret patches graphs recorder".split())


class _Parts:
    """Modules of this package: ``compiler.calls`` is ``flambeau.jit._frontend.calls``."""

    def __getattr__(self, name: str) -> ModuleType:
        if name.startswith("_"):
            raise AttributeError(name)
        path = f"._{name}" if name in _HERE else f"._frontend.{name}"
        path = "." if name == "root" else path
        path = f"._tracing.{name}" if name in _TRACING else path
        if name.startswith("passes_"):
            path = f".passes._{name.removeprefix('passes_')}"
        module = importlib.import_module(path.rstrip(".") or "flambeau.jit", "flambeau.jit")
        setattr(self, name, module)
        return module


compiler = _Parts()
