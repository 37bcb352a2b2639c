"""The runtime of device ``simulated``: what flambeau asks, in terms of a driver and a pool."""

import threading
from collections import deque
from functools import wraps
from math import prod

import numpy as np

from flambeau.plugin import Accelerator, DeviceProperties, int64
from flambeau_numpy.extending import FROM_NUMPY, TO_NUMPY
from flambeau_simulated.arrays import DeviceArray
from flambeau_simulated.driver import Driver, Stream, Wait
from flambeau_simulated.memory import Pool
from flambeau_simulated.random import Counter


class Event:
    """A marker that may be put anywhere, again and again."""

    def __init__(self):
        self.mark = None


class Graph:
    """What a stream was asked for during a recording, and the memory it uses.

    Attributes:
        kept: arrays of others that it uses.
    """

    def __init__(self, stream, pool):
        self.stream, self.pool, self.tasks, self.kept = stream, pool, [], []


class SimulatedBackend(Accelerator):
    """Device arrays, whose views alias their memory.

    Args:
        driver: the devices.
    """

    device_type = "simulated"
    array = DeviceArray
    strided = True

    def __init__(self, driver: Driver):
        self.driver = driver
        self._orphans = deque()
        self._pools = [Pool(driver, i, self._orphans) for i in range(driver.devices)]
        self._streams = [Stream(i) for i in range(driver.devices)]
        self._aside = [Stream(i) for i in range(driver.devices)]
        self._graphs = {}
        self._thread = threading.local()

    def device_count(self):
        """How many devices the driver shows."""
        return self.driver.devices

    def current_device(self):
        """The thread's current device."""
        return getattr(self._thread, "index", 0)

    def set_device(self, index):
        """Make a device the thread's current one."""
        self._thread.index = index

    def index_of(self, array):
        """The device that holds `array`."""
        return array.index

    def properties(self, index):
        """What the driver knows about a device."""
        return DeviceProperties(f"Simulated {index}", self.driver.memory)

    def synchronize(self, index):
        """Wait for all streams of a device."""
        self.driver.wait_device(index)

    def kernels_on(self, index, kernels):
        """Kernels that switch to their device for the time of a call."""

        def on(kernel):
            @wraps(kernel)
            def run(*args):
                before = self.current_device()
                self.set_device(index)
                try:
                    return kernel(*args)
                finally:
                    self.set_device(before)

            return run

        return {name: on(kernel) for name, kernel in kernels.items()}

    def ask(self, task, index=None):
        """Put a task on the current stream of a device, the current one by default."""
        index = self.current_device() if index is None else index
        self.driver.launch(self.current_stream(index), task)

    def empty(self, shape, dtype):
        """A new array on the current device; what is in it is whatever was there."""
        index, kind = self.current_device(), TO_NUMPY[dtype]
        stream, size = self.current_stream(index), prod(shape) * kind.itemsize
        graph = self._graphs.get(stream)
        pool = graph.pool if graph else self._pools[index]
        block = self.allocated(index, size, lambda: pool.allocate(size, stream))
        window = self.driver.window(block.address, tuple(shape), kind)
        return DeviceArray(window, block, index, True)

    def _empty_on(self, index, shape, dtype):
        return self.kernels_on(index, {"empty": self.empty})["empty"](shape, dtype)

    def from_host(self, data, shape, dtype, index):
        """A new array; the bytes are staged, so that nobody waits, but for constants.

        flambeau keeps numbers that programs use again, as arrays without dimensions, for all
        streams, those of later graphs too: they are made beside all streams, and at once.
        """
        if shape:
            return self._staged(data, shape, dtype, index)
        before = self.current_stream(index)
        self.set_stream(index, self._aside[index])
        try:
            made = self._staged(data, shape, dtype, index)
        finally:
            self.set_stream(index, before)
        self.driver.wait_stream(self._aside[index])
        self.record_use(made, before)  # one that is not kept ends before its work is done
        return made

    def _staged(self, data, shape, dtype, index):
        made, staged = self._empty_on(index, shape, dtype), np.frombuffer(bytes(data), np.uint8)
        target = made.window.reshape(-1).view(np.uint8)
        self.ask(lambda: np.copyto(target, staged[: target.size]), index)
        return made

    def to_host(self, array):
        """The elements; waits for the current stream, as only that is known to make them."""
        found, window = [], array.window
        self.ask(lambda: found.append(window.tobytes()), array.index)
        self.stream_wait(self.current_stream(array.index))
        return found[0]

    def to_device(self, array, index):
        """A copy on device `index`, in the order of both current streams."""
        made = self._empty_on(index, array.shape, self.dtype_of(array))
        source, target = self.current_stream(array.index), self.current_stream(index)
        self._in_order(source, target)  # what makes the array comes first
        given, taken = array.window, made.window
        self.driver.launch(target, lambda: np.copyto(taken, given))
        self._in_order(target, source)  # what takes its memory next comes after
        return made

    def _in_order(self, first, then):
        if first is not then:
            event = self.new_event(first.index, False, False, False)
            self.record(event, first)
            self.wait(then, event)

    def upload(self, address, shape, dtype, index, keep):
        """Ask for a copy from pinned memory, which reads it when the stream gets there."""
        made = self._empty_on(index, shape, dtype)
        target, move = made.window, self.driver.move
        self.ask(lambda keep=keep: move(target, address, target.nbytes), index)
        return made

    def download(self, array, address, keep):
        """Ask for a copy to pinned memory."""
        source, move = array.window, self.driver.move
        self.ask(lambda keep=keep: move(address, source, source.nbytes), array.index)
        return True

    def pinned(self, size):
        """Memory of the driver's."""
        return self.driver.pinned(size)

    def is_pinned(self, address):
        """What the driver says about an address."""
        return self.driver.is_pinned(address)

    def checked_index(self, index, size, wrap, allowed, error, text):
        """A copy whose wrong elements are 0; the stream finds them and the next wait raises."""
        if not size:
            return None
        made = self._empty_on(index.index, index.shape, int64)
        given, target = index.window, made.window

        def task():
            right = (given >= (-size if wrap else 0)) & (given < size)
            if allowed is not None:
                right |= given == allowed
            np.copyto(target, np.where(right, given, 0))
            if not right.all():
                raise error(text.replace("{index}", str(given[~right][0])))

        self.ask(task, index.index)
        return made

    def check_values(self, values, low, high, error, text):
        """Look at them when the stream gets there; the next wait raises."""
        given = values.window

        def task():
            numbers = given.astype(np.float64)
            if not ((numbers >= low) & (numbers <= high)).all():
                raise error(text)

        self.ask(task, values.index)
        return True

    def new_stream(self, index, priority):
        """A queue of its own."""
        return Stream(index, max(-1, min(priority, 0)))

    def default_stream(self, index):
        """The queue that a device has from the start."""
        return self._streams[index]

    def current_stream(self, index):
        """The thread's current queue of a device."""
        return getattr(self._thread, "streams", self._streams)[index]

    def set_stream(self, index, stream):
        """Make a queue the thread's current one."""
        self._thread.streams = list(getattr(self._thread, "streams", self._streams))
        self._thread.streams[index] = stream

    def stream_handle(self, stream):
        """A number; 0 for default queues."""
        return 0 if stream in self._streams else id(stream)

    def stream_priority(self, stream):
        """0, or -1 for one that goes first."""
        return stream.priority

    def stream_done(self, stream):
        """Whether a queue is empty."""
        return self.driver.poll(stream)

    def stream_wait(self, stream):
        """Wait until it is."""
        self.driver.wait_stream(stream)

    def new_event(self, index, timing, blocking, interprocess):
        """A marker that is nowhere yet."""
        return Event()

    def record(self, event, stream):
        """Put the marker at the end of a queue."""
        self._refuse_recording(stream)
        event.mark = self.driver.mark(stream)

    def wait(self, stream, event):
        """What is asked of a queue from now on comes after where the marker is now."""
        self._refuse_recording(stream)
        if event.mark is not None:
            self.driver.launch(stream, Wait(event.mark))

    def _refuse_recording(self, stream):
        if stream.recording is not None:
            raise RuntimeError("graphs of this device are of one stream, and hold no events")

    def event_done(self, event):
        """Whether the marker is reached."""
        return event.mark is None or self.driver.reached(event.mark)

    def event_wait(self, event):
        """Wait until it is."""
        if event.mark is not None:
            self.driver.wait_mark(event.mark)

    def elapsed_ms(self, first, last):
        """Milliseconds between two reached markers."""
        return (last.mark.time - first.mark.time) * 1e3

    def generator(self, index):
        """Seed and offset of one generator."""

        def refuse():
            if any(stream.index == index for stream in self._graphs):
                raise RuntimeError(
                    "random numbers are drawn on the host here, and a graph would repeat those of "
                    "its recording: draw them before it"
                )

        return Counter(refuse)

    def graph_pool(self):
        """Memory that only recordings get, of the current device."""
        return Pool(self.driver, self.current_device(), self._orphans)

    def capture_begin(self, index, pool):
        """Record the current stream of a device."""
        stream = self.current_stream(index)
        graph = self._graphs[stream] = Graph(stream, pool)
        stream.recording = graph.tasks
        return graph

    def capture_end(self, capture):
        """End a recording."""
        capture.stream.recording = None
        del self._graphs[capture.stream]
        return capture

    def capturing(self, index):
        """Whether the current stream of a device is recorded."""
        return self.current_stream(index).recording is not None

    def graph_launch(self, graph):
        """Ask the current stream of the graph's device for all that was recorded."""
        for task in graph.tasks:
            self.ask(task, graph.stream.index)

    def record_use(self, array, stream):
        """The memory of `array` serves nothing else before `stream` has done what it was asked."""
        if graph := self._graphs.get(stream):
            graph.kept.append(array)  # each replay uses it
        elif stream is not array.block.stream:
            array.block.users.add(stream)

    def memory_statistics(self, index):
        """The figures of a device's pool; those of graphs are not among them."""
        return self._pools[index].statistics()

    def memory_info(self, index):
        """Free and total bytes by the driver."""
        return self.driver.free_bytes(index), self.driver.memory

    def reset_peak(self, index, *, allocated, reserved):
        """Start largest figures again."""
        pool = self._pools[index]
        pool.peak = [
            pool.allocated if allocated else pool.peak[0],
            pool.reserved if reserved else pool.peak[1],
        ]

    def empty_cache(self):
        """Give what no array uses back to the driver, on every device."""
        for pool in self._pools:
            pool.empty()

    def dtype_of(self, array):
        """The flambeau dtype of `array`."""
        return FROM_NUMPY[array.window.dtype]

    def strides(self, array):
        """Steps between neighbours, in elements."""
        window = array.window
        if not window.size:  # NumPy has none there
            lengths = [max(n, 1) for n in window.shape]
            return tuple([prod(lengths[d:]) for d in range(1, window.ndim + 1)])
        return tuple([s // window.itemsize for s in window.strides])

    def data_ptr(self, array):
        """The device's address of the first element; 0 if there is none."""
        return self.driver.address(array.window) if array.window.size else 0

    def offset(self, array, root):
        """Where `array` begins in `root`, in elements."""
        if not array.window.size:
            return 0
        distance = self.driver.address(array.window) - self.driver.address(root.window)
        return distance // array.window.itemsize

    def owns(self, array):
        """Whether the memory was allocated for it."""
        return array.owner

    def as_strided(self, root, shape, stride, offset):
        """A view of the memory of `root`."""
        kind, last = root.window.dtype, _last(root)
        reach = offset + sum(s * (n - 1) for s, n in zip(stride, shape, strict=True) if n)
        if prod(shape) and not 0 <= offset <= reach <= last:
            raise ValueError(f"{shape} by {stride} from {offset} is beyond {last + 1} elements")
        start = self.driver.address(root.window) + (offset if prod(shape) else 0) * kind.itemsize
        steps = tuple([s * kind.itemsize for s in stride])
        return root.view(self.driver.window(start, tuple(shape), kind, steps))

    def reinterpret(self, root, dtype):
        """The memory of `root`, from first to last element, as a vector of `dtype`."""
        kind, size = TO_NUMPY[dtype], (_last(root) + 1) * root.window.itemsize
        start = self.driver.address(root.window)
        return root.view(self.driver.window(start, (size // kind.itemsize,), kind))


def _last(root):
    """The last element of the memory of `root`, counted from its first; -1 if there is none."""
    if not root.window.size:
        return -1
    steps = zip(root.window.strides, root.shape, strict=True)
    return sum(s * (n - 1) for s, n in steps) // root.window.itemsize
