"""The engine: MPI's messages, and its own collectives where they are faster than messages."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from typing import Any

from flambeau.plugin import Communicator, Compared, Engine, Job, Request
from flambeau_mpi import start

LARGE = 8 << 20
"""Bytes from which an all-reduce is made of messages and the device's kernels: 122 ms for 128 MiB
where MPI's own takes 410."""

_CELL = 16 << 10
_CELLS = 64
"""MPICH moves at most one cell of so many bytes in each call where the system does not let
processes read each other's memory (Yama's ``ptrace_scope``, some containers): a wait that slept
between two calls took 5 s for 32 MiB.  So a test of a large message is up to so many calls."""

_OPS = {
    "sum": "SUM",
    "product": "PROD",
    "min": "MIN",
    "max": "MAX",
    "band": "BAND",
    "bor": "BOR",
    "bxor": "BXOR",
}
_REDUCIBLE = frozenset("bBhHiIlLqQfdFD")
"""Type characters of the dtypes whose arithmetic MPI knows; neither half floats nor bool."""


class MpiEngine(Engine):
    """MPI for arrays of the CPU."""

    name = "mpi"
    devices = ("cpu",)
    aliases = ("gloo",)

    def unavailable(self) -> str | None:
        """What is not installed, if anything is not."""
        if importlib.util.find_spec("mpi4py") is None:
            return "mpi4py is not installed: pip install 'mpi4py>=4.1' 'mpich>=5,<6'"
        return None

    def start(self, job: Job) -> Communicator:
        """Start MPI, once in the life of a process, and take a communicator of our own."""
        return MpiCommunicator(start.communicator(job), job)


def _done(request: Any, nbytes: int, status: Any = None) -> bool:
    """Whether a request of MPI is done, after as many calls as its cells may need to go on."""
    return any(request.Test(status) for _ in range(min(_CELLS, nbytes // _CELL) + 1))


class MpiRequest(Request):
    """A request of MPI, with the memory that it uses."""

    def __init__(self, request: Any, memory: Any, nbytes: int) -> None:
        self._request = request
        self._memory = memory
        self._nbytes = nbytes

    def test(self) -> bool:
        """Whether it is done; MPI goes on meanwhile."""
        return _done(self._request, self._nbytes)


class _Receive(Request):
    """A receive, whose message has to have the size that is expected."""

    def __init__(self, request: Any, memory: Any, size: int, status: Any) -> None:
        self._request = request
        self._memory = memory
        self._size = size
        self._status = status

    def test(self) -> bool:
        if self.source is not None:
            return True
        if not _done(self._request, self._size, self._status):
            return False
        count = self._status.count
        if count != self._size:
            raise RuntimeError(f"{count} bytes arrived where {self._size} were expected")
        self.source = self._status.source
        return True


class _Same(Compared):
    """The largest of a number and of its complement: equal exactly if all numbers are."""

    def __init__(self, comm: Any, op: object, number: int) -> None:
        self._number = number
        self._sent = number.to_bytes(8, "little") + (_TOP - number).to_bytes(8, "little")
        self._heard = bytearray(16)
        kind = start.mpi().INT64_T
        self._request = comm.Iallreduce([self._sent, 2, kind], [self._heard, 2, kind], op)

    def test(self) -> bool:
        if not self._request.Test():
            return False
        self.same = self._heard == self._sent
        return True


_TOP = (1 << 32) - 1


class MpiCommunicator(Communicator):
    """The members of an MPI communicator."""

    def __init__(self, comm: Any, job: Job) -> None:
        self._comm = comm
        self._job = job
        self._mpi = start.mpi()
        self.rank = comm.Get_rank()
        self.size = comm.Get_size()
        self.arithmetic = job.arithmetic

    def _memory(self, array: Any) -> list[Any]:
        plain = isinstance(array, bytes | bytearray)
        return [array if plain else array.view("u1"), self._mpi.BYTE]

    def isend(self, array: object, to: int, tag: int) -> Request:
        """MPI_Isend of the bytes."""
        memory = self._memory(array)
        return MpiRequest(self._comm.Isend(memory, to, tag), memory, len(memory[0]))

    def irecv(self, array: object, source: int | None, tag: int) -> Request:
        """MPI_Irecv of the bytes."""
        memory = self._memory(array)
        sender = self._mpi.ANY_SOURCE if source is None else source
        request = self._comm.Irecv(memory, sender, tag)
        return _Receive(request, memory, len(memory[0]), self._mpi.Status())

    def compare(self, number: int) -> Compared:
        """MPI_Iallreduce of 16 bytes."""
        return _Same(self._comm, self._mpi.MAX, number)

    def broadcast(self, array: object, root: int) -> Request:
        """MPI_Ibcast of the bytes."""
        memory = self._memory(array)
        return MpiRequest(self._comm.Ibcast(memory, root), memory, len(memory[0]))

    def all_reduce(self, array: Any, op: str) -> Request:
        """MPI_Iallreduce of what is small and has a dtype of MPI; messages for the rest."""
        if array.dtype.char not in _REDUCIBLE or array.nbytes >= LARGE or self.size == 1:
            return super().all_reduce(array, op)
        mpi = self._mpi
        request = self._comm.Iallreduce(mpi.IN_PLACE, array, getattr(mpi, _OPS[op]))
        return MpiRequest(request, array, array.nbytes)

    def split(self, ranks: Sequence[int], name: str) -> Communicator:
        """MPI_Comm_create_group, which blocks: in a thread, so that a death is heard of."""
        members = self._comm.Get_group().Incl(list(ranks))
        tag = int.from_bytes(name.encode(), "big") % 32749
        comm, what = self._comm, f"new_group {name!r}"
        made = start.in_thread(self._job, lambda: comm.Create_group(members, tag), what)
        return MpiCommunicator(made, self._job)

    def progress(self) -> None:
        """Any call lets MPI's messages go on."""
        self._comm.Iprobe()

    def close(self) -> None:
        """Nothing: freeing a communicator waits for all of its members."""
        return None


os.register_at_fork(after_in_child=start.forget)
