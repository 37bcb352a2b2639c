"""The runtime of a device type that is no host: several devices, streams, events, a memory pool.

`Accelerator` is a `Backend` that can say more about its devices. What it says becomes
``flambeau.<device type>``: streams, events, figures of memory, the current device. Every method
has a default for hardware that does not have the thing: one queue, nothing to measure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from flambeau.plugin.backend import Backend

if TYPE_CHECKING:
    from flambeau._types.dtype import dtype as DType

T = TypeVar("T")
_UNITS = ("bytes", "KiB", "MiB", "GiB")


class OutOfMemoryError(RuntimeError, MemoryError):
    """A device has no memory left for an array, not even after its caches were emptied.

    PyTorch raises RuntimeError on the CPU; it is Python's own error of memory too.

    Attributes:
        size: how many bytes were asked for; None if that is not known.
    """

    size: int | None = None


class DeviceError(RuntimeError):
    """What the runtime of a device says went wrong, perhaps in work that was asked for long ago.

    Attributes:
        code: its number, which is never 0.

    >>> DeviceError(700, "an illegal memory access was encountered")
    DeviceError('an illegal memory access was encountered (700)')
    """

    def __init__(self, code: int, text: str = "") -> None:
        super().__init__(f"{text or 'device error'} ({code})")
        self.code = self.error_code = code


@dataclass(frozen=True)
class DeviceProperties:
    """What is known about one device.

    Attributes:
        name: the product's name.
        total_memory: bytes of memory.
        major: first number of the compute capability, 0 where there is no such thing.
        minor: second number of it.
        multi_processor_count: how many independent processors it has.
    """

    name: str
    total_memory: int = 0
    major: int = 0
    minor: int = 0
    multi_processor_count: int = 0


@dataclass
class Numerics:
    """How exact and how repeatable accelerators shall be; `flambeau.backends` sets it.

    Attributes:
        enabled: whether vendors' libraries of neural network primitives may be used.
        benchmark: measure several algorithms and take the fastest.
        deterministic: use only algorithms that give the same bits each time.
        convolution_tf32: whether float32 convolutions may round their factors to 10 bits.
        matmul_tf32: the same for matrix products.
    """

    enabled: bool = True
    benchmark: bool = False
    deterministic: bool = False
    convolution_tf32: bool = True
    matmul_tf32: bool = False


numerics = Numerics()
"""The settings of this process."""


class Accelerator(Backend):
    """Base class of runtimes with several devices, streams, events and a memory pool.

    Streams and events are the backend's own objects; the core stores them and hands them back.
    Work is asked for on the current stream of a device and may finish later; `to_host`, `item` and
    `tolist` wait for it.  Arrays without dimensions that `scalar` and `from_host` make are kept as
    constants for all streams and graphs: they are there when the method returns.
    """

    out_of_memory: tuple[type[BaseException], ...] = (MemoryError,)

    def unavailable(self) -> str:
        """Why `device_count` is 0: what is missing, and what to install; empty if it is not."""
        return ""

    def set_device(self, index: int) -> None:
        """Make `index` the device that a name without index stands for, in this thread."""
        return None

    def properties(self, index: int) -> DeviceProperties:
        """What is known about a device."""
        return DeviceProperties(self.device_type)

    def kernels_on(
        self, index: int, kernels: Mapping[str, Callable[..., Any]]
    ) -> Mapping[str, Callable[..., Any]]:
        """The kernels for arrays of device `index`, whatever the current device is."""
        return kernels

    def checked_index(
        self,
        index: Any,
        size: int,
        wrap: bool,
        allowed: int | None,
        error: type[Exception],
        text: str,
    ) -> Any:
        """An int64 array as one whose elements are in [0, size), without waiting for the device.

        ``error(text)`` is to be raised when the device is next waited for if an element was out of
        range; ``{index}`` in the text stands for it. With `wrap`, negative ones count from the
        end; `allowed` stays as it is. None where the core shall wait and look.
        """
        return None

    def check_values(
        self, values: Any, low: float, high: float, error: type[Exception], text: str
    ) -> bool:
        """Ask for a look at an array of real numbers, and do not wait for it.

        ``error(text)`` is to be raised when the device is next waited for if an element is not in
        [low, high], as numbers of 64 bits; NaN is not. Kernels that get such elements meanwhile
        may make anything of them, but end, and stay in their memory.

        Returns:
            Whether that was asked; False where the core shall wait and look.
        """
        return False

    def new_stream(self, index: int, priority: int) -> Any:
        """A new queue of work on a device; lower numbers go first."""
        return self.default_stream(index)

    def external_stream(self, index: int, handle: int) -> Any:
        """The stream that another library made, by its address."""
        raise NotImplementedError(f"streams of {self.device_type!r} have no addresses")

    def default_stream(self, index: int) -> Any:
        """The queue that a device has from the start."""
        return 0

    def current_stream(self, index: int) -> Any:
        """The queue on which this thread asks for work on a device."""
        return self.default_stream(index)

    def set_stream(self, index: int, stream: Any) -> None:
        """Make `stream` the current one of a device, in this thread."""
        return None

    def stream_handle(self, stream: Any) -> int:
        """The address of a stream, equal for equal streams."""
        return 0

    def stream_priority(self, stream: Any) -> int:
        """The priority of a stream."""
        return 0

    def stream_done(self, stream: Any) -> bool:
        """Whether all work asked of a stream is finished."""
        return True

    def stream_wait(self, stream: Any) -> None:
        """Wait in this thread until a stream is finished."""
        return None

    def new_event(self, index: int, timing: bool, blocking: bool, interprocess: bool) -> Any:
        """A marker for a place in a stream.

        Args:
            index: the device whose streams it marks.
            timing: whether it notes the time.
            blocking: whether waiting for it lets the processor sleep.
            interprocess: whether other processes may open it.
        """
        return 0

    def record(self, event: Any, stream: Any) -> None:
        """Put the marker at the end of a stream, away from where it was."""
        return None

    def wait(self, stream: Any, event: Any) -> None:
        """Let what is asked of `stream` from now on begin after the marker is reached."""
        return None

    def event_done(self, event: Any) -> bool:
        """Whether the marker is reached."""
        return True

    def event_wait(self, event: Any) -> None:
        """Wait in this thread until the marker is reached."""
        return None

    def elapsed_ms(self, first: Any, last: Any) -> float:
        """Milliseconds between two markers that are reached and note the time."""
        return 0.0

    def record_event(self, index: int) -> Any:
        """A marker that notes the time, at the end of the current stream of a device."""
        event = self.new_event(index, True, False, False)
        self.record(event, self.current_stream(index))
        return event

    def event_to_ipc(self, event: Any) -> bytes:
        """What another process needs to open an event."""
        raise NotImplementedError(f"events of {self.device_type!r} are not for other processes")

    def event_from_ipc(self, index: int, handle: bytes) -> Any:
        """The event that another process exported."""
        raise NotImplementedError(f"events of {self.device_type!r} are not for other processes")

    def memory_info(self, index: int) -> tuple[int, int]:
        """Free and total bytes of a device."""
        total = self.properties(index).total_memory
        return total - self.memory_statistics(index).reserved, total

    def record_use(self, array: Any, stream: Any) -> None:
        """`stream` uses the memory of `array`, too, from now on.

        When the memory is free, nothing else gets it before what `stream` was asked until then is
        finished.
        """
        return None

    def pinned(self, size: int) -> Any:
        """A writable buffer of page-locked host memory; None where copies do not need that."""
        return None

    def is_pinned(self, address: int) -> bool:
        """Whether host memory is page-locked."""
        return False

    def upload(
        self, address: int, shape: tuple[int, ...], dtype: DType, index: int, keep: Any
    ) -> Any:
        """Ask the current stream for a copy from page-locked memory, and do not wait for it.

        Args:
            address: of elements in row-major order.
            shape: of the new array.
            dtype: of the elements.
            index: the device that gets it.
            keep: must live until the copy is made.

        Returns:
            The new array; None where copies wait in any case.
        """
        return None

    def download(self, array: Any, address: int, keep: Any) -> bool:
        """Ask the current stream for a copy to page-locked memory, and do not wait for it.

        Args:
            array: row-major.
            address: where its elements go.
            keep: must live until the copy is made.

        Returns:
            Whether that was asked; False where copies wait in any case.
        """
        return False

    def allocated(self, index: int, size: int, allocate: Callable[[], T]) -> T:
        """What `allocate` returns; if memory is out, caches are emptied and it is tried once more.

        Raises:
            OutOfMemoryError: there is no memory after that either.
        """
        try:
            return allocate()
        except self.out_of_memory:
            self.empty_cache()
        try:
            return allocate()
        except self.out_of_memory as error:
            free, total = self.memory_info(index)
            found = self.memory_statistics(index)
            raise OutOfMemoryError(
                f"{self.device_type} out of memory. Tried to allocate {amount(size)}; device "
                f"{self.device_type}:{index} has {amount(total)}, of which {amount(free)} are "
                f"free, {amount(found.allocated)} used by tensors and "
                f"{amount(found.reserved - found.allocated)} reserved by the pool and unused. "
                "Use smaller batches, or delete tensors that are no longer needed"
            ) from error

    def graph_pool(self) -> Any:
        """A pool of memory for recordings that are to share one."""
        raise NotImplementedError(f"device type {self.device_type!r} records no graphs")

    def capture_begin(self, index: int, pool: Any) -> Any:
        """Record what is asked of the current stream of a device, with memory from `pool`.

        Returns what `capture_end` takes.  The streams of random numbers go on from where they are
        at each launch of the graph, not from where they were at the recording.
        """
        raise NotImplementedError(f"device type {self.device_type!r} records no graphs")

    def capture_end(self, capture: Any) -> Any:
        """End a recording; the graph, which keeps the memory it uses."""
        raise NotImplementedError(f"device type {self.device_type!r} records no graphs")

    def capturing(self, index: int) -> bool:
        """Whether what is asked of the current stream of a device is recorded."""
        return False

    def graph_launch(self, graph: Any) -> None:
        """Ask the current stream for all that a graph recorded."""
        raise NotImplementedError(f"device type {self.device_type!r} records no graphs")

    def mark(self, text: str) -> None:
        """Note a moment."""
        return None

    def range_push(self, text: str) -> int:
        """Open a range; returns how many were open before."""
        return 0

    def range_pop(self) -> int:
        """Close the innermost range; returns how many are open still."""
        return 0


def amount(size: int) -> str:
    """A number of bytes for people.

    >>> amount(3 << 19)
    '1.50 MiB'
    """
    if size >= 1 << 1000:  # more than a float holds
        return f"{size} bytes"
    step = 0
    value = float(size)
    while value >= 1024 and step < len(_UNITS) - 1:
        value, step = value / 1024, step + 1
    return f"{size} bytes" if not step else f"{value:.2f} {_UNITS[step]}"
