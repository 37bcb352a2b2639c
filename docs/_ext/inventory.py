"""What is public: modules, the names in them, and the place where each thing is documented."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Collection
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import flambeau

# Parts of a package that have no page: their public names are those of the package above them, or
# they are the inside of the core, which the design pages describe.
INSIDE = (
    "flambeau.nn.functional.",
    "flambeau.nn.module",
    "flambeau.nn.modules",
    "flambeau.ops",
    "flambeau.plugin.",
    "flambeau.testing.backend",
    "flambeau.testing.plugin",
    "flambeau.testing.reference",
    "flambeau.testing.sample",
    "flambeau.testing.layouts",
)
# Modules whose names are all assigned from elsewhere.
ASSEMBLED = {"flambeau.cuda"}
# Modules that programs import by name although all in them is documented elsewhere.
PLACES = {"flambeau.backends", "flambeau.signal"}


@dataclass(frozen=True)
class Entry:
    """One public name.

    Attributes:
        name: the full name.
        value: what it names.
        same_as: the full name under which the same object is documented, or None.
    """

    name: str
    value: Any
    same_as: str | None = None

    @property
    def short(self) -> str:
        """The name within its module."""
        return self.name.rpartition(".")[2]

    @property
    def family(self) -> str:
        """The module in which the thing is written, or "" if nobody can tell."""
        value = inspect.unwrap(self.value) if callable(self.value) else self.value
        code = getattr(value, "__code__", None)
        if code is not None and code.co_filename in _files():
            return _files()[code.co_filename]
        return getattr(value, "__module__", None) or ""


@functools.cache
def _files() -> dict[str, str]:
    """The module of each file; decorators hide a function's own `__module__`."""
    return {
        path: name
        for name, module in list(sys.modules.items())
        if name.startswith("flambeau") and (path := getattr(module, "__file__", None))
    }


@dataclass
class Page:
    """A module and the names that its page documents."""

    module: ModuleType
    entries: list[Entry] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The full name of the module."""
        return self.module.__name__

    @property
    def title(self) -> str:
        """The first line of the module's docstring."""
        return (self.module.__doc__ or "").strip().split("\n")[0]


def modules() -> list[ModuleType]:
    """All public modules, `flambeau` first; bridges to packages only where these are installed."""
    found = [flambeau]
    _collect(flambeau, found)
    return found


def _collect(package: ModuleType, found: list[ModuleType]) -> None:
    for info in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if info.name.rpartition(".")[2].startswith("_") or info.name.startswith(INSIDE):
            continue
        try:
            module = importlib.import_module(info.name)
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("flambeau"):
                raise
            continue  # a bridge to a package that is not installed here
        found.append(module)
        if info.ispkg:
            _collect(module, found)


def public_names(module: ModuleType) -> list[str]:
    """The names that a module offers: its ``__all__``, or what is written in it."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return sorted(set(listed), key=lambda name: (name.lower(), name))
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and name != "annotations"
        and (module.__name__ in ASSEMBLED or getattr(value, "__module__", None) == module.__name__)
    )


def pages() -> list[Page]:
    """One page per module that has names of its own; each object has one home."""
    homes: dict[int, str] = {}
    found = []
    for module in modules():
        page = Page(module)
        for name in public_names(module):
            value = getattr(module, name)
            if inspect.ismodule(value):
                continue
            # Once a module with a subclass of Tensor is imported, functions stand behind objects.
            if not inspect.isroutine(value) and not inspect.isclass(value):
                value = getattr(value, "__wrapped__", value)
            full = f"{module.__name__}.{name}"
            shared = callable(value) or inspect.isclass(value)
            home = homes.setdefault(id(value), full) if shared else full
            page.entries.append(Entry(full, value, None if home == full else home))
        if module.__name__ in PLACES or any(entry.same_as is None for entry in page.entries):
            found.append(page)
    return found


def members(cls: type, public: Collection[type]) -> list[tuple[str, Any]]:
    """Public members of `cls` itself and of its bases that are not documented by themselves.

    They are given as they stand in the class: a static method is a `staticmethod`. What a base in
    `public` has, or says in the same words, is left to it.
    """
    above = {c for parent in cls.__mro__[1:] if parent in public for c in parent.__mro__}
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base is cls or (base not in above and base.__module__.startswith("flambeau.")):
            found.update((n, v) for n, v in vars(base).items() if not n.startswith("_"))
    for base in above:
        for name in found.keys() & vars(base).keys():
            if inspect.getdoc(found[name]) == inspect.getdoc(vars(base)[name]):
                del found[name]
    return sorted(found.items(), key=lambda item: (item[0].lower(), item[0]))
