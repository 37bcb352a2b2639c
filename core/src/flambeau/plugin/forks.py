"""Forks: a child finds no lock taken, and no import begun, by a thread that only its parent has.

A forked process has one thread. What the others held stays taken in it for ever, and what they had
half changed, or half imported, stays so. A fork therefore waits, in the parent, until the locks of
`make_lock` are free and no import of ours is under way, and holds the locks while the process is
copied.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from typing import Any

PATIENCE = 5.0
"""Seconds that a fork waits at most: who holds a lock might wait for the one who forks."""

_PACKAGES = ("flambeau", "numpy", "scipy", "cupy")  # whose modules are loaded when first used

_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_held: dict[int, list[threading.RLock]] = {}  # by threads that are forking


def make_lock() -> threading.RLock:
    """A lock that its thread may take again, and that a forked child finds free.

    >>> lock = make_lock()
    >>> with lock, lock:
    ...     pass
    """
    made = threading.RLock()
    _locks.add(made)
    return made


def _is_importing() -> bool:
    """Whether another thread executes a module that ours may want."""
    mine = None
    for name, module in list(sys.modules.items()):
        if not name.startswith(_PACKAGES):
            continue
        if not getattr(getattr(module, "__spec__", None), "_initializing", False):
            continue
        if mine is None:
            mine, frame = set(), sys._getframe()
            while frame is not None:
                mine.add(id(frame.f_globals))
                frame = frame.f_back
        if id(vars(module)) not in mine:
            return True
    return False


def _before() -> None:
    held = _held[threading.get_ident()] = []
    end = time.monotonic() + PATIENCE
    while True:
        while _is_importing() and time.monotonic() < end:
            time.sleep(0.001)
        for lock in list(_locks):
            if lock.acquire(timeout=max(0.0, end - time.monotonic())):
                held.append(lock)
        if not _is_importing() or time.monotonic() >= end:
            return
        _release(held)


def _release(held: list[threading.RLock]) -> None:
    while held:
        held.pop().release()


def _after_in_parent() -> None:
    _release(_held.pop(threading.get_ident(), []))


def _after_in_child() -> None:
    _release(_held.pop(threading.get_ident(), []))
    _held.clear()
    for lock in list(_locks):
        if not lock._is_owned():
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
