"""Names of shared memory, and the connection to the process that removes them."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import sys

from flambeau._storages import names_server
from flambeau.plugin.forks import make_lock

SUPPORTED = sys.platform == "linux"
"""Whether there are the sockets that this needs, which have no name in the file system."""

_lock = make_lock()
_home: str | None = None  # address of the server for names that are made here
_connections: dict[str, socket.socket] = {}  # by address; of this process alone


class Name:
    """A name that is not removed while this object, or a like one in another process, is alive.

    Attributes:
        home: address of the process that removes it.
        name: that of the file.
    """

    __slots__ = ("_pid", "home", "name")

    def __init__(self, home: str, name: str) -> None:
        self.home = home
        self.name = name
        self._pid = os.getpid()
        _tell(home, "+", name)

    def sent(self) -> None:
        """Note that it is under way to somebody, who may come when all others have let it go."""
        if self._pid != os.getpid():  # what a fork copies holds nothing
            _tell(self.home, "+", self.name)
            self._pid = os.getpid()
        _tell(self.home, ">", self.name)

    def arrived(self) -> None:
        """Note that it is no longer under way to this process."""
        _tell(self.home, "<", self.name)

    def __del__(self) -> None:
        if self._pid == os.getpid():
            with contextlib.suppress(RuntimeError):
                _tell(self.home, "-", self.name)


def fresh(folder: str) -> Name:
    """A new name, of a file that is not in the folder yet."""
    return Name(start(folder), f"{names_server.PREFIX}{os.getpid()}_{secrets.token_hex(8)}")


def start(folder: str) -> str:
    """The address of the process that removes names; start it if no fork or call has done so."""
    global _home
    with _lock:
        if _home is None:
            address = f"flambeau-names-{secrets.token_hex(16)}"
            with _socket() as listener:
                listener.bind("\0" + address)
                listener.listen(64)
                fd = listener.fileno()
                subprocess.run(
                    [sys.executable, "-I", "-S", names_server.__file__, str(fd), folder],
                    pass_fds=(fd,),
                    start_new_session=True,  # Ctrl-C ends its clients, and they end it
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,  # who reads this process's output shall not wait
                    stderr=subprocess.DEVNULL,
                    check=True,
                )
            _home = address
        _connection(_home)
        return _home


def _socket() -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def _connection(home: str) -> socket.socket:
    with _lock:
        if (made := _connections.get(home)) is None:
            made = _socket()
            try:
                made.connect("\0" + home)
            except OSError:
                made.close()
                raise
            _connections[home] = made
        return made


def _tell(home: str, what: str, name: str) -> None:
    try:
        _connection(home).send(f"{what}{name}".encode())
    except OSError as error:
        raise gone(name) from error


def gone(name: str) -> RuntimeError:
    """The error of a name that there is no more."""
    return RuntimeError(
        f"shared memory {name} is gone: all processes that used it have ended. With the strategy "
        "'file_system' a process that sends tensors has to live until they have been received"
    )


def _forget() -> None:
    # A copy of a connection would tell the server that this process's parent still lives.
    while _connections:
        _connections.popitem()[1].close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
