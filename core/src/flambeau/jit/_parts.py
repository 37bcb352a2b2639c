"""The parts of the compiler, which need each other as the forms of a language do.

An expression contains calls, a call functions, a function statements, a statement expressions: each
module here reaches those above it through `compiler`, when it first needs them.
"""

from __future__ import annotations

import importlib
from typing import Any


class _Parts:
    """Modules of this package: ``compiler.calls`` is ``flambeau.jit._calls``."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        path = "." if name == "root" else f"._{name}"
        if name.startswith("passes_"):
            path = f".passes._{name.removeprefix('passes_')}"
        module = importlib.import_module(path.rstrip(".") or "flambeau.jit", "flambeau.jit")
        setattr(self, name, module)
        return module


compiler = _Parts()
