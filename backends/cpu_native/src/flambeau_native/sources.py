"""Whether the compiled module was made of the C sources that lie beside it.

In an installation for editing the Python files change with every checkout and the module only
when it is built again: the two may then disagree about the arrays that functions take, and write
past them. So `setup.py` compiles a digest of the sources into the module.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import Any

FOLDER = os.path.join(os.path.dirname(__file__), "..", "..", "csrc")
"""Where the sources are in an installation for editing; in others there is no such folder."""


def digest(folder: str = FOLDER) -> str:
    """What the sources in a folder are, as a name of C."""
    summed = blake2b(digest_size=8)
    for name in sorted(os.listdir(folder)):
        if name.endswith((".c", ".h")):
            with open(os.path.join(folder, name), "rb") as file:
                text = file.read()
            summed.update(f"{name} {len(text)}\n".encode() + text)
    return f"d{summed.hexdigest()}"


def demand_those_of(module: Any, folder: str = FOLDER) -> None:
    """Raise if sources were changed after a module was built, unless it has them all the same.

    Files are only read if one is younger than the module: else it takes some 0.1 ms.

    Raises:
        ImportError: the module is of other sources; says what builds it again.
    """
    built: str | None = getattr(module, "sources", None)
    try:
        age = os.stat(module.__file__).st_mtime
        with os.scandir(folder) as files:
            changed = any(file.stat().st_mtime > age for file in files)
        if built is None or not changed or digest(folder) == built:
            return  # modules from before 24 November 2026 do not say what they are made of
    except OSError:
        return
    from flambeau.plugin.remedies import install_command  # only errors name commands

    raise ImportError(
        f"the compiled kernels ({module.__file__}) are older than the sources beside them, and "
        f"their calls may not fit: build them again with {install_command('flambeau-native')}"
    )
