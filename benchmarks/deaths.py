"""How soon a killed rank is named by the others, and whether jobs start every time.

    python benchmarks/deaths.py [--engine mpi] [--ranks 3] [--kills 20] [--starts 1000]
                                [--only all_reduce broadcast]

A rank kills itself in place of its fourth call of an operation; the seconds from there until each
of the others raises an error with the rank's number are printed, and whoever says nothing of the
kind is a failure.  A start is a job that joins, reduces one number and leaves.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing.sharedctypes import Synchronized
from statistics import median
from typing import Any

import flambeau as fb
import flambeau.distributed as dist
from flambeau.testing.ranks import run_ranks

SIZE = 1 << 16


def _point_to_point(rank: int, size: int, x: Any) -> None:
    """A ring: each sends to the next and receives from the one before."""
    sent = dist.isend(x, (rank + 1) % size)
    received = dist.irecv(fb.empty_like(x), (rank - 1) % size)
    for work in (sent, received):
        assert work is not None
        work.wait()
    dist.barrier()  # who has its message hears here of the death


def calls(rank: int, size: int) -> dict[str, Callable[[], Any]]:
    """The operations by name."""
    x, rows = fb.ones(SIZE), [fb.ones(SIZE) for _ in range(size)]
    objects: list[Any] = [rank] * size
    first = rank == 0
    return {
        "all_reduce": lambda: dist.all_reduce(x),
        "broadcast": lambda: dist.broadcast(x, 0),
        "reduce": lambda: dist.reduce(x, 0),
        "all_gather": lambda: dist.all_gather(rows, x),
        "gather": lambda: dist.gather(x, rows if first else None, 0),
        "scatter": lambda: dist.scatter(x, rows if first else None, 0),
        "reduce_scatter": lambda: dist.reduce_scatter(x, rows),
        "all_to_all": lambda: dist.all_to_all(rows, rows),
        "all_gather_object": lambda: dist.all_gather_object(objects, rank),
        "broadcast_object_list": lambda: dist.broadcast_object_list(objects, 0),
        "barrier": dist.barrier,
        "point to point": lambda: _point_to_point(rank, size, x),
    }


def _killed(rank: int, size: int, victim: int, name: str, died: Synchronized[float]) -> float | str:
    call = calls(rank, size)[name]
    try:
        for number in range(4):  # another may be in the third when the victim has left it
            if number == 3 and rank == victim:
                died.value = time.monotonic()
                os.kill(os.getpid(), signal.SIGKILL)
            call()
    except dist.DistError as error:
        seconds = time.monotonic() - died.value
        return seconds if f"rank {victim} died" in str(error) else str(error)
    return "no error"


def kills(name: str, options: argparse.Namespace) -> bool:
    """Kill in one operation, each rank in turn; whether all were named."""
    seconds: list[float] = []
    failures: list[str] = []
    for number in range(options.kills):
        victim, died = number % options.ranks, multiprocessing.Value("d", 0.0)
        outcomes = run_ranks(_killed, options.ranks, victim, name, died, engine=options.engine)
        for rank, outcome in enumerate(outcomes):
            if rank != victim:
                good = isinstance(outcome.value, float)
                (seconds if good else failures).append(outcome.value or outcome.error)
    slow = sum(second >= 1 for second in seconds)
    print(
        f"{name:22} {len(seconds):4} named, median {median(seconds or [0]):.3f} s, slowest "
        f"{max(seconds, default=0):.3f} s, {slow} after a second, {len(failures)} not named",
        *failures[:3],
        flush=True,
    )
    return not failures


def _started(rank: int, size: int) -> float:
    x = fb.ones(1)
    dist.all_reduce(x)
    return x.item()


def starts(options: argparse.Namespace) -> bool:
    """Start jobs; whether all came together."""
    failures, seconds = 0, []
    for number in range(options.starts):
        start = time.monotonic()
        outcomes = run_ranks(_started, options.ranks, engine=options.engine, timeout=60.0)
        seconds.append(time.monotonic() - start)
        if [outcome.value for outcome in outcomes] != [float(options.ranks)] * options.ranks:
            failures += 1
            print(*(outcome.error for outcome in outcomes), sep="\n", flush=True)
        if number % 100 == 99 or number == options.starts - 1:
            print(
                f"{number + 1} starts, {failures} failures, median {median(seconds):.2f} s",
                flush=True,
            )
    return not failures


def main() -> int:
    """Run what is asked for; 1 if anything failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--engine", default="mpi")
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--kills", type=int, default=20, help="in each operation")
    parser.add_argument("--starts", type=int, default=1000)
    parser.add_argument("--only", nargs="*", choices=[*calls(0, 1)])
    options = parser.parse_args()
    names = options.only if options.only is not None else calls(0, 1)
    good = [kills(name, options) for name in names if options.kills]
    return 0 if all([*good, starts(options)]) else 1


if __name__ == "__main__":
    sys.exit(main())
