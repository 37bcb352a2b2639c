"""An operation under way, and how to wait for it without ever blocking in a library.

A library that blocks cannot say who is missing.  So every wait tests: 64 times at once, for what is
there already; then it gives its turn away for 20 ms; then it sleeps, up to 2 ms, so that processes
that outnumber the cores get to work.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from flambeau._dispatch.annotated import all_take_as_annotated
from flambeau.distributed._errors import DistBackendError, DistTimeoutError
from flambeau.distributed._future import Future

if TYPE_CHECKING:
    from flambeau import Tensor
    from flambeau.distributed._group import ProcessGroup
    from flambeau.plugin import Request

_QUICK = 64
_YIELDING = 0.02
_LONGEST_NAP = 0.002
_TELL_AFTER = 0.25
"""Seconds after which a wait lets the others know what it waits for."""
_GRACE = 1.0
"""Seconds that messages of a rank which has ended may still be under way, and that ranks which give
an operation up are apart."""


def rank_of(member: str) -> int:
    """The rank of a member that has gone, by its ``hello``."""
    return int(member.partition(" ")[0])


class Work:
    """An operation under way, as the functions of `flambeau.distributed` return it.

    It goes on while anybody waits or asks.  Tensors that take part belong to it until it is done.

    Attributes:
        group: whose members take part.
        what: the operation in words.
        call: the number of a collective among those of its group; 0 if it is none.
        peers: of a message, the ranks of which one is enough.
        timeout: how long `wait` waits where it is not told; as the group for None.
        results: tensors that hold the results of an operation that has finished.
    """

    def __init__(
        self,
        group: ProcessGroup,
        request: Request,
        what: str,
        finish: Callable[[], Any] | None = None,
        call: int = 0,
        peers: Sequence[int] = (),
    ) -> None:
        self.group = group
        self.call = call
        self.peers = peers
        self._request = request
        self._finish = finish
        self._earlier: list[Work] = []
        self._done = False
        self._failure: BaseException | None = None
        self.what = what
        self.timeout: timedelta | None = None
        self.results: list[Tensor] = []
        group.world.active[self] = None

    def is_completed(self) -> bool:
        """Whether the operation has finished; its results are there then.

        Raises:
            RuntimeError: it failed.
        """
        if not self._done:
            self.group.world.advance()
            if self._failure is not None:
                raise self._failure
        return self._done

    def _advance(self) -> None:
        """Go on if possible; failures are kept for who asks."""
        try:
            if not self._request.test() or any(work.is_under_way() for work in self._earlier):
                return
            self._earlier.clear()
            if self._finish is not None:
                self._finish()
            self._done = True
        except Exception as error:
            self._failure = self.group.explained(error, self.what)
            self.group.world.abandoned.append(self)
        self.group.world.active.pop(self, None)

    def is_under_way(self) -> bool:
        """Whether it has neither finished nor failed, as far as is known."""
        return not self._done and self._failure is None

    def follow(self, works: Sequence[Work]) -> None:
        """Do not finish before these have finished or failed."""
        self._earlier += [work for work in works if work is not self]

    def after(self, then: Callable[[], object], results: Sequence[Tensor]) -> None:
        """Do this too when the operation finishes, which makes these the results."""
        first = self._finish

        def finish() -> None:
            if first is not None:
                first()
            then()

        with self.group.world.going_on:  # nobody finishes it meanwhile
            self.results[:] = results
            if self._done:
                then()
            else:
                self._finish = finish

    def result(self) -> list[Tensor]:
        """The tensors that hold the results of a finished operation, of those that have some."""
        return self.results

    def is_success(self) -> bool:
        """Whether it has finished well."""
        return self._done and self._failure is None

    def exception(self) -> BaseException | None:
        """What went wrong, None if nothing did."""
        return self._failure

    def get_future(self) -> Future[Any]:
        """A future of the results, as communication hooks return it."""

        def wait() -> object:
            self.wait()
            return self.results

        return Future(wait)

    def source_rank(self) -> int:
        """Of a finished receive, the rank that had sent.

        Raises:
            RuntimeError: it has not finished, or is no receive.
        """
        if not self._done or self._request.source is None:
            raise RuntimeError("source_rank() may only be called on finished receives")
        return self.group.ranks[self._request.source]

    def wait(self, timeout: timedelta | float | None = None) -> bool:
        """Wait until the operation has finished; True.

        Raises:
            DistTimeoutError: it has not within `timeout`, that of the group if not given; the
                message says who is missing.
            DistBackendError: a process died, or processes called different operations.
        """
        for _ in range(_QUICK):
            if self.is_completed():
                return True
        limit = timeout or self.timeout or self.group.timeout
        self._wait(limit.total_seconds() if isinstance(limit, timedelta) else limit)
        return True

    def _wait(self, limit: float) -> None:
        start, told = time.monotonic(), False
        while not self.is_completed():
            elapsed = time.monotonic() - start
            if limit - elapsed > _GRACE:  # else this rank says itself who is missing
                self._look_for_those_who_gave_up()  # before they end, which is their death
            self._look_for_the_dead(elapsed)
            if elapsed > limit:
                self._give_up(limit)
            if elapsed > _TELL_AFTER and not told:
                told = True
                self.group.tell(self.what)
            if elapsed < _YIELDING:
                os.sched_yield()
            else:
                time.sleep(min(_LONGEST_NAP, elapsed / 100))
        if told:
            self.group.tell("")

    def _look_for_the_dead(self, elapsed: float) -> None:
        watch = self.group.world.watch
        if not watch.dead and not watch.left:
            return
        dead, left = (
            [rank for rank in map(rank_of, members) if rank in self.group.ranks]
            for members in (watch.dead, watch.left)
        )
        # In this order: who hears that one has left fails, and its end is a death for the rest.
        missing = self._missed(left, elapsed) or dead
        if missing and not self.is_completed():
            self._look_for_those_who_gave_up()  # which is why they have ended
            died = self.group.world.obituary(missing[0])
            self._fail(DistBackendError(f"{self.what}: {died}"), died)

    def _missed(self, left: Sequence[int], elapsed: float) -> Sequence[int]:
        """Those of the ranks that have left without whom this cannot finish."""
        if self.call:
            return [rank for rank in left if self.group.calls_of(rank) < self.call]
        if elapsed <= _GRACE:
            return []
        if self.peers:
            return self.peers if all(rank in left for rank in self.peers) else []
        return left

    def _look_for_those_who_gave_up(self) -> None:
        world = self.group.world
        if world.watch.broken and (why := world.given_up(self.group.group_name)):
            self._fail(DistTimeoutError(f"{self.what}: {why}"), why)

    def _give_up(self, limit: float) -> None:
        missing = self.group.whereabouts(self.what)
        text = f"{self.what}: Timed out after {limit:g} s; {missing}"
        world = self.group.world
        world.give_up(self.group.group_name, f"rank {world.rank} gave up {text}")
        self._fail(DistTimeoutError(text), "an operation timed out")

    def _fail(self, error: DistBackendError, why: str) -> None:
        group = self.group
        group.broken = why
        group.world.active.pop(self, None)
        group.world.abandoned.append(self)
        self._failure = type(error)(
            f"[rank {group.world.rank} of {group.world.size}] {error}. The group cannot be used "
            "any more: start all ranks again from a checkpoint."
        )
        raise self._failure


all_take_as_annotated(globals())
