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
from flambeau._storages.sending import register as _register
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

_register(moves=True)
current_process = multiprocessing.current_process


def get_all_sharing_strategies() -> set[str]:
    """The ways in which shared memory can travel to other processes.

    >>> import flambeau.multiprocessing as mp
    >>> "file_descriptor" in mp.get_all_sharing_strategies()
    True
    """
    return set(_storage_shared.STRATEGIES)


def get_sharing_strategy() -> str:
    """The way in which shared memory travels that is made from now on.

    >>> import flambeau.multiprocessing as mp
    >>> mp.get_sharing_strategy()
    'file_descriptor'
    """
    return _storage_shared.strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose the way in which shared memory travels that is made from now on.

    Args:
        new_strategy: ``"file_descriptor"``: the memory has no name, so nothing is left however
            processes end, and each block needs a descriptor in each process.  ``"file_system"``:
            it has a name, which a process that is started here removes when all that use the
            block have let it go or ended, and no descriptors are needed; a process has to live
            until what it sent was received.  What is pickled and never received, or belongs to
            a message whose pickling failed, keeps its name and memory until the last process of
            the job has ended.  Batches of a ``DataLoader`` travel by descriptor all the same.
            Linux alone has it.

    Raises:
        ValueError: it is none of these.

    >>> import flambeau.multiprocessing as mp
    >>> mp.set_sharing_strategy("file_descriptor")
    """
    if new_strategy not in _storage_shared.STRATEGIES:
        raise ValueError(
            f"set_sharing_strategy: {new_strategy!r} is none of "
            f"{', '.join(map(repr, _storage_shared.STRATEGIES))}"
        )
    _storage_shared.set_strategy(new_strategy)
