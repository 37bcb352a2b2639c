"""The stream that PyTorch wrote before 1.6: five pickles, then the storages."""

from __future__ import annotations

import inspect
import struct
import warnings
from typing import TYPE_CHECKING, Any

from flambeau._storages.typed import TypedStorage
from flambeau._storages.untyped import UntypedStorage
from flambeau._types import dtype as D
from flambeau.serialization._budget import shown
from flambeau.serialization._errors import CheckpointError
from flambeau.serialization._locations import fill

if TYPE_CHECKING:
    from flambeau.serialization._load import _Reader


LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
LEGACY_PROTOCOL = 1001


class SourceChangeWarning(Warning):
    """The source of a pickled module's class is not what it was when the file was written."""


def read_stream(reader: _Reader) -> Any:
    """The object of a stream; `reader` is the file being read.

    Raises:
        CheckpointError: it is damaged.
    """
    source, path = reader.source, reader.path
    storages: dict[str, tuple[Any, int, UntypedStorage]] = {}
    views: dict[str | None, Any] = {}
    promised = 0

    def plain(pid: object) -> Any:
        raise CheckpointError("a storage where none can be", path)

    def stored(pid: Any) -> TypedStorage:
        nonlocal promised
        pid = _as_texts(pid)
        if type(pid) is tuple and pid and pid[0] == "module" and len(pid) == 4:
            if reader.weights_only:
                raise CheckpointError("a module's class where only weights are allowed", path)
            _compare_source(*pid[1:])
            return pid[1]
        kind, key, location, count = reader.checked_id(pid, 6)
        known = storages.get(key)
        if known is None:
            size = count * (kind.itemsize if kind else 1)
            promised += size
            if promised > source.size:  # before any memory is taken
                raise CheckpointError(
                    f"the storages should have {promised} bytes or more, the file {source.size}",
                    path,
                )
            storage = reader.placed(bytes(size), kind or D.uint8, location)
            known = storages[key] = kind, count, storage
        whole = reader.typed(known, kind, count, key)
        return whole if pid[5] is None else part(whole, pid[5])

    def part(whole: object, view: object) -> Any:
        if type(view) is not tuple or len(view) != 3 or type(whole) is not TypedStorage:
            raise CheckpointError("damaged view of a storage", path)
        key, offset, size = _as_texts(view)
        if (
            type(offset) is not int
            or type(size) is not int
            or not 0 <= offset <= offset + size <= (len(whole))
        ):
            raise CheckpointError(f"view {shown(view)} reaches beyond its storage", path)
        if key is not None and (type(key) is not str or len(key) > 1000):
            raise CheckpointError("damaged view of a storage", path)
        if key not in views:
            if not whole._st._be.strided:  # a copy there
                reader.budget.copy(size * whole.element_size())
            views[key] = whole[offset : offset + size]
        return views[key]

    magic, at = reader.unpickled(source, 0, plain)
    version, at = reader.unpickled(source, at, plain)
    facts, at = reader.unpickled(source, at, plain)
    if type(magic) is not int or type(version) is not int or type(facts) is not dict:
        raise CheckpointError("unknown stream", path, 0)
    if magic != LEGACY_MAGIC or version != LEGACY_PROTOCOL:
        raise CheckpointError(f"unknown stream: protocol {shown(version)}", path, 0)
    if facts.get("little_endian", facts.get(b"little_endian")) is not True:
        raise CheckpointError("streams of big-endian computers are not supported", path, at)
    found, at = reader.unpickled(source, at, stored)
    keys, at = reader.unpickled(source, at, plain)
    keys = _as_texts(keys)
    if (
        type(keys) is not list
        or any(type(k) is not str for k in keys)
        or (set(keys) != set(storages) or len(keys) != len(storages))
    ):
        raise CheckpointError("the list of storages does not fit the object", path, at)
    for key in keys:
        kind, count, storage = storages[key]
        if at + 8 > source.size:
            raise CheckpointError("the file is cut off", path, at)
        (held,) = struct.unpack("<q", source.view(at, at + 8))
        size = count * (kind.itemsize if kind else 1)
        if held != count or at + 8 + size > source.size:
            raise CheckpointError(
                f"storage {shown(key)} of {count} elements is cut off or has another size ({held})",
                path,
                at,
            )
        if storage.device.type != "meta":
            fill(storage, source, at + 8, size)
        at += 8 + size
    reader.consumed = at
    return found


def _compare_source(cls: Any, file: object, source: object) -> None:
    try:
        current = inspect.getsource(cls)
    except (OSError, TypeError):
        return
    if source and current != source:
        warnings.warn(
            f"source code of class {cls.__module__}.{cls.__qualname__} has changed since the file "
            "was written; what it does with the saved state may have, too",
            SourceChangeWarning,
            stacklevel=2,
        )


def _as_texts(values: object) -> Any:
    """A tuple or list whose byte strings, which files of Python 2 may have, are texts."""
    if type(values) is not tuple and type(values) is not list:
        return values
    return type(values)(v.decode("ascii", "replace") if type(v) is bytes else v for v in values)
