"""Names of PyTorch that flambeau lacks: they can be imported and asked for, but not used.

Which names, module by module, is in ``absent.txt``, and why in `parts`.  What a placeholder is
follows from the name: a class, an exception, a warning, or something to call.
"""

from __future__ import annotations

import contextlib
import importlib
from functools import cache
from importlib.resources import files
from types import ModuleType
from typing import Any, NoReturn

from flambeau.compat._parts import reason

_RAISED = ("Error", "Exception", "DependentSymNode")
"""How names of exceptions end."""


def _refuse(path: str) -> NoReturn:
    raise NotImplementedError(f"flambeau has no {path}: {reason(path)}")


class AbsentFunction:
    """Something to call or to read from, which raises when that is done."""

    def __init__(self, path: str) -> None:
        self.__name__ = self.__qualname__ = path.rpartition(".")[2]
        self.__module__ = path.rpartition(".")[0]
        self._path = path

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        _refuse(self._path)

    def __repr__(self) -> str:
        return f"<absent {self._path}>"


class AbsentClass:
    """A class without objects: there is nothing that is an instance of it, and none can be made."""

    _path = ""

    def __new__(cls, *args: object, **kwargs: object) -> Any:
        of = "" if cls.__dict__.get("_path") == cls._path else f" (which {cls.__name__} is)"
        raise NotImplementedError(f"flambeau has no {cls._path}{of}: {reason(cls._path)}")

    def __init_subclass__(cls, **kwargs: object) -> None:
        pass

    def __class_getitem__(cls, item: object) -> type:
        return cls


def absent(path: str) -> AbsentFunction | type:
    """What stands for a name such as ``torch.fx.Graph``."""
    module, _, name = path.rpartition(".")
    plain = name.lstrip("_")
    if plain.endswith(_RAISED):
        return type(name, (Exception,), {"__module__": module, "__doc__": "Never raised."})
    if plain.endswith("Warning"):
        return type(name, (Warning,), {"__module__": module, "__doc__": "Never given."})
    if plain[:1].isupper():
        said = {"_path": path, "__module__": module, "__doc__": reason(path)}
        return type(name, (AbsentClass,), said)
    return AbsentFunction(path)


@cache
def table() -> dict[str, frozenset[str]]:
    """The names that are absent, by module."""
    found: dict[str, frozenset[str]] = {}
    text = files("flambeau.compat").joinpath("absent.txt").read_text("utf-8")
    for paragraph in text.strip().split("\n\n"):
        module, _, names = paragraph.partition(":")
        found[module.strip()] = frozenset(names.split())
    for module in list(found):  # `torch.a.b` is in `torch.a`, which may have no names itself
        while (module := module.rpartition(".")[0]).count("."):
            found.setdefault(module, frozenset())
    return found


def fill(module: ModuleType, name: str) -> None:
    """Let a module answer for the absent names of the module that it stands for."""
    names = table().get(name, frozenset())

    def missing(attribute: str) -> ModuleType | AbsentFunction | type:
        if f"{name}.{attribute}" in table():
            return importlib.import_module(f"{name}.{attribute}")
        if attribute not in names:
            if not attribute.startswith("__"):
                with contextlib.suppress(ModuleNotFoundError):  # written, and not imported yet
                    return importlib.import_module(f"{name}.{attribute}")
            raise AttributeError(f"flambeau has no {name}.{attribute}: {reason(name)}")
        value = absent(f"{name}.{attribute}")
        setattr(module, attribute, value)
        return value

    module.__dict__.setdefault("__getattr__", missing)
    module.__dict__.setdefault("__path__", [])
    module.__dict__.setdefault("__all__", sorted(names))
