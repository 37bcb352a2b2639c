"""Interleaved timing: every side of a row runs in turn, in many short rounds.

Machines drift (frequency, neighbours, caches), so a time on its own says little.  Within one round
the sides follow each other in random order, and what is reported is the ratio of two times of one
round: its median over the rounds and its interquartile range.
"""

from __future__ import annotations

import random
import time
import timeit
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any

OURS, THEIRS, BARE = "flambeau", "torch", "numpy"
SAME = (OURS, THEIRS)  # these two run one text

Setup = Callable[[Any], dict[str, Any]]
Code = tuple[str, Setup]  # a statement, and what makes its names


@dataclass(frozen=True)
class Row:
    """One line of the table: a statement that every side runs.

    Attributes:
        name: what the table, the filter and the budgets call it.
        statement: the timed code; the same text for flambeau and torch.
        setup: makes the names that the statement uses, given the library.
        others: the same work for libraries that write it otherwise, by the name of the library.
        threads: the numbers of threads with which the row is measured.
        reset: run before every timed batch with the names of the side, to free what piles up.
        rounds: at most so many rounds of a single run each, for what takes tenths of a second.
    """

    name: str
    statement: str
    setup: Setup
    others: Mapping[str, Code] = field(default_factory=dict)
    threads: tuple[int, ...] = (1,)
    reset: Callable[[dict[str, Any]], None] | None = None
    rounds: int | None = None


@dataclass
class Side:
    """A library's part of a row: its seconds per run in each round, or why there are none."""

    seconds: list[float] = field(default_factory=list)
    error: str | None = None


@dataclass
class Result:
    """A measured row."""

    name: str
    threads: int
    sides: dict[str, Side]

    def microseconds(self, side: str) -> float | None:
        measured = self.sides.get(side)
        return median(measured.seconds) * 1e6 if measured and measured.seconds else None

    def ratio(self, other: str) -> tuple[float, float] | None:
        """Median and interquartile range of ours/theirs, round by round."""
        ours, theirs = self.sides.get(OURS), self.sides.get(other)
        if not (ours and theirs and ours.seconds and theirs.seconds):
            return None
        ratios = [a / b for a, b in zip(ours.seconds, theirs.seconds, strict=True)]
        low, middle, high = quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
        return middle, high - low


def measure(
    row: Row, libraries: Mapping[str, Any], threads: int, rounds: int, batch_seconds: float
) -> Result:
    """Time `row` for every library, `rounds` times a batch of about `batch_seconds`.

    With one thread the clock is the CPU time of this thread, which neighbours disturb least; of all
    threads for libraries whose number cannot be set. With more threads it is wall time.
    """
    code = dict.fromkeys(SAME, (row.statement, row.setup)) | dict(row.others)
    sides = {name: Side() for name in libraries if name in code}
    timers: dict[str, tuple[timeit.Timer, dict[str, Any]]] = {}
    for name, side in sides.items():
        try:
            statement, setup = code[name]
            names = setup(libraries[name])
            # Locals of the timed function: they may be assigned, and are read alike on all sides.
            bind = "; ".join(f"{key} = names[{key!r}]" for key in names)
            clock = time.perf_counter
            if threads == 1:
                clock = time.thread_time if name in (*SAME, BARE) else time.process_time
            timer = timeit.Timer(statement, bind, timer=clock, globals={"names": names})
            timer.timeit(1 if row.rounds else 3)
            timers[name] = (timer, names)
        except Exception as error:  # one missing operation must not cost the rest of the table
            side.error = f"{type(error).__name__}: {error}".split("\n")[0]
    # One number of runs for all sides, so that each warms its caches equally often.
    if row.rounds:
        rounds, runs = min(rounds, row.rounds), 1
    else:
        slowest = max((timer.timeit(5) / 5 for timer, _ in timers.values()), default=1.0)
        runs = max(3, round(batch_seconds / slowest))
    order = list(timers)
    shuffled = random.Random(row.name)
    for number in range(rounds + 2):
        shuffled.shuffle(order)
        for name in order:
            timer, names = timers[name]
            if row.reset and name in SAME:
                row.reset(names)
            seconds = timer.timeit(runs) / runs
            if number >= 2:  # the first two rounds warm up
                sides[name].seconds.append(seconds)
    return Result(row.name, threads, sides)
