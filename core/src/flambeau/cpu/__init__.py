"""The device ``cpu``, by the names that programs use of every device, and its memory.

There is one such device and it has done what it was asked when a call returns: streams and events
exist so that one program serves all devices, and do nothing.

Arrays from about 100 kB on come from a pool, which keeps their memory for the next array of about
that size; the figures here count these. ``FLAMBEAU_CPU_CACHE=0`` in the environment, or
`set_allocator_enabled`, switches it off. A backend without a pool answers with zeros.
"""

from __future__ import annotations

import threading
from typing import Any

from flambeau.accelerator._namespace import namespace as _namespace
from flambeau.cpu import amp
from flambeau.cpu._capabilities import get_capabilities

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "amp",
    "current_device",
    "current_stream",
    "device_count",
    "empty_cache",
    "get_capabilities",
    "is_allocator_enabled",
    "is_available",
    "is_initialized",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_peak_memory_stats",
    "set_allocator_enabled",
    "set_device",
    "stream",
    "synchronize",
]

_devices = _namespace("cpu")
_memory = _devices._memory

empty_cache = _memory.empty_cache
max_memory_allocated = _memory.max_memory_allocated
max_memory_reserved = _memory.max_memory_reserved
memory_allocated = _memory.memory_allocated
memory_reserved = _memory.memory_reserved
memory_stats = _memory.memory_stats
memory_summary = _memory.memory_summary
reset_peak_memory_stats = _memory.reset_peak_memory_stats


def is_allocator_enabled() -> bool:
    """Whether memory of dead arrays is kept for later ones.

    >>> import flambeau as fb
    >>> fb.cpu.set_allocator_enabled(False); fb.cpu.is_allocator_enabled()
    False
    >>> fb.cpu.set_allocator_enabled(True)
    """
    return _devices._runtime.backend().caches_memory()


def set_allocator_enabled(enabled: bool) -> None:
    """Keep memory of dead arrays for later ones, or give all of it back, now and from now on.

    Without the pool every large array costs page faults, which take longer than most arithmetic
    on it; it is for finding faults and measuring. ``FLAMBEAU_CPU_CACHE=0`` in the environment is
    the same switch, thrown before the start.
    """
    _devices._runtime.backend().caches_memory(bool(enabled))


def is_available() -> bool:
    """Whether there is a CPU: True.

    >>> import flambeau as fb
    >>> fb.cpu.is_available(), fb.cpu.device_count(), fb.cpu.current_device()
    (True, 1, 'cpu')
    """
    return True


def is_initialized() -> bool:
    """Whether it can be used at once: True."""
    return True


def device_count() -> int:
    """How many CPU devices there are, not how many processors: 1."""
    return 1


def current_device() -> str:
    """The name of the device: ``"cpu"``."""
    return "cpu"


def set_device(device: object) -> None:
    """Nothing: there is one device."""


def synchronize(device: object = None) -> None:
    """Nothing: calls return when their work is done."""


class Stream:
    """A stream that orders nothing, for programs that serve all devices.

    Args:
        priority: accepted as PyTorch accepts it.
    """

    def __init__(self, priority: int = -1) -> None:
        del priority

    def wait_stream(self, stream: object) -> None:
        """Nothing: what `stream` was asked is done."""

    def record_event(self) -> None:
        """Nothing: what was asked is done."""

    def wait_event(self, event: object) -> None:
        """Nothing: every event is reached."""


class Event:
    """An event that is always reached."""

    def query(self) -> bool:
        """Whether it is reached: True."""
        return True

    def record(self, stream: object = None) -> None:
        """Nothing: what `stream` was asked is done."""

    def synchronize(self) -> None:
        """Nothing: it is reached."""

    def wait(self, stream: object = None) -> None:
        """Nothing: it is reached."""


class _Current(threading.local):
    stream = Stream()  # shared by all threads until they select another


_current = _Current()


def current_stream(device: object = None) -> Stream:
    """The stream that this thread selected.

    >>> import flambeau as fb
    >>> mine = fb.cpu.Stream()
    >>> with fb.cpu.stream(mine):
    ...     fb.cpu.current_stream() is mine
    True
    """
    return _current.stream


class StreamContext:
    """A block in which a stream is the current one of this thread; None changes nothing.

    Args:
        stream: the stream, or None.
    """

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._before: list[Stream] = []

    def __enter__(self) -> None:
        self._before.append(_current.stream)
        if self.stream is not None:
            _current.stream = self.stream

    def __exit__(self, *exc: object) -> None:
        _current.stream = self._before.pop()


def stream(stream: Stream | None) -> StreamContext:
    """A block in which `stream` is the current one of this thread; None changes nothing."""
    return StreamContext(stream)
