"""The reference engine: messages over sockets in pure Python, and the collectives made of them.

It is to engines what the device ``ref`` is to backends: short, slow, and what is meant.  The tests
of `flambeau.distributed` run on it wherever Python does, and the conformance kit is tested with it.
``init_process_group("reference")`` asks for it; nobody gets it unasked.
"""

from __future__ import annotations

import hashlib
import selectors
import socket
import struct
from collections import deque
from collections.abc import Sequence

from flambeau.plugin import Communicator, Engine, Job, Request

_HEAD = struct.Struct("!qqq")  # context of the group, tag, bytes


class ReferenceEngine(Engine):
    """Messages over sockets, for arrays of the CPU."""

    name = "reference"
    devices = ("cpu",)

    def start(self, job: Job) -> Communicator:
        """Connect every pair of processes."""
        return _Members(_Wires(job), list(range(job.size)), job.rank, 0)


class _Message(Request):
    """A message under way: `data` is what is to be sent, or filled."""

    def __init__(
        self, wires: _Wires, data: memoryview, ranks: list[int], context: int, tag: int
    ) -> None:
        self.data = data
        self.ranks = ranks
        self.key = context, tag
        self.done = False
        self.failure = ""
        self._wires = wires

    def test(self) -> bool:
        if not self.done:
            self._wires.progress()
        if self.failure:
            raise RuntimeError(self.failure)
        return self.done


class _Peer:
    """The connection to one process, with what has to leave and what has come half."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = sock
        self.leaving: deque[tuple[memoryview, _Message | None]] = deque()
        self.arriving = bytearray()
        self.open = True


class _Wires:
    """The connections of a process to all others."""

    def __init__(self, job: Job) -> None:
        self.arithmetic = job.arithmetic
        self.expected: list[tuple[int | None, _Message]] = []
        self.early: list[tuple[int, tuple[int, int], bytes]] = []
        self.peers: dict[int, _Peer] = {}
        self.selector = selectors.DefaultSelector()
        with socket.create_server((job.host, 0), backlog=job.size) as listener:
            listener.settimeout(job.timeout)
            job.set(str(job.rank), f"{job.host}:{listener.getsockname()[1]}".encode())
            for rank in range(job.rank):
                host, _, port = job.get(str(rank)).decode().rpartition(":")
                sock = socket.create_connection((host, int(port)), job.timeout)
                sock.sendall(struct.pack("!q", job.rank))
                self._add(rank, sock)
            for _ in range(job.rank + 1, job.size):
                sock, _ = listener.accept()
                sock.settimeout(job.timeout)
                self._add(*struct.unpack("!q", sock.recv(8, socket.MSG_WAITALL)), sock)

    def _add(self, rank: int, sock: socket.socket) -> None:
        self.peers[rank] = _Peer(sock)
        self.selector.register(sock, selectors.EVENT_READ, rank)

    def send(self, to: int, message: _Message) -> None:
        head = _HEAD.pack(*message.key, len(message.data))
        self.peers[to].leaving += [(memoryview(head), None), (message.data, message)]
        self._push(self.peers[to])

    def receive(self, source: int | None, message: _Message) -> None:
        for i, (rank, key, data) in enumerate(self.early):
            if key == message.key and source in (None, rank):
                del self.early[i]
                self._fill(message, rank, data)
                return
        self.expected.append((source, message))

    def _fill(self, message: _Message, rank: int, data: bytes | bytearray) -> None:
        if len(data) == len(message.data):
            message.data[:] = data
        else:
            message.failure = f"{len(data)} bytes arrived where {len(message.data)} were expected"
        message.source, message.done = message.ranks.index(rank), True

    def progress(self) -> None:
        """Send and receive what can be without waiting."""
        for peer in self.peers.values():
            self._push(peer)
        for key, _ in self.selector.select(0):
            self._pull(key.data)

    def _push(self, peer: _Peer) -> None:
        while peer.leaving and peer.open:
            data, message = peer.leaving[0]
            try:
                sent = peer.sock.send(data) if len(data) else 0
            except BlockingIOError:
                return
            except OSError:
                peer.open = False  # why it has gone is for the core to say
                return
            if sent < len(data):
                peer.leaving[0] = data[sent:], message
                return
            peer.leaving.popleft()
            if message is not None:
                message.done = True

    def _pull(self, rank: int) -> None:
        peer = self.peers[rank]
        try:
            data = peer.sock.recv(1 << 20)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            peer.open = False
            self.selector.unregister(peer.sock)
            return
        peer.arriving += data
        while len(peer.arriving) >= _HEAD.size:
            context, tag, size = _HEAD.unpack_from(peer.arriving)
            if len(peer.arriving) < _HEAD.size + size:
                return
            body = bytes(peer.arriving[_HEAD.size : _HEAD.size + size])
            del peer.arriving[: _HEAD.size + size]
            self._deliver(rank, (context, tag), body)

    def _deliver(self, rank: int, key: tuple[int, int], body: bytes) -> None:
        for i, (source, message) in enumerate(self.expected):
            if message.key == key and source in (None, rank):
                del self.expected[i]
                self._fill(message, rank, body)
                return
        self.early.append((rank, key, body))

    def close(self) -> None:
        self.selector.close()
        for peer in self.peers.values():
            peer.sock.close()


class _Members(Communicator):
    """Some of the processes; `context` tells the messages of groups apart."""

    def __init__(self, wires: _Wires, ranks: list[int], rank: int, context: int) -> None:
        self.rank = ranks.index(rank)
        self.size = len(ranks)
        self.arithmetic = wires.arithmetic
        self._wires = wires
        self._ranks = ranks
        self._context = context

    def _message(self, array: object, tag: int) -> _Message:
        plain = isinstance(array, bytes | bytearray)
        data = memoryview(array) if plain else self.arithmetic.memory(array)
        return _Message(self._wires, data, self._ranks, self._context, tag)

    def isend(self, array: object, to: int, tag: int) -> Request:
        message = self._message(array, tag)
        self._wires.send(self._ranks[to], message)
        return message

    def irecv(self, array: object, source: int | None, tag: int) -> Request:
        message = self._message(array, tag)
        self._wires.receive(None if source is None else self._ranks[source], message)
        return message

    def split(self, ranks: Sequence[int], name: str) -> Communicator:
        context = 1 + int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big")
        return _Members(self._wires, list(ranks), self._ranks[self.rank], context)

    def progress(self) -> None:
        self._wires.progress()

    def close(self) -> None:
        if not self._context:
            self._wires.close()
