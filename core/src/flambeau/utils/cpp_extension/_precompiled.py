"""The header ``torch/extension.h``, compiled once for all sources that begin with it.

GCC reads ``torch/extension.h.gch`` where it finds it on its way to the header, if nothing stands
before the ``#include`` and the options are the same; else it goes on to the header.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from flambeau.utils.cpp_extension import _compiler

__all__ = ["begins_with_header", "options_of", "place", "put_away"]

KEPT = 2
"""How many stay, each for a set of options: one takes 170 MB."""

_FIRST = re.compile(
    r'(?:\s|//[^\n]*\n|/\*.*?\*/|#\s*pragma\s+once)*#\s*include\s*[<"]torch/extension\.h[>"]',
    re.DOTALL,
)


def begins_with_header(source: Path, compiler: str) -> bool:
    """Whether a source has the header before anything else, and the compiler is GCC."""
    if "Free Software Foundation" not in _compiler.version_of(compiler):
        return False
    return _FIRST.match(source.read_text(errors="replace")) is not None


def options_of(command: Sequence[str]) -> list[str]:
    """A command without the name of the module, which the header does not know."""
    return [part for part in command if not part.startswith("-DTORCH_EXTENSION_NAME=")]


def place(root: Path, command: Sequence[str]) -> Path:
    """Where the compiled header of a command belongs."""
    key = hashlib.sha256("\0".join(command).encode()).hexdigest()[:12]
    return root / ".headers" / key / "torch" / "extension.h.gch"


def put_away(made: Path) -> None:
    """Remove those that were used least lately.  A compiler that reads one keeps it."""
    folders = [each for each in made.parents[2].iterdir() if each.is_dir()]
    folders.sort(key=lambda each: each.stat().st_mtime, reverse=True)
    for old in [each for each in folders if each != made.parents[1]][KEPT - 1 :]:
        shutil.rmtree(old, ignore_errors=True)
