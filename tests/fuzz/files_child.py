"""In a child process: loads files and says what became of them."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import flambeau as fb
from children import serve
from flambeau.serialization import CheckpointError
from verdicts import USER, verdict

LOADERS = {"program": fb.jit.load, "model": fb.onnx.load}
TEXT = 3000  # characters of an error: more is a file that fills the screen


def program(path: str, load: Callable[[str], Any]) -> list[str]:
    """The same of a file that holds a program."""
    try:
        found = load(path)
    except Exception as error:
        kind, where = verdict(error, "flambeau")
        good = kind == USER and len(str(error)) < TEXT
        said = f"{where}: {error}" if good else f"{kind}: {traceback.format_exc()}"
        return ["refused" if good else "foreign", type(error).__name__, said[-TEXT:]]
    return ["loaded", type(found).__name__, ""]


def work(item: Any) -> list[str]:
    """What loading a file gives: ``loaded``, ``refused`` (the user's error) or ``foreign``."""
    path, mmap, kind = item
    if kind in LOADERS:
        return program(path, LOADERS[kind])
    try:
        found = fb.load(path, mmap=mmap)
    except CheckpointError as error:
        good = error.path == path and path in str(error) and len(str(error)) < TEXT
        return ["refused" if good else "foreign", type(error).__name__, str(error)[:TEXT]]
    except RuntimeError as error:
        user = "is not available here" in str(error) or "needs the archive format" in str(error)
        if type(error) is RuntimeError and user and len(str(error)) < TEXT:
            return ["refused", "RuntimeError", str(error)]
        return ["foreign", type(error).__name__, traceback.format_exc()[-TEXT:]]
    except Exception as error:
        return ["foreign", type(error).__name__, traceback.format_exc()[-TEXT:]]
    kind = type(found).__name__
    del found  # what is nested deeply must also come to an end
    return ["loaded", kind, ""]


if __name__ == "__main__":
    fb.ones(2).sum()  # the backends are loaded before memory is measured
    import flambeau.nn

    serve(work)
