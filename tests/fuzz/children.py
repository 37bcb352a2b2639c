"""One item of work after another in a child process that may hang, die or run out of memory.

The child calls `serve` with a function from an item to an answer, both of them JSON; the parent
asks through `Child`, which starts another process after a death.  What the items print goes
nowhere, so that it cannot be taken for an answer.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import math
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

GIB = 1 << 30
PATIENCE = 6
_START = 600.0  # seconds: a child imports the library before its first answer


@dataclass(frozen=True)
class Answer:
    """What became of one item.

    Attributes:
        kind: ``"answer"``; ``"hang"``: none came in time; ``"death"``: the process ended.
        value: the answer; the reason of a death, with the last lines of stderr.
        seconds: how long it took.
        peak: bytes by which the item raised the resident memory at most; 0 where it is not known.
    """

    kind: str
    value: Any
    seconds: float
    peak: int = 0


class Child:
    """A process that is asked one item at a time.

    Args:
        command: arguments of the Python interpreter: a script that ends in `serve`.
        seconds: the longest that an answer may take.  Where the system tells it, what counts is
            the time that the child computes, or waits for something; while it wants a processor
            that others have it may take `PATIENCE` times as long.
        memory: limit of the address space in bytes; 0 for none.
    """

    def __init__(self, command: list[str], seconds: float = 10.0, memory: int = 3 * GIB) -> None:
        self.command, self.seconds, self.memory = command, seconds, memory
        self.process: subprocess.Popen[bytes] | None = None
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `close`
        self.started = 0

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
        self.errors.close()

    def ask(self, item: Any) -> Answer:
        """The answer to one item, which must be JSON."""
        fresh = self.process is None
        process = self.process or self._start()
        assert process.stdin is not None and process.stdout is not None
        if fresh and self._line(_START) is None:
            raise RuntimeError(f"the child does not start: {self._end()}")
        start = time.monotonic()
        try:
            process.stdin.write(json.dumps(item).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            return Answer("death", self._end(), 0.0)
        used = _processor_time(process.pid)
        waits = 0  # tenths of the time, the last ones, after which no thread wanted a processor
        while True:
            line = self._line(self.seconds / 10)
            took = time.monotonic() - start
            if line is not None or process.poll() is not None:
                break
            waits = 0 if _is_running(process.pid) else waits + 1
            working = _processor_time(process.pid) - used
            if took >= self.seconds and (
                waits >= 10 or not working < self.seconds or took >= PATIENCE * self.seconds
            ):
                where = self._where()
                self.close()
                return Answer("hang", f"no answer within {self.seconds:g} s\n{where}".strip(), took)
        if line is None:
            return Answer("death", self._end(), took)
        value, peak = json.loads(line)
        return Answer("answer", value, took, peak)

    def close(self) -> None:
        """End the process, if there is one."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def _start(self) -> subprocess.Popen[bytes]:
        self.errors.seek(0)
        self.errors.truncate()
        self.started += 1
        self.process = subprocess.Popen(
            [sys.executable, *self.command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env={**os.environ, "FUZZ_MEMORY": str(self.memory)},
        )
        self.buffer = b""
        return self.process

    def _line(self, seconds: float) -> bytes | None:
        """The next line, or None if there is none by then or the process ended."""
        assert self.process is not None and self.process.stdout is not None
        pipe, end = self.process.stdout.fileno(), time.monotonic() + seconds
        while b"\n" not in self.buffer:
            ready = select.select([pipe], [], [], max(end - time.monotonic(), 0))[0]
            if not ready or not (some := os.read(pipe, 1 << 16)):
                return None
            self.buffer += some
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line

    def _where(self) -> str:
        """What the threads of a process that hangs are doing."""
        assert self.process is not None
        self.process.send_signal(signal.SIGUSR1)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1)
        return self._said()

    def _said(self) -> str:
        self.errors.seek(0)
        return self.errors.read()[-2000:].decode(errors="replace").strip()

    def _end(self) -> str:
        """Why the process ended, and what it said last."""
        assert self.process is not None
        try:
            code = self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.close()
        said = self._said()
        why = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        return f"{why}\n{said}".strip()


def serve(work: Callable[[Any], Any], *, peaks: bool = True) -> None:
    """In the child: answer items until there are none; measuring peaks takes some 5 ms an item."""
    sys.set_int_max_str_digits(0)
    faulthandler.register(signal.SIGUSR1)
    answers = os.fdopen(os.dup(1), "w")
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
    if limit := int(os.environ.get("FUZZ_MEMORY", "0")):
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        before = _forget_peak() if peaks else 0
        value = work(json.loads(line))
        peak = max(_peak() - before, 0) if peaks else 0
        print(json.dumps([value, peak]), file=answers, flush=True)


def _is_running(pid: int) -> bool:
    """Whether a thread of a process computes, or would if it had a processor; True if unknown."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
        for thread in threads:
            with open(f"/proc/{pid}/task/{thread}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] in "RD":
                    return True
    except (OSError, IndexError):
        return True
    return False


def _processor_time(pid: int) -> float:
    """Seconds that a process has computed; infinity where the system does not tell."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            user, system = file.read().rpartition(")")[2].split()[11:13]
    except (OSError, ValueError):
        return math.inf
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _forget_peak() -> int:
    """Let the peak of resident memory begin anew; the memory that is resident now."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        return 1 << 62  # not this system: differences are 0
    return _peak()


def _peak() -> int:
    """The peak of resident memory since it was last forgotten, in bytes; 0 where unknown."""
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return 0
