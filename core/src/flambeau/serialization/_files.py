"""Files that are replaced whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from typing import Any

try:
    import fcntl
except ImportError:  # Windows: an open file cannot be removed there, which serves the same end
    fcntl = None  # type: ignore[assignment]

_SUFFIX = ".flambeau-partial"


@contextlib.contextmanager
def replacing(path: Any) -> Iterator[Any]:
    """A binary file to write; when the block ends well it takes the place of `path`.

    The data reach the disk before the name does, so that whatever happens (an exception, a killed
    process, a power cut) `path` has its old contents or the new ones.  What killed processes left
    behind is removed.  Links are followed; what is no regular file (a pipe, a device) is written to
    directly.

    Raises:
        OSError: the file cannot be written, for example because the disk is full.
    """
    target = os.path.realpath(os.fspath(path))
    if os.path.islink(target):  # of a circle of links
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fsdecode(target))
    if os.path.exists(target) and not stat.S_ISREG(os.stat(target).st_mode):
        with open(target, "wb") as f:
            yield f
        return
    if isinstance(target, bytes):
        target = os.fsdecode(target)
    folder, name = os.path.split(target)
    remove_leftovers(folder, name)
    partial, fd = _create(folder, name)
    try:
        with open(fd, "wb") as f:
            yield f
            f.flush()
            if os.path.exists(target):
                os.chmod(partial, stat.S_IMODE(os.stat(target).st_mode))
            os.fsync(f.fileno())
            os.replace(partial, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise
    _sync_folder(folder)


def unfinished(folder: str, name: str) -> tuple[str, int]:
    """Path and descriptor of an unfinished file of `name`: one that this user's process left when
    it ended, to be continued, or a new one."""
    for entry in sorted(os.listdir(folder)):
        if fcntl is None:
            break
        if not entry.startswith(f".{name[:200]}.") or not entry.endswith(_SUFFIX):
            continue
        path = os.path.join(folder, entry)
        with contextlib.suppress(OSError):
            fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                found = os.fstat(fd)
                mine = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
                if mine and found.st_nlink == 1:
                    return path, fd
            except OSError:
                pass
            os.close(fd)
    return _create(folder, name)


def _create(folder: str, name: str) -> tuple[str, int]:
    while True:
        partial = os.path.join(folder, f".{name[:200]}.{secrets.token_hex(6)}{_SUFFIX}")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        fd = os.open(partial, flags, 0o666)
        if fcntl is None:
            return partial, fd
        with contextlib.suppress(OSError):  # file systems without locks
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(fd).st_nlink:  # somebody who cleans up may have taken it before it was locked
            return partial, fd
        os.close(fd)


def remove_leftovers(folder: str, name: str) -> None:
    """Remove unfinished files of `name` whose writers are gone: nobody holds their lock."""
    with contextlib.suppress(OSError):
        found = [e for e in os.listdir(folder or ".") if e.endswith(_SUFFIX)]
        for entry in found:
            if not entry.startswith(f".{name[:200]}."):
                continue
            with contextlib.suppress(OSError):
                _remove_if_abandoned(os.path.join(folder, entry))


def _remove_if_abandoned(path: str) -> None:
    if fcntl is None:
        os.unlink(path)
        return
    fd = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)
    finally:
        os.close(fd)


def _sync_folder(folder: str) -> None:
    if os.name != "posix":
        return
    fd = os.open(folder or ".", os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some network file systems do not sync folders
            os.fsync(fd)
    finally:
        os.close(fd)
