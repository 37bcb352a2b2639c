"""The name ``torch`` as a name of flambeau."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import flambeau

VERSION = f"2.0.0+flambeau{flambeau.__version__}"
"""What ``torch.__version__`` is: programs compare it, and what they find are PyTorch 2's rules."""

_OWN = ("__name__", "__version__", "__spec__", "__loader__", "__package__", "__doc__")


class _Torch(ModuleType):
    """Module ``torch``: the attributes of `flambeau`, but for its name and version."""

    def __init__(self) -> None:
        super().__init__("torch", flambeau.__doc__)
        self.__version__ = VERSION
        self.__path__ = flambeau.__path__
        self.__file__ = flambeau.__file__

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(flambeau, name)
        except AttributeError:
            raise AttributeError(
                f"flambeau has no torch.{name} (the name torch means flambeau "
                f"{flambeau.__version__} in this process)"
            ) from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OWN or (name.startswith("__") and name.endswith("__")):
            super().__setattr__(name, value)
        else:
            setattr(flambeau, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(flambeau, name)

    def __dir__(self) -> list[str]:
        return dir(flambeau)


class _Finder(MetaPathFinder, Loader):
    """Answers for ``torch`` and its submodules with the modules of flambeau themselves."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "torch":
            return ModuleSpec(fullname, self, is_package=True)
        if not fullname.startswith("torch."):
            return None
        own = "flambeau" + fullname[5:]
        if own not in sys.modules and importlib.util.find_spec(own) is None:
            # With another name than the one asked for, `from torch import missing` shows the text.
            raise ModuleNotFoundError(f"flambeau has no {fullname}", name=own)
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        # The import system returns what stands in sys.modules then, and changes nothing on it.
        name = module.__name__
        if name == "torch":
            sys.modules[name] = _Torch()
        else:
            sys.modules[name] = importlib.import_module("flambeau" + name[5:])


def _is_torch(name: str) -> bool:
    return name == "torch" or name.startswith("torch.")


@contextlib.contextmanager
def torch_alias() -> Iterator[ModuleType]:
    """Make ``import torch`` mean flambeau while the block runs, in all threads.

    Submodules are the same objects as flambeau's (``torch.nn.functional is
    flambeau.nn.functional``).  A PyTorch that is installed is neither imported nor, if it has been
    imported, disturbed: it is back after the block.  Modules that were imported inside keep what
    they have got.

    >>> import flambeau as fb
    >>> with fb.compat.torch_alias():
    ...     import torch.nn.functional as F
    ...     from torch.utils.data import DataLoader
    >>> F is fb.nn.functional, DataLoader is fb.utils.data.DataLoader
    (True, True)
    """
    before = {name: module for name, module in sys.modules.items() if _is_torch(name)}
    for name in before:
        del sys.modules[name]
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield importlib.import_module("torch")
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if _is_torch(name)]:
            del sys.modules[name]
        sys.modules.update(before)
