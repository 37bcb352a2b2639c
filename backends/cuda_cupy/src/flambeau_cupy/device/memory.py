"""Who uses the memory of a device, beside what CuPy's pool knows.

The pool gives memory that is free to the next request on the stream it was allocated on, which is
right where nothing else uses it.  Here is what streams beside that one still do with it, how much
tensors have, and how much they had at most: the pool counts its blocks one by one to say so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from flambeau.plugin import make_lock


class Block:
    """Memory of the pool that arrays lie in; it ends when the last of them does.

    Attributes:
        streams: those that use it beside the one it was allocated on, by address.
    """

    __slots__ = ("_pointer", "_size", "_usage", "streams")

    def __init__(self, usage: Usage, pointer: object, size: int) -> None:
        self._usage, self._pointer, self._size = usage, pointer, size
        self.streams: dict[int, Any] | None = None

    def __del__(self) -> None:
        # At any time, in any thread, in the midst of anything: the next request does the rest.
        self._usage.ended.append((self._size, self.streams and (self._pointer, self.streams)))


class Usage:
    """The memory of one device in use.

    Args:
        mark: ``mark(stream)`` is an event at the end of a stream.

    Attributes:
        ended: sizes of blocks that no array lies in any more, with what of them is kept and the
            streams that may still use it.
        allocated: bytes of blocks that arrays lie in.
        peak: the most bytes of such blocks, and of all that the pool held.
    """

    def __init__(self, mark: Callable[[Any], Any]) -> None:
        self._mark = mark
        self._lock = make_lock()  # a finaliser that asks for memory may come in between
        self._waiting: deque[tuple[Any, Any]] = deque()
        self.ended: deque[tuple[int, Any]] = deque()
        self.allocated = 0
        self.peak = [0, 0]

    def took(self, pointer: object, size: int, reserved: int) -> Block:
        """A new block, of which `size` bytes are used, from a pool that now holds `reserved`."""
        with self._lock:
            self.allocated += size
            self.peak[0] = max(self.peak[0], self.allocated)
            self.peak[1] = max(self.peak[1], reserved)
        return Block(self, pointer, size)

    def hold(self, event: object, what: object) -> None:
        """Keep `what` until an event is reached."""
        self._waiting.append((event, what))

    def settle(self, *, wait: bool = False) -> None:
        """Let go what no stream uses any more.

        Args:
            wait: until all streams have finished with what has ended.
        """
        # What is taken out of the queues belongs to this thread; others may be here, too.
        while (found := _next(self.ended)) is not None:
            size, lent = found
            with self._lock:
                self.allocated -= size
            if lent:  # all that these streams were asked so far may use it
                pointer, streams = lent
                for stream in streams.values():
                    self.hold(self._mark(stream), pointer)
        while (found := _next(self._waiting)) is not None:
            event, _ = found
            if wait:
                event.synchronize()
            elif not event.done:
                self._waiting.appendleft(found)
                break


def _next(queue: deque[Any]) -> Any:
    try:
        return queue.popleft()
    except IndexError:
        return None
