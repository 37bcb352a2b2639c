"""A device type on NumPy: the kernels that run on CuPy, on NumPy arrays.

Those in CUDA C are compiled for the host and run there, so an op takes the whole path that it takes
on a device.  Without a C++ compiler, ops decompose.

As a plugin of pytest (``-p standin``) it serves the device type that FLAMBEAU_STANDIN names, in the
place of this package: that is how the conformance kit runs on it.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

import on_host

from flambeau.plugin import Backend, KernelSet, hookimpl
from flambeau.plugin.host import host
from flambeau_cupy.arrays import ArrayBackend, Recording
from flambeau_cupy.device.launch import Program
from flambeau_cupy.kernels import kernels
from flambeau_cupy.layer import NumpyLayer

DEVICE = os.environ.get("FLAMBEAU_STANDIN", "standin")
launcher = on_host.HostLauncher() if on_host.COMPILER and sys.platform == "linux" else None


class Standin(ArrayBackend):
    """NumPy arrays, as if they were a device's."""

    device_type = DEVICE

    def __init__(self) -> None:
        super().__init__(NumpyLayer(launcher))

        self.streams = {0: 0}
        self.local = threading.local()

    @property
    def current(self) -> int:
        """The current stream, which each thread has for itself."""
        return getattr(self.local, "stream", 0)

    def waited_for(self) -> None:
        """CUDA refuses to wait for what it only records."""
        if self.current in {r.stream for r in self._recordings.values()}:
            raise RuntimeError("cudaErrorStreamCaptureUnsupported: the stream is being recorded")

    def on_host(self, array: Any) -> Any:
        """See `ArrayBackend.on_host`."""
        self.waited_for()
        return super().on_host(array)

    def new_stream(self, index: int, priority: int) -> int:
        self.streams[len(self.streams)] = priority
        return len(self.streams) - 1

    def current_stream(self, index: int) -> int:
        return self.current

    def set_stream(self, index: int, stream: int) -> None:
        self.local.stream = stream

    def stream_handle(self, stream: int) -> int:
        return stream

    def graph_pool(self) -> object:
        return object()

    def capturing(self, index: int) -> bool:
        return index in self._recordings and self._recordings[index].stream == self.current

    def capture_begin(self, index: int, pool: Any) -> Recording:
        recording = Recording(index, pool, self.current)
        self._begin(recording)
        launcher.recorded = []
        return recording

    def capture_end(self, capture: Recording) -> Recording:
        self._end(capture)
        capture.native, launcher.recorded = launcher.recorded, None
        return capture

    def graph_launch(self, graph: Recording) -> None:
        self._place_draws(graph)
        for call in graph.native:
            run = launcher.program if isinstance(call[0], Program) else launcher
            run(*call)


@hookimpl
def flambeau_backend(device_type: str) -> Backend | None:
    return Standin() if device_type == DEVICE else None


@hookimpl
def flambeau_kernels(device_type: str, backend: Any) -> KernelSet | None:
    if device_type != DEVICE:
        return None
    offered = kernels(backend.layer)
    nonzero = offered["nonzero"]

    def counted(a: Any) -> Any:
        backend.waited_for()  # as CuPy does, for the size of the result
        return nonzero(a)

    return KernelSet("flambeau-cupy on NumPy", {**offered, "nonzero": counted})


if "FLAMBEAU_STANDIN" in os.environ:
    host.block("flambeau-cupy")
    host.register(sys.modules[__name__], name="standin", device_types=[DEVICE])
