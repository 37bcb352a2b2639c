"""The process that removes names of shared memory once nobody uses them, however users ended.

Shared memory that travels by name needs somebody who is there when a process is killed.  Run as a
script with the descriptor of a listening socket it serves until its last connection has ended; then
no name is left.  It imports the standard library alone and starts without site packages.

A message is one letter and a name: ``+`` holds it, ``-`` lets it go, ``>`` says that it was sent to
somebody and ``<`` that it has arrived.  The two may come in any order, since they come by different
connections: a name is removed when it is held by nobody and has arrived as often as it was sent.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import struct
import sys

PREFIX = "torch_"
"""What names begin with: PyTorch's, which scripts that look after shared memory know."""

WELCOME = b"!"
"""What each client is told first: from then on the server lives as long as its connection."""

_PATIENCE = 30.0  # seconds until the first connection
_LARGEST = 256  # bytes of a message


class Server:
    """Who holds which name."""

    def __init__(self, listener: socket.socket, folder: str) -> None:
        self.folder = folder
        self.holders: dict[str, list[socket.socket]] = {}
        self.under_way: dict[str, int] = {}
        self.clients: set[socket.socket] = set()
        self.listener = listener
        self.selector = selectors.DefaultSelector()
        self.selector.register(listener, selectors.EVENT_READ)

    def serve(self) -> None:
        """Welcome clients, and note what they say, until the last connection has ended."""
        began = False
        while self.clients or not began:
            ready = self.selector.select(None if began else _PATIENCE)
            if not ready:
                break
            for key, _ in ready:
                if key.fileobj is self.listener:
                    began = self._accept() or began
                else:
                    self._read(key.fileobj)  # type: ignore[arg-type] - they are sockets
        self.listener.close()  # whoever waits in its queue learns that nobody comes
        for name in {*self.holders, *self.under_way}:
            self._remove(name)

    def _accept(self) -> bool:
        client, _ = self.listener.accept()
        told = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        if struct.unpack("3i", told)[1] != os.getuid():  # somebody else's process
            client.close()
            return False
        try:
            client.send(WELCOME)
        except OSError:  # it has ended already
            client.close()
            return False
        self.clients.add(client)
        self.selector.register(client, selectors.EVENT_READ)
        return True

    def _read(self, client: socket.socket) -> None:
        try:
            message = client.recv(_LARGEST)
        except OSError:
            message = b""
        if not message:
            self._gone(client)
            return
        what, name = message[:1], message[1:].decode(errors="replace")
        if not name.startswith(PREFIX) or "/" in name or "\0" in name:
            return
        holders = self.holders.setdefault(name, [])
        if what == b"+":
            holders.append(client)
        elif what == b"-" and client in holders:
            holders.remove(client)
        elif what in b"<>":
            step = 1 if what == b">" else -1
            self.under_way[name] = self.under_way.get(name, 0) + step
        self._settle(name)

    def _gone(self, client: socket.socket) -> None:
        self.clients.discard(client)
        self.selector.unregister(client)
        client.close()
        for name, holders in list(self.holders.items()):
            if client in holders:
                self.holders[name] = [other for other in holders if other is not client]
                self._settle(name)

    def _settle(self, name: str) -> None:
        if not self.holders.get(name) and not self.under_way.get(name):
            self._remove(name)

    def _remove(self, name: str) -> None:
        self.holders.pop(name, None)
        self.under_way.pop(name, None)
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self.folder, name))


def main(fd: int, folder: str) -> None:
    """Serve the listening socket `fd` from a child, so that nobody has to wait for this process."""
    if os.fork():
        os._exit(0)
    Server(socket.socket(fileno=fd), folder).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
