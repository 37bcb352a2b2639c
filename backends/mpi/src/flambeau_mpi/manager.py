"""A process manager for one job: what MPICH asks at its start, by the protocol PMI-1.

A script of the standard library alone.  Each process connects, asks for its rank and size, leaves
its address among the keys, waits for all at a barrier and reads those of the others.  A process
that goes away while others wait takes them along: they could only wait for ever.  The manager ends
with its last connection.  Strangers, who begin with something else, are sent away.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys
import time
from collections.abc import Sequence
from itertools import groupby


def mapping(nodes: Sequence[str]) -> str:
    """Which ranks share a machine, in MPICH's words: blocks of (machine, 1, ranks in a row).

    >>> mapping(["a", "a", "b", "a"])
    '(vector,(0,1,2),(1,1,1),(0,1,1))'
    """
    numbers = {node: i for i, node in enumerate(dict.fromkeys(nodes))}
    blocks = [(numbers[node], len(list(run))) for node, run in groupby(nodes)]
    return "(vector," + ",".join(f"({node},1,{count})" for node, count in blocks) + ")"


def sweep(name: str, folder: str = "/dev/shm") -> None:
    """Remove the names of a job's shared memory, which lives on where it is mapped.

    MPICH removes them in the end, which a process that is killed does not reach.  It makes them
    of the job's name by the hash FNV-1a (Fowler, Noll, Vo).
    """
    code = 2166136261
    for byte in name.encode():
        code = (code ^ byte) * 16777619 % (1 << 32)
    prefix = f"mpich_shm_{code:x}_"
    try:
        found = [file for file in os.listdir(folder) if file.startswith(prefix)]
    except OSError:
        return
    for file in found:
        try:
            os.unlink(os.path.join(folder, file))
        except OSError:
            pass


_STALLED = 10.0
"""Seconds after which a process that takes no answers is left alone."""


class Manager:
    """The state of a job, and the answers to its processes."""

    def __init__(self, listener: socket.socket, size: int, name: str, nodes: str) -> None:
        self.listener = listener
        self.size = size
        self.name = name
        self.keys = {"PMI_process_mapping": nodes}
        self.buffers: dict[socket.socket, bytes] = {}
        self.members: set[socket.socket] = set()
        self.waiting: list[socket.socket] = []
        self.selector = selectors.DefaultSelector()

    def serve(self, patience: float) -> None:
        """Answer until nobody is left, or nobody has come for `patience` seconds."""
        self.selector.register(self.listener, selectors.EVENT_READ)
        start, seen = time.monotonic(), False
        while True:
            for key, _ in self.selector.select(1.0):
                if key.fileobj is self.listener:
                    self._accept()
                elif isinstance(key.fileobj, socket.socket):
                    self._read(key.fileobj)
            seen = seen or bool(self.members)
            if not self.members and (seen or time.monotonic() - start > patience):
                return

    def _accept(self) -> None:
        try:
            sock, _ = self.listener.accept()
        except OSError:
            time.sleep(0.01)  # too many files are open, and the next call says so at once
            return
        sock.settimeout(_STALLED)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffers[sock] = b""
        self.selector.register(sock, selectors.EVENT_READ)

    def _read(self, sock: socket.socket) -> None:
        try:
            data = sock.recv(1 << 16)
        except OSError:
            data = b""
        if not data or len(self.buffers[sock]) > 1 << 20:
            self._drop(sock)
            return
        *lines, self.buffers[sock] = (self.buffers[sock] + data).split(b"\n")
        for line in lines:
            if sock in self.buffers:
                try:
                    self._answer(sock, line.decode(errors="replace"))
                except (KeyError, ValueError, IndexError):  # none of ours
                    self._drop(sock)

    def _drop(self, sock: socket.socket) -> None:
        self.selector.unregister(sock)
        del self.buffers[sock]
        sock.close()
        if sock not in self.members:
            return
        self.members.discard(sock)
        waiting, self.waiting = [s for s in self.waiting if s is not sock], []
        for other in waiting:
            if other in self.buffers:
                self._drop(other)

    def _send(self, sock: socket.socket, text: str) -> None:
        try:
            sock.sendall(text.encode())
        except OSError:
            pass  # reading tells that it has gone

    def _answer(self, sock: socket.socket, line: str) -> None:
        asked = dict(part.split("=", 1) for part in line.split() if "=" in part)
        command = asked.get("cmd", "")
        if command == "initack":
            self.members.add(sock)
        if sock not in self.members:
            self._drop(sock)
        elif command == "barrier_in":
            self.waiting.append(sock)
            if len(self.waiting) == self.size:
                waiting, self.waiting = self.waiting, []
                for each in waiting:
                    self._send(each, "cmd=barrier_out rc=0\n")
        elif command == "put":
            self.keys[asked["key"]] = line.split("value=", 1)[1]
            self._send(sock, "cmd=put_result rc=0 msg=success\n")
        elif command == "get":
            value = self.keys.get(asked["key"])
            found = f"rc=0 msg=success value={value}"
            absent = "rc=-1 msg=key_not_found value=unknown"
            self._send(sock, f"cmd=get_result {absent if value is None else found}\n")
        elif command in (answers := self._answers(asked)):
            self._send(sock, answers[command])
        else:
            self._drop(sock)

    def _answers(self, asked: dict[str, str]) -> dict[str, str]:
        rank = asked.get("pmiid", "0")
        return {
            "initack": f"cmd=initack\ncmd=set size={self.size}\ncmd=set rank={rank}\n"
            "cmd=set debug=0\n",
            "init": "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
            "get_maxes": "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=4096\n",
            "get_appnum": "cmd=appnum appnum=0\n",
            "get_my_kvsname": f"cmd=my_kvsname kvsname={self.name}\n",
            "get_universe_size": f"cmd=universe_size size={self.size}\n",
            "finalize": "cmd=finalize_ack rc=0\n",
        }


def main(fd: int, size: int, name: str, nodes: str, patience: float) -> None:
    """Serve the listening socket `fd` from a child, so that nobody has to wait for this process."""
    if os.fork():
        os._exit(0)
    try:
        Manager(socket.socket(fileno=fd), size, name, nodes).serve(patience)
    finally:
        sweep(name)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], float(sys.argv[5]))
