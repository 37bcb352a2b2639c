"""Descriptors of shared memory that come from other processes."""

from __future__ import annotations

import array
import errno
import os
import resource
import socket
from multiprocessing import AuthenticationError, reduction, resource_sharer
from multiprocessing.connection import Connection
from typing import Any

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


def detached(handle: Any) -> int:
    """The descriptor that the standard library's stand-in for one in a message brings.

    Raises:
        RuntimeError: the process that sent it has ended, or sent something else.
    """
    if not isinstance(handle, resource_sharer.DupFd):
        return handle.detach()  # of arguments of a process that is being started
    sharer: Any = resource_sharer._resource_sharer  # type: ignore[attr-defined] - not in the stubs
    at: Any = handle
    try:
        with sharer.get_connection(at._id) as connection:
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
