"""Starting several processes of one function, and hearing of the first that fails."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any


class ProcessException(Exception):  # noqa: N818 - PyTorch's names
    """A process started by `spawn` failed.

    Attributes:
        error_index: which one, from 0.
        pid: its process number.
        msg: what happened.
    """

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.pid = pid

    def __reduce__(self) -> tuple[type[ProcessException], tuple[str, int, int]]:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """The function raised; the message has the traceback."""


class ProcessExitedException(ProcessException):
    """The process exited or was killed without an exception.

    Attributes:
        exit_code: as `multiprocessing.Process.exitcode`.
        signal_name: the signal that killed it, or None.
    """

    def __init__(
        self, msg: str, error_index: int, pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> tuple[Any, ...]:
        facts = (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)
        return type(self), facts


def _run(fn: Callable[..., Any], index: int, args: tuple[Any, ...], told: Connection) -> None:
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # the process that started this one has it too
    except Exception:
        told.send(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """Running processes, as `spawn` returns them with ``join=False``.

    Attributes:
        processes: in the order of their index.
    """

    def __init__(self, processes: list[Any], messages: list[Connection]) -> None:
        self.processes = processes
        self._messages = messages
        self._left = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The process numbers."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait for processes to end: True once all have ended well, False if the time was up.

        If one failed, the others are ended, after `grace_period` seconds if that is given.

        Raises:
            ProcessRaisedException: the first that failed had raised.
            ProcessExitedException: it exited or was killed.
        """
        if not self._left:
            return True
        failed = None
        for sentinel in wait(list(self._left), timeout):
            index = self._left.pop(sentinel)  # type: ignore[call-overload] - they are sentinels
            process = self.processes[index]
            process.join()
            if process.exitcode:
                failed = index
                break
        if failed is None:
            return not self._left
        self._end_others(grace_period)
        process = self.processes[failed]
        where = f"process {failed} (pid {process.pid})"
        try:
            text = self._messages[failed].recv()
        except EOFError:  # it ended without a word
            pass
        else:
            raise ProcessRaisedException(f"\n\n-- {where} raised:\n{text}", failed, process.pid)
        code = process.exitcode
        if code < 0:
            name = signal.Signals(-code).name
            raise ProcessExitedException(
                f"{where} was killed by signal {name}", failed, process.pid, code, name
            )
        raise ProcessExitedException(f"{where} exited with code {code}", failed, process.pid, code)

    def _end_others(self, grace_period: float | None) -> None:
        if grace_period:
            deadline = time.monotonic() + grace_period
            for process in self.processes:
                process.join(max(0.0, deadline - time.monotonic()))
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        deadline = time.monotonic() + 30.0
        for process in self.processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
        self._left.clear()


SpawnContext = ProcessContext


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run ``fn(i, *args)`` in `nprocs` processes; see `spawn`."""
    context: Any = multiprocessing.get_context(start_method)
    processes, messages = [], []
    for index in range(nprocs):
        mine, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, index, args, theirs), daemon=daemon)
        process.start()
        theirs.close()
        processes.append(process)
        messages.append(mine)
    started = ProcessContext(processes, messages)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run ``fn(i, *args)`` in `nprocs` new processes, `i` from 0.

    When one fails, the others are ended and its failure is raised here with its traceback.

    Args:
        fn: a function at the top of a module, which new interpreters can import.
        join: wait until all have ended; else return a `ProcessContext` to wait with.
        daemon: end them with this process.
        start_method: another one than ``"spawn"``.

    Raises:
        ProcessRaisedException: a call raised.
        ProcessExitedException: a process exited or was killed.

    >>> import flambeau.multiprocessing as mp
    >>> mp.spawn(print, nprocs=0)
    """
    return start_processes(fn, args, nprocs, join, daemon, start_method)
