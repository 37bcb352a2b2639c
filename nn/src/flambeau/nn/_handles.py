"""Entering hooks into a module's tables."""

from __future__ import annotations

import functools
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from flambeau.utils.hooks import RemovableHandle


class HookHandle(RemovableHandle):
    """The handle of a hook that is entered in several tables."""

    def __init__(self, hooks: OrderedDict[int, Any], *flags: OrderedDict[int, bool]) -> None:
        super().__init__(hooks)
        self.flags = flags

    def remove(self) -> None:
        """Take the hook out; a second call does nothing."""
        super().remove()
        for table in self.flags:
            table.pop(self.id, None)


def add_hook(
    hooks: OrderedDict[int, Any],
    hook: object,
    *flags: OrderedDict[int, bool],
    prepend: bool = False,
) -> RemovableHandle:
    """Enter `hook` and set its `flags`; the handle removes it from all these tables."""
    handle = HookHandle(hooks, *flags) if flags else RemovableHandle(hooks)
    hooks[handle.id] = hook
    for table in flags:
        table[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


class WithModule:
    """A hook that is given its module first, without keeping that module alive."""

    def __init__(self, hook: Callable[..., Any], module: object) -> None:
        functools.update_wrapper(self, hook)
        self.hook = hook
        self.module = weakref.ref(module)

    def __call__(self, *args: object) -> Any:
        return self.hook(self.module(), *args)

    def __getstate__(self) -> dict[str, Any]:
        return {"hook": self.hook, "module": self.module()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["hook"], state["module"])
