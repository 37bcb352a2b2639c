"""An operation under way, and how to wait for it without ever blocking in a library.

A library that blocks cannot say who is missing.  So every wait tests: 64 times at once, for what is
there already; then it gives its turn away for 20 ms; then it sleeps, up to 2 ms, so that processes
that outnumber the cores get to work.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from flambeau._dispatch.annotated import all_take_as_annotated
from flambeau.distributed._errors import DistBackendError, DistTimeoutError
from flambeau.distributed._future import Future

if TYPE_CHECKING:
    from flambeau.distributed._group import ProcessGroup
    from flambeau.plugin import Request

_QUICK = 64
_YIELDING = 0.02
_LONGEST_NAP = 0.002
_TELL_AFTER = 0.25
"""Seconds after which a wait lets the others know what it waits for."""
_GRACE = 1.0
"""Seconds that messages of a rank which has ended may still be under way."""


def rank_of(member: str) -> int:
    """The rank of a member that has gone, by its ``hello``."""
    return int(member.partition(" ")[0])


class Work:
    """An operation under way, as the functions of `flambeau.distributed` return it.

    It goes on while anybody waits or asks.  Tensors that take part belong to it until it is done.
    """

    def __init__(
        self,
        group: ProcessGroup,
        request: Request,
        what: str,
        finish: Callable[[], Any] | None = None,
    ) -> None:
        self._group = group
        self._request = request
        self._finish = finish
        self._done = False
        self._failure: BaseException | None = None
        self.what = what
        self.results: list[Any] = []
        group.world.active[self] = None

    def is_completed(self) -> bool:
        """Whether the operation has finished; its results are there then.

        Raises:
            RuntimeError: it failed.
        """
        if not self._done:
            self._group.world.advance()
            if self._failure is not None:
                raise self._failure
        return self._done

    def _advance(self) -> None:
        """Go on if possible; failures are kept for who asks."""
        try:
            if not self._request.test():
                return
            if self._finish is not None:
                self._finish()
            self._done = True
        except Exception as error:
            self._failure = self._group.explained(error, self.what)
            self._group.world.abandoned.append(self)
        self._group.world.active.pop(self, None)

    def is_success(self) -> bool:
        """Whether it has finished well."""
        return self._done and self._failure is None

    def exception(self) -> BaseException | None:
        """What went wrong, None if nothing did."""
        return self._failure

    def get_future(self) -> Future[Any]:
        """A future of the results, as communication hooks return it."""

        def wait() -> Any:
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
        return self._group.ranks[self._request.source]

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
        if isinstance(timeout, timedelta):
            timeout = timeout.total_seconds()
        self._wait(timeout or self._group.timeout.total_seconds())
        return True

    def _wait(self, limit: float) -> None:
        start, told = time.monotonic(), False
        while not self.is_completed():
            elapsed = time.monotonic() - start
            self._look_for_the_dead(elapsed)
            if elapsed > limit:
                self._give_up(limit)
            if elapsed > _TELL_AFTER and not told:
                told = True
                self._group.tell(self.what)
            if elapsed < _YIELDING:
                os.sched_yield()
            else:
                time.sleep(min(_LONGEST_NAP, elapsed / 100))
        if told:
            self._group.tell("")

    def _look_for_the_dead(self, elapsed: float) -> None:
        watch = self._group.world.watch
        gone = watch.dead or (elapsed > _GRACE and watch.left)
        if not gone:
            return
        group = self._group
        missing = [rank for rank in map(rank_of, gone) if rank in group.ranks]
        if missing and not self.is_completed():
            died = group.world.obituary(missing[0])
            self._fail(DistBackendError(f"{self.what}: {died}"), died)

    def _give_up(self, limit: float) -> None:
        missing = self._group.whereabouts(self.what)
        text = f"{self.what}: Timed out after {limit:g} s; {missing}"
        self._fail(DistTimeoutError(text), "an operation timed out")

    def _fail(self, error: DistBackendError, why: str) -> None:
        group = self._group
        group.broken = why
        group.world.active.pop(self, None)
        group.world.abandoned.append(self)
        self._failure = type(error)(
            f"[rank {group.world.rank} of {group.world.size}] {error}. The group cannot be used "
            "any more: start all ranks again from a checkpoint."
        )
        raise self._failure


all_take_as_annotated(globals())
