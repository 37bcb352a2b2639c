"""A device type on NumPy whose composites may be planned by libraries made for tests."""

from __future__ import annotations

from typing import Any

from flambeau.plugin import KernelSet, hookimpl
from flambeau.plugin.host import host
from flambeau_cupy.arrays import ArrayBackend
from flambeau_cupy.kernels import kernels
from flambeau_cupy.layer import NumpyLayer

DEVICE = "planned"


class Planned(ArrayBackend):
    """NumPy arrays, and libraries that are asked for the forms of composites."""

    device_type = DEVICE

    def __init__(self, libraries: Any) -> None:
        super().__init__(NumpyLayer())
        self.libraries = libraries(self.layer)

    def compile(self, op, decomposition):
        for library in self.libraries:
            if (found := library.compiled(op, decomposition)) is not None:
                return found
        return None


class Plugin:
    """The plugin of the device type; `libraries` makes them for a layer."""

    def __init__(self, libraries: Any) -> None:
        self.libraries = libraries

    @hookimpl
    def flambeau_backend(self, device_type):
        return Planned(self.libraries) if device_type == DEVICE else None

    @hookimpl
    def flambeau_kernels(self, device_type, backend):
        if device_type != DEVICE:
            return None
        return KernelSet("flambeau-cupy on NumPy", kernels(backend.layer))


def served(libraries: Any) -> Any:
    """While it lasts the device type is there; a generator for fixtures."""
    host.register(Plugin(libraries), name=DEVICE, device_types=[DEVICE])
    try:
        yield DEVICE
    finally:
        host.unregister(DEVICE)
