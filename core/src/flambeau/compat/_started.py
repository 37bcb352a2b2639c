"""The name ``torch`` in processes that are started afresh by `multiprocessing`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing import spawn
from typing import Any


_entered = ExitStack()


class _Meaning:
    """Part of what a started process is sent first: receiving it enters the alias there."""

    def __init__(self, version: str) -> None:
        self.version = version

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return _enter, (self.version,)


def _enter(version: str) -> None:
    from flambeau.compat._alias import torch_alias  # which imports this module

    _entered.enter_context(torch_alias(version))  # until the process ends


@contextmanager
def started_processes(version: str) -> Iterator[None]:
    """A block in which such processes mean by ``torch`` what this one does.

    What they are sent is pickled and read before they import the main module and unpickle what
    they are to do, for the start methods ``spawn`` and ``forkserver`` alike.
    """
    tell = spawn.get_preparation_data

    def and_torch(name: str) -> dict[str, Any]:
        return {**tell(name), "torch": _Meaning(version)}

    spawn.get_preparation_data = and_torch
    try:
        yield
    finally:
        spawn.get_preparation_data = tell
