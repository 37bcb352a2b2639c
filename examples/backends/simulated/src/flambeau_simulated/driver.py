"""The hardware and its driver, pretended: the one file that has no counterpart in your package.

Each device has memory of its own, at addresses that the host cannot read, and streams: queues of
work, done in order. Nothing is done when it is asked for, but when somebody waits, or a queue is
full. So what is not ordered by a stream or an event is out of order here, each time, in the same
way; on hardware it would be, now and then. There are no threads, hence nothing that a fork loses.
"""

import ctypes
import time
import weakref
from bisect import insort
from collections import deque

import numpy as np

from flambeau.plugin import make_lock

BASE = 1 << 44
"""Device i begins at address BASE * (i + 1), where no host memory is."""


class DriverMemoryError(MemoryError):
    """A device has no room."""


class Mark:
    """A place in a stream, reached once."""

    def __init__(self, stream):
        self.stream, self.time = stream, None


class Wait:
    """A task that is done when a mark is reached."""

    def __init__(self, mark):
        self.mark = mark


class Stream:
    """A queue of tasks of one device; `recording` is the list that gets them instead, or None."""

    def __init__(self, index, priority=0):
        self.index, self.priority = index, priority
        self.tasks, self.recording = deque(), None


class Driver:
    """All devices.

    Args:
        devices: how many.
        memory: bytes of each.
        depth: tasks that a stream holds; to ask for more does the oldest.
    """

    def __init__(self, devices=2, memory=1 << 30, depth=1024):
        self.devices, self.memory, self.depth = devices, memory, depth
        self.lock = make_lock()
        self._cells = [np.zeros(memory, np.uint8) for _ in range(devices)]  # pages come when used
        self._room = [[(0, memory)] for _ in range(devices)]
        self._busy = {}  # streams with tasks: they go on if nobody holds them
        self._faults = {}
        self._pages = {}

    def malloc(self, index, size):
        """The address of `size` bytes of a device.

        Raises:
            DriverMemoryError: there is no gap so large.
        """
        with self.lock:
            room = self._room[index]
            for i, (start, length) in enumerate(room):
                if length >= size:
                    room[i : i + 1] = [(start + size, length - size)] if length > size else []
                    return BASE * (index + 1) + start
        raise DriverMemoryError(f"no {size} bytes in one piece on device {index}")

    def free(self, address, size):
        """Give memory back; waits for the device, whose queues may still use it."""
        index = address // BASE - 1
        with self.lock:
            self._drain([s for s in self._busy if s.index == index])
            insort(self._room[index], (address % BASE, size))
            joined = []
            for start, length in self._room[index]:
                if joined and sum(joined[-1]) == start:
                    start, length = joined[-1][0], joined.pop()[1] + length
                joined.append((start, length))
            self._room[index] = joined

    def free_bytes(self, index):
        """Bytes of a device that nobody has."""
        with self.lock:
            return sum(length for _, length in self._room[index])

    def window(self, address, shape, kind, strides=None):
        """Memory of a device as tasks see it; the host may look at shape and strides only."""
        return np.ndarray(shape, kind, self._cells[address // BASE - 1], address % BASE, strides)

    def address(self, window):
        """The device's address of what a window begins with; `index_of` for whose it is."""
        place = window.__array_interface__["data"][0]
        for index, cells in enumerate(self._cells):
            start = cells.__array_interface__["data"][0]
            if start <= place <= start + self.memory:
                return BASE * (index + 1) + place - start
        raise ValueError("not the memory of a device")

    def launch(self, stream, task):
        """Ask a stream for a task; returns at once."""
        with self.lock:
            if stream.recording is not None:
                stream.recording.append(task)
                return
            self._queue(stream, task)

    def mark(self, stream):
        """A mark at the end of a stream."""
        with self.lock:
            made = Mark(stream)
            self._queue(stream, made)
            return made

    def _queue(self, stream, task):
        if len(stream.tasks) >= self.depth:
            self._step(stream)
        stream.tasks.append(task)
        self._busy[stream] = None

    def poll(self, stream):
        """Whether a stream is idle; if not, it does something meanwhile."""
        with self.lock:
            if stream.tasks:
                self._step(stream)
            return not stream.tasks

    def reached(self, mark):
        """Whether a mark is reached; if not, its stream does something meanwhile."""
        if mark.time is None:
            self.poll(mark.stream)
        return mark.time is not None

    def wait_mark(self, mark):
        """Wait until a mark is reached."""
        with self.lock:
            while mark.time is None:
                self._step(mark.stream)
        self.look(mark.stream.index)

    def wait_stream(self, stream):
        """Wait until a stream is idle."""
        with self.lock:
            self._refuse_recorded([stream])
            self._drain([stream])
        self.look(stream.index)

    def wait_device(self, index):
        """Wait until all streams of a device are idle."""
        with self.lock:
            self._drain([s for s in self._busy if s.index == index])
        self.look(index)

    def look(self, index):
        """Raise what went wrong on a device since the last look, the first of it."""
        if (fault := self._faults.pop(index, None)) is not None:
            raise fault

    def _refuse_recorded(self, streams):
        if any(s.recording is not None for s in streams):
            raise RuntimeError(
                "a graph is being recorded, which cannot wait for the device: leave out of it what "
                "reads values (item, tolist, printing, copies to the host, nonzero)"
            )

    def _drain(self, streams):
        for stream in sorted(streams, key=lambda s: s.priority):
            while stream.tasks:
                self._step(stream)

    def _step(self, stream):
        """Do the next thing that a stream can do; if that waits, what it waits for comes first."""
        while isinstance(task := stream.tasks[0], Wait) and task.mark.time is None:
            stream = task.mark.stream
        stream.tasks.popleft()
        if not stream.tasks:
            self._busy.pop(stream, None)
        if isinstance(task, Mark):
            task.time = time.perf_counter()
        elif not isinstance(task, Wait):
            try:
                task()
            except Exception as error:  # nobody is here to catch it
                self._faults.setdefault(stream.index, error)

    def pinned(self, size):
        """Host memory that devices copy from and to by themselves."""
        page = np.empty(size, np.uint8)
        address = page.__array_interface__["data"][0]
        self._pages[address] = size
        weakref.finalize(page, self._pages.pop, address, None)
        return page

    def is_pinned(self, address):
        """Whether an address is in such memory."""
        return any(a <= address < a + size for a, size in list(self._pages.items()))

    @staticmethod
    def move(target, source, size):
        """Copy bytes; an address is the host's, a window the device's."""
        places = [w if isinstance(w, int) else w.ctypes.data for w in (target, source)]
        ctypes.memmove(*places, size)
