"""The runtime of device type ``cuda``: devices, streams, events and memory by CuPy."""

# pyright: reportMissingImports=false
# CuPy is not installed where types are checked.

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import cupy
import numpy as np
from cupy.cuda import runtime

from flambeau import plugin
from flambeau_cupy.arrays import ArrayBackend, Recording
from flambeau_cupy.convolutions import Convolutions
from flambeau_cupy.gemm import Products
from flambeau_cupy.layer import CupyLayer

Array = Any


class CupyBackend(ArrayBackend):
    """CuPy's arrays as native arrays."""

    device_type = "cuda"
    out_of_memory = (cupy.cuda.memory.OutOfMemoryError,)

    def __init__(self) -> None:
        super().__init__(CupyLayer())
        try:
            self._count, self._reason = runtime.getDeviceCount(), ""
        except runtime.CUDARuntimeError as error:
            self._count, self._reason = 0, _reason(error)
        self.products = Products(self.layer, CublasRuntime)
        self.layer.product = self.products
        self.convolutions = Convolutions(self.layer, lambda: CudnnRuntime(self))
        self._pool = cupy.cuda.MemoryPool()
        self._used: dict[int, deque[tuple[Any, Array]]] = {}
        self._peak: dict[int, list[int]] = {}
        self._selected = threading.local()
        self._pinned: dict[int, int] = {}
        if self._count:
            cupy.cuda.set_allocator(self._allocate)

    # Devices.

    def device_count(self) -> int:
        """How many devices the driver shows; 0 without a driver."""
        return self._count

    def unavailable(self) -> str:
        """What the driver said."""
        return self._reason

    def current_device(self) -> int:
        """The thread's current device."""
        return runtime.getDevice() if self._count else 0

    def set_device(self, index: int) -> None:
        """Make a device the thread's current one."""
        runtime.setDevice(index)

    def index_of(self, array: Array) -> int:
        """The device that holds `array`."""
        return array.device.id

    def synchronize(self, index: int) -> None:
        """Wait for all streams of a device."""
        cupy.cuda.Device(index).synchronize()

    def properties(self, index: int) -> plugin.DeviceProperties:
        """What the driver knows about a device."""
        found = runtime.getDeviceProperties(index)
        return plugin.DeviceProperties(
            found["name"].decode(),
            found["totalGlobalMem"],
            found["major"],
            found["minor"],
            found["multiProcessorCount"],
        )

    def kernels_on(
        self, index: int, kernels: Mapping[str, Callable[..., Any]]
    ) -> Mapping[str, Callable[..., Any]]:
        """Kernels that switch to their device for the time of a call; as they are if it is alone.

        CUDA launches on the thread's current device, whatever device the arrays are on.
        """
        if self._count < 2:
            return kernels
        return {name: _on(index, kernel) for name, kernel in kernels.items()}

    def compile(self, op: str, decomposition: Callable[..., Any]) -> Callable[..., Any] | None:
        """Convolutions by cuDNN."""
        return self.convolutions.compiled(op, decomposition)

    # Host memory.

    def from_host(
        self, data: Any, shape: tuple[int, ...], dtype: plugin.dtype, index: int
    ) -> Array:
        """See `ArrayBackend.from_host`."""
        with cupy.cuda.Device(index):
            return super().from_host(data, shape, dtype, index)

    def on_device(self, host: np.ndarray) -> Array:
        """A copy of a NumPy array on the current device.

        While a graph is recorded it is made beside the recording, which cannot read the host, and
        kept with the graph.
        """
        recording = self._recording()
        if recording is None:
            return cupy.asarray(host)
        with cupy.cuda.Stream(non_blocking=True) as aside:
            made = cupy.asarray(host)
            aside.synchronize()
        recording.kept.append(made)
        return made

    def on_host(self, array: Array) -> np.ndarray:
        """A row-major NumPy array; waits for the work that makes `array`."""
        with array.device:
            return cupy.asnumpy(array, order="C")

    def to_device(self, array: Array, index: int) -> Array:
        """A copy of a native array on device `index`."""
        with cupy.cuda.Device(index):
            return cupy.array(array, copy=True)

    # Streams and events.

    def new_stream(self, index: int, priority: int) -> Any:
        """A stream that does not wait for the default stream."""
        least, greatest = runtime.deviceGetStreamPriorityRange()
        with cupy.cuda.Device(index):
            bounded = max(greatest, min(priority, least))
            return cupy.cuda.Stream(non_blocking=True, priority=bounded)

    def external_stream(self, index: int, handle: int) -> Any:
        """The stream of another library."""
        return cupy.cuda.ExternalStream(handle, index)

    def default_stream(self, index: int) -> Any:
        """The legacy default stream."""
        return cupy.cuda.Stream.null

    def current_stream(self, index: int) -> Any:
        """The thread's current stream of a device."""
        return cupy.cuda.get_current_stream(index)

    def set_stream(self, index: int, stream: Any) -> None:
        """Make a stream the thread's current one on its device."""
        with cupy.cuda.Device(index):
            stream.use()

    def stream_handle(self, stream: Any) -> int:
        """The ``cudaStream_t``."""
        return stream.ptr

    def stream_priority(self, stream: Any) -> int:
        """What the driver gave it."""
        return getattr(stream, "priority", 0)

    def stream_done(self, stream: Any) -> bool:
        """Whether the stream is idle."""
        return stream.done

    def stream_wait(self, stream: Any) -> None:
        """Wait until the stream is idle."""
        stream.synchronize()

    def new_event(self, index: int, timing: bool, blocking: bool, interprocess: bool) -> Any:
        """A CUDA event of a device."""
        with cupy.cuda.Device(index):
            return cupy.cuda.Event(
                block=blocking, disable_timing=not timing, interprocess=interprocess
            )

    def record(self, event: Any, stream: Any) -> None:
        """Record an event on a stream."""
        event.record(stream)

    def wait(self, stream: Any, event: Any) -> None:
        """Let a stream wait for an event."""
        stream.wait_event(event)

    def event_done(self, event: Any) -> bool:
        """Whether the event is reached."""
        return event.done

    def event_wait(self, event: Any) -> None:
        """Wait until the event is reached."""
        event.synchronize()

    def elapsed_ms(self, first: Any, last: Any) -> float:
        """Milliseconds between two reached events."""
        return cupy.cuda.get_elapsed_time(first, last)

    # Memory.

    def _allocate(self, size: int) -> Any:
        index = runtime.getDevice()
        if (recording := self._recording()) is not None:
            return self.allocated(index, size, lambda: recording.pool.malloc(size))
        if index in self._used:
            self._release(index)
        found = self.allocated(index, size, lambda: self._pool.malloc(size))
        peak = self._peak.setdefault(index, [0, 0])
        peak[0] = max(peak[0], self._pool.used_bytes())
        peak[1] = max(peak[1], self._pool.total_bytes())
        return found

    def _release(self, index: int) -> None:
        """Forget arrays whose last use on another stream is over."""
        waiting = self._used[index]
        while waiting and waiting[0][0].done:
            waiting.popleft()

    def memory_statistics(self, index: int) -> plugin.MemoryStatistics:
        """The figures of CuPy's pool."""
        with cupy.cuda.Device(index):
            used, total = self._pool.used_bytes(), self._pool.total_bytes()
        peak = self._peak.get(index, [used, total])
        return plugin.MemoryStatistics(used, total, max(peak[0], used), max(peak[1], total))

    def reset_peak(self, index: int, *, allocated: bool, reserved: bool) -> None:
        """Start largest figures again."""
        now = self.memory_statistics(index)
        peak = self._peak.setdefault(index, [0, 0])
        if allocated:
            peak[0] = now.allocated
        if reserved:
            peak[1] = now.reserved

    def memory_info(self, index: int) -> tuple[int, int]:
        """Free and total bytes by the driver."""
        with cupy.cuda.Device(index):
            return runtime.memGetInfo()

    def empty_cache(self) -> None:
        """Give the pool's free blocks back."""
        self._pool.free_all_blocks()

    def record_use(self, array: Array, stream: Any) -> None:
        """Keep an array until a stream has done what it was asked so far."""
        index = array.device.id
        event = self.new_event(index, False, False, False)
        event.record(stream)
        self._used.setdefault(index, deque()).append((event, array))

    # Graphs.

    def _recording(self) -> Recording | None:
        """The recording of this thread's current stream."""
        if not self._recordings:
            return None
        found = self._recordings.get(runtime.getDevice())
        same = found is not None and cupy.cuda.get_current_stream().ptr == found.stream.ptr
        return found if same else None

    def graph_pool(self) -> Any:
        """A pool that holds what recordings allocate."""
        return cupy.cuda.MemoryPool()

    def capture_begin(self, index: int, pool: Any) -> Recording:
        """Record a device's current stream; see `plugin.Accelerator.capture_begin`."""
        recording = Recording(index, pool, self.current_stream(index))
        self._begin(recording)
        try:
            recording.stream.begin_capture()
        except BaseException:
            self._end(recording)
            raise
        return recording

    def capture_end(self, capture: Recording) -> Recording:
        """End a recording."""
        try:
            capture.native = capture.stream.end_capture()
        finally:
            self._end(capture)
        return capture

    def capturing(self, index: int) -> bool:
        """Whether the current stream of a device is recorded."""
        return self.current_stream(index).is_capturing()

    def graph_launch(self, graph: Recording) -> None:
        """Ask the current stream of the graph's device for what was recorded."""
        with cupy.cuda.Device(graph.index):
            self._place_draws(graph)
            graph.native.launch(self.current_stream(graph.index))

    def pinned(self, size: int) -> Any:
        """Page-locked memory from CuPy's pool."""
        return cupy.cuda.alloc_pinned_memory(size) if self._count else None

    def is_pinned(self, address: int) -> bool:
        """What the driver says about an address."""
        if not self._count:
            return False
        return runtime.pointerGetAttributes(address).type == runtime.memoryTypeHost

    # Ranges.

    def mark(self, text: str) -> None:
        """A mark for NVIDIA's profilers."""
        cupy.cuda.nvtx.Mark(text)

    def range_push(self, text: str) -> int:
        """Open a range for NVIDIA's profilers."""
        cupy.cuda.nvtx.RangePush(text)
        depth = getattr(self._selected, "depth", 0)
        self._selected.depth = depth + 1
        return depth

    def range_pop(self) -> int:
        """Close a range for NVIDIA's profilers."""
        cupy.cuda.nvtx.RangePop()
        self._selected.depth = getattr(self._selected, "depth", 1) - 1
        return self._selected.depth

    # Libraries.

    def blas_handle(self) -> int:
        """The cuBLAS handle of the current device."""
        return cupy.cuda.device.get_cublas_handle()

    def fft_plan_cache(self, index: int) -> _PlanCache:
        """The plans of cuFFT that CuPy keeps for a device."""
        return _PlanCache(index)


class _PlanCache:
    """CuPy's cache of cuFFT plans, by the names of PyTorch's."""

    def __init__(self, index: int) -> None:
        with cupy.cuda.Device(index):
            self._cache = cupy.fft.config.get_plan_cache()

    @property
    def size(self) -> int:
        return self._cache.get_curr_size()

    @property
    def max_size(self) -> int:
        return self._cache.get_size()

    @max_size.setter
    def max_size(self, value: int) -> None:
        self._cache.set_size(value)

    def clear(self) -> None:
        self._cache.clear()


class CudnnRuntime:
    """cuDNN by its frontend, with a handle per device; see `convolutions.Runtime`.

    Raises:
        ImportError: the package nvidia-cudnn-frontend is not installed.
    """

    def __init__(self, backend: CupyBackend) -> None:
        import cudnn

        self.cudnn = cudnn
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


def _on(index: int, kernel: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(kernel)
    def run(*args: Any) -> Any:
        before = runtime.getDevice()
        if before == index:
            return kernel(*args)
        runtime.setDevice(index)
        try:
            return kernel(*args)
        finally:
            runtime.setDevice(before)

    return run


def _reason(error: Exception) -> str:
    text = str(error)
    if "InsufficientDriver" in text:
        return (
            f"no NVIDIA driver is loaded, or it is older than CuPy's CUDA ({text}); install a "
            "driver, or the extra of flambeau-cupy for your CUDA: flambeau-cupy[cuda12]"
        )
    if "NoDevice" in text:
        return f"the driver shows no device ({text}); see CUDA_VISIBLE_DEVICES"
    return text
