"""Reading what NVIDIA's nvprof wrote of a program run under `emit_nvtx`.

nvprof's file is an SQLite database.  Names are numbers of rows of ``StringTable``; a range has two
rows of equal ``id`` in ``CUPTI_ACTIVITY_KIND_MARKER``, of which the first has the name and the last
has name 0; a launch is a row of ``CUPTI_ACTIVITY_KIND_RUNTIME``, joined by ``correlationId`` with
its kernel in ``CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL``.  Times are in nanoseconds.
"""

from __future__ import annotations

import os
import sqlite3
from bisect import bisect_right
from contextlib import closing
from pathlib import Path

from flambeau.autograd._events import EventList, FunctionEvent

_RANGES = """
    SELECT opened.id AS id, opened.name AS name, opened.timestamp AS start, closed.timestamp AS stop
    FROM CUPTI_ACTIVITY_KIND_MARKER AS opened
    JOIN CUPTI_ACTIVITY_KIND_MARKER AS closed ON opened.id = closed.id
    WHERE opened.name != 0 AND closed.name = 0
    ORDER BY opened.timestamp, closed.timestamp DESC
"""
_KERNELS = """
    SELECT launch.start AS launched, kernel.end - kernel.start AS duration
    FROM CUPTI_ACTIVITY_KIND_RUNTIME AS launch
    JOIN CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL AS kernel
    ON launch.correlationId = kernel.correlationId
"""


def read_nvprof(path: str | os.PathLike[str]) -> EventList:
    """The ranges of an nvprof file as events, each with the time of the kernels launched in it.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is not a database with the tables that nvprof writes.
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"load_nvprof(): no file {os.fspath(path)!r}")
    address = f"{Path(path).resolve().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True)) as database:
            names = dict(database.execute("SELECT _id_, value FROM StringTable"))
            ranges = database.execute(_RANGES).fetchall()
            kernels = database.execute(_KERNELS).fetchall()
    except sqlite3.DatabaseError as error:
        raise ValueError(
            f"load_nvprof(): {os.fspath(path)!r} is no trace of nvprof ({error}); write one with "
            "nvprof --profile-from-start off -o FILE -- PROGRAM"
        ) from error
    events = []
    origin = ranges[0][2] if ranges else 0
    for id_, name, start, stop in ranges:
        events.append(
            FunctionEvent(id_, names[name], 0, (start - origin) / 1000.0, (stop - origin) / 1000.0)
        )
    _nest(events)
    _assign(events, [((launched - origin) / 1000.0, d / 1000.0) for launched, d in kernels])
    return EventList(events, use_cuda=True)


def _nest(events: list[FunctionEvent]) -> None:
    opened: list[FunctionEvent] = []
    for event in events:
        while opened and opened[-1].time_range.end <= event.time_range.start:
            opened.pop()
        if opened:
            opened[-1].append_cpu_child(event)
        opened.append(event)


def _assign(events: list[FunctionEvent], kernels: list[tuple[float, float]]) -> None:
    # A kernel belongs to the innermost range in which it was launched.
    starts = [e.time_range.start for e in events]
    for launched, duration in kernels:
        at = bisect_right(starts, launched) - 1
        event = events[at] if at >= 0 else None
        while event is not None and event.time_range.end < launched:
            event = event.cpu_parent
        if event is not None:
            event.self_cuda_time_total += duration
