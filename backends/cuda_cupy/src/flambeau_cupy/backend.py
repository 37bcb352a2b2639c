"""The runtime of device type ``cuda``: devices, streams, events and memory by CuPy."""

# pyright: reportMissingImports=false
# CuPy is not installed where types are checked.

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import cache, partial, wraps
from typing import Any

import cupy
import numpy as np
from cupy.cuda import runtime

from flambeau import plugin
from flambeau_cupy.arrays import ArrayBackend, Recording
from flambeau_cupy.device.array_module import channels_last
from flambeau_cupy.device.launch import told
from flambeau_cupy.device.memory import Block, Usage
from flambeau_cupy.dtypes import TO_NUMPY
from flambeau_cupy.layer import CupyLayer
from flambeau_cupy.libraries.attention import Attention
from flambeau_cupy.libraries.convolutions import Convolutions
from flambeau_cupy.libraries.gemm import Products
from flambeau_cupy.libraries.recurrences import Recurrences
from flambeau_cupy.libraries.runtimes import CublasRuntime, CudnnRuntime

Array = Any


PLANNED = Convolutions, Attention, Recurrences
"""What cuDNN plans."""


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
        self.layer.placed = self.on_device
        load = cache(lambda: CudnnRuntime(self))
        self.planned = (self.products, *[made(self.layer, load) for made in PLANNED])
        self._pool = cupy.cuda.MemoryPool()
        self._usage = [Usage(partial(self._marked, index)) for index in range(self._count)]
        self._streamed: set[int] = (
            set()
        )  # devices of which another stream than the default was used
        self._ranges = threading.local()
        if self._count > 1:
            self.checked_index = self._beside(self.checked_index)
            self.check_values = self._beside(self.check_values)
        if self._count:
            cupy.cuda.set_allocator(self._allocate)

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

    def error_text(self, code: int) -> str:
        """The name that CUDA has for it, and what it says."""
        return str(runtime.CUDARuntimeError(code))

    def _waited(self, wait: Callable[[], None]) -> None:
        """Wait, and raise what has gone wrong meanwhile."""
        try:
            wait()
        except RuntimeError as error:
            raise told(error) from error
        self.look()

    def index_of(self, array: Array) -> int:
        """The device that holds `array`."""
        return array.device.id

    def synchronize(self, index: int) -> None:
        """Wait for all streams of a device."""
        self._waited(cupy.cuda.Device(index).synchronize)

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
        """What libraries plan, and composites of elementwise ops in one kernel."""
        forms = (library.compiled(op, decomposition) for library in self.planned)
        made = next((form for form in forms if form is not None), None)
        if made is None and (made := super().compile(op, decomposition)) is None:
            return None
        return made if self._count < 2 else self._beside(made)

    def deferred(
        self, index: int, ops: Mapping[str, Callable[..., Any]]
    ) -> tuple[Mapping[str, Callable[..., Any]], Callable[..., Any]] | None:
        """See `ArrayBackend.deferred`."""
        found = super().deferred(index, ops)
        if found is None or self._count < 2:
            return found
        formulas, settle = found  # an op settles its arguments before it runs
        return {name: _on(index, op) for name, op in formulas.items()}, _on(index, settle)

    def _beside(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """`kernel` on the device of its first array."""

        @wraps(kernel)
        def run(*args: Any) -> Any:
            index = next((a.device.id for a in args if type(a) is self.array), None)
            return kernel(*args) if index is None else _on(index, kernel)(*args)

        if (takes := getattr(kernel, "takes", None)) is not None:
            run.takes = self._beside(takes)  # type: ignore[attr-defined]
        return run

    def from_host(
        self, data: object, shape: tuple[int, ...], dtype: plugin.dtype, index: int
    ) -> Array:
        """See `ArrayBackend.from_host`."""
        with cupy.cuda.Device(index):
            return super().from_host(data, shape, dtype, index)

    def on_device(self, host: np.ndarray) -> Array:
        """A copy of a NumPy array on the current device.

        While a graph is recorded it is made beside the recording, which cannot read the host, and
        kept with the graph.  So are arrays without dimensions once the device has several streams:
        the core keeps them as constants for all, and the copy of a stream may end after the call.
        """
        recording = self._recording()
        index = runtime.getDevice()
        if recording is None and (host.shape or index not in self._streamed):
            return cupy.asarray(host)
        user = self.current_stream(index)
        with cupy.cuda.Stream(non_blocking=True) as aside:
            made = cupy.asarray(host)
            aside.synchronize()
        if recording is None:
            self.record_use(made, user)  # one that is not kept ends before its work is done
        else:
            recording.kept.append(made)
        return made

    def on_host(self, array: Array) -> np.ndarray:
        """A row-major NumPy array; waits for the work that makes `array`."""
        with array.device:
            try:
                return cupy.asnumpy(array, order="C")
            except RuntimeError as error:  # perhaps of work that was asked for before
                raise told(error) from error

    def to_device(self, array: Array, index: int) -> Array:
        """A copy of a native array on device `index`, in the order of both current streams."""
        source = array.device.id
        if source == index:
            with cupy.cuda.Device(index):
                return array.copy("K")
        flags = array.flags
        if not (flags.c_contiguous or flags.f_contiguous or channels_last(array)):
            with cupy.cuda.Device(source):
                array = array.copy("K")  # without gaps: what is copied are bytes
        self._in_order(source, index)  # what makes the array comes first
        with cupy.cuda.Device(index):
            memory = cupy.cuda.alloc(array.nbytes)
            memory.copy_from_device_async(array.data, array.nbytes)
            made = cupy.ndarray(array.shape, array.dtype, memory, array.strides)
        self._in_order(index, source)  # what takes its memory next comes after
        return made

    def _in_order(self, first: int, then: int) -> None:
        """Let the current stream of a device wait for that of another."""
        self.wait(self.current_stream(then), self._marked(first, self.current_stream(first)))

    def _marked(self, index: int, stream: object) -> Any:
        """An event at the end of a stream of a device."""
        event = self.new_event(index, False, False, False)
        self.record(event, stream)
        return event

    def new_stream(self, index: int, priority: int) -> Any:
        """A stream that does not wait for the default stream; CUDA bounds the priority."""
        with cupy.cuda.Device(index):
            return cupy.cuda.Stream(non_blocking=True, priority=priority)

    def external_stream(self, index: int, handle: int) -> _Borrowed:
        """The stream of another library."""
        return _Borrowed(handle, index)

    def default_stream(self, index: int) -> _Borrowed:
        """The legacy default stream, which has the same address on all devices."""
        return _Borrowed(0, index)

    def current_stream(self, index: int) -> Any:
        """The thread's current stream of a device."""
        found = cupy.cuda.get_current_stream(index)
        return found if found.device_id >= 0 else _Borrowed(found.ptr, index)

    def set_stream(self, index: int, stream: Any) -> None:
        """Make a stream the thread's current one on its device."""
        with cupy.cuda.Device(index):
            if stream.ptr and index not in self._streamed:
                cupy.cuda.get_current_stream().synchronize()  # constants were made on it
                self._streamed.add(index)
            stream.use()

    def stream_handle(self, stream: Any) -> int:
        """The ``cudaStream_t``."""
        return stream.ptr

    def stream_priority(self, stream: object) -> int:
        """What the driver gave it."""
        return getattr(stream, "priority", 0)

    def stream_done(self, stream: Any) -> bool:
        """Whether the stream is idle."""
        with cupy.cuda.Device(stream.device_id):
            return stream.done

    def stream_wait(self, stream: Any) -> None:
        """Wait until the stream is idle."""
        with cupy.cuda.Device(stream.device_id):
            self._waited(stream.synchronize)

    def new_event(self, index: int, timing: bool, blocking: bool, interprocess: bool) -> Any:
        """A CUDA event of a device."""
        with cupy.cuda.Device(index):
            return cupy.cuda.Event(
                block=blocking, disable_timing=not timing, interprocess=interprocess
            )

    def record(self, event: Any, stream: Any) -> None:
        """Record an event on a stream."""
        with cupy.cuda.Device(stream.device_id):
            event.record(stream)

    def wait(self, stream: Any, event: object) -> None:
        """Let a stream wait for an event."""
        with cupy.cuda.Device(stream.device_id):
            stream.wait_event(event)

    def event_done(self, event: Any) -> bool:
        """Whether the event is reached."""
        return event.done

    def event_wait(self, event: Any) -> None:
        """Wait until the event is reached."""
        self._waited(event.synchronize)

    def elapsed_ms(self, first: object, last: object) -> float:
        """Milliseconds between two reached events."""
        return cupy.cuda.get_elapsed_time(first, last)

    def event_to_ipc(self, event: Any) -> bytes:
        """What another process needs to open an event."""
        return runtime.ipcGetEventHandle(event.ptr)

    def event_from_ipc(self, index: int, handle: bytes) -> Any:
        """The event of another process."""
        with cupy.cuda.Device(index):
            event = cupy.cuda.Event.__new__(cupy.cuda.Event)  # which then destroys what is opened
            event.ptr = runtime.ipcOpenEventHandle(handle)
        return event

    def from_dlpack(self, source: object, index: int) -> Array:
        """An array over memory of a device, of an object with ``__dlpack__`` or a capsule.

        It may be read on the current stream of the device: that is told to the object.
        """
        with cupy.cuda.Device(index):
            return cupy.from_dlpack(source)

    def from_cuda_array(self, source: Any) -> Array:
        """An array over the memory of an object with ``__cuda_array_interface__``.

        It may be read on the current stream, which waits for the one that the object names.
        """
        address = source.__cuda_array_interface__["data"][0]
        index = runtime.pointerGetAttributes(address).device if address else runtime.getDevice()
        with cupy.cuda.Device(index):
            return cupy.asarray(source)

    def _allocate(self, size: int) -> Any:
        index = runtime.getDevice()
        if (recording := self._recording()) is not None:
            return self.allocated(index, size, lambda: recording.pool.malloc(size))
        usage = self._usage[index]
        if index not in self._recordings:  # of which nothing may be asked beside its work
            usage.settle()
        found = self.allocated(index, size, lambda: self._pool.malloc(size))
        if not size:
            return found
        block = usage.took(found, found.mem.size, self._pool.total_bytes())
        memory = cupy.cuda.UnownedMemory(found.ptr, found.mem.size, block, index)
        return cupy.cuda.MemoryPointer(memory, 0)

    def memory_statistics(self, index: int) -> plugin.MemoryStatistics:
        """The figures of CuPy's pool; those of graphs are not among them."""
        with cupy.cuda.Device(index):
            used, total = self._pool.used_bytes(), self._pool.total_bytes()
        peak = self._usage[index].peak
        return plugin.MemoryStatistics(used, total, max(peak[0], used), max(peak[1], total))

    def reset_peak(self, index: int, *, allocated: bool, reserved: bool) -> None:
        """Start largest figures again."""
        now = self.memory_statistics(index)
        peak = self._usage[index].peak
        if allocated:
            peak[0] = now.allocated
        if reserved:
            peak[1] = now.reserved

    def memory_info(self, index: int) -> tuple[int, int]:
        """Free and total bytes by the driver."""
        with cupy.cuda.Device(index):
            return runtime.memGetInfo()

    def empty_cache(self) -> None:
        """Give the pool's free blocks back, on every device.

        It waits for streams that still use blocks which are free but for them.
        """
        for index, usage in enumerate(self._usage):
            with cupy.cuda.Device(index):
                if index not in self._recordings:
                    usage.settle(wait=True)
                self._pool.free_all_blocks()

    def record_use(self, array: Array, stream: Any) -> None:
        """See `plugin.Accelerator.record_use`; memory of others is kept for what is asked now."""
        block = getattr(array.data.mem, "_owner", None)
        recording = self._recordings.get(array.device.id)
        recorded = recording is not None and recording.stream.ptr == stream.ptr
        if recorded or type(block) is not Block:
            self._hold(array.device.id, stream, array)
        elif block.streams is None:
            block.streams = {stream.ptr: stream}
        else:
            block.streams[stream.ptr] = stream

    def _hold(self, index: int, stream: Any, what: object) -> None:
        """Keep `what` until a stream of a device has done what it was asked so far."""
        recording = self._recordings.get(index)
        if recording is not None and recording.stream.ptr == stream.ptr:
            recording.kept.append(what)  # each replay uses it
            return
        self._usage[index].hold(self._marked(index, stream), what)

    def upload(
        self, address: int, shape: tuple[int, ...], dtype: plugin.dtype, index: int, keep: object
    ) -> Array:
        """Ask the current stream for a copy from page-locked memory."""
        stream = self.current_stream(index)
        with cupy.cuda.Device(index):
            made = cupy.empty(shape, TO_NUMPY[dtype])
            kind = runtime.memcpyHostToDevice
            runtime.memcpyAsync(made.data.ptr, address, made.nbytes, kind, stream.ptr)
        self._hold(index, stream, keep)
        return made

    def download(self, array: Array, address: int, keep: object) -> bool:
        """Ask the current stream for a copy to page-locked memory."""
        index = array.device.id
        stream = self.current_stream(index)
        with cupy.cuda.Device(index):
            kind = runtime.memcpyDeviceToHost
            runtime.memcpyAsync(address, array.data.ptr, array.nbytes, kind, stream.ptr)
        self._hold(index, stream, keep)
        return True

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

    def capture_begin(self, index: int, pool: object) -> Recording:
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

    def mark(self, text: str) -> None:
        """A mark for NVIDIA's profilers."""
        cupy.cuda.nvtx.Mark(text)

    def range_push(self, text: str) -> int:
        """Open a range for NVIDIA's profilers."""
        cupy.cuda.nvtx.RangePush(text)
        depth = getattr(self._ranges, "depth", 0)
        self._ranges.depth = depth + 1
        return depth

    def range_pop(self) -> int:
        """Close a range for NVIDIA's profilers; -1 if there is none."""
        cupy.cuda.nvtx.RangePop()
        depth = getattr(self._ranges, "depth", 0) - 1
        self._ranges.depth = max(depth, 0)
        return depth

    def blas_handle(self) -> int:
        """The cuBLAS handle of the current device."""
        return cupy.cuda.device.get_cublas_handle()

    def fft_plan_cache(self, index: int) -> _PlanCache:
        """The plans of cuFFT that CuPy keeps for a device."""
        return _PlanCache(index)


class _Borrowed(cupy.cuda.ExternalStream):
    """A stream that others keep.

    CuPy 14 warns of its own class for these; what it names instead, `Stream.from_external`, takes
    the current device for that of the stream.
    """

    def __init__(self, handle: int, index: int) -> None:
        super(cupy.cuda.ExternalStream, self).__init__(handle, index)


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


def _on(index: int, kernel: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(kernel)
    def run(*args: object) -> Any:
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
