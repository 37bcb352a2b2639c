"""Start a script in several processes: ``python -m flambeau.distributed.launch``.

Each process finds ``RANK``, ``LOCAL_RANK``, ``WORLD_SIZE``, ``MASTER_ADDR`` and ``MASTER_PORT`` in
its environment, and ``--local_rank=N`` among its arguments unless ``--use_env`` is given.  If one
fails, all are ended, and, with ``--max-restarts``, all start again; the exit code is that of the
first failure.  Ctrl-C and SIGTERM end all of them, and so does the end of this process.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from typing import IO, Any

from flambeau.distributed._errors import DistError
from flambeau.distributed._rendezvous import SERVED
from flambeau.distributed._tcp_store import TCPStore

GRACE = 1.0
"""Seconds in which the other ranks may say what they miss."""
PATIENCE = 5.0
"""Seconds from SIGTERM to SIGKILL."""
_PR_SET_PDEATHSIG = 1


def add(parser: argparse.ArgumentParser, name: str, *more: str, **facts: Any) -> None:
    """Give a parser an option that is written with ``-`` or with ``_``, or by shorter names."""
    dashed = [f"--{name}", f"--{name.replace('_', '-')}"]
    parser.add_argument(*dict.fromkeys([*filter(None, more), *dashed]), **facts)


def parser(prog: str = "python -m flambeau.distributed.launch") -> argparse.ArgumentParser:
    """The arguments of the command, PyTorch's among them."""
    made = argparse.ArgumentParser(
        prog=prog,
        description="Start a script in several processes that train together.",
    )
    add(made, "nnodes", type=int, default=1, help="number of machines")
    add(made, "node_rank", type=int, default=0, help="number of this machine, from 0")
    add(made, "nproc_per_node", type=int, default=1, help="processes on each machine")
    add(made, "master_addr", default="127.0.0.1", help="address of machine 0")
    add(made, "master_port", type=int, default=29500, help="a free port of machine 0")
    add(made, "use_env", action="store_true", help="do not add --local_rank to the arguments")
    add(made, "module", "-m", action="store_true", help="the script is a module, as of python -m")
    add(made, "no_python", action="store_true", help="the script is a program")
    add(made, "standalone", action="store_true", help="one machine, any free port")
    add(made, "max_restarts", type=int, default=0, help="how often to start all again on failure")
    add(made, "log_dir", default=None, help="also write the output of rank N to N.log there")
    add(made, "no_prefix", action="store_true", help="print output without the rank before lines")
    made.add_argument("training_script", help="what each process runs")
    made.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return made


class _Rank:
    """A process that was started, and the threads that pass its output on."""

    def __init__(self, rank: int, command: list[str], env: dict[str, str], options: Any) -> None:
        self.rank = rank
        self.log: IO[bytes] | None = None
        if options.log_dir:
            path = os.path.join(options.log_dir, f"{rank}.log")
            self.log = open(path, "ab")  # noqa: SIM115 - `finish` closes it
        self.process = subprocess.Popen(
            command,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # so that its own children can be ended with it
            preexec_fn=_die_with_parent,
        )
        mark = b"" if options.no_prefix else b"%d: " % rank
        pairs = (self.process.stdout, sys.stdout), (self.process.stderr, sys.stderr)
        self._threads = [
            threading.Thread(target=self._pass_on, args=(source, target, mark), daemon=True)
            for source, target in pairs
        ]
        for thread in self._threads:
            thread.start()

    def _pass_on(self, source: IO[bytes], target: Any, mark: bytes) -> None:
        for line in source:
            if self.log is not None:
                self.log.write(line)
                self.log.flush()
            target.write((mark + line).decode(errors="replace"))
            target.flush()

    def signal(self, number: int) -> None:
        try:
            os.killpg(self.process.pid, number)
        except (ProcessLookupError, PermissionError):
            pass

    def finish(self) -> None:
        """Its last words; descendants that still hold its output are not waited for."""
        self.signal(signal.SIGKILL)
        for thread in self._threads:
            thread.join(2.0)
        for stream in (self.process.stdout, self.process.stderr, self.log):
            if stream is not None:
                stream.close()


_libc = ctypes.CDLL(None, use_errno=True)


def _die_with_parent() -> None:
    if hasattr(_libc, "prctl"):
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def ending(code: int) -> str:
    """How a process ended, in words, of its exit code as `subprocess` has it.

    >>> ending(-9), ending(3)
    ('was killed by SIGKILL', 'exited with code 3')
    """
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"exited with code {code}"


class _EndedError(Exception):
    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Launcher:
    """The processes of one machine, and what all machines of the job agree on."""

    def __init__(self, options: argparse.Namespace, control: TCPStore | None = None) -> None:
        self.options = options
        self.size = options.nnodes * options.nproc_per_node
        self.run = uuid.uuid4().hex[:8]
        self.control = control
        if options.nnodes > 1 and control is None:
            self.control = TCPStore(
                options.master_addr, options.master_port, is_master=options.node_rank == 0
            )

    def _job_store(self, attempt: int) -> TCPStore:
        """The store of the job, which outlives its ranks; a new one for each attempt."""
        options = self.options
        if self.control is None:
            port = 0 if attempt or options.standalone else options.master_port
            return TCPStore(options.master_addr, port, is_master=True)
        key = f"attempt/{attempt}"
        if options.node_rank == 0:
            store = TCPStore(options.master_addr, 0, is_master=True)
            self.control.set(key, str(store.port))
            return store
        return TCPStore(options.master_addr, int(self.control.get(key)))

    def _command(self, local_rank: int) -> list[str]:
        options = self.options
        command = [] if options.no_python else [sys.executable, "-u"]
        if options.module:
            command.append("-m")
        command.append(options.training_script)
        if not options.use_env:
            command.append(f"--local_rank={local_rank}")
        return [*command, *options.training_script_args]

    def _environment(self, local_rank: int, store: TCPStore, attempt: int) -> dict[str, str]:
        options = self.options
        rank = options.node_rank * options.nproc_per_node + local_rank
        facts = {
            "RANK": rank,
            "LOCAL_RANK": local_rank,
            "WORLD_SIZE": self.size,
            "LOCAL_WORLD_SIZE": options.nproc_per_node,
            "GROUP_RANK": options.node_rank,
            "GROUP_WORLD_SIZE": options.nnodes,
            "ROLE_NAME": getattr(options, "role", "default"),
            "ROLE_RANK": rank,
            "ROLE_WORLD_SIZE": self.size,
            "MASTER_ADDR": options.master_addr,
            "MASTER_PORT": store.port,
            "TORCHELASTIC_RESTART_COUNT": attempt,
            "TORCHELASTIC_MAX_RESTARTS": options.max_restarts,
            "TORCHELASTIC_RUN_ID": self.run,
            SERVED: f"{options.master_addr}:{store.port}",
        }
        env = {**os.environ, **{name: str(value) for name, value in facts.items()}}
        if options.nproc_per_node > 1:
            env.setdefault("OMP_NUM_THREADS", "1")
        return env

    def attempt(self, number: int) -> int:
        """Run all ranks of this machine once; 0, or the exit code of the first that failed."""
        store = self._job_store(number)
        ranks: list[_Rank] = []
        try:
            for local_rank in range(self.options.nproc_per_node):
                env = self._environment(local_rank, store, number)
                command = self._command(local_rank)
                ranks.append(_Rank(int(env["RANK"]), command, env, self.options))
            return self._watch(ranks, store, number)
        finally:
            self._end(ranks)
            store.close()

    def _watch(self, ranks: list[_Rank], store: TCPStore, attempt: int) -> int:
        running = list(ranks)
        while running:
            for rank in running:
                code = rank.process.poll()
                if code is None:
                    continue
                running.remove(rank)
                if code:
                    self._tell(rank, code, store, attempt)
                    self._let_speak(running)
                    return code if code > 0 else 128 - code
                break
            else:
                if self.control is not None and self.control.check([f"failed/{attempt}"]):
                    return int(self.control.get(f"failed/{attempt}"))
                time.sleep(0.02)
        return 0

    def _tell(self, rank: _Rank, code: int, store: TCPStore, attempt: int) -> None:
        words = ending(code)
        try:
            store.set(f"exit/{rank.rank}", words)
            if self.control is not None:
                self.control.compare_set(f"failed/{attempt}", "", str(code % 256 or 1))
        except DistError:
            pass
        print(f"launch: rank {rank.rank} {words}", file=sys.stderr, flush=True)

    def _let_speak(self, running: Sequence[_Rank]) -> None:
        deadline = time.monotonic() + GRACE
        while time.monotonic() < deadline and any(r.process.poll() is None for r in running):
            time.sleep(0.02)

    def _end(self, ranks: Sequence[_Rank]) -> None:
        for rank in ranks:
            if rank.process.poll() is None:
                rank.signal(signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE
        for rank in ranks:
            try:
                rank.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                rank.signal(signal.SIGKILL)
                rank.process.wait()
            rank.finish()

    def launch(self) -> int:
        """Run until all ranks have ended well, or there are no attempts left."""
        code = 1
        for number in range(self.options.max_restarts + 1):
            code = self.attempt(number)
            if not code:
                break
            if number < self.options.max_restarts:
                print(f"launch: starting again ({number + 1})", file=sys.stderr, flush=True)
        if self.control is not None:
            self._leave_together()
        return code

    def _leave_together(self) -> None:
        """The machine of the store goes last, so that the others can still read it."""
        assert self.control is not None
        try:
            left = self.control.add("left", 1)
            deadline = time.monotonic() + PATIENCE
            while self.options.node_rank == 0 and left < self.options.nnodes:
                if time.monotonic() > deadline:
                    break
                time.sleep(0.02)
                left = self.control.add("left", 0)
        except DistError:
            pass
        self.control.close()


def run(
    options: argparse.Namespace, meet: Callable[[argparse.Namespace], TCPStore] | None = None
) -> int:
    """Run what the options say until it has ended; the exit code.

    Args:
        options: as `parser` has them.
        meet: brings machines together, gives this one its number and returns their store.

    Raises:
        ValueError: there are no processes, or the number of this machine is not below theirs.
    """
    if options.nproc_per_node < 1 or not 0 <= options.node_rank < options.nnodes:
        raise ValueError("there is at least one process, and node_rank is below nnodes")
    if options.log_dir:
        os.makedirs(options.log_dir, exist_ok=True)

    def ended(number: int, frame: object) -> None:
        raise _EndedError(number)

    before = {n: signal.signal(n, ended) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        return Launcher(options, None if meet is None else meet(options)).launch()
    except _EndedError as reason:
        return 128 + reason.number
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; its exit code."""
    made = parser()
    try:
        return run(made.parse_args(arguments))
    except ValueError as error:
        made.error(str(error))


if __name__ == "__main__":
    sys.exit(main())
