"""Where profilers listen and modes step in: around kernels, backward nodes and named blocks.

While at least one listener is present, every kernel of every device in use is replaced by one that
tells the listeners, and the backward pass tells them of its nodes.  A handler, which belongs to one
thread, is called instead of the kernel.  Without either nothing is wrapped, so the path of an op
has no test and no cost.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Protocol

from flambeau._autograd import engine
from flambeau._autograd.modes import recording
from flambeau._autograd.node import Node, Out, next_seq
from flambeau._dispatch import bound as _bound
from flambeau.ops import OPS
from flambeau.plugin.forks import make_lock

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend
    from flambeau.ops.declaration.formulas import Formulas


FORWARD, BACKWARD, USER = 0, 1, 7  # PyTorch's numbers for the scope of an event


class Listener(Protocol):
    """What is told about the beginning and the end of every event."""

    def begin(
        self, name: str, scope: int, sequence: int, args: tuple[Any, ...], be: Any
    ) -> Any: ...

    def end(self, token: Any) -> None: ...


Handler = Callable[[str, Callable[..., Any], tuple[Any, ...], Any], Any]
"""What is called with the name of an op, its kernel, the arguments and the device's backend."""


class _Handling(threading.local):
    """The handlers of a thread, innermost last; one that is handling a kernel is out of it."""

    handlers: tuple[Handler, ...] = ()


handling = _Handling()
_listeners: list[Listener] = []
_handlers = 0  # of all threads
_originals: list[tuple[dict[str, Any], str, Any]] = []  # (namespace, name, kernel) as they were
_lock = make_lock()


def listen(listener: Listener) -> None:
    """Tell `listener` about everything from now on; devices not used so far are left out."""
    with _lock:
        if not _listeners:
            _take_kernels()
            engine.watchers.append(_around_node)
        _listeners.append(listener)


def ignore(listener: Listener) -> None:
    """Tell `listener` nothing more."""
    with _lock:
        _listeners.remove(listener)
        if not _listeners:
            engine.watchers.remove(_around_node)
            _give_kernels_back()


def handle(handler: Handler) -> None:
    """Call `handler` in this thread instead of kernels; what it calls itself goes further out."""
    global _handlers
    with _lock:
        _take_kernels()
        _handlers += 1
    handling.handlers = (*handling.handlers, handler)


def release() -> None:
    """Take the innermost handler of this thread out."""
    global _handlers
    handling.handlers = handling.handlers[:-1]
    with _lock:
        _handlers -= 1
        _give_kernels_back()


def _take_kernels() -> None:
    """Wrap the kernels of the devices in use, once."""
    if not _originals:
        with suppress(RuntimeError, ImportError):  # whoever uses the device will be told
            _bound.bind(None)
        for be in set(_bound._bound.values()):
            _wrap_kernels(be)


def _give_kernels_back() -> None:
    """Put the kernels back once nobody listens or handles."""
    if not _listeners and not _handlers:
        for namespace, name, kernel in _originals:
            namespace[name] = kernel
        _originals.clear()


def begin(
    name: str, scope: int, sequence: int, args: tuple[Any, ...], be: object
) -> list[tuple[Any, Any]]:
    """Announce an event; `end` takes what this returns."""
    return [(to, to.begin(name, scope, sequence, args, be)) for to in tuple(_listeners)]


def end(tokens: list[tuple[Any, Any]]) -> None:
    """Announce the end of an event."""
    for to, token in reversed(tokens):
        to.end(token)


def next_sequence() -> int:
    """The number of the node that is recorded next, -1 if none is recorded."""
    # The counter shows its next value in its repr and nowhere else.
    return int(repr(next_seq.__self__)[6:-1]) if recording() else -1


def _wrap_kernels(be: _bound.BoundBackend) -> None:
    for namespace in (be.__dict__, be.kernels):
        for name in set(OPS) | set(be.kernels):
            if (kernel := namespace.get(name)) is not None:
                _originals.append((namespace, name, kernel))
                namespace[name] = _announced(name, kernel, be)
    _originals.append((be.__dict__, "part", be.part))  # a form of the kernel of `slice`
    be.part = _announced("slice", be.part, be)


def _announced(name: str, kernel: Callable[..., Any], be: BoundBackend) -> Callable[..., Any]:
    def run(*args: object, **kwargs: object) -> Any:
        if before := handling.handlers:
            handling.handlers = before[:-1]
            try:
                return before[-1](name, run, args, be)
            finally:
                handling.handlers = before
        if not _listeners:
            return kernel(*args, **kwargs)
        tokens = begin(name, FORWARD, next_sequence(), args, be)
        try:
            return kernel(*args, **kwargs)
        finally:
            end(tokens)

    return run


def _around_node(node: Node, apply: Callable[[Any, Any], Any], F: Formulas, g: object) -> Any:
    if isinstance(node, Out):  # a hand-over between two nodes, no work
        return apply(F, g)
    tokens = begin(
        node.name(), BACKWARD, node.seq, tuple(g.values()) if type(g) is dict else (g,), None
    )
    try:
        return apply(F, g)
    finally:
        end(tokens)


class Raw:
    """One event as it is recorded."""

    __slots__ = (
        "device",
        "name",
        "parent",
        "scope",
        "sequence",
        "shapes",
        "start",
        "stop",
        "thread",
    )

    name: str
    scope: int
    sequence: int
    shapes: list[list[int]]
    thread: int
    parent: Raw | None
    start: int
    stop: int | None
    device: list[Any] | None  # backend, device index, event at the start, event at the end


class Recorder:
    """A listener that keeps events with their times.

    Args:
        shapes: whether to keep the shapes of array arguments.
        use_cuda: whether to have CUDA devices measure their own times.
    """

    def __init__(self, *, shapes: bool, use_cuda: bool) -> None:
        self.events: list[Raw] = []
        self.started = self.stopped = 0
        self._shapes = shapes
        self._use_cuda = use_cuda
        self._open: dict[int, list[Raw]] = defaultdict(list)  # per thread, innermost last

    def start(self) -> None:
        """Begin to record."""
        listen(self)
        self.started = perf_counter_ns()

    def stop(self) -> None:
        """End recording; what still runs in other threads ends now."""
        self.stopped = perf_counter_ns()
        ignore(self)
        for event in self.events:
            if event.stop is None:
                event.stop = self.stopped

    def begin(self, name: str, scope: int, sequence: int, args: tuple[Any, ...], be: Any) -> Raw:
        """Note the start of an event."""
        event = Raw()
        event.name, event.scope, event.sequence = name, scope, sequence
        event.thread = thread = threading.get_ident()
        event.shapes = shapes_of(args) if self._shapes else []
        event.stop = event.device = None
        opened = self._open[thread]
        event.parent = opened[-1] if opened else None
        opened.append(event)
        self.events.append(event)
        if self._use_cuda and be is not None and be.device.type == "cuda":
            index = be.device.index or 0
            event.device = [be.backend, index, be.backend.record_event(index), None]
        event.start = perf_counter_ns()
        return event

    def end(self, token: Raw) -> None:
        """Note the end of an event."""
        if token.stop is None:
            token.stop = perf_counter_ns()
            if token.device is not None:
                backend, index, _, _ = token.device
                token.device[3] = backend.record_event(index)
        # Blocks of asynchronous code may end in another order than they began.
        opened = self._open[token.thread]
        if token in opened:
            opened.remove(token)


def device_time(event: Raw) -> float:
    """Microseconds that the device spent on an event, 0 if it was not asked."""
    if event.device is None or event.device[3] is None:
        return 0.0
    backend, index, first, last = event.device
    backend.synchronize(index)
    return 1000.0 * backend.elapsed_ms(first, last)


def shapes_of(args: tuple[Any, ...]) -> list[list[int]]:
    """The shape of each argument; as in PyTorch, an empty list for what has none."""
    found = []
    for a in args:
        shape = getattr(a, "shape", None)
        found.append([int(n) for n in shape] if isinstance(shape, tuple) else [])
    return found
