"""The accelerator of this machine, whichever type it is, and the devices of each type.

`flambeau.<device type>` (such as ``flambeau.cuda``) is `namespace` of that type. The functions
here speak of the *current accelerator*: the first installed device type, in the order of names,
that has devices and is a `flambeau.plugin.Accelerator`.
"""

from __future__ import annotations

from typing import Any

from flambeau._device import device as Device
from flambeau.accelerator._namespace import DeviceNamespace, namespace
from flambeau.accelerator._streams import Event, Stream

__all__ = [
    "DeviceNamespace",
    "Event",
    "Stream",
    "current_accelerator",
    "current_device_index",
    "current_stream",
    "device_count",
    "empty_cache",
    "is_available",
    "memory_allocated",
    "memory_reserved",
    "namespace",
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
    from flambeau.plugin.host import host

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


def set_device_index(device: Any, /) -> None:
    """Make a device the current one of this thread.

    Raises:
        RuntimeError: there is no accelerator, or no such device.
    """
    _current().set_device(device)


def current_stream(device: Any = None, /) -> Stream:
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


def synchronize(device: Any = None, /) -> None:
    """Wait until a device has done all it was asked.

    Raises:
        RuntimeError: there is no accelerator, or no such device.
    """
    _current().synchronize(device)


def empty_cache() -> None:
    """Give memory that no tensor uses back to the devices; nothing without an accelerator."""
    found = current_accelerator()
    if found is not None:
        namespace(found.type)._memory.empty_cache()


def memory_allocated(device: Any = None, /) -> int:
    """Bytes of living tensors on a device; 0 without an accelerator."""
    found = current_accelerator()
    return 0 if found is None else namespace(found.type)._memory.memory_allocated(device)


def memory_reserved(device: Any = None, /) -> int:
    """Bytes that the pool of a device holds; 0 without an accelerator."""
    found = current_accelerator()
    return 0 if found is None else namespace(found.type)._memory.memory_reserved(device)
