"""Profiled events: single ones, averages over equal keys, tables and traces of lists of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

_WIDTH = 12  # of a column of numbers
_MILLISECOND, _SECOND = 1_000.0, 1_000_000.0


def format_time(microseconds: float) -> str:
    """A duration in the largest unit of which it is at least one.

    >>> from flambeau.autograd.profiler import format_time
    >>> format_time(12.5), format_time(1500.0)
    ('12.500us', '1.500ms')
    """
    if microseconds >= _SECOND:
        return f"{microseconds / _SECOND:.3f}s"
    if microseconds >= _MILLISECOND:
        return f"{microseconds / _MILLISECOND:.3f}ms"
    return f"{microseconds:.3f}us"


class Interval:
    """A span of time in microseconds since the profile began.

    >>> from flambeau.autograd.profiler import Interval
    >>> Interval(2.0, 5.0).elapsed_us()
    3.0
    """

    __slots__ = ("end", "start")

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        """The length."""
        return self.end - self.start

    def __repr__(self) -> str:
        return f"Interval(start={self.start:.3f}, end={self.end:.3f})"


class _Times:
    """The derived times that single events and averages share; all in microseconds."""

    count: int
    cpu_time_total: float
    cuda_time_total: float
    self_cpu_time_total: float
    self_cuda_time_total: float

    @property
    def cpu_time(self) -> float:
        """CPU time per call, children included."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def cuda_time(self) -> float:
        """CUDA time per call, children included."""
        return self.cuda_time_total / self.count if self.count else 0.0

    @property
    def cpu_time_str(self) -> str:
        """`cpu_time` with a unit."""
        return format_time(self.cpu_time)

    @property
    def cuda_time_str(self) -> str:
        """`cuda_time` with a unit."""
        return format_time(self.cuda_time)

    @property
    def cpu_time_total_str(self) -> str:
        """`cpu_time_total` with a unit."""
        return format_time(self.cpu_time_total)

    @property
    def cuda_time_total_str(self) -> str:
        """`cuda_time_total` with a unit."""
        return format_time(self.cuda_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        """`self_cpu_time_total` with a unit."""
        return format_time(self.self_cpu_time_total)

    @property
    def self_cuda_time_total_str(self) -> str:
        """`self_cuda_time_total` with a unit."""
        return format_time(self.self_cuda_time_total)


class FunctionEvent(_Times):
    """One call of a kernel, one backward node, or one block of `record_function`.

    Attributes:
        id: its place in the order of starts.
        name: the op, the node, or what the user called the block.
        time_range: when it ran.
        thread: number of the thread, from 0 in order of first event.
        input_shapes: shape of each argument if recorded, an empty list for those without one.
        sequence_nr: forward, the number that the next node takes; backward, that of the node;
            else -1.
        scope: 0 forward, 1 backward, 7 user.
        cpu_parent: the event in which it ran, or None.
        cpu_children: the events that ran directly in it.
        self_cuda_time_total: microseconds of what it launched itself.
    """

    count = 1

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        *,
        input_shapes: list[list[int]] | None = None,
        sequence_nr: int = -1,
        scope: int = 0,
        self_cuda_time: float = 0.0,
    ) -> None:
        self.id = id
        self.name = name
        self.time_range = Interval(start_us, end_us)
        self.thread = thread
        self.input_shapes = input_shapes or []
        self.sequence_nr = sequence_nr
        self.scope = scope
        self.self_cuda_time_total = self_cuda_time
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []

    @property
    def key(self) -> str:
        """What `EventList.key_averages` groups by."""
        return self.name

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Put an event that ran in this one under it."""
        child.cpu_parent = self
        self.cpu_children.append(child)

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """Duration."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        """Duration without the children's."""
        return self.cpu_time_total - sum(c.cpu_time_total for c in self.cpu_children)

    @property
    def cuda_time_total(self) -> float:  # type: ignore[override]
        """CUDA time of what it and its children launched."""
        return self.self_cuda_time_total + sum(c.cuda_time_total for c in self.cpu_children)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} "
            f"cuda_time={self.cuda_time_str} thread={self.thread} seq_nr={self.sequence_nr} "
            f"input_shapes={self.input_shapes} cpu_children={[c.id for c in self.cpu_children]}>"
        )


class FunctionEventAvg(_Times):
    """The sum of events of one key; `cpu_time` and `cuda_time` are per call."""

    def __init__(self, key: str = "Total", input_shapes: list[list[int]] | None = None) -> None:
        self.key = key
        self.input_shapes = input_shapes
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.cuda_time_total = self.self_cuda_time_total = 0.0

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Count another event, or another average's events, in."""
        self.count += other.count
        self.self_cpu_time_total += other.self_cpu_time_total
        self.self_cuda_time_total += other.self_cuda_time_total
        self.cpu_time_total += other.cpu_time_total
        self.cuda_time_total += other.cuda_time_total
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} count={self.count} "
            f"self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
            f"self_cuda_time={self.self_cuda_time_total_str} cuda_time={self.cuda_time_str} "
            f"input_shapes={self.input_shapes}>"
        )


class EventList(list[Any]):
    """A list of events or of averages, printed as a table.

    >>> from flambeau.autograd.profiler import EventList, FunctionEvent
    >>> first, second = FunctionEvent(0, "add", 0, 0.0, 4.0), FunctionEvent(1, "add", 0, 5.0, 7.0)
    >>> EventList([first, second]).key_averages()[0].cpu_time
    3.0
    """

    SORT_KEYS = (
        "cpu_time",
        "cuda_time",
        "cpu_time_total",
        "cuda_time_total",
        "self_cpu_time_total",
        "self_cuda_time_total",
        "count",
    )

    def __init__(self, events: Iterable[Any] = (), *, use_cuda: bool = False) -> None:
        super().__init__(events)
        self._use_cuda = use_cuda

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events, each counted once."""
        return sum(e.self_cpu_time_total for e in self)

    @property
    def self_cuda_time_total(self) -> float:
        """CUDA microseconds of all events, each counted once."""
        return sum(e.self_cuda_time_total for e in self)

    def key_averages(self, group_by_input_shapes: bool = False) -> EventList:
        """One `FunctionEventAvg` per name (and input shapes), in the order of first events."""
        groups: dict[Any, FunctionEventAvg] = {}
        for event in self:
            shapes = event.input_shapes if group_by_input_shapes else None
            key = event.key, str(shapes)
            if key not in groups:
                groups[key] = FunctionEventAvg(event.key, shapes)
            groups[key].add(event)
        return EventList(groups.values(), use_cuda=self._use_cuda)

    def total_average(self) -> FunctionEventAvg:
        """All events as one `FunctionEventAvg` of key ``"Total"``."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """The events as text.

        Args:
            sort_by: one of `SORT_KEYS`, largest first; by default the order of the list.
            row_limit: print so many rows at most; -1 for all.
            max_name_column_width: names longer than this are cut.
            max_shapes_column_width: shapes longer than this are cut.
            header: a line above the table.
            top_level_events_only: leave out events that ran within others.

        Raises:
            ValueError: an unknown sort key.
        """
        if sort_by is not None and sort_by not in self.SORT_KEYS:
            raise ValueError(
                f"table(): cannot sort by {sort_by!r}; valid keys are {', '.join(self.SORT_KEYS)}"
            )
        rows = [e for e in self if not (top_level_events_only and getattr(e, "cpu_parent", None))]
        if sort_by is not None:
            rows.sort(key=lambda e: getattr(e, sort_by), reverse=True)
        if row_limit >= 0:
            rows = rows[:row_limit]
        return _table(
            rows,
            cpu=self.self_cpu_time_total,
            cuda=self.self_cuda_time_total if self._use_cuda else None,
            name_width=max_name_column_width,
            shapes_width=max_shapes_column_width,
            header=header,
        )

    def __str__(self) -> str:
        return self.table()

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the events to a file that ``chrome://tracing`` and Perfetto open.

        Forward ops are joined by arrows with the backward nodes that they recorded.

        Raises:
            OSError: the file cannot be written.
        """
        events: list[dict[str, Any]] = []
        pid = os.getpid()
        recorded: dict[int, FunctionEvent] = {}
        categories = {0: "cpu_op", 1: "backward", 7: "user_annotation"}
        for e in self:
            where = {"pid": pid, "tid": e.thread}
            args: dict[str, Any] = {"id": e.id}
            if e.sequence_nr >= 0:
                args["Sequence number"] = e.sequence_nr
            if e.input_shapes:
                args["Input Dims"] = e.input_shapes
            if e.cuda_time_total:
                args["CUDA time (us)"] = e.cuda_time_total
            events.append(
                {
                    "ph": "X",
                    "cat": categories.get(e.scope, "cpu_op"),
                    "name": e.name,
                    "ts": e.time_range.start,
                    "dur": e.time_range.elapsed_us(),
                    **where,
                    "args": args,
                }
            )
            if e.scope == 0 and e.sequence_nr >= 0:
                recorded[e.sequence_nr] = e  # the last one before the node was made
            elif e.scope == 1 and (maker := recorded.get(e.sequence_nr)) is not None:
                arrow = {"cat": "forward-backward", "name": "fwd_bwd", "id": e.id, "pid": pid}
                events.append(
                    {"ph": "s", **arrow, "tid": maker.thread, "ts": maker.time_range.start}
                )
                events.append(
                    {"ph": "f", "bp": "e", **arrow, "tid": e.thread, "ts": e.time_range.start}
                )
        for thread in sorted({e.thread for e in self}):
            named = {"name": f"thread {thread}"}
            events.append(
                {"ph": "M", "name": "thread_name", "pid": pid, "tid": thread, "args": named}
            )
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"displayTimeUnit": "ms", "traceEvents": events}, file)


def _table(
    rows: list[Any],
    *,
    cpu: float,
    cuda: float | None,
    name_width: int,
    shapes_width: int,
    header: str | None,
) -> str:
    titles = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
    if cuda is not None:
        titles += ["Self CUDA %", "Self CUDA", "CUDA total", "CUDA time avg"]
    titles.append("# of Calls")
    with_shapes = any(e.input_shapes for e in rows)
    if with_shapes:
        titles.append("Input Shapes")
    lines = []
    for e in rows:
        line = [
            _cut(e.key, name_width),
            _share(e.self_cpu_time_total, cpu),
            e.self_cpu_time_total_str,
            _share(e.cpu_time_total, cpu),
            e.cpu_time_total_str,
            e.cpu_time_str,
        ]
        if cuda is not None:
            line += [
                _share(e.self_cuda_time_total, cuda),
                e.self_cuda_time_total_str,
                e.cuda_time_total_str,
                e.cuda_time_str,
            ]
        line.append(str(e.count))
        if with_shapes:
            line.append(_cut(str(e.input_shapes or []), shapes_width))
        lines.append(line)
    widths = [max(_WIDTH, *(len(line[i]) for line in [titles, *lines])) for i in range(len(titles))]
    rule = "  ".join("-" * w for w in widths)
    text = [header] if header else []
    text += [rule, "  ".join(t.rjust(w) for t, w in zip(titles, widths, strict=True)), rule]
    text += ["  ".join(c.rjust(w) for c, w in zip(line, widths, strict=True)) for line in lines]
    text += [rule, f"Self CPU time total: {format_time(cpu)}"]
    if cuda is not None:
        text.append(f"Self CUDA time total: {format_time(cuda)}")
    return "\n".join(text) + "\n"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 3, 0)] + "..."


def _share(part: float, whole: float) -> str:
    return f"{100.0 * part / whole:.2f}%" if whole > 0 else "0.00%"
