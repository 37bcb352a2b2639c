"""The accelerator of this machine, whichever type it is, and the devices of each type.

`flambeau.<device type>` (such as ``flambeau.cuda``) is `namespace` of that type. The functions
here speak of the *current accelerator*: the first installed device type, in the order of names,
that has devices and is a `flambeau.plugin.Accelerator`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from flambeau._types.device import device as Device
from flambeau.accelerator._memory import Memory
from flambeau.accelerator._namespace import DeviceNamespace, namespace
from flambeau.accelerator._streams import Event, Stream
from flambeau.plugin.host import host

if TYPE_CHECKING:
    from flambeau._types.hints import DeviceLike


__all__ = [
    "DeviceNamespace",
    "Event",
    "Stream",
    "current_accelerator",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "namespace",
    "reset_peak_memory_stats",
    "set_device_index",
    "set_stream",
    "synchronize",
]


def current_accelerator(check_available: bool = False) -> Device | None:
    """The device type of the accelerator, without index; None if there is none.

    Args:
        check_available: accepted as PyTorch accepts it; what is returned always has a device.

    >>> import flambeau as fb
    >>> fb.accelerator.current_accelerator() is None or fb.accelerator.is_available()
    True
    """
    for name in host.device_types():
        if name not in ("cpu", "meta", "ref") and namespace(name)._runtime.found() is not None:
            return Device(name)
    return None


def _current() -> DeviceNamespace:
    found = current_accelerator()
    if found is None:
        raise RuntimeError(
            "Cannot access accelerator device when none is available; python -m flambeau lists "
            "what is installed"
        )
    return namespace(found.type)


def is_available() -> bool:
    """Whether this machine has an accelerator.

    >>> import flambeau as fb
    >>> fb.accelerator.is_available() == (fb.accelerator.device_count() > 0)
    True
    """
    return current_accelerator() is not None


def device_count() -> int:
    """How many devices the accelerator has; 0 without one.

    >>> import flambeau as fb
    >>> fb.accelerator.device_count() >= 0
    True
    """
    found = current_accelerator()
    return 0 if found is None else namespace(found.type).device_count()


def current_device_index() -> int:
    """The index of the current device.

    Raises:
        RuntimeError: there is no accelerator.
    """
    return _current().current_device()


def set_device_index(device: DeviceLike, /) -> None:
    """Make a device the current one of this thread.

    Raises:
        RuntimeError: there is no accelerator, or no such device.
    """
    _current().set_device(device)


def device_index(device: int | None, /) -> AbstractContextManager[Any]:
    """A block in which a device is the current one; None changes nothing.

    Raises:
        RuntimeError: there is no accelerator, or no such device.

    >>> import flambeau as fb
    >>> with fb.accelerator.device_index(None):
    ...     pass
    """
    return nullcontext() if device is None else _current().device(device)


def current_stream(device: DeviceLike | None = None, /) -> Stream:
    """The current stream of a device.

    Raises:
        RuntimeError: there is no accelerator, or no such device.
    """
    return _current().current_stream(device)


def set_stream(stream: Stream, /) -> None:
    """Make a stream, and its device, the current ones.

    Raises:
        RuntimeError: there is no accelerator.
    """
    _current().set_stream(stream)


def synchronize(device: DeviceLike | None = None, /) -> None:
    """Wait until a device has done all it was asked.

    Raises:
        RuntimeError: there is no accelerator, or no such device.
    """
    _current().synchronize(device)


def empty_cache() -> None:
    """Give memory that no tensor uses back to the devices; nothing without an accelerator."""
    if (memory := _memory()) is not None:
        memory.empty_cache()


def memory_allocated(device: DeviceLike | None = None, /) -> int:
    """Bytes of living tensors on a device; 0 without an accelerator."""
    return 0 if (memory := _memory()) is None else memory.memory_allocated(device)


def memory_reserved(device: DeviceLike | None = None, /) -> int:
    """Bytes that the pool of a device holds; 0 without an accelerator."""
    return 0 if (memory := _memory()) is None else memory.memory_reserved(device)


def max_memory_allocated(device: DeviceLike | None = None, /) -> int:
    """The most bytes of living tensors so far, or since `reset_peak_memory_stats`."""
    return 0 if (memory := _memory()) is None else memory.max_memory_allocated(device)


def max_memory_reserved(device: DeviceLike | None = None, /) -> int:
    """The most bytes that the pool held so far, or since `reset_peak_memory_stats`."""
    return 0 if (memory := _memory()) is None else memory.max_memory_reserved(device)


def reset_peak_memory_stats(device: DeviceLike | None = None, /) -> None:
    """Start the largest figures again; nothing without an accelerator."""
    if (memory := _memory()) is not None:
        memory.reset_peak_memory_stats(device)


def memory_stats(device: DeviceLike | None = None, /) -> dict[str, int]:
    """The figures of a device's memory by PyTorch's names; none without an accelerator.

    >>> import flambeau as fb
    >>> fb.accelerator.is_available() == bool(fb.accelerator.memory_stats())
    True
    """
    return {} if (memory := _memory()) is None else memory.memory_stats(device)


def get_memory_info(device: DeviceLike | None = None, /) -> tuple[int, int]:
    """Free and total bytes of a device, whoever uses them.

    Raises:
        RuntimeError: there is no accelerator, or no such device.
    """
    return _current()._memory.mem_get_info(device)


def _memory() -> Memory | None:
    found = current_accelerator()
    return None if found is None else namespace(found.type)._memory
