"""A store in a file that all processes see: one record for each change."""

from __future__ import annotations

import errno
import fcntl
import operator
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from flambeau._dispatch.annotated import all_take_as_annotated
from flambeau.distributed._server import LARGEST, Frames, pack
from flambeau.distributed._stores import Store, Value, as_bytes, as_key, as_keys


class FileStore(Store):
    """A store in a file, for processes that share a file system which can lock (`fcntl`).

    The file is removed when the last of `world_size` stores over it is closed or collected.  A file
    with something else in it is refused and stays as it is.

    Args:
        file_name: a file that does not exist, or is empty, when the first process comes; or
            ``os.devnull``, if there will be one store only, which then leaves nothing anywhere.
        world_size: how many stores there will be; -1 leaves the file.

    Raises:
        OSError: the file cannot be opened.
        ValueError: it holds something else, or is no regular file.

    >>> import flambeau as fb, tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = fb.distributed.FileStore(os.path.join(folder, "store"), 1)
    ...     store.set("a", "1"); value = store.get("a")
    >>> value
    b'1'
    """

    _how = 0  # to open it, beside what every store needs
    _fd = -1  # of a store that was refused, too

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self.path = os.fspath(file_name)
        self._size = operator.index(world_size)
        self._pid = os.getpid()
        self._values: dict[str, bytes] = {}
        self._read = 0
        self._frames = Frames()
        self._open()

    def _open(self) -> None:
        # What is opened here is closed without being counted as a store that was.
        if self._size == 1 and os.path.realpath(self.path) == os.devnull:
            self._size = -1  # it has no file to remove
            with tempfile.TemporaryFile() as file:
                self._fd = os.dup(file.fileno())
            return
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | self._how, 0o600)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise self._odd()
            fcntl.flock(fd, fcntl.LOCK_SH)
            head = os.pread(fd, 8, 0)
            size, first = int.from_bytes(head[:4], "big"), int.from_bytes(head[4:], "big")
            if head and (len(head) < 8 or first + 4 > size or size > LARGEST):
                raise self._odd()
            fcntl.flock(fd, fcntl.LOCK_UN)
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd

    def _odd(self) -> ValueError:
        return ValueError(f"FileStore: the file {self.path} is there, and is none of a store")

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        fcntl.flock(self._fd, how)
        try:
            self._refresh()
            yield
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _refresh(self) -> None:
        while data := os.pread(self._fd, 1 << 20, self._read):
            self._read += len(data)
            try:
                for key, *value in self._frames.feed(data):
                    if value:
                        self._values[key.decode()] = value[0]
                    else:
                        self._values.pop(key.decode(), None)
            except ValueError:
                raise self._odd() from None

    def _append(self, key: str, *value: bytes) -> None:
        record = pack(as_bytes(as_key(key)), *value)
        while record:
            written = os.pwrite(self._fd, record, os.fstat(self._fd).st_size)
            record = record[written:]

    def set(self, key: str, value: Value) -> None:
        """Keep `value` under `key`."""
        with self._locked(fcntl.LOCK_EX):
            self._append(key, as_bytes(value))

    def add(self, key: str, amount: int) -> int:
        """Add to the number under `key`, 0 at first, and return it."""
        with self._locked(fcntl.LOCK_EX):
            total = int(self._values.get(as_key(key), b"0")) + amount
            self._append(key, b"%d" % total)
        return total

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        with self._locked(fcntl.LOCK_SH):
            return all(key in self._values for key in as_keys(keys))

    def compare_set(self, key: str, expected_value: Value, desired_value: Value) -> bytes:
        """Set `key` if it holds `expected_value` (empty: nothing); what it holds then."""
        expected, desired = as_bytes(expected_value), as_bytes(desired_value)
        with self._locked(fcntl.LOCK_EX):
            held = self._values.get(as_key(key))
            if held == expected or (held is None and not expected):
                self._append(key, desired)
                held = desired
        return expected if held is None else held

    def delete_key(self, key: str) -> bool:
        """Remove a key; whether there was one."""
        with self._locked(fcntl.LOCK_EX):
            if as_key(key) not in self._values:
                return False
            self._append(key)
        return True

    def num_keys(self) -> int:
        """The number of keys."""
        with self._locked(fcntl.LOCK_SH):
            return sum(key != _CLOSED for key in self._values)

    def _value(self, key: str) -> bytes:
        return self._values[key]

    def close(self) -> None:
        """Close the file, and remove it if this was the last store over it."""
        if self._fd < 0:
            return
        fd = self._fd
        try:
            if self._size > 0 and os.getpid() == self._pid:
                # The lock of another process that does the same keeps the count exact.
                if self.add(_CLOSED, 1) == self._size:
                    os.unlink(self.path)
        except FileNotFoundError:
            pass
        finally:
            self._fd = -1
            os.close(fd)

    def __del__(self) -> None:
        self.close()


class OwnFileStore(FileStore):
    """A store in a file at a place that others can foresee and write to, as in ``/tmp``.

    Raises:
        RuntimeError: somebody else has put something there.
    """

    _how = os.O_NOFOLLOW  # a link would have a file made where it leads

    def _open(self) -> None:
        try:
            super()._open()
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise self._stranger() from error
        facts, own = os.fstat(self._fd), os.lstat(self.path)
        if (
            facts.st_uid != os.geteuid()
            or facts.st_mode & 0o077
            or facts.st_nlink != 1
            or (facts.st_dev, facts.st_ino) != (own.st_dev, own.st_ino)
        ):
            os.close(self._fd)
            self._fd = -1
            raise self._stranger()

    def _stranger(self) -> RuntimeError:
        return RuntimeError(
            f"{self.path}, where the processes of this job would meet, is not theirs alone: "
            "somebody has put it there. Set MASTER_ADDR and MASTER_PORT"
        )


_CLOSED = "\0closed"


all_take_as_annotated(globals())
