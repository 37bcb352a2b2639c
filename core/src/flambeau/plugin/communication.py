"""What a package contributes that moves arrays between processes: an engine of `distributed`.

The core owns groups, waiting, timeouts, the news of deaths, and checks what ranks ask for.  An
engine moves arrays.  It never blocks: each operation gives a `Request`, which the core tests until
it is done.  Two methods, `Communicator.isend` and `Communicator.irecv`, and `Communicator.part`
make an engine; the collectives are written with them here, and an engine overrides what it does
faster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

SMALL = 1 << 15
"""Bytes up to which an all-reduce of messages sends whole arrays: one round instead of two."""
_TAGS = 1 << 13


class Request(ABC):
    """An operation under way.

    Attributes:
        source: of a receive from anybody, the rank that had sent, once it is done.
    """

    source: int | None = None

    @abstractmethod
    def test(self) -> bool:
        """Whether it is done, without waiting; what it needs to go on happens here.

        Raises:
            Exception: the operation failed.
        """


class Done(Request):
    """An operation that had nothing to do."""

    def test(self) -> bool:
        """True."""
        return True


class Steps(Request):
    """An operation of several steps: an iterator of the requests that each step waits for."""

    def __init__(self, steps: Iterable[Sequence[Request]]) -> None:
        self._steps: Iterator[Sequence[Request]] = iter(steps)
        self._pending: list[Request] | None = []
        self.test()  # the first messages leave at once

    def test(self) -> bool:
        """Whether the last step is done; starts the next one where one is."""
        while self._pending is not None:
            self._pending = [request for request in self._pending if not request.test()]
            if self._pending:
                return False
            following = next(self._steps, None)
            self._pending = None if following is None else list(following)
        return True


class Compared(Request):
    """Whether all ranks gave one number.

    Attributes:
        same: that, once it is done.
    """

    same: bool = True


class Arithmetic(Protocol):
    """What an engine needs of the kernels of a device; the core gives it."""

    def empty_like(self, array: Any) -> Any:
        """A new array of its shape and dtype."""
        ...

    def combine(self, op: str, target: Any, other: Any) -> None:
        """``target = target op other``: sum, product, min, max, band, bor or bxor."""
        ...

    def assign(self, target: Any, source: Any) -> None:
        """``target[...] = source``."""
        ...

    def memory(self, array: Any) -> memoryview:
        """The bytes of an array in host memory, which can be written."""
        ...


@dataclass(frozen=True)
class Job:
    """What an engine is told at its start; all ranks have come by then.

    For an engine that is not eager the job is that of the members of one group.

    Attributes:
        rank: of this process.
        size: number of processes.
        get: the value of a key, as bytes, once some rank has set it; it gives up with the job.
        set: give a key a value, as bytes.
        arithmetic: of the device whose arrays will be moved.
        host: an address of this machine that the others reach.
        device: index of the device that this process uses.
        timeout: seconds, for what an engine cannot do without waiting.
        wait: tests until a function says that it is done, and raises if a process dies or the time
            is over; the text says what is waited for.
    """

    rank: int
    size: int
    get: Callable[[str], bytes]
    set: Callable[[str, bytes], None]
    arithmetic: Arithmetic
    host: str
    device: int
    timeout: float
    wait: Callable[[Callable[[], bool], str], None]


class Engine(ABC):
    """A way to move arrays between processes.

    Attributes:
        name: what users write, ``init_process_group(name)``.
        devices: types of the devices whose arrays it moves.
        aliases: other names that users may know: ``"gloo"`` is PyTorch's for the CPU.
        tags: whether messages are told apart by tags, and can be received from anybody.  Where they
            are not, those between two members are received in the order of their sending.
        eager: whether the communicator of all processes is started with the job, and those of other
            groups are split from it.  Otherwise each group starts its own at its first operation,
            as a job of its members: by then the process has chosen one of several devices.
    """

    name: str
    devices: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    tags: bool = True
    eager: bool = True

    @abstractmethod
    def start(self, job: Job) -> Communicator:
        """The communicator of all processes of a job.  Called in all of them."""

    def unavailable(self) -> str | None:
        """Why it cannot be used here, such as a library that is missing; None if it can."""
        return None


class Communicator(ABC):
    """The processes of one group, seen from one of them.

    Arrays are vectors, contiguous, of the engine's devices, and stay untouched by the program
    until the request is done.  Ranks are those of the group.  Every member calls the collectives in
    one order.

    Attributes:
        rank: of this process.
        size: number of members.
        arithmetic: the kernels of the device.
    """

    rank: int
    size: int
    arithmetic: Arithmetic
    _count: int = 0

    @abstractmethod
    def isend(self, array: Any, to: int, tag: int) -> Request:
        """Send an array, or bytes in host memory (`bytes`), to a member.

        Messages between two members with one tag arrive in the order of their sending.
        """

    @abstractmethod
    def irecv(self, array: Any, source: int | None, tag: int) -> Request:
        """Receive into an array, or a `bytearray`, as long as what was sent; None: from anybody.

        Raises:
            RuntimeError: (in `Request.test`) something longer arrived.
        """

    def split(self, ranks: Sequence[int], name: str) -> Communicator:
        """A communicator of some members, in that order; called by them alone, with one name.

        Engines need it whose `Engine.eager` is true.
        """
        raise NotImplementedError(f"{type(self).__name__} has no split()")

    def close(self) -> None:
        """Let go of what the communicator holds.  All members call it; it may wait for nobody."""
        return None

    def progress(self) -> None:
        """Let messages go that have been handed over, where the library needs calls for that."""
        return None

    def part(self, array: Any, start: int, stop: int) -> Any:
        """Elements of a vector, as an alias."""
        return array[start:stop]

    def nbytes(self, array: Any) -> int:
        """The size of an array."""
        return array.nbytes

    def _tag(self) -> int:
        """A tag for the messages of one collective: odd, where those of users are even."""
        self._count = (self._count + 1) % _TAGS
        return 2 * self._count + 1

    def _others(self) -> list[int]:
        """The other members, each rank beginning with the one after it."""
        return [(self.rank + i) % self.size for i in range(1, self.size)]

    def compare(self, number: int) -> Compared:
        """Whether all members give the same number of 32 bits; also waits for all of them."""
        return _Dissemination(self, number)

    def broadcast(self, array: Any, root: int) -> Request:
        """The array of `root` in all members."""
        return Steps(self._broadcast(array, root, self._tag()))

    def _broadcast(self, array: Any, root: int, tag: int) -> Iterator[Sequence[Request]]:
        place, reach = (self.rank - root) % self.size, 1
        while reach < self.size:
            if place < reach:
                if place + reach < self.size:
                    yield [self.isend(array, (self.rank + reach) % self.size, tag)]
            elif place < 2 * reach:
                yield [self.irecv(array, (self.rank - reach) % self.size, tag)]
            reach *= 2

    def all_reduce(self, array: Any, op: str) -> Request:
        """The combination of the arrays of all members, in all of them, equal to the last bit."""
        if self.size == 1:
            return Done()
        whole = self.nbytes(array) <= SMALL
        steps = self._all_reduce_whole if whole else self._all_reduce_parts
        return Steps(steps(array, op, self._tag()))

    def _all_reduce_whole(self, array: Any, op: str, tag: int) -> Iterator[Sequence[Request]]:
        room = {rank: self.arithmetic.empty_like(array) for rank in self._others()}
        yield [
            *(self.irecv(room[rank], rank, tag) for rank in room),
            *(self.isend(array, rank, tag) for rank in room),
        ]
        # In the order of ranks, so that all members round alike.
        room[self.rank] = self.arithmetic.empty_like(array)
        self.arithmetic.assign(room[self.rank], array)
        self.arithmetic.assign(array, room[0])
        for rank in range(1, self.size):
            self.arithmetic.combine(op, array, room[rank])

    def _parts(self, array: Any) -> list[Any]:
        count = array.shape[0]
        bounds = [count * i // self.size for i in range(self.size + 1)]
        return [self.part(array, bounds[i], bounds[i + 1]) for i in range(self.size)]

    def _all_reduce_parts(self, array: Any, op: str, tag: int) -> Iterator[Sequence[Request]]:
        parts = self._parts(array)
        yield from self._reduce_parts(parts, parts[self.rank], op, tag)
        yield [
            *(self.irecv(parts[rank], rank, tag) for rank in self._others()),
            *(self.isend(parts[self.rank], rank, tag) for rank in self._others()),
        ]

    def _reduce_parts(
        self, parts: Sequence[Any], mine: Any, op: str, tag: int
    ) -> Iterator[Sequence[Request]]:
        """`mine` combined with what the others have at this place; they get their parts."""
        room = {rank: self.arithmetic.empty_like(mine) for rank in self._others()}
        yield [
            *(self.irecv(room[rank], rank, tag) for rank in room),
            *(self.isend(parts[rank], rank, tag) for rank in room),
        ]
        for rank in sorted(room):
            self.arithmetic.combine(op, mine, room[rank])

    def reduce(self, array: Any, root: int, op: str) -> Request:
        """The combination of all arrays in that of `root`; those of others stay what they are."""
        if self.size == 1:
            return Done()
        return Steps(self._reduce(array, root, op, self._tag()))

    def _reduce(self, array: Any, root: int, op: str, tag: int) -> Iterator[Sequence[Request]]:
        parts = self._parts(array)
        mine = parts[self.rank]
        if self.rank != root:
            mine = self.arithmetic.empty_like(mine)
            self.arithmetic.assign(mine, parts[self.rank])
        yield from self._reduce_parts(parts, mine, op, tag)
        if self.rank == root:
            yield [self.irecv(parts[rank], rank, tag) for rank in self._others()]
        else:
            yield [self.isend(mine, root, tag)]

    def all_gather(self, outputs: Sequence[Any], array: Any) -> Request:
        """The arrays of all members, in the order of their ranks."""
        return self.all_to_all(outputs, [array] * self.size)

    def gather(self, outputs: Sequence[Any], array: Any, root: int) -> Request:
        """The arrays of all members in `root`; the others give no outputs."""
        tag = self._tag()
        if self.rank != root:
            return Steps([[self.isend(array, root, tag)]])
        self.arithmetic.assign(outputs[root], array)
        return Steps([[self.irecv(outputs[rank], rank, tag) for rank in self._others()]])

    def scatter(self, output: Any, arrays: Sequence[Any], root: int) -> Request:
        """To each member its array of those of `root`; the others give none."""
        tag = self._tag()
        if self.rank != root:
            return Steps([[self.irecv(output, root, tag)]])
        self.arithmetic.assign(output, arrays[root])
        return Steps([[self.isend(arrays[rank], rank, tag) for rank in self._others()]])

    def reduce_scatter(self, output: Any, arrays: Sequence[Any], op: str) -> Request:
        """To each member the combination of all members' arrays at the place of its rank."""
        self.arithmetic.assign(output, arrays[self.rank])
        return Steps(self._reduce_parts(arrays, output, op, self._tag()))

    def all_to_all(self, outputs: Sequence[Any], arrays: Sequence[Any]) -> Request:
        """To each member its array from every member; sizes may differ from pair to pair."""
        tag = self._tag()
        self.arithmetic.assign(outputs[self.rank], arrays[self.rank])
        return Steps(
            [
                [
                    *(self.irecv(outputs[rank], rank, tag) for rank in self._others()),
                    *(self.isend(arrays[rank], rank, tag) for rank in self._others()),
                ]
            ]
        )


class _Dissemination(Compared):
    """Smallest and largest number of all ranks, in as many rounds as the size has bits."""

    def __init__(self, comm: Communicator, number: int) -> None:
        self._low = self._high = number
        self._steps = Steps(self._rounds(comm, comm._tag()))

    def _rounds(self, comm: Communicator, tag: int) -> Iterator[Sequence[Request]]:
        reach = 1
        while reach < comm.size:
            heard = bytearray(16)
            said = self._low.to_bytes(8, "big") + self._high.to_bytes(8, "big")
            yield [
                comm.irecv(heard, (comm.rank - reach) % comm.size, tag),
                comm.isend(said, (comm.rank + reach) % comm.size, tag),
            ]
            self._low = min(self._low, int.from_bytes(heard[:8], "big"))
            self._high = max(self._high, int.from_bytes(heard[8:], "big"))
            reach *= 2
        self.same = self._low == self._high

    def test(self) -> bool:
        """Whether all have been heard."""
        return self._steps.test()
