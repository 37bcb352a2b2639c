"""The installed package ``torch``, for programs that ask which version is installed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder
from types import ModuleType
from typing import NoReturn

from flambeau.compat._versions import version


class TorchDistribution(Distribution):
    """What `importlib.metadata` says of ``torch``."""

    def read_text(self, filename: str) -> str | None:
        """One of the files that describe the package; there is only ``METADATA``."""
        if filename == "METADATA":
            return f"Metadata-Version: 2.1\nName: torch\nVersion: {version()}\n"
        return None

    def locate_file(self, path: str | os.PathLike[str]) -> NoReturn:
        """There are no files."""
        raise FileNotFoundError(os.fspath(path))


def distributions(context: DistributionFinder.Context) -> list[Distribution]:
    """What is found of the name asked for: ``torch``, if it is that or any."""
    return [TorchDistribution()] if context.name in (None, "torch") else []


class _WithTorch(Loader):
    """Loads ``pkg_resources`` and then tells it of ``torch``."""

    def __init__(self, real: Loader) -> None:
        self._real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._real.exec_module(module)
        tell(module)


def tell(pkg_resources: ModuleType) -> None:
    """Put ``torch`` into the packages that `pkg_resources` knows."""
    found = pkg_resources.Distribution(project_name="torch", version=str(version()))
    pkg_resources.working_set.add(found, replace=True)


def find_pkg_resources(path: Sequence[str] | None) -> ModuleSpec | None:
    """The module ``pkg_resources`` that is installed, to be loaded with ``torch`` in it."""
    spec = PathFinder.find_spec("pkg_resources", path)
    if spec is not None and spec.loader is not None:
        spec.loader = _WithTorch(spec.loader)
    return spec
