"""The name ``torch`` as a name of flambeau."""

from __future__ import annotations
import __future__

import contextlib
import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from types import ModuleType
from typing import Any

import flambeau
from flambeau.absence import instead, unknown
from flambeau.compat import _absent, _torch, _versions
from flambeau.compat._classes import classes_noticed, classes_of_torch
from flambeau.compat._devices import DEVICES, device_module
from flambeau.compat._distribution import distributions, find_pkg_resources, tell
from flambeau.compat._era import era
from flambeau.compat._moved import MOVED, moved
from flambeau.compat._spellings import spellings_noticed
from flambeau.compat._started import started_processes

# Under these names programs expect something else than what flambeau has there.
_OTHERS = frozenset({"ops", "version"})
# A library that became `torch.func`.
_FUNCTORCH = frozenset({"functorch", "functorch.experimental"})
_OWN = "flambeau.compat._torch"
# Loaded name by name here; programs look through all that PyTorch has in it.
_LISTED = frozenset({"distributions"})
# Modules that only programs of the first version look for.
_GONE = {
    "torch.utils.ffi": "torch.utils.ffi is deprecated. Please use cpp extensions instead.",
}


class _Torch(ModuleType):
    """Module ``torch``: the attributes of `flambeau`, and those that only programs for it want."""

    def __init__(self) -> None:
        super().__init__("torch", flambeau.__doc__)
        self.__version__ = _versions.version()
        self.__path__ = flambeau.__path__
        self.__file__ = flambeau.__file__
        self.__dict__["torch"] = self

    def __getattr__(self, name: str) -> Any:
        path = f"torch.{name}"
        if name not in _OTHERS and not name.startswith("_"):
            try:
                value = getattr(flambeau, name)
            except ModuleNotFoundError:
                raise
            except AttributeError:
                pass
            else:
                if isinstance(value, ModuleType) and path not in sys.modules:
                    _import(path)
                return value
        if name in _torch.__all__:
            return getattr(_torch, name)
        if _exists(path):
            return _import(path)
        if name in _absent.table()["torch"]:
            value = self.__dict__[name] = _absent.absent(path)
            return value
        if name.startswith("_") and not name.startswith("__") and hasattr(flambeau, name):
            return getattr(flambeau, name)
        advice = instead("flambeau", name)
        text = (
            f"flambeau has no torch.{name} (the name torch means flambeau "
            f"{flambeau.__version__} in this process){f'; instead: {advice}' if advice else ''}"
        )
        raise unknown(self, name, text)

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, ModuleType) and name != "__class__":
            # The import system binds submodules: they are found already, and hide no function.
            if name in _OTHERS or not hasattr(flambeau, name):
                super().__setattr__(name, value)
        elif name.startswith("__") and name.endswith("__"):
            super().__setattr__(name, value)
        else:
            setattr(flambeau, name, value)

    def __delattr__(self, name: str) -> None:
        if name in self.__dict__:
            super().__delattr__(name)
        else:
            delattr(flambeau, name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(flambeau), *_torch.__all__})


class _Finder(MetaPathFinder, Loader):
    """Answers for ``torch`` and its submodules with the modules of flambeau themselves."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "torch":
            return ModuleSpec(fullname, self, is_package=True)
        if fullname == "pkg_resources":
            return find_pkg_resources(path)
        if fullname in _FUNCTORCH:
            return ModuleSpec(fullname, self, is_package=fullname == "functorch")
        if not fullname.startswith("torch."):
            return None
        if not _exists(fullname):
            # With another name than the one asked for, `from torch import missing` shows the text.
            own = "flambeau" + fullname[5:]
            said = _GONE.get(fullname, f"flambeau has no {fullname}")
            raise ModuleNotFoundError(said, name=own)
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return _Torch() if spec.name == "torch" else None

    def exec_module(self, module: ModuleType) -> None:
        # The import system returns what stands in sys.modules then, and changes nothing on it.
        name = module.__name__
        if name in _FUNCTORCH:
            sys.modules[name] = importlib.import_module(f"flambeau.compat._{name}")
        elif name != "torch":
            sys.modules[name] = _bindings.module(name)

    def find_distributions(
        self, context: DistributionFinder.Context | None = None
    ) -> list[Distribution]:
        """What `importlib.metadata` is told."""
        return distributions(context or DistributionFinder.Context())


class _Bindings:
    """What programs for PyTorch find on the modules of flambeau while they run."""

    def __init__(self) -> None:
        self._made: list[tuple[ModuleType, str]] = []

    def module(self, name: str) -> ModuleType:
        """The module that stands for `torch.…`, complete and with the modules below it."""
        below = name[6:]
        found = _of_flambeau(below)
        own = importlib.import_module(f"{_OWN}.{below}") if below in _own_modules() else None
        if found is None:
            if below in DEVICES:
                own = device_module(below)
            if own is None:
                own = ModuleType(name)
                vars(own).update(moved(below))
            _absent.fill(own, name)
            return own
        for listed in found.__all__ if below in _LISTED else ():
            getattr(found, listed)
        for added in getattr(own, "__all__", ()):
            self._bind(found, added, getattr(own, added))
        for added, value in moved(below).items():
            self._bind(found, added, value)
        for added in _absent.table().get(name, ()):
            self._bind(found, added, _absent.absent(f"{name}.{added}"))
        self._children(name, found)
        return found

    def _children(self, name: str, module: ModuleType) -> None:
        prefix = f"{module.__name__}."
        for path, child in list(sys.modules.items()):
            if path.startswith(prefix) and "." not in path[len(prefix) :]:
                # Now: importing it later would hide a function of the same name.
                below = f"{name}.{path[len(prefix) :]}"
                if vars(module).get(path[len(prefix) :]) is not child and below not in sys.modules:
                    sys.modules[below] = self.module(below)
        for child_name in _children_of(name[6:]):
            path = f"{name}.{child_name}"
            child = sys.modules.get(path) or self.module(path)
            sys.modules[path] = child
            self._bind(module, child_name, child)

    def _bind(self, module: ModuleType, name: str, value: object) -> None:
        # `from __future__ import annotations` leaves a name that a file of PyTorch's has.
        if not hasattr(module, name) or isinstance(getattr(module, name), __future__._Feature):
            setattr(module, name, value)
            self._made.append((module, name))

    def undo(self) -> None:
        """Leave the modules as they were."""
        while self._made:
            module, name = self._made.pop()
            if name in vars(module):
                delattr(module, name)


_bindings = _Bindings()


def _of_flambeau(below: str) -> ModuleType | None:
    """The module of flambeau that has this path, if programs for PyTorch are to see it."""
    if below in _OTHERS or below.startswith("_"):
        return None
    path = f"flambeau.{below}"
    if path in sys.modules:
        return sys.modules[path]
    try:
        if importlib.util.find_spec(path) is None:
            return None
    except (ModuleNotFoundError, ValueError):
        return None
    return importlib.import_module(path)


def module_of(name: str) -> str:
    """The module that a name means, such as ``torch.distributed.run``: not loaded, to be run.

    >>> module_of("torch.distributed.launch"), module_of("json.tool")
    ('flambeau.distributed.launch', 'json.tool')
    """
    below = name.removeprefix("torch.")
    if below == name:
        return name
    for found in (f"flambeau.{below}", f"{_OWN}.{below}"):
        try:
            if importlib.util.find_spec(found) is not None:
                return found
        except ModuleNotFoundError:
            continue
    return name


@cache
def _own_modules() -> frozenset[str]:
    """The paths below ``torch`` that are written for it."""
    found = pkgutil.walk_packages(_torch.__path__, f"{_OWN}.")
    return frozenset(each.name[len(_OWN) + 1 :] for each in found)


def _is_known(below: str) -> bool:
    """Whether a path below ``torch`` is written for it, moved to it, or absent."""
    return below in _own_modules() or below in MOVED or f"torch.{below}" in _absent.table()


def _exists(name: str) -> bool:
    below = name[6:]
    return _is_known(below) or below in DEVICES or _of_flambeau(below) is not None


def _children_of(below: str) -> list[str]:
    """The modules directly below a path that flambeau has not got, or not all of."""
    paths = {*_own_modules(), *MOVED, *(name[6:] for name in _absent.table() if name != "torch")}
    start = f"{below}." if below else ""
    return sorted({p[len(start) :].partition(".")[0] for p in paths if p.startswith(start)})


def _import(name: str) -> ModuleType:
    return importlib.import_module(name)


def _is_torch(name: str) -> bool:
    return name.partition(".")[0] in ("torch", "functorch")


@contextlib.contextmanager
def torch_alias(version: str = _versions.DEFAULT) -> Iterator[ModuleType]:
    """Make ``import torch`` mean flambeau while the block runs, in all threads.

    Submodules are the same objects as flambeau's (``torch.nn.functional is
    flambeau.nn.functional``).  A PyTorch that is installed is neither imported nor, if it has been
    imported, disturbed: it is back after the block.  Modules that were imported inside keep what
    they have got.

    Args:
        version: which PyTorch programs are told that it is, ``"1.2"`` or ``"2.13"``.  With
            ``"1.2"``, `flambeau.load` reads whole objects unless ``weights_only`` says otherwise,
            as it did then: only files that you trust.

    Raises:
        ValueError: there is no such version.

    >>> import flambeau as fb
    >>> with fb.compat.torch_alias():
    ...     import torch.nn.functional as F
    ...     from torch.utils.data import DataLoader
    >>> F is fb.nn.functional, DataLoader is fb.utils.data.DataLoader
    (True, True)
    """
    told = _versions.choose(version)
    before = {name: module for name, module in sys.modules.items() if _is_torch(name)}
    for name in before:
        del sys.modules[name]
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    if "pkg_resources" in sys.modules:
        tell(sys.modules["pkg_resources"])
    try:
        with (
            era(version),
            started_processes(_enter, version),
            classes_noticed(),
            spellings_noticed(),
        ):
            found = importlib.import_module("torch")
            with classes_of_torch():
                yield found
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if _is_torch(name)]:
            del sys.modules[name]
        sys.modules.update(before)
        _bindings.undo()
        _versions.choose(told)


_entered = contextlib.ExitStack()


def _enter(version: str) -> None:
    """Make ``torch`` mean flambeau until the process ends: what a started process does first."""
    _entered.enter_context(torch_alias(version))
