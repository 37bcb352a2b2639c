"""Names of shared memory, and the connection to the process that removes them."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import sys
import threading
import weakref

from flambeau._storages import names_server
from flambeau.plugin.forks import make_lock

SUPPORTED = sys.platform == "linux"
"""Whether there are the sockets that this needs, which have no name in the file system."""

_lock = make_lock()
_home: str | None = None  # address of the server for names that are made here
# Descriptors by address; of this process alone.  They end with it: while it ends, names are still
# let go, and a socket that nobody closed would be warned of.
_connections: dict[str, int] = {}
_living: weakref.WeakValueDictionary[int, Name] = weakref.WeakValueDictionary()  # by id
# What threads that are forking made for their children: connections, and what these hold.
_for_children: dict[int, tuple[dict[str, int], list[Name]]] = {}


class Name:
    """A name that is not removed while this object, or a like one in another process, is alive.

    Attributes:
        home: address of the process that removes it.
        name: that of the file.
    """

    __slots__ = ("__weakref__", "_pid", "home", "name")

    def __init__(self, home: str, name: str) -> None:
        self.home = home
        self.name = name
        self._pid = os.getpid()
        _tell(home, "+", name)
        _living[id(self)] = self

    def held(self) -> bool:
        """Whether this process holds it: a fork that found no descriptor copies what does not."""
        return self._pid == os.getpid()

    def sent(self) -> None:
        """Note that it is under way to somebody, who may come when all others have let it go."""
        if not self.held():
            _tell(self.home, "+", self.name)
            self._pid = os.getpid()
        _tell(self.home, ">", self.name)

    def arrived(self) -> None:
        """Note that it is no longer under way to this process."""
        _tell(self.home, "<", self.name)

    def __del__(self) -> None:
        _living.pop(id(self), None)
        if self.held():
            with contextlib.suppress(RuntimeError):
                _tell(self.home, "-", self.name)


def fresh(folder: str) -> Name:
    """A new name, of a file that is not in the folder yet."""
    name = f"{names_server.PREFIX}{os.getpid()}_{secrets.token_hex(8)}"
    try:
        return Name(start(folder), name)
    except RuntimeError:  # the connection has ended, and is forgotten now
        return Name(start(folder), name)


def start(folder: str) -> str:
    """The address of the process that removes names; start it where there is none."""
    global _home
    with _lock:
        if _home is not None:
            try:
                _connection(_home)
                return _home
            except ConnectionRefusedError:  # it ended with the process that this is a fork of
                _home = None
        made = _started(folder)
        _connection(made)
        _home = made
        return made


def _started(folder: str) -> str:
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
    return address


def _socket() -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def _connected(home: str) -> socket.socket:
    made = _socket()
    try:
        made.connect("\0" + home)
        # A server that is ending lets connections queue that it will not serve.
        if not made.recv(len(names_server.WELCOME)):
            raise ConnectionResetError
    except OSError as error:
        made.close()
        if isinstance(error, ConnectionResetError):
            raise ConnectionRefusedError(f"{home} is ending") from error
        raise
    return made


def _connection(home: str) -> int:
    with _lock:
        if (made := _connections.get(home)) is None:
            made = _connections[home] = _connected(home).detach()
        return made


def _tell(home: str, what: str, name: str) -> None:
    try:
        with _lock:  # or another thread might close the descriptor, and a file get its number
            _say(_connection(home), what, name)
    except OSError as error:
        if isinstance(error, (BrokenPipeError, ConnectionResetError)):
            with _lock:
                if (ended := _connections.pop(home, None)) is not None:
                    os.close(ended)
        raise gone(name) from error


def _say(connection: int, what: str, name: str) -> None:
    os.write(connection, f"{what}{name}".encode())


def gone(name: str) -> RuntimeError:
    """The error of a name that there is no more."""
    return RuntimeError(
        f"shared memory {name} is gone: all processes that used it have ended. With the strategy "
        "'file_system' a process that sends tensors has to live until they have been received"
    )


def _before() -> None:
    # The child holds what it copies before its parent can let it go or end.  Each name is under way
    # meanwhile, since what the two connections tell may come in any order.
    connections: dict[str, int] = {}
    names: list[Name] = []
    _for_children[threading.get_ident()] = connections, names
    for reference in _living.valuerefs():
        if (name := reference()) is None or not name.held():
            continue
        with contextlib.suppress(OSError, RuntimeError):
            if (made := connections.get(name.home)) is None:
                made = connections[name.home] = _connected(name.home).detach()
            _tell(name.home, ">", name.name)
            _say(made, "+", name.name)
            _say(made, "<", name.name)
            names.append(name)


def _after_in_parent() -> None:
    connections, _ = _for_children.pop(threading.get_ident(), ({}, []))
    for each in connections.values():
        os.close(each)


def _after_in_child() -> None:
    connections, names = _for_children.pop(threading.get_ident(), ({}, []))
    # A copy of another connection would tell the server that this process's parent still lives.
    for others, _ in [(_connections, None), *_for_children.values()]:
        while others:
            os.close(others.popitem()[1])
    _for_children.clear()
    _connections.update(connections)
    for name in names:
        name._pid = os.getpid()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
