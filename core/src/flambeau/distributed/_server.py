"""The rendezvous of one job, a process of its own: keys and values, and who died.

It outlives every rank, so that the death of rank 0 is no other case than that of rank 1.  Run as a
script with the descriptor of a listening socket it serves until its last connection has ended.

Messages are frames: a length of 4 bytes, then fields, each with its length.  A request is a number,
the name of an operation and its arguments; the answer repeats the number.  A connection that said
``hello`` and ends without ``leave`` is a member that died; all other members are told of both, and
of groups that a member has given up.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys
import time
from collections import deque

LARGEST = 1 << 30
"""Bytes of one frame; more is no message of ours."""
MAGIC = b"flambeau-store-1\n"
"""What a connection begins with: strangers that connect are sent away."""
SILENCE = 10.0
"""Seconds that a connection may take to say it."""
UNREAD = 1 << 26
"""Bytes of answers that a connection has not read, beyond which it is answered no more for now."""


def pack(*fields: bytes) -> bytes:
    """One frame."""
    body = b"".join(len(field).to_bytes(4, "big") + field for field in fields)
    return len(body).to_bytes(4, "big") + body


class Frames:
    """Bytes as they arrive, and the frames in them."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> list[list[bytes]]:
        """The frames that `data` completes.

        Raises:
            ValueError: what came are no frames.
        """
        held = self._held
        held += data
        frames = []
        while len(held) >= 4:
            size = int.from_bytes(held[:4], "big")
            if size > LARGEST:
                raise ValueError(f"a frame of {size} bytes")
            if len(held) < 4 + size:
                break
            frames.append(_fields(bytes(held[4 : 4 + size])))
            del held[: 4 + size]
        return frames


def _fields(body: bytes) -> list[bytes]:
    fields, at = [], 0
    while at < len(body):
        size = int.from_bytes(body[at : at + 4], "big")
        at += 4
        if at + size > len(body):
            raise ValueError("a field that is longer than its frame")
        fields.append(body[at : at + size])
        at += size
    return fields


class Client:
    """What the server knows of one connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.since = time.monotonic()
        self.greeted = b""
        self.frames = Frames()
        self.asked: deque[list[bytes]] = deque()
        self.unsent = bytearray()
        self.has_gone = False
        self.member: bytes | None = None  # its rank, once it has said hello

    @property
    def is_slow(self) -> bool:
        """Whether it asks and does not read the answers."""
        return len(self.unsent) >= UNREAD


class Server:
    """The state of a job, and what the operations do to it."""

    def __init__(self, listener: socket.socket, patience: float) -> None:
        self.listener = listener
        self.patience = patience
        self.selector = selectors.DefaultSelector()
        self.values: dict[bytes, bytes] = {}
        self.waiting: list[tuple[Client, bytes, list[bytes], bool]] = []
        self.clients: set[Client] = set()
        self.leaving: list[tuple[Client, bytes]] = []
        self.listening = True

    def serve(self) -> None:
        """Answer until nobody is left, or nobody has come for `patience` seconds.

        Connections that have not said what ours begin with keep nobody from ending, and their end
        is not taken for that of a job which has not begun.
        """
        self.listener.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ)
        start, seen = time.monotonic(), False
        while True:
            for key, mask in self.selector.select(1.0):
                if key.data is None:
                    self._accept()
                else:
                    seen = self._handle(key.data, mask) or seen
            now = time.monotonic()
            ours = False
            for client in list(self.clients):
                if client.greeted == MAGIC:
                    ours = True
                elif now - client.since > SILENCE:
                    self._drop(client)
            if not ours and (seen or now - start > self.patience):
                return

    def _accept(self) -> None:
        try:
            sock, _ = self.listener.accept()
        except OSError:
            time.sleep(0.01)  # too many files are open, and the next call says so at once
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        client = Client(sock)
        self.clients.add(client)
        self.selector.register(sock, selectors.EVENT_READ, client)

    def _handle(self, client: Client, mask: int) -> bool:
        """Take what has arrived; whether it came from one of ours."""
        if mask & selectors.EVENT_WRITE:
            was_slow = client.is_slow
            self._flush(client)
            if was_slow and not client.is_slow:
                self._wake()
                self._answer(client)
        if not mask & selectors.EVENT_READ or client not in self.clients:
            return False
        try:
            data = client.sock.recv(1 << 18)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if data and len(client.greeted) < len(MAGIC):
            missing = len(MAGIC) - len(client.greeted)
            client.greeted += data[:missing]
            data = data[missing:]
            if not MAGIC.startswith(client.greeted):
                data = b""
            elif not data:
                return client.greeted == MAGIC
        if not data:
            self._drop(client)
            return False
        try:
            client.asked.extend(client.frames.feed(data))
        except (ValueError, MemoryError):
            self._drop(client)
        self._answer(client)
        return True

    def _answer(self, client: Client) -> None:
        """Do what a connection has asked for, as long as it reads the answers."""
        try:
            while client.asked and client in self.clients and not client.is_slow:
                number, name, *arguments = client.asked.popleft()
                getattr(self, "on_" + name.decode())(client, number, *arguments)
        except (ValueError, AttributeError, TypeError, UnicodeDecodeError, MemoryError):
            self._drop(client)

    def _send(self, client: Client, *fields: bytes) -> None:
        if client.has_gone:
            return
        client.unsent += pack(*fields)
        self._flush(client)

    def _flush(self, client: Client) -> None:
        if client not in self.clients:
            return
        try:
            sent = client.sock.send(client.unsent)
            del client.unsent[:sent]
        except BlockingIOError:
            pass
        except OSError:
            client.unsent.clear()  # reading ends the connection
            client.has_gone = True
        events = 0 if client.is_slow else selectors.EVENT_READ
        events |= selectors.EVENT_WRITE if client.unsent else 0
        self.selector.modify(client.sock, events, client)

    def _drop(self, client: Client) -> None:
        if client not in self.clients:
            return
        self.clients.discard(client)
        self.selector.unregister(client.sock)
        client.sock.close()
        self.waiting = [entry for entry in self.waiting if entry[0] is not client]
        self.leaving = [entry for entry in self.leaving if entry[0] is not client]
        if client.member is not None:
            self._tell(b"dead", client.member)
            self._left()

    def _tell(self, what: bytes, whom: bytes) -> None:
        for other in list(self.clients):
            if other.member is not None:
                self._send(other, b"", what, whom)

    def _wake(self) -> None:
        still = []
        for entry in self.waiting:
            client, number, keys, values = entry
            if not client.is_slow and all(key in self.values for key in keys):
                self._send(client, number, *([self.values[keys[0]]] if values else []))
            else:
                still.append(entry)
        self.waiting = still

    def on_set(self, client: Client, number: bytes, key: bytes, value: bytes) -> None:
        """Keep a value."""
        self.values[key] = value
        self._send(client, number)
        self._wake()

    def on_get(self, client: Client, number: bytes, key: bytes) -> None:
        """The value, once there is one."""
        self.waiting.append((client, number, [key], True))
        self._wake()

    def on_wait(self, client: Client, number: bytes, *keys: bytes) -> None:
        """Answer once all keys are there."""
        self.waiting.append((client, number, list(keys), False))
        self._wake()

    def on_cancel(self, client: Client, number: bytes, which: bytes) -> None:
        """Wait no longer."""
        self.waiting = [e for e in self.waiting if (e[0], e[1]) != (client, which)]
        self._send(client, number)

    def on_check(self, client: Client, number: bytes, *keys: bytes) -> None:
        """Which of the keys are there."""
        self._send(client, number, *(b"1" if key in self.values else b"0" for key in keys))

    def on_add(self, client: Client, number: bytes, key: bytes, amount: bytes) -> None:
        """Add to a number."""
        self.values[key] = b"%d" % (int(self.values.get(key, b"0")) + int(amount))
        self._send(client, number, self.values[key])
        self._wake()

    def on_compare_set(
        self, client: Client, number: bytes, key: bytes, expected: bytes, desired: bytes
    ) -> None:
        """Set if it is what was expected; what it is then."""
        held = self.values.get(key)
        if held == expected or (held is None and not expected):
            self.values[key] = held = desired
            self._wake()
        self._send(client, number, expected if held is None else held)

    def on_delete(self, client: Client, number: bytes, key: bytes) -> None:
        """Whether there was such a key, which is gone now."""
        self._send(client, number, b"1" if self.values.pop(key, None) is not None else b"0")

    def on_count(self, client: Client, number: bytes) -> None:
        """The number of keys."""
        self._send(client, number, b"%d" % len(self.values))

    def on_hello(self, client: Client, number: bytes, rank: bytes) -> None:
        """This connection is a member of the job: its end is a death."""
        rank.decode()  # what is no text, no member could read
        client.member = rank
        self._send(client, number)

    def on_broken(self, client: Client, number: bytes, group: bytes) -> None:
        """A group is of no use any more; who has yet to call its operations shall hear of it."""
        group.decode()
        self._tell(b"broken", group)
        self._send(client, number)

    def on_leave(self, client: Client, number: bytes) -> None:
        """A member goes; the answer comes when all have gone, and nobody new is let in then."""
        if client.member is None:  # and who never was one ends nothing
            self._send(client, number)
            return
        member, client.member = client.member, None
        self.leaving.append((client, number))
        self._tell(b"left", member)
        self._left()

    def _left(self) -> None:
        if not self.leaving or any(other.member is not None for other in self.clients):
            return
        if self.listening:
            self.listening = False
            self.selector.unregister(self.listener)
            self.listener.close()
        for client, number in self.leaving:
            self._send(client, number)
        self.leaving.clear()


def main(fd: int, patience: float) -> None:
    """Serve the listening socket `fd` from a child, so that nobody has to wait for this process."""
    if os.fork():
        os._exit(0)
    Server(socket.socket(fileno=fd), patience).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
