"""The conformance kit finds what accelerators do wrong with streams and events.

The device here computes only when it is waited for: each stream is a list of things to do, and
what another stream has not done yet reads as zeros.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from flambeau.plugin import Accelerator, Backend, KernelSet, dtype, dtypes, hookimpl
from flambeau.plugin.host import host
from flambeau.testing.backend import test_streams
from flambeau_numpy.kernels import KERNELS

TO_NUMPY = {d: np.dtype(d.name) for d in dtypes if d.name != "bfloat16"}
FROM_NUMPY = {theirs: ours for ours, theirs in TO_NUMPY.items()}
NEEDED = "matmul div add mul slice view cast full clone permute expand".split()


class Queue:
    """A stream: what it was asked to do, and has not done."""

    handles = itertools.count(1)

    def __init__(self) -> None:
        self.todo: list[Callable[[], None]] = []
        self.handle = next(self.handles)

    def drain(self) -> None:
        todo, self.todo = self.todo, []
        for task in todo:
            task()


class Mark:
    """An event."""

    def __init__(self) -> None:
        self.done, self.seconds, self.queue = True, 0.0, Queue()


class Promise:
    """A native array, whose elements are there once its stream came to it."""

    def __init__(self, value: np.ndarray, queue: Queue) -> None:
        self.shape, self.dtype, self.queue = value.shape, value.dtype, queue
        self.final, self.there = value, False

    def seen(self) -> np.ndarray:
        return self.final if self.there else np.zeros_like(self.final)


class Lazy(Accelerator):
    array = Promise

    def __init__(self, device_type: str) -> None:
        self.device_type = device_type
        self.first, self.local = Queue(), threading.local()
        self.queues = [self.first]

    def from_host(self, data: Any, shape: Any, dtype: dtype, index: int) -> Promise:
        made = Promise(np.frombuffer(data, TO_NUMPY[dtype]).reshape(shape).copy(), self.first)
        made.there = True
        return made

    def to_host(self, array: Promise) -> bytes:
        array.queue.drain()
        return array.seen().tobytes()

    def dtype_of(self, array: Promise) -> dtype:
        return FROM_NUMPY[array.dtype]

    def synchronize(self, index: int) -> None:
        for queue in self.queues:
            queue.drain()

    def new_stream(self, index: int, priority: int) -> Queue:
        self.queues.append(Queue())
        return self.queues[-1]

    def default_stream(self, index: int) -> Queue:
        return self.first

    def current_stream(self, index: int) -> Queue:
        return getattr(self.local, "queue", self.first)

    def set_stream(self, index: int, stream: Queue) -> None:
        self.local.queue = stream

    def stream_handle(self, stream: Queue) -> int:
        return stream.handle

    def stream_done(self, stream: Queue) -> bool:
        return not stream.todo

    def stream_wait(self, stream: Queue) -> None:
        stream.drain()

    def new_event(self, index: int, timing: bool, blocking: bool, interprocess: bool) -> Mark:
        return Mark()

    def record(self, event: Mark, stream: Queue) -> None:
        def reach() -> None:
            event.done, event.seconds = True, time.perf_counter()

        event.done, event.queue = False, stream
        stream.todo.append(reach)

    def wait(self, stream: Queue, event: Mark) -> None:
        stream.todo.append(lambda: None if event.done else event.queue.drain())

    def event_done(self, event: Mark) -> bool:
        return event.done

    def event_wait(self, event: Mark) -> None:
        event.queue.drain()

    def elapsed_ms(self, first: Mark, last: Mark) -> float:
        return 1000 * (last.seconds - first.seconds)


def kernel(backend: Lazy, function: Callable[..., Any]) -> Callable[..., Promise]:
    """A NumPy kernel that is put off; the result's shape is known at once."""

    def run(*args: Any) -> Promise:
        def values(which: Callable[[Promise], np.ndarray]) -> list[Any]:
            return [which(a) if isinstance(a, Promise) else a for a in args]

        queue = backend.current_stream(0)
        made = Promise(np.array(function(*values(lambda a: a.final))), queue)

        def compute() -> None:
            made.final, made.there = np.array(function(*values(Promise.seen))), True

        queue.todo.append(compute)
        return made

    return run


FAULTS: dict[str, dict[str, Any]] = {
    "reading does not wait": {"to_host": lambda self, array: array.seen().tobytes()},
    "events are not waited for": {"wait": lambda self, stream, event: None},
    "waiting for an event does nothing": {"event_wait": lambda self, event: None},
    "events are always reached too late": {"event_done": lambda self, event: False},
    "waiting for a stream does nothing": {"stream_wait": lambda self, stream: None},
    "only the first stream is synchronised": {"synchronize": lambda self, i: self.first.drain()},
    "streams cannot be chosen": {"set_stream": lambda self, index, stream: None},
    "all threads share the stream": {
        "set_stream": lambda self, index, stream: setattr(self, "shared", stream),
        "current_stream": lambda self, index: getattr(self, "shared", self.first),
    },
    "time runs backwards": {"elapsed_ms": lambda self, a, b: 1000 * (a.seconds - b.seconds)},
}


def device_of(name: str) -> str:
    return "lazy" + name.replace(" ", "")


class Plugin:
    @hookimpl
    def flambeau_backend(self, device_type: str) -> Backend:
        methods = next((m for n, m in FAULTS.items() if device_of(n) == device_type), {})
        return type("Faulty", (Lazy,), methods)(device_type)

    @hookimpl
    def flambeau_kernels(self, device_type: str, backend: Lazy) -> KernelSet:
        return KernelSet("lazy 0.1", {name: kernel(backend, KERNELS[name]) for name in NEEDED})


@pytest.fixture(autouse=True, scope="module")
def registered() -> Iterator[None]:
    host.register(Plugin(), name="lazy", device_types=["lazysound", *map(device_of, FAULTS)])
    yield
    host.unregister("lazy")


def complaints(device: str) -> Iterator[str]:
    for name, test in vars(test_streams).items():
        if name.startswith("test_"):
            _, function = test.cases
            for case in function(device):
                try:
                    test(device, *case.values)
                except Exception as error:
                    yield f"{name}: {error!r}"


@pytest.mark.parametrize("name", FAULTS)
def test_the_kit_finds_the_fault(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")  # where pytest works out every difference of two lists
    assert next(complaints(device_of(name)), None), "every test of the kit passed"


def test_a_sound_accelerator_passes() -> None:
    assert list(complaints("lazysound")) == []


def test_devices_without_streams_are_not_asked() -> None:
    assert list(test_streams.accelerators("cpu")) == []
