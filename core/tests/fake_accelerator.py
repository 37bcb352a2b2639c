"""A device type for tests: arrays of the reference backend on two devices, with queues and a limit.

Values are computed at once; what is put off is a note of it, so that tests see the order in which a
device with streams would have worked.
"""

from __future__ import annotations

import weakref
from collections import Counter
from ctypes import memmove, string_at
from math import prod
from typing import Any

from flambeau.plugin import (
    Accelerator,
    DeviceProperties,
    KernelSet,
    MemoryStatistics,
    hookimpl,
)
from flambeau.testing.reference.array import RefArray
from flambeau.testing.reference.backend import RefBackend
from flambeau.testing.reference.kernels import KERNELS

DEVICE = "fake"


class Array(RefArray):
    """A reference array that lies on a device.

    Attributes:
        pending: the queue that is asked to fill it.
    """

    index = 0
    pending: Queue | None = None


class FullError(MemoryError):
    """The device has no room."""


class Queue:
    """A stream: tasks are names, markers, or markers to wait for."""

    def __init__(self, index: int, priority: int = 0) -> None:
        self.index, self.priority = index, priority
        self.tasks: list[tuple[str, Any]] = []


class Marker:
    def __init__(self, timing: bool) -> None:
        self.timing, self.reached, self.place, self.time = timing, False, None, 0.0


class Fake(Accelerator, RefBackend):
    """Two devices, a pool of `limit` bytes each, streams that work when they are waited for."""

    device_type, array, strided, indexed = DEVICE, Array, False, True

    def __init__(self) -> None:
        self.current, self.count, self.limit = 0, 2, 1 << 20
        self.defaults = [Queue(0), Queue(1)]
        self.streams = list(self.defaults)
        self.log: list[str] = []
        self.clock = 0.0
        self.used, self.reserved = Counter(), Counter()
        self.peak, self.peak_reserved = Counter(), Counter()
        self.emptied = 0
        self.held: list[tuple[Any, Queue]] = []
        self.pages: list[bytearray] = []
        self.ranges: list[str] = []
        self.exported: list[Marker] = []

    def device_count(self) -> int:
        return self.count

    def unavailable(self) -> str:
        return "the fake driver is not loaded; pip install fake-driver"

    def current_device(self) -> int:
        return self.current

    def set_device(self, index: int) -> None:
        self.current = index

    def index_of(self, array: Array) -> int:
        return array.index

    def properties(self, index: int) -> DeviceProperties:
        return DeviceProperties(f"Fake {index}", self.limit, 9, index, 4)

    def synchronize(self, index: int) -> None:
        for stream in {s for s, _ in self._queues() if s.index == index}:
            self.stream_wait(stream)

    def _queues(self) -> list[tuple[Queue, None]]:
        return [(s, None) for s in (*self.defaults, *self.streams)]

    def _placed(self, index: int, made: RefArray) -> Array:
        size = len(made.data) * made.dtype.itemsize
        self.allocated(index, size, lambda: self._take(index, size))
        out = Array(made.shape, made.dtype, made.data)
        object.__setattr__(out, "index", index)
        weakref.finalize(out, self._give, index, size)
        return out

    def _take(self, index: int, size: int) -> None:
        if self.used[index] + size > self.reserved[index]:
            grown = self.reserved[index] + size  # a pool in pieces: freed ones are not joined
            if grown > self.limit:
                raise FullError
            self.reserved[index] = grown
        self.used[index] += size
        self.peak[index] = max(self.peak[index], self.used[index])
        self.peak_reserved[index] = max(self.peak_reserved[index], self.reserved[index])

    def _give(self, index: int, size: int) -> None:
        self.used[index] -= size

    def from_host(self, data: Any, shape: Any, dtype: Any, index: int) -> Array:
        return self._placed(index, super().from_host(data, shape, dtype, index))

    def scalar(self, value: Any, dtype: Any) -> Array:
        return self._placed(self.current, super().scalar(value, dtype))

    def to_host(self, array: Array) -> bytes:
        self._arrive(array)
        return super().to_host(array)

    def item(self, array: Array) -> Any:
        self._arrive(array)
        return super().item(array)

    def tolist(self, array: Array) -> Any:
        self._arrive(array)
        return super().tolist(array)

    def _arrive(self, array: Array) -> None:
        if array.pending is not None:
            self.stream_wait(array.pending)

    def to_array(self, value: Any) -> Array:
        return value if isinstance(value, Array) else self._placed(self.current, value)

    def kernels_on(self, index: int, kernels: Any) -> Any:
        def on(name: str, kernel: Any) -> Any:
            def run(*args: Any) -> Any:
                for a in args:
                    assert not isinstance(a, Array) or a.index == index, (name, a.index, index)
                    if isinstance(a, Array):
                        self._arrive(a)  # values are computed at once
                self.streams[index].tasks.append(("run", f"{name}@{index}"))
                made = kernel(*args)
                if isinstance(made, tuple):
                    return tuple(self._placed(index, m) for m in made)
                return self._placed(index, made)

            return run

        return {name: on(name, kernel) for name, kernel in kernels.items()}

    def new_stream(self, index: int, priority: int) -> Queue:
        return Queue(index, max(-1, min(priority, 0)))

    def default_stream(self, index: int) -> Queue:
        return self.defaults[index]

    def current_stream(self, index: int) -> Queue:
        return self.streams[index]

    def set_stream(self, index: int, stream: Queue) -> None:
        self.streams[index] = stream

    def stream_handle(self, stream: Queue) -> int:
        return 0 if stream in self.defaults else id(stream)

    def stream_priority(self, stream: Queue) -> int:
        return stream.priority

    def stream_done(self, stream: Queue) -> bool:
        return not stream.tasks

    def stream_wait(self, stream: Queue) -> None:
        while stream.tasks:
            self._step(stream)

    def _step(self, stream: Queue) -> None:
        kind, what = stream.tasks.pop(0)
        self.clock += 1.0
        if kind == "run":
            self.log.append(what)
        elif kind == "copy":
            what()
        elif kind == "mark":
            what.reached, what.time = True, self.clock
        else:
            while not what.reached:
                self._step(what.place)

    def new_event(self, index: int, timing: bool, blocking: bool, interprocess: bool) -> Marker:
        return Marker(timing)

    def record(self, event: Marker, stream: Queue) -> None:
        event.reached, event.place = False, stream
        stream.tasks.append(("mark", event))

    def wait(self, stream: Queue, event: Marker) -> None:
        stream.tasks.append(("wait", event))

    def event_to_ipc(self, event: Marker) -> bytes:
        self.exported.append(event)
        return bytes([len(self.exported) - 1])

    def event_from_ipc(self, index: int, handle: bytes) -> Marker:
        return self.exported[handle[0]]

    def event_done(self, event: Marker) -> bool:
        return event.reached

    def event_wait(self, event: Marker) -> None:
        while not event.reached:
            self._step(event.place)

    def elapsed_ms(self, first: Marker, last: Marker) -> float:
        return last.time - first.time

    def memory_statistics(self, index: int) -> MemoryStatistics:
        return MemoryStatistics(
            self.used[index], self.reserved[index], self.peak[index], self.peak_reserved[index]
        )

    def reset_peak(self, index: int, *, allocated: bool, reserved: bool) -> None:
        if allocated:
            self.peak[index] = self.used[index]
        if reserved:
            self.peak_reserved[index] = self.reserved[index]

    def empty_cache(self) -> None:
        self.emptied += 1
        self.reserved = Counter(self.used)

    def record_use(self, array: Array, stream: Queue) -> None:
        self.held.append((array, stream))

    def pinned(self, size: int) -> bytearray:
        self.pages.append(bytearray(size))
        return self.pages[-1]

    def is_pinned(self, address: int) -> bool:
        import ctypes

        starts = [ctypes.addressof(ctypes.c_char.from_buffer(page)) for page in self.pages]
        return any(a <= address < a + len(p) for a, p in zip(starts, self.pages, strict=True))

    def upload(self, address: int, shape: Any, dtype: Any, index: int, keep: Any) -> Array:
        size = prod(shape) * dtype.itemsize
        made = self.from_host(bytes(size), shape, dtype, index)
        stream = self.streams[index]
        kept = [keep]

        def copy() -> None:
            data = RefBackend.from_host(self, string_at(address, size), shape, dtype, index).data
            object.__setattr__(made, "data", data)
            object.__setattr__(made, "pending", None)
            kept.clear()

        object.__setattr__(made, "pending", stream)
        stream.tasks.append(("copy", copy))
        return made

    def download(self, array: Array, address: int, keep: Any) -> bool:
        kept = [keep]

        def copy() -> None:
            data = bytes(RefBackend.to_host(self, array))
            memmove(address, data, len(data))
            kept.clear()

        self.streams[array.index].tasks.append(("copy", copy))
        return True

    def mark(self, text: str) -> None:
        self.log.append(f"mark {text}")

    def range_push(self, text: str) -> int:
        self.ranges.append(text)
        return len(self.ranges) - 1

    def range_pop(self) -> int:
        self.ranges.pop()
        return len(self.ranges)


class Plugin:
    """The plugin of the fake device type."""

    def __init__(self) -> None:
        self.backend = Fake()

    @hookimpl
    def flambeau_backend(self, device_type: str) -> Any:
        return self.backend if device_type == DEVICE else None

    @hookimpl
    def flambeau_kernels(self, device_type: str) -> Any:
        return KernelSet("fake 1", KERNELS) if device_type == DEVICE else None
