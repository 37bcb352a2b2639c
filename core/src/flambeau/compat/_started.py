"""The name ``torch`` in processes that are started afresh by `multiprocessing`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import spawn
from typing import Any

_versions: list[str] = []
"""Which PyTorch ``torch`` means in the blocks that are open, the innermost last."""


def to_run() -> list[str]:
    """The arguments of Python by which another process runs a script as this one is run.

    >>> from flambeau.compat import torch_alias
    >>> with torch_alias("1.2"):
    ...     to_run()
    ['-m', 'flambeau', 'run', '--as', '1.2']
    >>> to_run()
    []
    """
    return ["-m", "flambeau", "run", "--as", _versions[-1]] if _versions else []


class _Meaning:
    """Part of what a started process is sent first: receiving it enters the alias there."""

    def __init__(self, enter: Callable[[str], None], version: str) -> None:
        self.enter, self.version = enter, version

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return self.enter, (self.version,)


@contextmanager
def started_processes(enter: Callable[[str], None], version: str) -> Iterator[None]:
    """A block in which such processes call `enter` with a version before anything else.

    What they are sent is pickled and read before they import the main module and unpickle what
    they are to do, for the start methods ``spawn`` and ``forkserver`` alike.
    """
    tell = spawn.get_preparation_data

    def and_torch(name: str) -> dict[str, Any]:
        return {**tell(name), "torch": _Meaning(enter, version)}

    spawn.get_preparation_data = and_torch
    _versions.append(version)
    try:
        yield
    finally:
        _versions.pop()
        spawn.get_preparation_data = tell
