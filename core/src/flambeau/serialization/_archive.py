"""The container of checkpoints: a zip file whose records are stored as they are and aligned.

Written and read here rather than by `zipfile`, which inflates compressed records, copies every
record, and lets damaged files through or fails on them with errors of many classes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

from flambeau.serialization._budget import shown
from flambeau.serialization._checksum import crc32
from flambeau.serialization._errors import CheckpointError
from flambeau.serialization._source import Source

ALIGNMENT = 64
_LOCAL, _CENTRAL, _END = b"PK\3\4", b"PK\1\2", b"PK\5\6"
_END64, _LOCATOR64 = b"PK\6\6", b"PK\6\7"
_BIG = 0xFFFFFFFF
_UTF8 = 0x800
_DATE = 0x21  # 1980-01-01: the same bytes for the same data
_CHUNK = 1 << 22
_PART = 1 << 18  # bytes that are read and summed while the processor still has them


class ArchiveWriter:
    """Writes records one after the other.

    Args:
        write: takes bytes-like objects.
        root: name of the folder in the archive.
    """

    def __init__(self, write: Callable[[Any], Any], root: str) -> None:
        self._write = write
        self._root = root
        self._at = 0
        self._entries: list[tuple[bytes, int, int, int]] = []

    def _put(self, data: object, size: int) -> None:
        self._write(data)
        self._at += size

    def record(self, name: str, data: bytes | memoryview) -> None:
        """Append one record; `data` is any contiguous object with the buffer protocol."""
        view = memoryview(data).cast("B") if memoryview(data).nbytes else memoryview(b"")
        size, start = view.nbytes, self._at
        crc = crc32(view)
        full = f"{self._root}/{name}".encode()
        extra = struct.pack("<HHQQ", 1, 16, size, size) if size >= _BIG else b""
        head = 30 + len(full) + len(extra) + 4
        padding = -(start + head) % ALIGNMENT
        extra += b"FB" + struct.pack("<H", padding) + b"Z" * padding
        stated = min(size, _BIG)
        header = _LOCAL + struct.pack(
            "<HHHHHIIIHH",
            *(45 if size >= _BIG else 20, _UTF8, 0, 0, _DATE),
            *(crc, stated, stated, len(full), len(extra)),
        )
        self._put(header + full + extra, len(header) + len(full) + len(extra))
        for i in range(0, size, _CHUNK):
            part = view[i : i + _CHUNK]
            self._put(part, part.nbytes)
        self._entries.append((full, start, size, crc))

    def checksums(self) -> list[tuple[bytes, int]]:
        """Names and checksums of the records so far."""
        return [(name, crc) for name, _, _, crc in self._entries]

    def close(self) -> None:
        """Write the directory."""
        start = self._at
        for name, offset, size, crc in self._entries:
            wide = size >= _BIG or offset >= _BIG
            extra = struct.pack("<HHQQQ", 1, 24, size, size, offset) if wide else b""
            stated, place = (_BIG, _BIG) if wide else (size, offset)
            header = _CENTRAL + struct.pack(
                "<HHHHHHIIIHHHHHII",
                *(45, 45 if wide else 20, _UTF8, 0, 0, _DATE, crc, stated, stated),
                *(len(name), len(extra), 0, 0, 0, 0, place),
            )
            self._put(header + name + extra, len(header) + len(name) + len(extra))
        length, count = self._at - start, len(self._entries)
        if start + length >= _BIG or count >= 0xFFFF:
            end64 = self._at
            body = struct.pack("<HHIIQQQQ", 45, 45, 0, 0, count, count, length, start)
            record = _END64 + struct.pack("<Q", len(body)) + body
            record += _LOCATOR64 + struct.pack("<IQI", 0, end64, 1)
            self._put(record, len(record))
            end = (0xFFFF, 0xFFFF, min(length, _BIG), _BIG)
        else:
            end = (count, count, length, start)
        record = _END + struct.pack("<HHHHIIH", 0, 0, *end, 0)
        self._put(record, len(record))


class Record(NamedTuple):
    """Where a record's bytes are, and their checksum as written."""

    start: int
    size: int
    crc: int


class ArchiveReader:
    """The records of an archive, all bounds checked.

    Args:
        data: a `Source`, or the bytes.
        inflates: how many bytes a compressed record may become; 0 refuses such records.

    Raises:
        CheckpointError: it is no such archive, or damaged.
    """

    def __init__(self, data: object, path: str = "", inflates: int = 0) -> None:
        self._inflates = inflates
        self._inflated: dict[str, int] = {}
        self._source = data if isinstance(data, Source) else Source(data, path)
        self._path = self._source.path
        self.records: dict[str, Record] = {}
        try:
            self._read()
        except (struct.error, UnicodeDecodeError, ValueError, IndexError) as error:
            raise self._error(f"damaged archive: {error}") from error

    def _error(self, text: str, offset: int | None = None) -> CheckpointError:
        return CheckpointError(text, self._path, offset)

    def _bytes(self, start: int, stop: int) -> memoryview:
        if not 0 <= start <= stop <= self._source.size:
            raise self._error("the archive is cut off", min(max(start, 0), self._source.size))
        return self._source.view(start, stop)

    def _unpack(self, code: str, at: int) -> tuple[Any, ...]:
        return struct.unpack(code, self._bytes(at, at + struct.calcsize(code)))

    def _end(self) -> tuple[int, int, int]:
        total = self._source.size
        low = max(0, total - 22 - 0xFFFF)
        at = bytes(self._bytes(low, total)).rfind(_END)
        if at < 0:
            raise self._error(
                "no directory at the end: the file is cut off or no checkpoint", total
            )
        at += low
        disk, start_disk, here, count, length, start, comment = self._unpack("<HHHHIIH", at + 4)
        if at + 22 + comment != total:
            raise self._error("bytes after the end of the archive, or its last record damaged", at)
        finish = at
        if at >= 20 and bytes(self._bytes(at - 20, at - 16)) == _LOCATOR64:
            finish = self._unpack("<IQI", at - 16)[1]
            sig, body = self._unpack("<4sQ", finish)
            if sig != _END64 or body < 44 or finish + 12 + body != at - 20:
                raise self._error("damaged ZIP64 record", finish)
            fields = self._unpack("<HHIIQQQQ", finish + 12)
            disk, start_disk, here, count, length, start = fields[2:]
        if disk or start_disk or here != count or start + length != finish:
            raise self._error("the directory does not end where the archive says", at)
        return start, length, count

    def _read(self) -> None:
        first, length, count = self._end()
        entries = self._directory(first, self._bytes(first, first + length), count)
        last = 0
        # In the order of their places: where none overlaps, all headers are read in linear time.
        for local, name, size, crc in sorted(entries):
            if local < last:
                raise self._error("records overlap", local)
            start = self._local(name, crc, size, local)
            last = start + size
            if last > first:
                raise self._error("records overlap", local)
            short = name.partition("/")[2]
            self.records[short] = Record(start, size, crc)
            if name in self._inflated:
                self._inflated[short] = self._inflated.pop(name)

    def _directory(self, first: int, data: memoryview, count: int) -> list[Any]:
        """Place, name, size and checksum of all entries."""
        entries, names, root, at = [], set(), None, 0
        for _ in range(count):
            here, offset = at, first + at
            if at + 46 > len(data):
                raise self._error("damaged directory", offset)
            fields = _fields("<4sHHHHHHIIIHHHHHII", data, at)
            sig, flags, method, crc, packed, size = (fields[i] for i in (0, 3, 4, 7, 8, 9))
            n, m, k, local = fields[10], fields[11], fields[12], fields[16]
            at += 46 + n + m + k
            if sig != _CENTRAL or at > len(data):
                raise self._error("damaged directory", offset)
            name = bytes(data[here + 46 : here + 46 + n]).decode("utf-8")
            if m:
                extra = bytes(data[here + 46 + n : here + 46 + n + m])
                packed, size, local = _wide(extra, packed, size, local)
            if method == 8 and not flags & 1 and size <= self._inflates:
                self._inflated[name] = size
            elif method or packed != size or flags & 1:
                raise self._error(
                    f"record {shown(name)} is compressed or encrypted; checkpoints are neither",
                    offset,
                )
            folder, slash, _ = name.partition("/")
            if not slash or (root is not None and folder != root) or name in names:
                raise self._error(f"record {shown(name)} is out of place or there twice", offset)
            root = folder
            names.add(name)
            entries.append((local, name, packed, crc))
        if at != len(data):
            raise self._error("damaged directory", first + at)
        return entries

    def _local(self, name: str, crc: int, size: int, at: int) -> int:
        """Where the data of a record starts; its own header must say what the directory says."""
        encoded = name.encode()
        head = self._bytes(at, min(at + 30 + len(encoded) + 2 * ALIGNMENT, self._source.size))
        if len(head) < 30:
            raise self._error("the archive is cut off", at)
        fields = _fields("<4sHHHHHIIIHH", head, 0)
        sig, flags, method, crc2, packed, size2, n, m = (
            fields[i] for i in (0, 2, 3, 6, 7, 8, 9, 10)
        )
        start = at + 30 + n + m
        found = bytes(head[30 : 30 + n])
        if name not in self._inflated and method:
            raise self._error(f"the header of record {shown(name)} is damaged or cut off", at)
        if sig != _LOCAL or found != encoded or start + size > self._source.size:
            raise self._error(f"the header of record {shown(name)} is damaged or cut off", at)
        if not flags & 8:
            if packed == _BIG or size2 == _BIG:
                extra = bytes(self._bytes(at + 30 + n, start))
                packed, size2, _ = _wide(extra, packed, size2, 0)
            if (crc2, packed, size2) != (crc, size, self._inflated.get(name, size)):
                raise self._error(f"two different sizes or checksums of record {shown(name)}", at)
        return start

    def _found(self, name: str) -> Record:
        record = self.records.get(name)
        if record is None:
            raise self._error(f"record {shown(name)} is missing")
        return record

    def _compare(self, name: str, record: Record, crc: int) -> None:
        if record.crc and crc != record.crc:
            raise self._error(f"record {shown(name)} is damaged: wrong checksum", record.start)

    @property
    def size_of_file(self) -> int:
        """Bytes of the whole archive."""
        return self._source.size

    def size(self, name: str) -> int:
        """The number of bytes of a record.

        Raises:
            CheckpointError: there is no such record.
        """
        return self._found(name).size

    def read(self, name: str, *, verify: bool = True) -> memoryview:
        """The bytes of a record, to be read only.

        A checksum of 0 means that the writer did not compute it.

        Raises:
            CheckpointError: there is no such record, or its checksum does not fit.
        """
        record = self._found(name)
        view = self._source.view(record.start, record.start + record.size)
        if name in self._inflated:
            view = self._inflate(name, view)
        if verify:
            self._compare(name, record, crc32(view))
        return view

    def _inflate(self, name: str, view: memoryview) -> memoryview:
        size = self._inflated[name]
        try:
            data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(view, size + 1)
        except zlib.error as error:
            raise self._error(f"record {shown(name)} is damaged: {error}") from None
        if len(data) != size:
            raise self._error(f"record {shown(name)} is damaged: it has another size")
        return memoryview(data)

    def read_into(self, name: str, target: memoryview, *, verify: bool = True) -> None:
        """The bytes of a record, read into all of `target`, which has its size.

        Raises:
            CheckpointError: there is no such record, or its checksum does not fit.
        """
        record, crc = self._found(name), 0
        for i in range(0, record.size, _PART):
            part = target[i : i + _PART]
            self._source.into(record.start + i, part)
            if verify:
                crc = crc32(part, crc)  # while it is in the cache
        if verify:
            self._compare(name, record, crc)

    def check(self, name: str) -> None:
        """Compare the checksum of a record.

        Raises:
            CheckpointError: it does not fit.
        """
        record, crc = self._found(name), 0
        for i in range(record.start, record.start + record.size, _CHUNK):
            part = self._source.view(i, min(i + _CHUNK, record.start + record.size))
            crc = crc32(part, crc)
        self._compare(name, record, crc)


def _fields(code: str, data: memoryview, at: int) -> tuple[Any, ...]:
    """Numbers and signatures of a header; which is which is known to its reader."""
    return struct.unpack_from(code, data, at)


def _wide(extra: bytes, packed: int, size: int, local: int) -> tuple[int, int, int]:
    """The three numbers, those that do not fit 32 bits taken from the ZIP64 field."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            body = extra[at + 4 : at + 4 + length]
            held = min(len(body) // 8, 3)
            values = list(struct.unpack_from(f"<{held}Q", body))
            if size == _BIG:
                size = values.pop(0)
            if packed == _BIG:
                packed = values.pop(0)
            if local == _BIG:
                local = values.pop(0)
            break
        at += 4 + length
    return packed, size, local
