"""Profiling of a training loop, step by step.

`profile` measures by `flambeau.autograd.profiler`, in the steps that a schedule names, and hands
each finished measurement to a function, such as `tensorboard_trace_handler`.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import socket
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

import flambeau as fb
from flambeau._dispatch.annotated import takes_as_annotated
from flambeau.absence import tell as _tell
from flambeau.autograd.profiler import EventList, record_function
from flambeau.autograd.profiler import profile as _measurement

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerActivity(Enum):
    """What is measured."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3


class ProfilerAction(Enum):
    """What happens in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def kineto_available() -> bool:
    """False: the library Kineto is not used."""
    return False


def supported_activities() -> set[ProfilerActivity]:
    """What can be measured here: the CPU, and CUDA where there is a device.

    >>> import flambeau as fb
    >>> fb.profiler.ProfilerActivity.CPU in fb.profiler.supported_activities()
    True
    """
    found = {ProfilerActivity.CPU}
    if fb.cuda.is_available():
        found.add(ProfilerActivity.CUDA)
    return found


@takes_as_annotated
def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """Which steps `profile` measures: cycles of `wait` + `warmup` + `active` steps.

    Args:
        wait: steps of a cycle in which nothing is measured.
        warmup: steps that are measured and thrown away.
        active: steps that are measured and kept.
        repeat: the number of cycles; 0 for any number.
        skip_first: steps before the first cycle.
        skip_first_wait: not 0 leaves the waiting steps of the first cycle out.

    Raises:
        AssertionError: a negative number, or no active step.

    >>> import flambeau as fb
    >>> plan = fb.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [plan(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    given = (wait, warmup, repeat, skip_first)
    assert min(given) >= 0 and active > 0, (
        f"schedule(): wait, warmup, repeat and skip_first are 0 or more and active is more, got "
        f"{given} and {active}"
    )
    if warmup == 0:
        warnings.warn(
            "Profiler won't be using warmup, this can skew profiler results", stacklevel=2
        )
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        if skip_first_wait:
            step += wait
        if repeat and step >= repeat * length:
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == length - 1 else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(
    dir_name: str | os.PathLike[str],
    worker_name: str | None = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[profile], None]:
    """A function for `on_trace_ready` that writes a trace into a folder for TensorBoard.

    Args:
        dir_name: the folder, made if need be.
        worker_name: of the process, unique in the folder; host and number of the process if None.
        use_gzip: whether to compress the files.
        use_python_export: accepted; there is one way of writing.

    Raises:
        RuntimeError: when it is called, if the folder cannot be made.
    """

    def handle(prof: profile) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError(f"Can't create directory: {dir_name}") from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handle


class profile:  # noqa: N801 - PyTorch's name
    """Context manager that measures the steps of a loop, which call `step`.

    Without a schedule the whole block is one measurement.  Kernels appear under the names of
    flambeau's ops, backward nodes under those of ``grad_fn``.

    Args:
        activities: what is measured; all that can be, if None.
        schedule: from the number of a step to what happens in it; see `schedule`.
        on_trace_ready: called with this object when a measurement is finished.
        record_shapes: whether to keep the shapes of arguments.
        profile_memory: accepted and not measured, with a warning.
        with_stack: as `profile_memory`.
        with_flops: as `profile_memory`.
        with_modules: as `profile_memory`.
        experimental_config: ignored.
        execution_trace_observer: ignored.
        acc_events: keep the events of all cycles, not of the last one alone.
        use_cuda: older form of `activities`.
        custom_trace_id_callback: called for the number of a measurement.
        post_processing_timeout_s: ignored.

    Raises:
        RuntimeError: results are asked for before there are any.
        AssertionError: an activity that cannot be measured here at all.

    >>> import flambeau as fb
    >>> plan = fb.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> with fb.profiler.profile(schedule=plan) as prof:
    ...     for _ in range(4):
    ...         y = fb.ones(2) * 2
    ...         prof.step()
    >>> {event.key: event.count for event in prof.key_averages()}["mul"]
    2
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: object = None,
        execution_trace_observer: object = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        self.activities = set(activities) if activities is not None else supported_activities()
        if use_cuda is not None:
            (self.activities.add if use_cuda else self.activities.discard)(ProfilerActivity.CUDA)
        assert self.activities, "No valid profiler activities found"
        asked = {
            "profile_memory": profile_memory,
            "with_stack": with_stack,
            "with_flops": with_flops,
            "with_modules": with_modules,
        }
        if unmeasured := [name for name, value in asked.items() if value]:
            warnings.warn(
                f"profile(): {', '.join(unmeasured)} not measured: times, calls and shapes are",
                stacklevel=2,
            )
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.record_shapes = record_shapes
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.step_num = 0
        self.current_action = ProfilerAction.NONE
        self._running: _measurement | None = None
        self._step_mark: record_function | None = None
        self._events: EventList | None = None
        self._notes: dict[str, Any] = {}
        self._trace_id = ""

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin with the first step."""
        self._begin(self.schedule(self.step_num))

    def stop(self) -> None:
        """End the last step; what it measured is handed over."""
        self._end_mark()
        recorded = self.current_action in _RECORDING
        self._finish(keep=recorded)
        self.current_action = ProfilerAction.NONE
        if recorded and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def step(self) -> None:
        """End a step and begin the next."""
        self._end_mark()
        before = self.current_action
        self.step_num += 1
        now = self.schedule(self.step_num)
        if before is ProfilerAction.RECORD_AND_SAVE:
            self._finish(keep=True)
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        elif before in _RECORDING and now not in _RECORDING:
            self._finish(keep=True)
        elif before is ProfilerAction.WARMUP:
            self._finish(keep=False)
        self._begin(now)

    def _begin(self, action: ProfilerAction) -> None:
        self.current_action = action
        if action is not ProfilerAction.NONE and self._running is None:
            use_cuda = ProfilerActivity.CUDA in self.activities and fb.cuda.is_available()
            self._running = _measurement(use_cuda=use_cuda, record_shapes=self.record_shapes)
            self._running.__enter__()
            if self.custom_trace_id_callback is not None:
                self._trace_id = self.custom_trace_id_callback()
        if self.record_steps and self._running is not None:
            self._step_mark = record_function(f"ProfilerStep#{self.step_num}")
            self._step_mark.__enter__()

    def _end_mark(self) -> None:
        if self._step_mark is not None:
            self._step_mark.__exit__()
            self._step_mark = None

    def _finish(self, keep: bool) -> None:
        if self._running is None:
            return
        measured, self._running = self._running, None
        measured.__exit__()
        if keep:
            events = measured.function_events
            if self.acc_events and self._events is not None:
                events = EventList([*self._events, *events], use_cuda=measured.use_cuda)
            self._events = events

    def events(self) -> EventList:
        """The events of the last measurement, in the order in which they began.

        Raises:
            RuntimeError: there is none yet.
        """
        if self._events is None:
            raise RuntimeError(
                "Profiler is not initialized: nothing was measured yet; the results are there when "
                "the last step of a cycle, or the block, has ended"
            )
        return self._events

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """One average per name (and shapes of the arguments); ``.table(sort_by=…)`` prints them.

        `group_by_stack_n` and `group_by_overload_name` are accepted: neither is recorded.
        """
        return self.events().key_averages(group_by_input_shape)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write a file for ``chrome://tracing``, compressed if its name ends in ``.gz``."""
        if not os.fspath(path).endswith(".gz"):
            self._write_trace(path)
            return
        with tempfile.TemporaryDirectory() as folder:
            plain = os.path.join(folder, "trace.json")
            self._write_trace(plain)
            with open(plain, "rb") as source, gzip.open(path, "wb") as packed:
                shutil.copyfileobj(source, packed)

    def _write_trace(self, path: str | os.PathLike[str]) -> None:
        self.events().export_chrome_trace(path)
        if self._notes:
            with open(path, encoding="utf-8") as file:
                written = json.load(file)
            with open(path, "w", encoding="utf-8") as file:
                json.dump({**written, **self._notes}, file)

    def add_metadata(self, key: str, value: str) -> None:
        """Put a text into the traces that are written from now on."""
        self._notes[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Put a value, given as JSON, into the traces that are written from now on."""
        self._notes[key] = json.loads(value)

    def get_trace_id(self) -> str:
        """What `custom_trace_id_callback` returned for the last measurement."""
        return self._trace_id


_tell(__name__)
