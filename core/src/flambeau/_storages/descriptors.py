"""Descriptors of shared memory on their way between processes.

On Linux a process may open again what another one of the same user has open, by its number: that
takes microseconds, where a descriptor that is sent takes a connection and two proofs of a key. Who
has opened one writes its key into a pipe of the process that keeps it, found in the same way, and a
thread there lets it go. Where this is not possible the descriptor is sent as the standard library
does, whose thread keeps all of them.
"""

from __future__ import annotations

import array
import contextlib
import errno
import os
import resource
import signal
import socket
import sys
import threading
from functools import partial
from multiprocessing import AuthenticationError, reduction, resource_sharer
from multiprocessing.connection import Connection
from multiprocessing.context import get_spawning_popen
from typing import Any

from flambeau.plugin.forks import make_lock

_NO_MORE = (errno.EMFILE, errno.ENFILE)
_ROOM = 16  # descriptors that may come with one message: those that nobody asked for are closed


def receive(connection: Connection) -> int:
    """The descriptor that `multiprocessing.reduction.send_handle` sends.

    Raises:
        EOFError: the other end is gone.
        RuntimeError: none came, as where this process may have no more, or several.
    """
    if reduction.ACKNOWLEDGE:  # macOS, whose messages are answered
        return reduction.recv_handle(connection)
    width = array.array("i").itemsize
    try:
        end = socket.fromfd(connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM)
    except OSError as error:
        raise (_too_many() if error.errno in _NO_MORE else error) from error
    with end:
        said, ancillary, flags, _ = end.recvmsg(1, socket.CMSG_SPACE(_ROOM * width))
    found = array.array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            found.frombytes(data[: len(data) // width * width])
    cut = flags & socket.MSG_CTRUNC
    if len(found) == 1 and said == b"\1" and not cut:
        return found[0]
    for fd in found:
        os.close(fd)
    if not said:
        raise EOFError("the other end was closed before its descriptor came")
    if cut and not found:
        raise _too_many()
    raise RuntimeError(
        f"a message about shared memory came with {len(found)} descriptors and says {said[0]}; one "
        "is expected"
    )


_sharer: Any = resource_sharer._resource_sharer  # type: ignore[attr-defined] - not in the stubs
_OPEN = "/proc/{}/fd/{}"  # what a process has open, by its number
_KEY_BYTES = 8


class _Taken:
    """Where other processes tell which descriptors they have opened: a pipe, and who reads it."""

    def __init__(self) -> None:
        self._lock = make_lock()
        self._forget()

    def _forget(self) -> None:
        self.place: tuple[int, int] | None = None  # number and inode of the end to write to
        self._ends: tuple[int, ...] = ()

    def here(self) -> tuple[int, int]:
        with self._lock:
            if self.place is None:
                self._ends = read, write = os.pipe()
                threading.Thread(target=_let_go, args=(read,), daemon=True).start()
                self.place = write, os.fstat(write).st_ino
            return self.place

    def after_fork(self) -> None:
        """A child has the pipe of its parent, whose thread it has not."""
        for end in self._ends:
            os.close(end)
        self._forget()


_taken = _Taken()
if sys.platform == "linux":
    os.register_at_fork(after_in_child=_taken.after_fork)


def _let_go(pipe: int) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while keys := os.read(pipe, 512 * _KEY_BYTES):
        for start in range(0, len(keys), _KEY_BYTES):
            _let_go_of(int.from_bytes(keys[start : start + _KEY_BYTES], "little"))


def _let_go_of(key: int) -> None:
    _, close = _sharer._cache.pop(key, (None, None))
    if close is not None:
        close()


def _send(fd: int, connection: Connection, process: int) -> None:
    reduction.send_handle(connection, fd, process)


def lent(fd: int, device: int, inode: int) -> Any:
    """What a message says of a descriptor, which stays open here until it has been received."""
    if sys.platform != "linux" or get_spawning_popen() is not None:
        return reduction.DupFd(fd)
    told = _taken.here()
    copy = os.dup(fd)
    at = _sharer.register(partial(_send, copy), partial(os.close, copy))
    return at, os.getpid(), copy, device, inode, told


def detached(handle: Any) -> int:
    """The descriptor that `lent`, or the standard library's stand-in for one, stands for.

    Raises:
        RuntimeError: the process that sent it has ended, or sent something else.
    """
    if isinstance(handle, tuple):
        at, process, number, device, inode, told = handle
        if (fd := _opened(process, number, (device, inode))) is None:
            return _sent(at)
        if not _tell(process, told, at[1]):
            with contextlib.suppress(RuntimeError):  # who sent it has ended meanwhile
                os.close(_sent(at))  # which lets it go there
        return fd
    if not isinstance(handle, resource_sharer.DupFd):
        return handle.detach()  # of arguments of a process that is being started
    stand_in: Any = handle
    return _sent(stand_in._id)


def _opened(process: int, number: int, facts: tuple[int, int]) -> int | None:
    """What another process has open, if that is the file of these facts; None if it is not."""
    path = _OPEN.format(process, number)
    try:
        # Looked at first: opening something else, as of a process of another name space, may act.
        if not _is(os.stat(path), facts):
            return None
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in _NO_MORE:
            raise _too_many() from error
        return None
    if _is(os.fstat(fd), facts):
        return fd
    os.close(fd)
    return None


def _is(found: os.stat_result, facts: tuple[int, int]) -> bool:
    return (found.st_dev, found.st_ino) == facts


def _tell(process: int, told: tuple[int, int], key: int) -> bool:
    """Say that a descriptor was opened; whether there was somebody to say it to."""
    if process == os.getpid():
        _let_go_of(key)
        return True
    path = _OPEN.format(process, told[0])
    try:
        if os.stat(path).st_ino != told[1]:
            return False
        pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.write(pipe, key.to_bytes(_KEY_BYTES, "little")) == _KEY_BYTES
    except OSError:  # full, or nobody reads
        return False
    finally:
        os.close(pipe)


def _sent(at: Any) -> int:
    """The descriptor that the standard library's thread of another process sends."""
    try:
        with _sharer.get_connection(at) as connection:
            return receive(connection)
    except (OSError, EOFError, AuthenticationError) as error:
        if isinstance(error, OSError) and error.errno in _NO_MORE:
            raise _too_many() from error
        raise RuntimeError(
            "the process that sent shared memory has ended, or let it go, before it was received: "
            f"{error or type(error).__name__}. It has to live until then: receive what it sent "
            "before you wait for its end"
        ) from error


def _too_many() -> RuntimeError:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return RuntimeError(
        "too many open files: a descriptor of shared memory cannot be received, for this process "
        f"may have {most} (ulimit -n). Let tensors that were received go, raise the limit, or "
        'share by name: multiprocessing.set_sharing_strategy("file_system")'
    )
