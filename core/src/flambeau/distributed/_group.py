"""A group of processes: what its members ask for, whether they ask for the same, who is missing."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from flambeau._dispatch.annotated import all_take_as_annotated
from flambeau.distributed._errors import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
)
from flambeau.distributed._operations import Operations
from flambeau.distributed._work import Work
from flambeau.plugin import Request

if TYPE_CHECKING:
    from flambeau import Tensor
    from flambeau.distributed._world import World
    from flambeau.plugin import Communicator, Engine

_SECONDS_FOR_WORDS = timedelta(seconds=5)
"""How long a rank that found a mismatch waits for what the others called."""


class ProcessGroup(Operations):
    """Some of the processes of a job; `new_group` and `init_process_group` make them.

    Attributes:
        asked: the name of the engines as the program had written it, None if it had not.
        barriers: how often `monitored_barrier` was called.
        ranks: of its members, in the whole job.
        timeout: after which a wait names those who are missing.
        broken: why it cannot be used any more, None while it can.
        checks: whether the members compare what they call.
    """

    def __init__(
        self,
        world: World,
        name: str,
        ranks: Sequence[int],
        timeout: timedelta,
        engines: dict[str, Engine],
        asked: str | None = None,
    ) -> None:
        self.world = world
        self.group_name = name
        self.ranks = list(ranks)
        self.timeout = timeout
        self.engines = engines
        self.asked = asked
        self.broken: str | None = None
        self.checks = os.environ.get("FLAMBEAU_DISTRIBUTED_CHECK", "1") != "0"
        self._rank = self.ranks.index(world.rank)
        self._communicators: dict[str, Communicator] = {}
        self._splitting: ProcessGroup | None = None
        self.barriers = 0
        self._calls = 0
        self._calls_of: dict[int, int] = {}

    def rank(self) -> int:
        """The number of this process in the group."""
        return self._rank

    def size(self) -> int:
        """The number of processes."""
        return len(self.ranks)

    def kind(self) -> str:
        """The type of devices for what is on none, such as objects: the CPU if it is served."""
        return "cpu" if "cpu" in self.engines else next(iter(self.engines))

    def name(self) -> str:
        """What the engine of the CPU is called, or the only one."""
        return self.engines[self.kind()].name

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.group_name!r} of ranks {self.ranks}, {self.name()}>"

    def rank_of(self, rank: int) -> int:
        """The number in the group of a rank of the job.

        Raises:
            ValueError: it is no member.
        """
        try:
            return self.ranks.index(rank)
        except ValueError:
            raise ValueError(f"Global rank {rank} is not part of group {self}") from None

    def communicator(self, tensor: Tensor | None = None) -> Communicator:
        """What moves arrays of the device of `tensor`, started at its first use.

        Raises:
            RuntimeError: the engines of the group do not serve the device.
        """
        kind = self.kind() if tensor is None else tensor.device.type
        return self._communicators.get(kind) or self.start(kind, tensor)

    def start(self, kind: str, tensor: Tensor | None = None) -> Communicator:
        """Start the engine of one type of devices."""
        engine = self.engines.get(kind)
        if engine is None:
            served = ", ".join(sorted(self.engines))
            raise RuntimeError(
                f"No backend type associated with device type {kind}; this group serves {served}"
            )
        whole = self.world.group
        if self is whole or whole is None or not engine.eager:
            made = self.world.start(engine, kind, tensor, self._wait, self)
        else:
            parent = whole.communicator(tensor)
            whole._splitting = self
            try:
                made = parent.split(self.ranks, self.group_name)
            finally:
                whole._splitting = None
        self._communicators[kind] = made
        return made

    def _wait(self, test: Callable[[], bool], what: str) -> None:
        # Engines wait by the function that they got at their start, but who is waited for, how
        # long, and what is unusable if they do not come is the group that is being made.
        group = self if self._splitting is None else self._splitting
        Work(group, _Asked(test), what).wait()

    def collective(
        self,
        name: str,
        tensor: Tensor | None,
        facts: str,
        begin: Callable[[Communicator], Request],
        finish: Callable[[], Any] | None = None,
    ) -> Work:
        """Begin an operation that all members call.

        `facts` are what has to be the same in all of them beside the order of their calls.

        Raises:
            DistBackendError: the group is unusable.
        """
        self.check_usable()
        self._calls += 1
        what = f"{name} #{self._calls} ({facts})"
        comm = self.communicator(tensor)
        if not self.checks or len(self.ranks) == 1:
            return Work(self, begin(comm), what, finish, call=self._calls)
        compared = comm.compare(zlib.crc32(f"{name} {self._calls} {facts}".encode()))
        try:
            request = begin(comm)
        except Exception as error:  # what the others call may explain it
            request = _Failed(error)
        checked = _Checked(self, compared, request, what, self._calls)
        return Work(self, checked, what, finish, call=self._calls)

    def check_usable(self) -> None:
        """Refuse to go on with a group that has lost its order.

        Raises:
            DistBackendError: the group is unusable.
        """
        if self.broken is None and self.world.watch.broken:
            self.broken = self.world.given_up(self.group_name)
        if self.broken is not None:
            raise DistBackendError(
                f"the group {self.group_name!r} cannot be used any more: {self.broken}"
            )
        if not self.world.alive:
            raise ValueError(f"Invalid process group specified: {self.group_name!r} was destroyed")

    def explained(self, error: BaseException, what: str) -> BaseException:
        """An engine's error with what was under way."""
        if isinstance(error, DistError):
            return error
        self.broken = f"{what} failed"
        told = DistBackendError(
            f"[rank {self.world.rank} of {self.world.size}] {what}: {type(error).__name__}: {error}"
        )
        told.__cause__ = error
        return told

    def _key(self, *parts: object) -> str:
        return "/".join(["flambeau", self.group_name, *map(str, parts)])

    def tell_calls(self) -> None:
        """Let the others know how many collectives this rank has called, before it goes."""
        try:
            self.world.store.set(self._key("calls", self.world.rank), str(self._calls))
        except (DistNetworkError, DistStoreError):
            pass  # nobody hears anything any more

    def calls_of(self, rank: int) -> int:
        """How many collectives a rank had called that has gone by itself."""
        if rank not in self._calls_of:
            store, key = self.world.store, self._key("calls", rank)
            self._calls_of[rank] = int(store.get(key)) if store.check([key]) else 0
        return self._calls_of[rank]

    def tell(self, what: str) -> None:
        """Let the others know what this rank waits for."""
        self.world.store.set(self._key("at", self._rank), what)

    def whereabouts(self, what: str) -> str:
        """What the other members wait for, as far as they have said it."""
        store, words = self.world.store, []
        for place, rank in enumerate(self.ranks):
            key = self._key("at", place)
            at = store.get(key).decode() if store.check([key]) else ""
            if at != what and place != self._rank:
                where = f"is in {at}" if at else "waits in no collective of this group"
                words.append(f"rank {rank} {where}")
        return "; ".join(words) or "all ranks are in it"

    def differing(self, what: str, call: int) -> DistBackendError:
        """The error of members that called different things, with what each had called."""
        store, mine = self.world.store, self._key("called", call, self._rank)
        store.set(mine, what)
        said = []
        for place, rank in enumerate(self.ranks):
            key = self._key("called", call, place)
            try:
                store.wait([key], _SECONDS_FOR_WORDS)
                said.append(f"rank {rank}: {store.get(key).decode()}")
            except DistStoreError:
                said.append(f"rank {rank}: not known")
        self.broken = "its ranks called different operations"
        return DistBackendError(
            f"[rank {self.world.rank} of {self.world.size}] the ranks of group "
            f"{self.group_name!r} call different operations: " + "; ".join(said)
        )

    def progress(self) -> None:
        """Let messages go that have been handed over."""
        for comm in self._communicators.values():
            comm.progress()

    def close(self) -> None:
        """Let go of the communicators."""
        for comm in self._communicators.values():
            comm.close()
        self._communicators.clear()


class _Asked(Request):
    """What a function says is done."""

    def __init__(self, test: Callable[[], bool]) -> None:
        self.test = test  # type: ignore[method-assign] - it is the method

    def test(self) -> bool:
        raise AssertionError("each instance has its own")


class _Failed(Request):
    """An operation that could not begin."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def test(self) -> bool:
        raise self._error


class _Checked(Request):
    """An operation whose members are compared before it counts as done."""

    def __init__(
        self, group: ProcessGroup, compared: Any, request: Request, what: str, call: int
    ) -> None:
        self._group = group
        self._call = call
        self._compared = compared
        self._request = request
        self._what = what

    def test(self) -> bool:
        if self._compared is not None:
            if not self._compared.test():
                return False
            if not self._compared.same:
                raise self._group.differing(self._what, self._call)
            self._compared = None
        return self._request.test()


all_take_as_annotated(globals())
