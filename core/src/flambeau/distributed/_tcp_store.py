"""A store behind a port: the client of its server."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from datetime import timedelta

from flambeau.distributed import _server
from flambeau.distributed._errors import DistNetworkError, DistStoreError
from flambeau.distributed._stores import (
    DEFAULT,
    Store,
    Value,
    as_bytes,
    as_key,
    as_keys,
    as_timeout,
    late,
)

PATIENCE = 60.0
"""Seconds that a server may take for what it can answer at once."""


class _Mail:
    """What has arrived for a store; the thread that collects it does not keep the store alive."""

    def __init__(self) -> None:
        self.news: dict[bytes, list[str]] = {b"dead": [], b"left": [], b"broken": []}
        self.lost = False
        self.odd = False
        self._answers: dict[int, list[bytes]] = {}
        self._arrived = threading.Condition()

    def collect(self, sock: socket.socket) -> None:
        """Sort what comes until the connection ends, or what comes are no answers."""
        frames = _server.Frames()
        while True:
            try:
                data = sock.recv(1 << 18)
            except OSError:
                data = b""
            with self._arrived:
                try:
                    for number, *fields in frames.feed(data):
                        if number:
                            self._answers[int(number)] = fields
                        else:
                            what, whom = fields
                            self.news[what].append(whom.decode())
                except (ValueError, KeyError, MemoryError):
                    self.odd = True
                self.lost = self.odd or not data
                self._arrived.notify_all()
            if self.lost:
                return

    def take(self, number: int, timeout: float | None) -> list[bytes] | None:
        """The answer to a request; None if there is none in time, or the connection is lost."""
        with self._arrived:
            self._arrived.wait_for(lambda: number in self._answers or self.lost, timeout)
            return self._answers.pop(number, None)


class TCPStore(Store):
    """A store that a process of its own keeps; the store with `is_master` starts that process.

    It ends when the last store that is connected to it has been closed, so it outlives its master.

    Args:
        host_name: address of the master.
        port: of the master; 0 lets the system choose, and the attribute `port` has it.
        world_size: how many stores there will be, master included; None: nobody counts.
        is_master: start the server.
        timeout: for connecting, and for `get` and `wait`.
        wait_for_workers: the master's store is ready when `world_size` stores are connected.

    Raises:
        DistNetworkError: there is no server at the address within `timeout`, or the port is taken.

    >>> import flambeau as fb
    >>> store = fb.distributed.TCPStore("127.0.0.1", 0, is_master=True)
    >>> store.set("a", "1"); store.get("a")
    b'1'
    >>> store.close()
    """

    _sock: socket.socket | None = None  # of a store that was refused, too

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = DEFAULT,
        wait_for_workers: bool = True,
    ) -> None:
        super().__init__(timeout)
        self.host = host_name
        self.port = start_server(host_name, port, timeout) if is_master else port
        self._last = 0
        self._pid = os.getpid()
        self._sending = threading.Lock()
        self._mail = _Mail()
        self.dead = self._mail.news[b"dead"]
        """What those members had said in their ``hello`` whose connection ended unannounced."""
        self.left = self._mail.news[b"left"]
        """The same of those that announced it."""
        self.broken = self._mail.news[b"broken"]
        """Groups that members have given up, with their reasons."""
        self._sock = _connected(host_name, self.port, timeout.total_seconds())
        threading.Thread(target=self._mail.collect, args=(self._sock,), daemon=True).start()
        if world_size is not None and world_size > 0:
            self.add("\0joined", 1)
            if is_master and wait_for_workers:
                self._await_workers(world_size)

    def _await_workers(self, size: int) -> None:
        deadline = time.monotonic() + self._timeout.total_seconds()
        while (joined := self.add("\0joined", 0)) < size:
            if time.monotonic() > deadline:
                raise DistStoreError(
                    f"Timed out after {self._timeout.total_seconds():g} seconds waiting for "
                    f"clients. {joined}/{size} clients joined."
                )
            time.sleep(0.005)

    def ask(self, name: str, *fields: bytes, timeout: float | None = None) -> list[bytes]:
        """The answer to a request.

        Raises:
            DistNetworkError: the connection is lost, or nobody answers.
            TimeoutError: there was none within `timeout`; without one, an answer takes no time.
        """
        if self._sock is None or os.getpid() != self._pid:
            raise DistNetworkError("the store is closed, or was opened before this process forked")
        with self._sending:
            self._last += 1
            number = self._last
            try:
                self._sock.sendall(_server.pack(b"%d" % number, name.encode(), *fields))
            except OSError as error:
                raise self._gone() from error
        limit = PATIENCE if timeout is None else timeout
        if (answer := self._mail.take(number, limit)) is not None:
            return answer
        if self._mail.lost:
            raise self._gone()
        if timeout is None:
            raise DistNetworkError(
                f"who listens at {self.host}:{self.port} does not answer within {limit:g} seconds. "
                "Does another program have that port?"
            )
        self.ask("cancel", b"%d" % number)  # once it is answered nothing more comes
        if (answer := self._mail.take(number, 0)) is not None:
            return answer
        raise TimeoutError

    def _one(self, name: str, *fields: bytes, timeout: float | None = None) -> bytes:
        answer = self.ask(name, *fields, timeout=timeout)
        if len(answer) != 1:
            self._mail.odd = True
            raise self._gone()
        return answer[0]

    def _number(self, name: str, *fields: bytes) -> int:
        answer = self._one(name, *fields)
        try:
            return int(answer)
        except ValueError:
            self._mail.odd = True
            raise self._gone() from None

    def _gone(self) -> DistNetworkError:
        if self._mail.odd:
            return DistNetworkError(
                f"what answers at {self.host}:{self.port} is no store of flambeau. Does another "
                "program have that port?"
            )
        return DistNetworkError(f"the store at {self.host}:{self.port} has gone")

    def set(self, key: str, value: Value) -> None:
        """Keep `value` under `key`."""
        self.ask("set", as_bytes(as_key(key)), as_bytes(value))

    def get(self, key: str) -> bytes:
        """The value of `key`, once there is one.

        Raises:
            DistStoreError: there is none within `timeout`.
        """
        limit = self._timeout.total_seconds()
        try:
            return self._one("get", as_bytes(as_key(key)), timeout=limit)
        except TimeoutError:
            raise late([key], limit) from None

    _value = get

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are there.

        Raises:
            DistStoreError: they are not within `timeout`.
        """
        keys = as_keys(keys)
        limit = as_timeout(timeout or self._timeout).total_seconds()
        try:
            self.ask("wait", *map(as_bytes, keys), timeout=limit)
        except TimeoutError:
            raise late(keys, limit) from None

    def add(self, key: str, amount: int) -> int:
        """Add to the number under `key`, 0 at first, and return it."""
        return self._number("add", as_bytes(as_key(key)), b"%d" % amount)

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        return b"0" not in self.ask("check", *map(as_bytes, as_keys(keys)))

    def compare_set(self, key: str, expected_value: Value, desired_value: Value) -> bytes:
        """Set `key` if it holds `expected_value` (empty: nothing); what it holds then."""
        values = as_bytes(as_key(key)), as_bytes(expected_value), as_bytes(desired_value)
        return self._one("compare_set", *values)

    def delete_key(self, key: str) -> bool:
        """Remove a key; whether there was one."""
        return self._one("delete", as_bytes(as_key(key))) == b"1"

    def num_keys(self) -> int:
        """The number of keys."""
        return self._number("count")

    def own_address(self) -> str:
        """The address of this machine that reaches the server."""
        if self._sock is None:
            raise self._gone()
        return str(self._sock.getsockname()[0])

    def close(self) -> None:
        """End the connection; the server ends after the last one."""
        if self._sock is not None:
            if os.getpid() == self._pid:
                try:
                    self._sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            self._sock.close()
            self._sock = None

    def __del__(self) -> None:
        self.close()


def start_server(host: str, port: int, patience: timedelta) -> int:
    """Start the server of a job at an address of this machine; its port.

    Raises:
        DistNetworkError: the port is taken, or the address is none of this machine.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind)
    except OSError as error:
        raise DistNetworkError(f"no address {host}:{port}: {error}") from error
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
        except OSError as error:
            raise DistNetworkError(
                f"cannot listen at {host}:{port}: {error}. MASTER_ADDR has to be an address of the "
                "machine of rank 0, and MASTER_PORT a free port"
            ) from error
        listener.listen(1024)
        fd = listener.fileno()
        # Isolated and without site: it starts in 20 ms and needs nothing of this environment.
        script = [sys.executable, "-I", "-S", _server.__file__, str(fd)]
        subprocess.run(
            [*script, str(patience.total_seconds())],
            pass_fds=[fd],
            start_new_session=True,  # Ctrl-C ends the ranks, and they the server
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # who reads this process's output shall not wait for it
            stderr=subprocess.DEVNULL,
            check=True,
        )
        return int(listener.getsockname()[1])


def _connected(host: str, port: int, limit: float) -> socket.socket:
    deadline = time.monotonic() + limit
    while True:
        try:
            sock = socket.create_connection((host, port), timeout=max(0.1, min(5.0, limit)))
            break
        except OSError as error:
            if time.monotonic() > deadline:
                raise DistNetworkError(
                    f"The client socket has timed out after {limit * 1000:.0f}ms while trying to "
                    f"connect to ({host}, {port}): {error}. Is rank 0 running, and are MASTER_ADDR "
                    "and MASTER_PORT the same everywhere?"
                ) from error
            time.sleep(0.02)
    sock.settimeout(None)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.sendall(_server.MAGIC)
    return sock
