"""Profiling: what ran, how often and how long, forward and backward.

`profile` times every kernel, every backward node and every block of `record_function` on the host,
and CUDA kernels on their device if asked; `emit_nvtx` announces the same to NVIDIA's profilers.
"""

from __future__ import annotations

import os
import warnings
from contextlib import ContextDecorator
from typing import Any

from flambeau._dispatch.bound import bind
from flambeau.autograd import _recorder
from flambeau.autograd._events import (
    EventList,
    FunctionEvent,
    FunctionEventAvg,
    Interval,
    format_time,
)
from flambeau.autograd._nvprof import read_nvprof

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "emit_nvtx",
    "format_time",
    "load_nvprof",
    "profile",
    "record_function",
]


class profile:  # noqa: N801 - PyTorch's name
    """Context manager that records what runs inside it, in all threads, to be summarised later.

    Kernels appear under the names of canonical ops, backward nodes under those of ``grad_fn``.  A
    device that is first used inside the block is not seen.

    Args:
        enabled: False makes it do nothing.
        use_cuda: also have CUDA devices measure their own times; ignored, with a warning, where
            there is none.
        record_shapes: keep the shapes of arguments.

    Raises:
        RuntimeError: results are asked for before the block has ended, or it is entered twice.

    >>> import flambeau as fb
    >>> x = fb.ones(3, requires_grad=True)
    >>> with fb.autograd.profiler.profile() as prof:
    ...     (x * 2).sum().backward()
    >>> [event.key for event in prof.key_averages()][:2]
    ['mul', 'sum']
    """

    def __init__(
        self, enabled: bool = True, use_cuda: bool = False, record_shapes: bool = False
    ) -> None:
        self.enabled = enabled
        self.use_cuda = use_cuda
        self.record_shapes = record_shapes
        self._recorder: _recorder.Recorder | None = None
        self._events: EventList | None = None
        if enabled and use_cuda and not _cuda_measures():
            warnings.warn(
                "profile(use_cuda=True): no CUDA device that measures times is available; only CPU "
                "times are recorded",
                stacklevel=2,
            )
            self.use_cuda = False

    def __enter__(self) -> profile:
        if not self.enabled:
            return self
        if self._recorder is not None:
            raise RuntimeError(
                "Profiler context manager is not reentrant: make a new profile() for each block"
            )
        self._recorder = _recorder.Recorder(shapes=self.record_shapes, use_cuda=self.use_cuda)
        self._recorder.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.enabled and self._recorder is not None:
            self._recorder.stop()
            self._events = _as_events(self._recorder, self.use_cuda)

    @property
    def function_events(self) -> EventList:
        """All events, in the order in which they began.

        Raises:
            RuntimeError: the block has not ended.
        """
        if self._events is None:
            if not self.enabled:
                return EventList()
            raise RuntimeError(
                "Profiler didn't finish running: its results can be read after the `with` block"
            )
        return self._events

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """The events as text; see `EventList.table`.

        >>> import flambeau as fb
        >>> with fb.autograd.profiler.profile() as prof:
        ...     y = fb.ones(2) + 1
        >>> "add" in prof.table(sort_by="cpu_time_total", row_limit=10)
        True
        """
        return self.function_events.table(
            sort_by,
            row_limit,
            max_name_column_width,
            max_shapes_column_width,
            header,
            top_level_events_only,
        )

    def key_averages(self, group_by_input_shape: bool = False) -> EventList:
        """One average per name (and shapes of the arguments)."""
        return self.function_events.key_averages(group_by_input_shape)

    def total_average(self) -> FunctionEventAvg:
        """All events as one average."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events, each counted once."""
        return self.function_events.self_cpu_time_total

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write a file for ``chrome://tracing``; see `EventList.export_chrome_trace`."""
        self.function_events.export_chrome_trace(path)

    def __str__(self) -> str:
        if self.enabled and self._events is None:
            return repr(self)
        return str(self.function_events)

    def __repr__(self) -> str:
        if self.enabled and self._events is None:
            return "<unfinished torch.autograd.profiler.profile>"
        return f"<torch.autograd.profiler.profile of {len(self.function_events)} events>"


class record_function(ContextDecorator):  # noqa: N801 - PyTorch's name
    """Context manager and decorator that names a block of code in profiles.

    Args:
        name: shown in tables and traces.

    >>> import flambeau as fb
    >>> with fb.autograd.profiler.profile() as prof:
    ...     with fb.autograd.profiler.record_function("doubling"):
    ...         y = fb.ones(2) * 2
    >>> prof.function_events[0].name
    'doubling'
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._tokens: Any = ()

    def _recreate_cm(self) -> record_function:
        return record_function(self.name)  # as a decorator: one per call, for recursion and threads

    def __enter__(self) -> record_function:
        self._tokens = _recorder.begin(self.name, _recorder.USER, -1, (), None)
        return self

    def __exit__(self, *exc: object) -> None:
        _recorder.end(self._tokens)
        self._tokens = ()


class emit_nvtx:  # noqa: N801 - PyTorch's name
    """Context manager that announces every kernel and backward node as an NVTX range.

    Run the program under an NVIDIA profiler to see them.  The range of a kernel is named
    ``<op>, seq = <N>``, where the node that the call records takes the number N, and that of a
    backward node ``<node>, stashed seq = <N>``.  Nodes of views are made when an op needs them and
    take the numbers before that op's own.

    Args:
        enabled: False makes it do nothing.
        record_shapes: append the shapes of arguments.

    Raises:
        RuntimeError: on entering, if no CUDA device is there to announce ranges to.

    >>> import flambeau as fb
    >>> with fb.autograd.profiler.emit_nvtx(enabled=False):
    ...     y = fb.ones(2) + 1
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.record_shapes = record_shapes
        self._backend: Any = None

    def __enter__(self) -> emit_nvtx:
        if not self.enabled:
            return self
        if self._backend is not None:
            raise RuntimeError("NVTX annotation context manager is not reentrant")
        backend = _cuda_backend()
        if not hasattr(backend, "range_push"):
            raise RuntimeError(
                "emit_nvtx(): NVTX ranges need a CUDA device, and none is available here. Use "
                "profiler.profile() to time the CPU, or install a CUDA backend (python -m flambeau "
                "lists what is installed)"
            )
        backend.synchronize(backend.current_device())
        self._backend = backend
        _recorder.listen(self)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._backend is not None:
            _recorder.ignore(self)
            self._backend.synchronize(self._backend.current_device())
            self._backend = None

    def begin(self, name: str, scope: int, sequence: int, args: tuple[Any, ...], be: object) -> Any:
        """Open a range; called by the recorder."""
        backend = self._backend
        text = name
        if scope == _recorder.BACKWARD:
            text += f", stashed seq = {sequence}"
        elif scope == _recorder.FORWARD:
            text += f", seq = {max(sequence, 0)}"
        if self.record_shapes and args:
            text += f", sizes = {_recorder.shapes_of(args)}"
        backend.range_push(text)
        return backend

    def end(self, token: Any) -> None:
        """Close a range; called by the recorder."""
        token.range_pop()


def load_nvprof(path: str | os.PathLike[str]) -> EventList:
    """The ranges that `emit_nvtx` announced to nvprof, from the file that nvprof wrote.

    Args:
        path: the file given to ``nvprof -o``.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no trace of nvprof.

    >>> import flambeau as fb
    >>> fb.autograd.profiler.load_nvprof("absent.prof")
    Traceback (most recent call last):
    FileNotFoundError: load_nvprof(): no file 'absent.prof'
    """
    return read_nvprof(path)


def _cuda_backend() -> Any:
    """The runtime of CUDA devices, or None."""
    try:
        return bind("cuda").backend
    except (RuntimeError, ImportError):
        return None


def _cuda_measures() -> bool:
    return hasattr(_cuda_backend(), "record_event")


def _as_events(recorder: _recorder.Recorder, use_cuda: bool) -> EventList:
    threads: dict[int, int] = {}
    made: dict[int, FunctionEvent] = {}
    device_us = {id(raw): _recorder.device_time(raw) for raw in recorder.events}
    own = dict(device_us)
    for raw in recorder.events:
        # A decomposed op measures what the ops in it measure again.
        parent = raw.parent
        while parent is not None and not device_us[id(parent)]:
            parent = parent.parent
        if parent is not None:
            own[id(parent)] -= device_us[id(raw)]
    for number, raw in enumerate(recorder.events):
        assert raw.stop is not None
        event = FunctionEvent(
            number,
            raw.name,
            threads.setdefault(raw.thread, len(threads)),
            (raw.start - recorder.started) / 1000.0,
            (raw.stop - recorder.started) / 1000.0,
            input_shapes=raw.shapes,
            sequence_nr=raw.sequence,
            scope=raw.scope,
            self_cuda_time=max(own[id(raw)], 0.0),
        )
        made[id(raw)] = event
        if raw.parent is not None:
            made[id(raw.parent)].append_cpu_child(event)
    return EventList(made.values(), use_cuda=use_cuda)
