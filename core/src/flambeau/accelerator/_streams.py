"""Streams and events: the order in which a device does what it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from flambeau._types.device import device as Device
from flambeau.accelerator._runtime import Runtime

if TYPE_CHECKING:
    from flambeau._types.hints import DeviceLike


class Stream:
    """A queue of work on a device: its tasks run in order, those of other streams beside them.

    Args:
        device: where; the current device by default, and for a negative index.
        priority: lower numbers go first; what the device does not have means the nearest it has.
        stream_ptr: the address of a stream that another library made.

    As a context manager it makes itself the current stream.

    Raises:
        RuntimeError: there is no such device.
    """

    runtime: ClassVar[Runtime]

    def __init__(
        self, device: DeviceLike | None = None, priority: int = 0, *, stream_ptr: int = 0
    ) -> None:
        if not hasattr(self, "runtime"):
            raise RuntimeError("Stream(): there is no accelerator; use the Stream of its namespace")
        backend = self.runtime.needed()
        here = isinstance(device, int) and device < 0
        self._index = self.runtime.index(None if here else device)
        if stream_ptr:
            self._native = backend.external_stream(self._index, stream_ptr)
        else:
            self._native = backend.new_stream(self._index, priority)
        self._entered: list[Selected] = []

    @classmethod
    def _of(cls, index: int, native: object) -> Stream:
        made = object.__new__(cls)
        made._index, made._native, made._entered = index, native, []
        return made

    @property
    def device(self) -> Device:
        """Where it runs."""
        return self.runtime.device(self._index)

    @property
    def priority(self) -> int:
        """Lower numbers go first."""
        return self.runtime.needed().stream_priority(self._native)

    @property
    def cuda_stream(self) -> int:
        """The address of the stream, for other libraries."""
        return self.runtime.needed().stream_handle(self._native)

    def query(self) -> bool:
        """Whether all work asked of it is finished."""
        return self.runtime.needed().stream_done(self._native)

    def synchronize(self) -> None:
        """Wait until all work asked of it is finished."""
        self.runtime.needed().stream_wait(self._native)

    def record_event(self, event: Event | None = None) -> Event:
        """Put `event`, or a new one, behind the work asked of it so far; returns the event."""
        marker = self._event_class()() if event is None else event
        marker.record(self)
        return marker

    def wait_event(self, event: Event) -> None:
        """Let work asked of it from now on begin after `event`; returns at once."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Let work asked of it from now on begin after what `stream` was asked so far."""
        self.wait_event(stream.record_event())

    def _event_class(self) -> type[Event]:
        raise NotImplementedError

    def __enter__(self) -> Stream:
        selected = Selected(self.runtime, self)
        selected.__enter__()
        self._entered.append(selected)
        return self

    def __exit__(self, *exc: object) -> None:
        self._entered.pop().__exit__(*exc)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return self.device == other.device and self.cuda_stream == other.cuda_stream

    def __hash__(self) -> int:
        return hash((self.device, self.cuda_stream))

    def __repr__(self) -> str:
        return f"<{self.__module__}.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class Event:
    """A marker in a stream: to wait for, to order streams by, to measure time with.

    Args:
        enable_timing: whether it notes the time.
        blocking: whether `synchronize` lets the processor sleep.
        interprocess: whether other processes may open it; excludes `enable_timing`.

    It is made when it is first recorded, on the device of that stream.
    """

    runtime: ClassVar[Runtime]

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        if enable_timing and interprocess:
            raise RuntimeError("Event: an interprocess event cannot measure time; choose one")
        self._options = (bool(enable_timing), bool(blocking), bool(interprocess))
        self._native: Any = None
        self._index: int | None = None

    @property
    def device(self) -> Device | None:
        """Where it was recorded first; None before that."""
        return None if self._index is None else self.runtime.device(self._index)

    def _made(self, index: int) -> Any:
        if self._index is None:
            self._native = self.runtime.needed().new_event(index, *self._options)
            self._index = index
        elif self._index != index:
            raise RuntimeError(
                f"Event device {self.device} does not match the recording stream's device "
                f"{self.runtime.device(index)}; use another event"
            )
        return self._native

    def record(self, stream: Stream | None = None) -> None:
        """Put it behind the work asked so far of `stream`, by default the current one.

        Raises:
            RuntimeError: it was recorded on another device.
        """
        backend = self.runtime.needed()
        if stream is None:
            index = backend.current_device()
            native = backend.current_stream(index)
        else:
            index, native = stream._index, stream._native
        backend.record(self._made(index), native)

    def wait(self, stream: Stream | None = None) -> None:
        """Let work asked of `stream` (default: the current one) from now on begin after it."""
        if self._index is None:
            return
        backend = self.runtime.needed()
        if stream is None:
            native = backend.current_stream(backend.current_device())
        else:
            native = stream._native
        backend.wait(native, self._native)

    def query(self) -> bool:
        """Whether it is reached, or was never recorded."""
        return self._index is None or self.runtime.needed().event_done(self._native)

    def synchronize(self) -> None:
        """Wait until it is reached."""
        if self._index is not None:
            self.runtime.needed().event_wait(self._native)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to `end_event`.

        Raises:
            ValueError: one of them does not note the time or was not recorded.
            RuntimeError: one of them is not reached yet.
        """
        if not (self._options[0] and end_event._options[0]):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._index is None or end_event._index is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end_event.query()):
            raise RuntimeError(
                "elapsed_time(): an event is not reached yet; call end_event.synchronize() first"
            )
        return self.runtime.needed().elapsed_ms(self._native, end_event._native)

    def ipc_handle(self) -> bytes:
        """What `from_ipc_handle` in another process takes; an event not yet recorded is made.

        Raises:
            RuntimeError: the event is not interprocess.
        """
        if not self._options[2]:
            raise RuntimeError("ipc_handle(): create the event with interprocess=True")
        backend = self.runtime.needed()
        index = backend.current_device() if self._index is None else self._index
        return backend.event_to_ipc(self._made(index))

    @classmethod
    def from_ipc_handle(cls, device: DeviceLike | None, handle: bytes) -> Event:
        """The event of another process, from its `ipc_handle`."""
        made = cls(interprocess=True)
        backend = cls.runtime.needed()
        made._index = cls.runtime.index(device)
        made._native = backend.event_from_ipc(made._index, handle)
        return made

    def __repr__(self) -> str:
        state = "not recorded" if self._index is None else f"device={self.device}"
        return f"<{self.__module__}.Event {state}>"


class Selected:
    """A block in which a stream, and its device, are the current ones; None changes nothing."""

    def __init__(self, runtime: Runtime, stream: Stream | None) -> None:
        self._runtime = runtime
        self.stream = stream
        self._before: list[tuple[int, Any]] = []

    def __enter__(self) -> None:
        if (stream := self.stream) is None:
            return
        backend = self._runtime.needed()
        self._before.append((backend.current_device(), backend.current_stream(stream._index)))
        backend.set_device(stream._index)
        backend.set_stream(stream._index, stream._native)

    def __exit__(self, *exc: object) -> None:
        if (stream := self.stream) is None:
            return
        backend = self._runtime.needed()
        index, native = self._before.pop()
        backend.set_stream(stream._index, native)
        backend.set_device(index)
