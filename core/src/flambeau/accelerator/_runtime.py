"""From a device type to its runtime, and from what users call a device to its index."""

from __future__ import annotations

from flambeau._dispatch.bound import _bound, bind
from flambeau._types.device import device as Device
from flambeau.plugin.accelerator import Accelerator
from flambeau.plugin.backend import Backend
from flambeau.plugin.host import host


class Runtime:
    """The runtime of one device type, found when it is first needed.

    Args:
        device_type: its name.
    """

    def __init__(self, device_type: str) -> None:
        self.device_type = device_type

    def device_count(self) -> int:
        """How many devices there are; 0 where no package serves the type, or it is broken."""
        try:
            return host.activate(self.device_type).backend.device_count()
        except RuntimeError:
            return 0

    def present(self) -> Backend | None:
        """The runtime if there is a device, else None."""
        return host.activate(self.device_type).backend if self.device_count() else None

    def found(self) -> Accelerator | None:
        """The runtime if there is a device that has streams, else None."""
        backend = self.present()
        return backend if isinstance(backend, Accelerator) else None

    def backend(self) -> Backend:
        """The runtime, whatever it has.

        Raises:
            RuntimeError: no package serves the device type, or there is no device.
        """
        return bind(self.device_type).backend

    def needed(self) -> Accelerator:
        """The runtime.

        Raises:
            RuntimeError: no package serves the device type, there is no device, or its package
                knows nothing of streams.
        """
        backend = self.backend()
        if not isinstance(backend, Accelerator):
            raise RuntimeError(
                f"the backend of device {self.device_type!r} is no accelerator "
                "(flambeau.plugin.Accelerator): it has no streams, events and memory pool"
            )
        return backend

    def used(self) -> bool:
        """Whether a device of the type has been used in this process."""
        return any(device_type == self.device_type for device_type, _ in [*_bound])

    def index(self, device: Device | int | str | None = None) -> int:
        """The index that `device` (an index, a device, its name, None: the current one) means.

        Raises:
            RuntimeError: there is no such device.
            ValueError: it is a device of another type.
        """
        backend = self.backend()
        if device is None:
            return backend.current_device()
        if isinstance(device, int) and not isinstance(device, bool):
            index = device
        else:
            where = Device(device)
            if where.type != self.device_type:
                raise ValueError(f"Expected a {self.device_type} device, but got: {where}")
            index = backend.current_device() if where.index is None else where.index
        count = backend.device_count()
        if not 0 <= index < count:
            raise RuntimeError(
                f"device {self.device_type}:{index} does not exist: there are {count} device(s), "
                "numbered from 0"
            )
        return index

    def device(self, index: int) -> Device:
        """The device of an index."""
        return Device(self.device_type, index)
