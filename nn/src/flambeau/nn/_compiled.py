"""Compiled modules: `flambeau.compile` of a module is a module over the same parameters."""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau.nn.module import Module

__all__ = ["OptimizedModule", "compiled_module"]


class OptimizedModule(Module):
    """A module whose calls repeat plans; everything else is that of the module itself.

    Its state dictionary has the names of the module's behind ``_orig_mod.``, as in PyTorch.
    """

    def __init__(self, module: Module, kept: int, whole: bool) -> None:
        super().__init__()
        self._orig_mod = module
        self._compiled = fb.plans.Compiled(module, kept, whole)
        self.training = module.training

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's, by a plan where there is one."""
        return self._compiled(*args, **kwargs)

    def explain(self) -> Any:
        """What became of the calls so far: see `flambeau.plans.Explanation`."""
        return self._compiled.explain()

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "_orig_mod":
                raise
            return getattr(self._orig_mod, name)

    def __reduce__(self) -> tuple[Any, ...]:
        compiled = self._compiled
        return compiled_module, (self._orig_mod, compiled._kept, compiled._whole)


def compiled_module(module: Module, kept: int = 8, whole: bool = False) -> OptimizedModule:
    """What `flambeau.compile` makes of a module."""
    return OptimizedModule(module, kept, whole)
