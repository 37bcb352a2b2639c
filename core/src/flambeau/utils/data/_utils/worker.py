"""What a worker process does: it makes the batches it is asked for until it is told to stop."""

from __future__ import annotations

import os
import pickle
import random
import signal
import sys
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import flambeau as fb
from flambeau.utils.data._utils import transport
from flambeau.utils.data._utils.fetch import Fetcher

CHECK_INTERVAL = 5.0  # seconds between looks at whether the parent still lives

# Kinds of messages.  To a worker: a task, or the start of another pass.  From it: a batch, the end
# of its stream, or an exception.
TASK, RESTART = "task", "restart"
BATCH, END, ERROR = "batch", "end", "error"


@dataclass
class WorkerInfo:
    """What a worker process knows of itself; nothing can be assigned to it.

    Attributes:
        id: its number, from 0.
        num_workers: how many there are.
        seed: of its random numbers: the seed of the pass plus `id`.
        dataset: its copy of the data set.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any

    def __post_init__(self) -> None:
        self.__dict__["_complete"] = True

    def __setattr__(self, name: str, value: object) -> None:
        if "_complete" in self.__dict__:
            raise RuntimeError("Cannot assign attributes to WorkerInfo objects")
        super().__setattr__(name, value)


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """What this worker process knows of itself; None in the main process.

    A stream that is loaded by several workers uses it to give each of them another part.

    >>> import flambeau as fb
    >>> fb.utils.data.get_worker_info() is None
    True
    """
    return _worker_info


class CaughtError:
    """An exception of a worker, with its traceback as text, to be raised in the main process."""

    def __init__(self, where: str, error: BaseException) -> None:
        self.where = where
        self.kind = type(error)
        self.text = "".join(traceback.format_exception(error))

    def reraise(self) -> None:
        """Raise an exception of the same class; RuntimeError if its class cannot be made so."""
        message = f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.text}"
        if issubclass(self.kind, KeyError):
            raise self.kind(_Verbatim(message))
        try:
            error = self.kind(message)
        except Exception:  # its constructor wants something else
            raise RuntimeError(message) from None
        raise error


class _Verbatim(str):
    """Text that a KeyError shows as it is, and not its repr."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass
class Task:
    """All that a worker needs; `payload` holds what a new interpreter gets pickled."""

    worker: int
    num_workers: int
    base_seed: int
    payload: Any  # (dataset, collate_fn, worker_init_fn), or bytes of them
    batched: bool
    drop_last: bool
    kind: int
    parent: int


def run(task: Task, connection: Connection) -> None:
    """The main function of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process handles it
    _seed(task.base_seed, task.worker)
    fb.set_num_threads(1)
    started: Exception | None = None
    fetcher: Fetcher | None = None
    dataset: Any = None
    collate_fn: Any = None
    where = f"in DataLoader worker process {task.worker}"
    try:
        payload = task.payload
        dataset, collate_fn, init_fn = (
            pickle.loads(payload) if isinstance(payload, bytes) else payload
        )
        global _worker_info
        seed = task.base_seed + task.worker
        _worker_info = WorkerInfo(task.worker, task.num_workers, seed, dataset)
        if init_fn is not None:
            init_fn(task.worker)
        fetcher = Fetcher(dataset, task.batched, collate_fn, task.drop_last, task.kind)
    except Exception as error:
        started = error
    ended = False
    try:
        while _message_waits(connection, task.parent):
            (kind, epoch, number), load = transport.receive(connection)
            if kind == RESTART:
                ended = False
                if _worker_info is None:
                    continue  # there is no data set to begin anew
                fetcher = None
                try:
                    fetcher = Fetcher(dataset, task.batched, collate_fn, task.drop_last, task.kind)
                    started = None
                except Exception as error:
                    started = error
                continue
            if ended:
                continue
            try:
                if started is not None:
                    failure, started = started, None
                    raise failure
                if fetcher is None:
                    raise StopIteration  # why there is none has been told
                batch = fetcher.fetch(load())
                header = (BATCH, epoch, number)
            except StopIteration:
                header, batch, ended = (END, epoch, number), None, True
            except Exception as error:
                header, batch = (ERROR, epoch, number), CaughtError(where, error)
            _answer(connection, task.parent, header, batch, where)
    except (EOFError, OSError):
        pass  # the main process is gone, or is done with this worker


def _answer(
    connection: Connection, parent: int, header: tuple[Any, ...], value: object, where: str
) -> None:
    try:
        transport.send(connection, parent, header, value)
    except (BrokenPipeError, ConnectionError):
        raise
    except Exception as error:  # what cannot be pickled, or has no room
        failed = CaughtError(where + ", where the batch could not be sent", error)
        transport.send(connection, parent, (ERROR, *header[1:]), failed)


def _message_waits(connection: Connection, parent: int) -> bool:
    while not connection.poll(CHECK_INTERVAL):
        # A process forked later may hold the other end open: then there is no end of file.
        if os.getppid() != parent:
            return False
    return True


def _seed(base_seed: int, worker: int) -> None:
    seed = base_seed + worker
    random.seed(seed)
    fb.manual_seed(seed)
    if (numpy := sys.modules.get("numpy")) is not None:
        entropy = [worker, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
        numpy.random.seed(numpy.random.SeedSequence(entropy).generate_state(4))
