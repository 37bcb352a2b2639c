"""The bytes of a file: in memory, or on the disk and read in parts.

Files are read rather than mapped, because a map of a file that somebody cuts kills the process that
looks at it, whereas a read comes back short.
"""

from __future__ import annotations

import io
from typing import Any

from flambeau.serialization._errors import CheckpointError

_FIRST = 1 << 16  # bytes of a pickle that are read at once, at first
_CHUNK = 1 << 22


class Source:
    """Bytes in memory.

    Attributes:
        size: how many there are.
        path: the file's name, or a description of where the bytes are from.
    """

    def __init__(self, data: Any, path: str) -> None:
        self._held = memoryview(data)
        self.size = self._held.nbytes
        self.path = path

    def view(self, start: int, stop: int) -> memoryview:
        """The bytes from `start` to `stop`, which lie within the file; to be read only."""
        return self._held[start:stop]

    def into(self, start: int, target: memoryview) -> None:
        """Copy the bytes from `start` on into all of `target`."""
        target[:] = self._held[start : start + target.nbytes]

    def begin(self, stop: int) -> memoryview:
        """The bytes from the first to the one before `stop`, or more."""
        return self._held

    def stream(self, start: int) -> io.BufferedReader:
        """A file object that reads from `start` on."""
        raw = _Raw(self)
        raw.seek(start)
        return io.BufferedReader(raw)


class FileSource(Source):
    """Bytes on the disk.

    Args:
        file: an unbuffered file, of which nobody else moves the position.
        size: its length; what is written behind it later is not read.
    """

    def __init__(self, file: io.FileIO, size: int, path: str) -> None:
        self._file = file
        self.size = size
        self.path = path
        self._held = memoryview(b"")

    def view(self, start: int, stop: int) -> memoryview:
        """The bytes from `start` to `stop`, a copy.

        Raises:
            CheckpointError: the file has become shorter.
        """
        self._file.seek(start)
        data = self._file.read(stop - start)
        if len(data) < stop - start:
            rest = bytearray(stop - start)
            rest[: len(data)] = data
            self.into(start + len(data), memoryview(rest)[len(data) :])
            return memoryview(rest)
        return memoryview(data)

    def into(self, start: int, target: memoryview) -> None:
        """Read the bytes from `start` on into all of `target`.

        Raises:
            CheckpointError: the file has become shorter.
        """
        self._file.seek(start)
        at = 0
        while at < target.nbytes:
            count = self._file.readinto(target[at : at + _CHUNK])
            if not count:
                text = "the file became shorter while it was read"
                raise CheckpointError(text, self.path, start + at)
            at += count

    def begin(self, stop: int) -> memoryview:
        """The bytes from the first to the one before `stop`, or more; at least twice as many as
        the last time, so that asking for ever more costs as much as reading once."""
        if stop > self._held.nbytes:
            wanted = max(stop, 2 * self._held.nbytes, _FIRST)
            self._held = self.view(0, min(wanted, self.size))
        return self._held


class _Raw(io.RawIOBase):
    """A source as Python's unpickler reads it."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = (0, self._at, self._source.size)[whence]
        self._at = base + offset
        return self._at

    def readinto(self, target: Any) -> int:
        view = memoryview(target).cast("B")
        count = max(0, min(view.nbytes, self._source.size - self._at))
        self._source.into(self._at, view[:count])
        self._at += count
        return count
