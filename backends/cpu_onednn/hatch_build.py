"""Puts oneDNN into the wheel: one copy of the library, from the package that distributes it.

That package, a requirement of the build only, holds the library three times, 164 MB. Where it
does not exist (only Linux on x86-64 has it) the wheel has no library, and the system's serves.
"""

from __future__ import annotations

import shutil
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = "onednn-cpu-gomp"
LICENSES = ("LICENSE", "THIRD-PARTY-PROGRAMS")


class CustomBuildHook(BuildHookInterface):
    """Copies the library and its licences beside the sources, for wheels and editable installs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        try:
            source = distribution(SOURCE)
        except PackageNotFoundError:
            return
        found = {Path(str(file)).name: Path(str(file.locate())) for file in source.files or ()}
        library = next((path for name, path in found.items() if name == "libdnnl.so.3"), None)
        if library is None:
            return
        target = Path(self.root, "src/flambeau_onednn/lib")
        target.mkdir(exist_ok=True)
        shutil.copyfile(library, target / "libdnnl.so.3")
        for name in LICENSES:
            if name in found:
                shutil.copyfile(found[name], target / name)
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-manylinux_2_5_x86_64.manylinux1_x86_64"
