"""Device type ``standin``: the kernels that run on CuPy, on NumPy arrays."""

from __future__ import annotations

from typing import Any

from flambeau.plugin import Backend, KernelSet, hookimpl
from flambeau_cupy.arrays import ArrayBackend
from flambeau_cupy.kernels import kernels
from flambeau_cupy.layer import NumpyLayer
from flambeau_cupy.philox import Philox


class Standin(ArrayBackend):
    """NumPy arrays, as if they were a device's."""

    device_type = "standin"

    def __init__(self) -> None:
        super().__init__(NumpyLayer())

    def generator(self, index: int) -> Philox:
        return Philox()


@hookimpl
def flambeau_backend(device_type: str) -> Backend | None:
    return Standin() if device_type == "standin" else None


@hookimpl
def flambeau_kernels(device_type: str, backend: Any) -> KernelSet | None:
    if device_type != "standin":
        return None
    return KernelSet("flambeau-cupy on NumPy", kernels(backend.layer))
