"""Which modules are being computed."""

from __future__ import annotations

from typing import Any

from flambeau.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """A block in which ``parents`` has the names of the modules that run, and ``"Global"``.

    Names begin with the class of the outermost module that was seen, as in ``Net.conv1``.
    Backward passes belong to no module.
    """

    def __init__(self) -> None:
        self.parents: set[str] = {"Global"}
        self._names: dict[int, str] = {}
        self._handles: list[Any] = []

    def __enter__(self) -> ModuleTracker:
        self._handles = [
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after, always_call=True),
        ]
        return self

    def __exit__(self, *exc: object) -> None:
        for handle in self._handles:
            handle.remove()
        self.parents = {"Global"}
        self._names.clear()

    def _name(self, module: Any) -> str:
        if id(module) not in self._names:
            root = type(module).__name__
            for path, each in module.named_modules():
                self._names.setdefault(id(each), f"{root}.{path}" if path else root)
        return self._names[id(module)]

    def _before(self, module: object, args: object) -> None:
        self.parents.add(self._name(module))

    def _after(self, module: object, args: object, output: object) -> None:
        self.parents.discard(self._name(module))
