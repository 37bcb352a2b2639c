"""A `cupy.cuda.nccl` for tests, between processes of one machine whose devices are `fake_cupy`'s.

What NCCL would hang on or spoil data by is an error: calls of different operations, types or sizes
that meet each other, and an address outside of the device's memory. A call blocks until the others
have come, as the first ones of NCCL do.
"""

from __future__ import annotations

import ctypes
import queue
import secrets
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Client, Connection, Listener
from types import ModuleType
from typing import Any

import fake_cupy
import numpy as np

from flambeau_cupy.dtypes import BFLOAT16

_DTYPES = {
    "INT8": "i1", "UINT8": "u1", "INT32": "i4", "UINT32": "u4", "INT64": "i8", "UINT64": "u8",
    "FLOAT16": "f2", "FLOAT32": "f4", "FLOAT64": "f8", "BFLOAT16": BFLOAT16,
}  # fmt: skip
DTYPES = [np.dtype(kind) for kind in _DTYPES.values()]
OPS: list[Callable[..., Any]] = [np.add, np.multiply, np.maximum, np.minimum]
local = threading.local()
calls: list[str] = []
"""What was asked for in this process."""


class NcclError(RuntimeError):
    pass


def at(address: int, count: int, kind: int) -> np.ndarray:
    """The array at an address."""
    assert count > 0 and address, "memory that is not there"
    size = count * DTYPES[kind].itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(address), DTYPES[kind])


class _Peer:
    """Another member: what it sends is read by a thread, so that sending never waits."""

    def __init__(self, link: Connection) -> None:
        self.link = link
        self.heard: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            try:
                self.heard.put(self.link.recv())
            except (EOFError, OSError):
                return

    def take(self, *wanted: Any) -> np.ndarray:
        told = self.heard.get()
        if told is None:
            raise NcclError("the communicator was aborted")
        *what, data = told
        assert what == [*wanted], f"{what} meets {wanted}"
        return data


class NcclCommunicator:
    def __init__(self, ndev: int, commId: bytes, rank: int) -> None:
        assert len(commId) == 128 and 0 <= rank < ndev
        self.rank, self.size, self.device = rank, ndev, fake_cupy.current()
        self.failure = ""
        name = commId.strip(b"\0").decode()
        with Listener(f"\0{name}-{rank}", "AF_UNIX", backlog=ndev) as listener:
            links = {peer: _reach(f"\0{name}-{peer}") for peer in range(rank)}
            for link in links.values():
                link.send(rank)
            while len(links) < ndev - 1:
                link = listener.accept()
                links[link.recv()] = link
        self.peers = {peer: _Peer(link) for peer, link in links.items()}

    def _on(self, stream: int, name: str) -> None:
        assert fake_cupy.current() == self.device, "a call on another device"
        work = fake_cupy.BaseStream.works[self.device, stream]
        work.asked, work.runs = work.asked + 1, True
        calls.append(name)

    def _tell(self, peer: int, *what: Any) -> None:
        self.peers[peer].link.send(what)

    def _all(self, mine: np.ndarray, *what: Any) -> list[np.ndarray]:
        """The arrays of all members."""
        for peer in self.peers:
            self._tell(peer, *what, mine)
        ranks = range(self.size)
        return [mine if r == self.rank else self.peers[r].take(*what) for r in ranks]

    def _combined(self, mine: np.ndarray, op: int, *what: Any) -> np.ndarray:
        first, *others = self._all(mine, *what, op)
        total = first.copy()
        for other in others:
            with np.errstate(over="ignore"):
                total = OPS[op](total, other)
        return total

    def allReduce(
        self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, stream: int
    ) -> None:
        self._on(stream, "allReduce")
        mine = at(sendbuf, count, datatype)
        at(recvbuf, count, datatype)[:] = self._combined(mine, op, "allReduce", count, datatype)

    def reduce(
        self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, root: int, stream: int
    ) -> None:
        self._on(stream, "reduce")
        mine = at(sendbuf, count, datatype)
        total = self._combined(mine, op, "reduce", count, datatype, root)
        if self.rank == root:
            at(recvbuf, count, datatype)[:] = total

    def reduceScatter(
        self, sendbuf: int, recvbuf: int, recvcount: int, datatype: int, op: int, stream: int
    ) -> None:
        self._on(stream, "reduceScatter")
        mine = at(sendbuf, recvcount * self.size, datatype)
        total = self._combined(mine, op, "reduceScatter", recvcount, datatype)
        part = total[recvcount * self.rank : recvcount * (self.rank + 1)]
        at(recvbuf, recvcount, datatype)[:] = part

    def allGather(self, sendbuf: int, recvbuf: int, count: int, datatype: int, stream: int) -> None:
        self._on(stream, "allGather")
        mine = at(sendbuf, count, datatype)
        rows = self._all(mine, "allGather", count, datatype)
        at(recvbuf, count * self.size, datatype)[:] = np.concatenate(rows)

    def broadcast(
        self, sendbuff: int, recvbuff: int, count: int, datatype: int, root: int, stream: int
    ) -> None:
        self._on(stream, "broadcast")
        what = "broadcast", count, datatype, root
        mine = at(sendbuff, count, datatype)
        at(recvbuff, count, datatype)[:] = self._all(mine, *what)[root]

    def send(self, sendbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        self._on(stream, "send")
        _grouped(lambda: self._tell(peer, "send", count, datatype, at(sendbuf, count, datatype)))

    def recv(self, recvbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        self._on(stream, "recv")

        def receive() -> None:
            at(recvbuf, count, datatype)[:] = self.peers[peer].take("send", count, datatype)

        local.receives.append(receive)  # outside of a group it would wait for ever

    def check_async_error(self) -> None:
        if self.failure:
            raise NcclError(self.failure)

    def abort(self) -> None:
        for peer in self.peers.values():
            peer.heard.put(None)
            peer.link.close()
        self.peers.clear()


def _reach(name: str) -> Connection:
    deadline = time.monotonic() + 20
    while True:
        try:
            return Client(name, "AF_UNIX")
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.002)


def _grouped(call: Callable[[], None]) -> None:
    local.sends.append(call)


def groupStart() -> None:
    local.sends, local.receives = [], []


def groupEnd() -> None:
    calls.append("group")
    for call in [*local.sends, *local.receives]:
        call()
    del local.sends, local.receives


def get_unique_id() -> bytes:
    return secrets.token_hex(16).encode().ljust(128, b"\0")


def module() -> ModuleType:
    """What ``from cupy.cuda import nccl`` finds."""
    made = ModuleType("cupy.cuda.nccl")
    made.__dict__.update(
        available=True,
        NcclCommunicator=NcclCommunicator,
        NcclError=NcclError,
        groupStart=groupStart,
        groupEnd=groupEnd,
        get_unique_id=get_unique_id,
        **{f"NCCL_{name}": i for i, name in enumerate(_DTYPES)},
        **{f"NCCL_{name}": i for i, name in enumerate(["SUM", "PROD", "MAX", "MIN"])},
    )
    return made
