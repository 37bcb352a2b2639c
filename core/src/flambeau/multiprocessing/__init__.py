"""`multiprocessing` whose processes share tensors: ``flambeau.multiprocessing``.

A drop-in replacement: every name of the standard module, and queues and pipes that send a tensor of
the CPU by moving it to shared memory.  Sender and receiver then see each other's writes.

>>> import flambeau.multiprocessing as mp
>>> queue = mp.get_context("spawn").SimpleQueue()
>>> mp.get_sharing_strategy()
'file_descriptor'
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403 - a drop-in replacement
from multiprocessing import __all__ as _names  # type: ignore[attr-defined] - not in the stubs

from flambeau._storages import shared as _storage_shared
from flambeau.multiprocessing._spawn import (
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    *_names,
    "ProcessContext",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]

_storage_shared.register(move=True)
current_process = multiprocessing.current_process

_STRATEGY = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The ways in which shared memory travels: always by its file descriptor.

    PyTorch's other way, by the name of a file, leaves the file behind when a process is killed.

    >>> import flambeau.multiprocessing as mp
    >>> mp.get_all_sharing_strategies()
    {'file_descriptor'}
    """
    return {_STRATEGY}


def get_sharing_strategy() -> str:
    """The way in which shared memory travels.

    >>> import flambeau.multiprocessing as mp
    >>> mp.get_sharing_strategy()
    'file_descriptor'
    """
    return _STRATEGY


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose the way in which shared memory travels; there is one.

    Raises:
        ValueError: it is another one.

    >>> import flambeau.multiprocessing as mp
    >>> mp.set_sharing_strategy("file_descriptor")
    """
    if new_strategy not in get_all_sharing_strategies():
        raise ValueError(
            f"set_sharing_strategy: {new_strategy!r} is not available here; shared memory travels "
            f"by {_STRATEGY!r}. If descriptors run out, raise the limit with `ulimit -n`"
        )
