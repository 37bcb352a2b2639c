"""Several processes that run one function as the ranks of a job, and what came of it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from typing import Any

import flambeau as fb
import flambeau.distributed as dist


@dataclass
class Outcome:
    """What a rank came to.

    Attributes:
        value: what the function returned.
        error: the traceback of what it raised, empty if it returned.
        code: exit code of the process; negative for a signal.
        seconds: from the start of all to its end.
    """

    value: Any = None
    error: str = ""
    code: int | None = None
    seconds: float = field(default=0.0, compare=False)


def free_port() -> int:
    """A port of this machine that nobody uses now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def run_ranks(
    fn: Callable[..., Any],
    size: int,
    *args: object,
    engine: str = "reference",
    timeout: float = 20.0,
    limit: float = 60.0,
    join: bool = True,
    method: str = "fork",
) -> list[Outcome]:
    """Run ``fn(rank, size, *args)`` in `size` processes, which are one job.

    Args:
        engine: for `init_process_group`, which each calls first, unless `join` is false: then the
            environment is set and `fn` calls it.
        timeout: of the job.
        limit: seconds after which processes that still run are killed.
        method: how processes start.

    >>> from flambeau.testing.ranks import run_ranks
    >>> [outcome.value for outcome in run_ranks(lambda rank, size: rank * size, 2)]
    [0, 2]
    """
    fb.zeros(1)  # what every rank would import is imported before they fork
    context: Any = multiprocessing.get_context(method)
    port, start = free_port(), time.monotonic()
    started = []
    for rank in range(size):
        mine, theirs = context.Pipe(duplex=False)
        facts = (fn, rank, size, args, engine if join else None, timeout, port)
        process = context.Process(target=_rank, args=(theirs, *facts))
        process.start()
        theirs.close()
        started.append((process, mine))
    outcomes = [Outcome() for _ in started]
    left = dict(enumerate(started))
    try:
        while left and time.monotonic() < start + limit:
            ready = wait([process.sentinel for process, _ in left.values()], 0.5)
            for rank, (process, mine) in list(left.items()):
                if mine.poll():
                    _take(outcomes[rank], mine)
                if process.sentinel in ready:
                    process.join()
                    if mine.poll():
                        _take(outcomes[rank], mine)
                    outcomes[rank].code = process.exitcode
                    outcomes[rank].seconds = time.monotonic() - start
                    del left[rank]
    finally:
        for process, _ in left.values():
            process.kill()
            process.join()
        for _, mine in started:
            mine.close()
    for rank in left:
        outcomes[rank].error = outcomes[rank].error or f"rank {rank} still ran after {limit:g} s"
    return outcomes


def values(outcomes: list[Outcome]) -> list[Any]:
    """What all ranks returned.

    Raises:
        AssertionError: one raised, or ended otherwise.
    """
    for rank, outcome in enumerate(outcomes):
        if outcome.error or outcome.code:
            raise AssertionError(f"rank {rank}, exit code {outcome.code}:\n{outcome.error}")
    return [outcome.value for outcome in outcomes]


def _take(outcome: Outcome, pipe: Connection) -> None:
    try:
        outcome.value, outcome.error = pipe.recv()
    except EOFError:
        pass


def _rank(
    told: Connection,
    fn: Callable[..., Any],
    rank: int,
    size: int,
    args: tuple[Any, ...],
    engine: str | None,
    timeout: float,
    port: int,
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.environ.update(
        RANK=str(rank),
        WORLD_SIZE=str(size),
        LOCAL_RANK=str(rank),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
    )
    try:
        if engine is not None:
            dist.init_process_group(engine, timeout=timedelta(seconds=timeout))
        value = fn(rank, size, *args)
    except BaseException:
        told.send((None, traceback.format_exc()))
        os._exit(1)  # its end is what the others hear of
    told.send((value, ""))
    if dist.is_initialized():
        dist.destroy_process_group()
    told.close()
