"""The job that this process belongs to: its members, its groups, and who has died."""

from __future__ import annotations

import math
import os
import socket
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from flambeau._dispatch.bound import bind
from flambeau.distributed._arithmetic import Arithmetic
from flambeau.distributed._errors import (
    DistBackendError,
    DistNetworkError,
    DistStoreError,
    DistTimeoutError,
)
from flambeau.distributed._file_store import FileStore
from flambeau.distributed._rendezvous import SERVED, own_address
from flambeau.distributed._stores import PrefixStore, Store
from flambeau.distributed._tcp_store import TCPStore
from flambeau.distributed._work import Work, rank_of
from flambeau.plugin import Job, make_lock

if TYPE_CHECKING:
    from flambeau import Tensor
    from flambeau.distributed._group import ProcessGroup
    from flambeau.plugin import Communicator, Engine

_LISTENING = 0.2
"""Seconds between two looks for the dead while an engine starts."""
_LAST = 2.0
"""Seconds for the last messages of a process that its parent may be waiting for."""


def _process(number: int) -> str:
    return f"{socket.gethostname()}, process {number}"


class World:
    """A job, seen from one of its processes.

    Attributes:
        rank: of this process.
        size: number of processes.
        job: what keys of this job begin with.
        store: keys and values of this job alone.
        watch: the store whose server tells of deaths.
        group: that of all processes.
        active: what is under way, in the order of its beginning.
        abandoned: what has failed: a library may still write into its memory.
        going_on: held by who lets operations go on.
    """

    def __init__(self, rank: int, size: int, store: Store, timeout: timedelta, owned: bool) -> None:
        self.rank = rank
        self.size = size
        self.timeout = timeout
        self._own: list[TCPStore | FileStore] = []  # stores to close in the end
        if owned and isinstance(store, TCPStore | FileStore):
            self._own.append(store)
        self.job = f"job{store.add(f'flambeau/inits/{rank}', 1)}"
        self.store: Store = PrefixStore(self.job, store)
        self.address = own_address(store)
        self.group: ProcessGroup | None = None
        self.groups: dict[str, ProcessGroup] = {}
        self.names: list[str] = []
        self.made = 0
        self.active: dict[Work, None] = {}
        self.abandoned: list[Work] = []
        self.alive = True
        self.going_on = make_lock()
        self._join()
        self.watch = self._watch(store if owned else None)

    def _others(self) -> list[int]:
        return [rank for rank in range(self.size) if rank != self.rank]

    def _await(self, keys: dict[int, str]) -> None:
        """Wait for what ranks say by their keys.

        Raises:
            DistTimeoutError: some have not; the message has their ranks.
        """
        try:
            self.store.wait(list(keys.values()), self.timeout)
        except DistStoreError:
            late = [rank for rank, key in keys.items() if not self.store.check([key])]
            raise DistTimeoutError(
                f"[rank {self.rank} of {self.size}] init_process_group: rank(s) "
                f"{', '.join(map(str, late))} did not come within "
                f"{self.timeout.total_seconds():g} s"
            ) from None

    def _join(self) -> None:
        """Wait until all processes have come."""
        self.store.set(f"joined/{self.rank}", str(self.size))
        keys = {rank: f"joined/{rank}" for rank in self._others()}
        try:
            self._await(keys)
        finally:  # who waits in vain may wait for nobody
            for rank, key in keys.items():
                if self.store.check([key]) and (size := int(self.store.get(key))) != self.size:
                    raise RuntimeError(
                        f"init_process_group: rank {self.rank} was started as one of {self.size} "
                        f"processes, rank {rank} as one of {size}; give all the same world_size "
                        "(WORLD_SIZE)"
                    )

    def _watch(self, store: Store | None) -> TCPStore:
        """The store whose server tells of deaths: that of the rendezvous, or one of its own."""
        if not isinstance(store, TCPStore):
            if self.rank == 0:
                store = TCPStore(self.address, 0, is_master=True, timeout=self.timeout)
                self.store.set("watch", f"{store.host}:{store.port}")
            else:
                self._await({0: "watch"})  # one that came too late for another has gone
                host, _, port = self.store.get("watch").decode().rpartition(":")
                store = TCPStore(host, int(port), timeout=self.timeout)
            self._own.append(store)
        who = f"{self.rank} on {_process(os.getpid())}"
        store.ask("hello", who.encode())
        # Nobody goes on before all can hear of a death, and be heard of.
        self.store.set(f"watching/{self.rank}", who)
        self._await({rank: f"watching/{rank}" for rank in self._others()})
        return store

    def start(
        self,
        engine: Engine,
        kind: str,
        tensor: Tensor | None,
        wait: Callable[[Callable[[], bool], str], None],
        group: ProcessGroup,
    ) -> Communicator:
        """The communicator of a group's processes for one type of devices."""
        be = bind(kind) if tensor is None else tensor._be
        mine = PrefixStore(f"engine/{engine.name}/{kind}/{group.group_name}", self.store)
        return engine.start(
            Job(
                rank=group.rank(),
                size=group.size(),
                get=lambda key: self._told(mine, key, engine.name, group),
                set=mine.set,
                arithmetic=Arithmetic(be),
                host=self.address,
                device=be.device.index or 0,
                timeout=self.timeout.total_seconds(),
                wait=wait,
            )
        )

    def _told(self, store: Store, key: str, engine: str, group: ProcessGroup) -> bytes:
        """What another rank says while an engine starts.

        Raises:
            DistBackendError: one has died meanwhile.
        """
        end = time.monotonic() + self.timeout.total_seconds()
        while True:
            seconds = max(0.001, min(_LISTENING, end - time.monotonic()))
            try:
                store.wait([key], timedelta(seconds=seconds))
                return store.get(key)
            except DistStoreError:
                dead = [rank for rank in map(rank_of, self.watch.dead) if rank in group.ranks]
                if dead:
                    raise DistBackendError(
                        f"[rank {self.rank} of {self.size}] the start of {engine}: "
                        f"{self.obituary(dead[0])}. Start all ranks again"
                    ) from None
                if time.monotonic() > end:
                    raise

    def advance(self) -> None:
        """Let everything go on that is under way: others may need it before what we wait for."""
        if self.going_on.acquire(blocking=False):
            try:
                for work in list(self.active):
                    work._advance()
            finally:
                self.going_on.release()

    def obituary(self, rank: int) -> str:
        """What is known of a rank that has gone."""
        for verb, members in (("died", self.watch.dead), ("has ended", self.watch.left)):
            for member in members:
                number, _, where = member.partition(" on ")
                if int(number) == rank:
                    return f"rank {rank} {self._ending(rank) or verb} ({where})"
        return f"rank {rank} has not been heard of"

    def _ending(self, rank: int) -> str:
        """How a rank ended, which those may know who started it."""
        key = f"exit/{rank}"
        try:
            if SERVED in os.environ:
                self.watch.wait([key], timedelta(seconds=0.2))
            return self.watch.get(key).decode() if self.watch.check([key]) else ""
        except (DistNetworkError, DistStoreError):
            return ""

    def give_up(self, group: str, why: str) -> None:
        """Let all members hear that a group cannot be used any more."""
        try:
            self.watch.ask("broken", f"{self.job}/{group}: {why:.2000}".encode(), timeout=1.0)
        except (DistNetworkError, TimeoutError):
            pass  # they hear of it by the end of this process

    def given_up(self, group: str) -> str | None:
        """Why a member has given a group up, None if none has."""
        start = f"{self.job}/{group}: "
        found = (told[len(start) :] for told in self.watch.broken if told.startswith(start))
        return next(found, None)

    def leave(self, wait: bool, at_end: bool = False) -> None:
        """Go: the others hear of it, and are waited for, as they may need messages of ours.

        At the end of a process that was started by another member, which may wait for this end
        before it goes itself, that wait is short.
        """
        if not self.alive:
            return
        self.alive = False
        if wait and not any(group.broken for group in self.groups.values()):
            self._wait_for_all(_LAST if at_end and self._is_child_of_a_member() else None)
        for group in self.groups.values():
            group.close()
        for store in self._own:
            store.close()

    def _is_child_of_a_member(self) -> bool:
        parent = _process(os.getppid())
        try:
            who = [self.store.get(f"watching/{rank}").decode() for rank in self._others()]
        except (DistNetworkError, DistStoreError):
            return False
        return any(member.partition(" on ")[2] == parent for member in who)

    def _wait_for_all(self, seconds: float | None) -> None:
        end = time.monotonic() + (math.inf if seconds is None else seconds)
        thread = threading.Thread(target=self._announce_leaving, daemon=True)
        thread.start()
        while thread.is_alive() and not self.watch.dead and time.monotonic() < end:
            thread.join(0.001 if self.active else 0.01)
            self.advance()
            for group in self.groups.values():
                group.progress()

    def _announce_leaving(self) -> None:
        try:
            for group in self.groups.values():
                group.tell_calls()
            self.watch.ask("leave", timeout=self.timeout.total_seconds())
        except (DistNetworkError, TimeoutError):
            pass
