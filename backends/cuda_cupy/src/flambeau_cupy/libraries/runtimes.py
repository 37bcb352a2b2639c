"""The libraries as they are installed: what plans are made for and run on.

Each is made when an op first needs it.
"""

# pyright: reportMissingImports=false
# CuPy is not installed where types are checked.

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import cupy
from cupy.cuda import runtime

from flambeau.plugin import Accelerator
from flambeau_cupy.libraries.recurrences import declared


class CudnnRuntime:
    """cuDNN by its frontend and by its functions, with a handle per device and thread.

    See `planning.Runtime` and `recurrences.Runtime`.

    Raises:
        ImportError: the package nvidia-cudnn-frontend is not installed.
        OSError: cuDNN itself is not.
    """

    def __init__(self, backend: Accelerator) -> None:
        import cudnn

        self.cudnn = cudnn
        # The frontend has loaded it, from wherever it is; this finds it by its name.
        self.library = declared(ctypes.CDLL("libcudnn.so.9"))
        self.version = cudnn.backend_version()
        self._backend = backend
        self._handles: dict[tuple[int, int], Any] = {}  # of device and thread
        self._streams: dict[tuple[int, int], int] = {}

    def where(self) -> dict[str, Any]:
        """Plans are made for the current device."""
        return {"handle": self.handle()}

    def handle(self) -> Any:
        """The thread's handle of the current device, set to the current stream."""
        key = self.device(), threading.get_ident()
        if key not in self._handles:
            self._handles[key] = self.cudnn.create_handle()
        stream = cupy.cuda.get_current_stream().ptr
        if self._streams.get(key) != stream:
            self.cudnn.set_stream(handle=self._handles[key], stream=stream)
            self._streams[key] = stream
        return self._handles[key]

    def capability(self) -> int:
        """The major number of the current device's compute capability."""
        return int(cupy.cuda.Device().compute_capability[:-1])

    def milliseconds(self, run: Callable[[], None]) -> float:
        """Between two events."""
        index = self.device()
        first = self._backend.record_event(index)
        run()
        last = self._backend.record_event(index)
        self._backend.event_wait(last)
        return self._backend.elapsed_ms(first, last)

    def device(self) -> int:
        """The current device."""
        return runtime.getDevice()


class CublasRuntime:
    """cuBLASLt by nvmath's bindings, with a handle per device; see `gemm.Runtime`.

    Raises:
        ImportError: the package nvmath-python is not installed.
    """

    def __init__(self) -> None:
        from nvmath.bindings import cublasLt

        self.lt = cublasLt
        self._handles: dict[int, int] = {}

    def handle(self) -> int:
        """The handle of the current device."""
        index = self.device()
        if index not in self._handles:
            self._handles[index] = self.lt.create()
        return self._handles[index]

    def stream(self) -> int:
        """The current stream."""
        return cupy.cuda.get_current_stream().ptr

    def device(self) -> int:
        """The current device."""
        return runtime.getDevice()
