"""The worker processes of a loader, seen from the main process."""

from __future__ import annotations

import multiprocessing
import multiprocessing.process
import os
import pickle
import signal
import time
import weakref
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from flambeau.utils.data._utils import transport
from flambeau.utils.data._utils.worker import RESTART, TASK, Task, run

_GRACE = 0.5  # seconds that a worker has to end by itself
_pools: weakref.WeakSet[WorkerPool] = weakref.WeakSet()


class WorkerPool:
    """Processes that make batches, each at the other end of its own pipe.

    Args:
        payload: (dataset, collate_fn, worker_init_fn).
        num_workers: how many processes.
        base_seed: seed of the first one; every next one has the next number.
        batched, drop_last, kind: as in the loader.
        context: a start method, a context of `multiprocessing`, or None for the system's default.

    Raises:
        TypeError: the payload cannot be pickled for a new interpreter.
    """

    def __init__(
        self,
        payload: tuple[Any, ...],
        num_workers: int,
        base_seed: int,
        batched: bool,
        drop_last: bool,
        kind: int,
        context: Any,
    ) -> None:
        if context is None or isinstance(context, str):
            context = multiprocessing.get_context(context)
        forked = context.get_start_method() == "fork"
        sent = payload if forked else _pickled(payload, context.get_start_method())
        self.connections: list[Connection] = []
        self.processes: list[Any] = []
        self._finalizer = weakref.finalize(self, _shut_down, self.connections, self.processes)
        self._lost_by: int | None = None  # in a fork of it, the process whose the workers are
        self._process = os.getpid()
        _pools.add(self)
        try:
            for worker in range(num_workers):
                mine, theirs = context.Pipe(duplex=True)
                self.connections.append(mine)
                task = Task(
                    worker,
                    num_workers,
                    base_seed,
                    sent,
                    batched,
                    drop_last,
                    kind,
                    os.getpid(),
                )
                process = context.Process(
                    target=run,
                    args=(task, theirs),
                    daemon=True,
                    name=f"flambeau-loader-{worker}",
                )
                process.start()
                self.processes.append(process)
                theirs.close()
        except BaseException:
            self.close()
            raise

    def need_workers(self) -> bool:
        """Whether there are any, which have not been ended.

        Raises:
            RuntimeError: this process was forked from the one whose workers they are.
        """
        if self._lost_by is not None:
            raise RuntimeError(
                f"this iterator of a DataLoader and its workers belong to process {self._lost_by}, "
                "of which this one was forked; begin an iteration of the loader here"
            )
        return bool(self.processes)

    def leave(self) -> None:
        """In a forked process: let go of what belongs to its parent."""
        if self.processes:
            self._lost_by = self._process
        # At its end a process joins, and before that ends, all that `multiprocessing` counts as
        # its children: in a process forked by `os.fork` those are its parent's.
        getattr(multiprocessing.process, "_children", set()).difference_update(self.processes)
        self._finalizer.detach()
        self.processes.clear()
        for connection in self.connections:
            connection.close()
        self.connections.clear()

    def submit(self, worker: int, epoch: int, number: int, index: object) -> None:
        """Ask a worker for a batch."""
        self._send(worker, (TASK, epoch, number), index)

    def restart(self) -> None:
        """Let every worker begin its stream anew."""
        for worker in range(len(self.processes)):
            self._send(worker, (RESTART, 0, 0), None)

    def _send(self, worker: int, header: tuple[Any, ...], value: object) -> None:
        pid = self.processes[worker].pid
        try:
            transport.send(self.connections[worker], pid, header, value)
        except (BrokenPipeError, ConnectionError, EOFError):
            raise self._death(worker) from None

    def receive(
        self, waiting: Sequence[int], timeout: float
    ) -> list[tuple[int, tuple[Any, ...], Callable[[], Any]]]:
        """What has arrived from the `waiting` workers, at least one message.

        Raises:
            RuntimeError: one of them has died, or nothing came within `timeout` seconds (0: no
                limit).
        """
        by_handle: dict[Any, int] = {}
        for worker in waiting:
            by_handle[self.connections[worker]] = worker
            by_handle[self.processes[worker].sentinel] = worker
        ready = wait(list(by_handle), timeout or None)
        if not ready:
            names = ", ".join(f"{w} (pid {self.processes[w].pid})" for w in waiting)
            self.close(grace=0)
            raise RuntimeError(
                f"DataLoader timed out after {timeout} seconds: no batch came from worker {names}. "
                "The workers were ended; raise timeout= if a batch takes longer"
            )
        found = []
        for handle in ready:
            worker = by_handle[handle]
            if isinstance(handle, Connection):
                try:
                    found.append((worker, *transport.receive(handle)))
                except (EOFError, OSError):
                    raise self._death(worker) from None
        if not found:  # only sentinels, and nothing was left in their pipes
            raise self._death(by_handle[ready[0]])
        return found

    def _death(self, worker: int) -> RuntimeError:
        process = self.processes[worker]
        process.join(_GRACE)
        code = process.exitcode
        who = f"DataLoader worker {worker} (pid {process.pid})"
        self.close(grace=0)
        if code is not None and code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"number {-code}"
            return RuntimeError(f"{who} is killed by signal: {name}.{_REMEDIES.get(name, '')}")
        how = "closed its pipe" if code is None else f"exited with code {code}"
        return RuntimeError(f"{who} exited unexpectedly: it {how}")

    def close(self, grace: float = _GRACE) -> None:
        """End all workers; those still busy after `grace` seconds are killed."""
        self._finalizer.detach()
        _shut_down(self.connections, self.processes, grace)


_REMEDIES = {
    "SIGKILL": (
        " The system does that to the largest process when memory runs out: use fewer workers, "
        "smaller batches, or a lower prefetch_factor"
    ),
    "SIGBUS": " Shared memory ran out under a mapping: enlarge /dev/shm or share less",
    "SIGSEGV": " A library crashed while reading a sample; num_workers=0 shows where",
}


def _shut_down(connections: list[Connection], processes: list[Any], grace: float = _GRACE) -> None:
    for connection in connections:
        connection.close()  # an idle worker sees the end of the file
    deadline = time.monotonic() + grace
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
    late = [process for process in processes if process.is_alive()]
    for process in late:
        process.terminate()
    deadline = time.monotonic() + 0.2
    for process in late:
        process.join(max(0.0, deadline - time.monotonic()))
        if process.is_alive():
            process.kill()
            process.join()
    connections.clear()
    processes.clear()


def _pickled(payload: tuple[Any, ...], method: str) -> bytes:
    """The payload for a new interpreter; by cloudpickle where pickle cannot and it is installed."""
    try:
        return pickle.dumps(payload)
    except Exception as error:
        try:
            import cloudpickle
        except ModuleNotFoundError:
            raise TypeError(
                f"DataLoader: start method {method!r} pickles the data set, collate_fn and "
                f"worker_init_fn, which failed: {error}. Define functions and classes at the top "
                "of a module, install cloudpickle, or use multiprocessing_context='fork'"
            ) from error
        return cloudpickle.dumps(payload)


def _after_fork() -> None:
    for pool in list(_pools):
        pool.leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
