"""Loading: which format a file has, and how its storages and pickles are read."""

from __future__ import annotations

import contextlib
import io
import mmap as mapping
import os
import pickle
import stat
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._memory.views import storage_of
from flambeau._storages.foreign import Memory, tensor_over
from flambeau._storages.memory import swapped
from flambeau._storages.typed import TypedStorage, legacy_name
from flambeau._storages.untyped import UntypedStorage
from flambeau._types import dtype as D
from flambeau.serialization import _formats, _names, safetensors
from flambeau.serialization._archive import ArchiveReader
from flambeau.serialization._budget import LARGEST, Budget, current, shown
from flambeau.serialization._errors import CheckpointError
from flambeau.serialization._globals import globals_of
from flambeau.serialization._interpreter import Interpreter
from flambeau.serialization._locations import MapLocation, direct, made, restored, visible
from flambeau.serialization._rebuild import check_positions
from flambeau.serialization._source import FileSource, Source
from flambeau.serialization._stream import read_stream

if TYPE_CHECKING:
    from flambeau._types.dtype import dtype as DType


_KINDS = {legacy_name(d): d for d in D.ALL}
_SMALL = 1 << 14  # bytes of a storage that are copied once more, which costs less than to arrange
_LONGEST = 1000  # characters of the key and the place of a storage


@takes_as_annotated
def load(
    f: object,
    map_location: MapLocation = None,
    pickle_module: object = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    verify: bool | None = None,
    **pickle_load_args: object,
) -> Any:
    """Read what `save`, or PyTorch's, wrote.

    With ``weights_only=True``, the default, the pickle in the file is read by an interpreter that
    builds tensors and plain containers and calls nothing else, so that files of strangers are
    harmless.  There is no silent change to the other way: where the call does not say it, the
    environment variable ``TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1`` asks for it, with a warning.

    Args:
        f: a path, or a binary file object with ``read``.
        map_location: where storages shall live: a device, its name, a dict from saved to wanted
            names, or a function of (storage on the CPU, saved name) that returns a storage or None.
        pickle_module: another module with an ``Unpickler``, for ``weights_only=False``.
        weights_only: False runs whatever the file says, with your rights.  Only for files of
            people whom you would let do that.
        mmap: read tensors from the disk when they are used; for files given by path.  Writes to
            them stay in memory.  Whoever cuts the file afterwards kills the process when it looks
            at the missing part (SIGBUS), as with PyTorch; without `mmap` files are read and the
            loss is a `CheckpointError`.
        verify: whether to compare the checksums of all records; by default yes, without `mmap`.
        pickle_load_args: ``encoding`` for byte strings of Python 2.

    Raises:
        CheckpointError: the file is damaged, cut off, or not a checkpoint.
        WeightsOnlyError: it contains what ``weights_only=True`` does not let in; a
            `CheckpointError` and `pickle.UnpicklingError`.
        FileNotFoundError: there is no such file.
        RuntimeError: a storage belongs to a device that is not there.

    >>> import flambeau as fb, tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     fb.save({"weight": fb.ones(2)}, file.name)
    ...     fb.load(file.name, map_location="meta")["weight"].device
    device(type='meta')
    """
    weights_only = _as_asked(weights_only)
    if weights_only and pickle_module is not None:
        raise RuntimeError(
            "pickle_module= is for weights_only=False: with weights_only=True no pickle module runs"
        )
    by_path = isinstance(f, (str, bytes, os.PathLike))
    if mmap and not by_path:
        raise ValueError("f must be a file filename in order to use the mmap argument")
    if not weights_only:
        _say_once()
    with _opened(f, bool(mmap)) as (source, mapped, finish):
        reader = _Reader(
            source,
            map_location,
            pickle_module or pickle,
            weights_only,
            mapped,
            not mmap if verify is None else verify,
            pickle_load_args,
        )
        found = reader.object()
        finish(reader.consumed)
    return found


_said = False


def _say_once() -> None:
    global _said
    if not _said:
        _said = True
        warnings.warn(
            "load(weights_only=False) runs the code that a file names, with everything that you "
            "may do on this computer: only for files of people whom you would let do that. "
            "This is said once per process",
            UserWarning,
            stacklevel=3,
        )


def _as_asked(weights_only: bool | None) -> bool:
    """What the call says, or else the environment, by PyTorch's variables; True without either."""
    only, anything = (
        os.environ.get(f"TORCH_FORCE_{name}_LOAD", "0").lower() in ("1", "y", "yes", "true")
        for name in ("WEIGHTS_ONLY", "NO_WEIGHTS_ONLY")
    )
    if only and anything:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` "
            "should be set, but both were set."
        )
    if anything and weights_only is None:
        return False
    return only or weights_only is not False


@takes_as_annotated
def verify(f: Any) -> None:
    """Compare the checksums of all records of an archive; nothing is loaded.

    Raises:
        CheckpointError: the file is damaged.

    >>> import flambeau as fb, io
    >>> file = io.BytesIO(); fb.save([1], file); _ = file.seek(0); fb.serialization.verify(file)
    """
    with _opened(f, False) as (source, _, _):
        archive = ArchiveReader(source)
        for name in archive.records:
            archive.check(name)


@takes_as_annotated
def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The full names that an archive uses and that ``weights_only=True`` does not let in.

    Nothing of the file is loaded or called.  What `add_safe_globals` has allowed is not listed.

    Args:
        f: a path, or a binary file object with ``read``.

    Raises:
        CheckpointError: it is no archive of `save`, or its pickle is damaged.

    >>> import flambeau as fb, io, fractions
    >>> file = io.BytesIO(); fb.save([fractions.Fraction(1, 3)], file); _ = file.seek(0)
    >>> fb.serialization.get_unsafe_globals_in_checkpoint(file)
    ['fractions.Fraction']
    """
    with _opened(f, False) as (source, _, _):
        archive = ArchiveReader(source)
        named = globals_of(bytes(archive.read("data.pkl")), source.path)
    return [f"{module}.{name}" for module, name in named if not _names.is_safe(module, name)]


_WHOLE = 1 << 20  # bytes of a file that is read at once


@contextlib.contextmanager
def _opened(f: Any, mmap: bool) -> Iterator[tuple[Source, Any, Callable[[int], object]]]:
    """The bytes of a file, a map of it, and what to call with the number of bytes used."""
    if isinstance(f, (str, bytes, os.PathLike)):
        path = os.fsdecode(os.fspath(f))
        with open(path, "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            regular = stat.S_ISREG(status.st_mode)
            if stat.S_ISCHR(status.st_mode):  # what /dev/zero has to give, no memory holds
                raise CheckpointError("a device is no checkpoint", path)
            if not regular or (status.st_size <= _WHOLE and not mmap):
                yield Source(file.readall(), path), None, lambda used: None
                return
            mapped = _mapped(file) if mmap else None
            size = status.st_size if mapped is None else len(mapped)
            yield FileSource(file, size, path), mapped, lambda used: None
        return
    if not hasattr(f, "read"):
        raise AttributeError(
            f"expected 'f' to be string, path, or a file-like object with a 'read' attribute, got "
            f"{type(f).__name__}"
        )
    name = getattr(f, "name", None)
    path = name if isinstance(name, str) else f"<{type(f).__name__}>"
    start = f.tell() if hasattr(f, "tell") and _seekable(f) else None
    data = f.read()
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"load needs a file opened in binary mode; reading {path} gave text")

    def finish(used: int) -> None:
        if start is not None:
            f.seek(start + used)

    yield Source(data, path), None, finish


def _mapped(file: io.FileIO) -> Any:
    try:
        return mapping.mmap(file.fileno(), 0, access=mapping.ACCESS_COPY)
    except (OSError, ValueError):  # an empty file, or a file system without maps
        return None


def _seekable(f: Any) -> bool:
    try:
        return not hasattr(f, "seekable") or f.seekable()
    except ValueError:
        return False


class _Reader:
    """One file being read."""

    def __init__(
        self,
        source: Source,
        map_location: MapLocation,
        module: Any,
        weights_only: bool,
        mapped: Any,
        verify: bool,
        options: dict[str, Any],
    ) -> None:
        self.source = source
        self.path = source.path
        self.map_location = map_location
        self.module = module
        self.weights_only = weights_only
        self.mapped = mapped
        self.verify = verify
        self.options = options
        self.consumed = source.size
        self.budget = Budget(source.size if weights_only else None)
        self._storages: dict[str, tuple[Any, int, UntypedStorage]] = {}

    def object(self) -> Any:
        """The object in the file.

        Raises:
            CheckpointError: it is damaged.
        """
        token = current.set(self.budget)
        try:
            found = self._recognised()
            for t in self.budget.unchecked:
                try:
                    check_positions(t, self.budget)
                except ValueError as error:
                    raise CheckpointError(str(error), self.path) from error
        finally:
            current.reset(token)
        return found

    def _recognised(self) -> Any:
        head = bytes(self.source.view(0, min(512, self.source.size)))
        if head[:4] == b"PK\3\4":
            return self._archived()
        if head[:1] == b"\x80" and b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19." in head[:32]:
            if self.mapped is not None:
                raise RuntimeError(
                    f"{self.path}: mmap=True needs the archive format; this file has the older one"
                )
            return read_stream(self)
        format = _formats.sniffed(head)
        if format is safetensors.FORMAT:  # without a copy of the file
            return safetensors.read(self.source, self.map_location, verify=self.verify)
        if format is not None:
            data = self.source.view(0, self.source.size)
            return format.load(data, self.path, self.map_location, self.weights_only)
        raise CheckpointError(
            "this is no checkpoint: it begins neither as an archive nor as the stream of PyTorch "
            "before 1.6, nor as a format of an installed plugin",
            self.path,
            0,
        )

    def _archived(self) -> Any:
        self.archive = archive = ArchiveReader(self.source)
        if "constants.pkl" in archive.records:
            raise CheckpointError("this is a TorchScript archive: use jit.load", self.path)
        if self.verify:
            for name in archive.records:
                if not name.startswith("data/"):
                    archive.check(name)
        order = bytes(archive.read("byteorder")) if "byteorder" in archive.records else b"little"
        if order not in (b"little", b"big"):
            raise CheckpointError(f"unknown order of bytes {shown(order)}", self.path)
        self._swap = order == b"big"
        body = Source(archive.read("data.pkl"), self.path)
        found, _ = self.unpickled(body, 0, self._stored)
        if self.verify:
            for name in archive.records:
                if name.startswith("data/") and name[5:] not in self._storages:
                    archive.check(name)
        return found

    def _stored(self, pid: object) -> TypedStorage:
        kind, key, location, count = self.checked_id(pid, 5)
        known = self._storages.get(key)
        if known is None:
            size = count * (kind.itemsize if kind else 1)
            held = self.archive.size(f"data/{key}")
            if held != size:
                raise CheckpointError(
                    f"storage {shown(key)} should have {shown(size)} bytes, its record has {held}",
                    self.path,
                    self.archive.records[f"data/{key}"].start,
                )
            known = self._storages[key] = kind, count, self._placed(key, size, kind, location)
        return self.typed(known, kind, count, key)

    def checked_id(self, pid: object, length: int) -> tuple[Any, str, str, int]:
        """dtype (None for bytes), key, location and number of elements of a persistent id."""
        if type(pid) is not tuple or len(pid) != length or type(pid[0]) is not str:
            raise CheckpointError(f"persistent id {shown(pid)} is no storage", self.path)
        if pid[0] != "storage":
            raise CheckpointError(f"persistent id {shown(pid)} is no storage", self.path)
        kind, key, location, count = pid[1:5]
        if type(location) is bytes and len(location) <= _LONGEST:
            location = location.decode("ascii")
        if type(key) is not str or type(location) is not str or type(count) is not int or count < 0:
            raise CheckpointError("a storage's key, place or size is no such thing", self.path)
        if len(key) > _LONGEST or len(location) > _LONGEST or count >= LARGEST:
            raise CheckpointError("a storage's key, place or size is too long", self.path)
        if kind is UntypedStorage:
            return None, key, location, count
        dtype = _KINDS.get(kind.__name__) if isinstance(kind, type) else None
        if dtype is None:
            text = f"{shown(kind)} is no class of storages that flambeau has"
            raise CheckpointError(text, self.path)
        return dtype, key, location, count

    def typed(self, known: Any, kind: Any, count: int, key: str) -> TypedStorage:
        """The storage object of an id; ids of one key must agree."""
        if known[0] is not kind or known[1] != count:
            raise CheckpointError(
                f"storage {shown(key)} is named with two types or sizes", self.path
            )
        return known[2] if kind is None else TypedStorage(wrap_storage=known[2], dtype=kind)

    def _placed(self, key: str, size: int, kind: Any, location: str) -> UntypedStorage:
        dtype, name = kind or D.uint8, f"data/{key}"
        if self._swap and dtype.itemsize > 1:
            data = bytes(self.archive.read(name, verify=self.verify))
            return self.placed(swapped(data, dtype.to_real().itemsize), dtype, location)
        start = self.archive.records[name].start
        # The alignment of a stranger's records is not that of its numbers.
        if self.mapped is not None and size and not start % dtype.itemsize:
            if self.verify:
                self.archive.check(name)
            if sys.byteorder == "little":
                storage = self._over_map(memoryview(self.mapped)[start : start + size], dtype)
                return restored(storage, location, self.map_location)
        if size > _SMALL:
            found = self._read_into(name, size, dtype, location)
            if found is not None:
                return found
        return self.placed(self.archive.read(name, verify=self.verify), dtype, location)

    def _read_into(
        self, name: str, size: int, dtype: DType, location: str
    ) -> UntypedStorage | None:
        """A storage into whose memory a record is read; None where the host does not see it."""
        target = direct(location, self.map_location)
        room = visible(size, dtype, "cpu" if target is None else target)
        if room is None:
            return None
        storage, memory = room
        self.archive.read_into(name, memory, verify=self.verify)
        return storage if target is not None else restored(storage, location, self.map_location)

    def placed(self, view: object, dtype: DType, location: str) -> UntypedStorage:
        """A storage of a copy of bytes, where `map_location` wants it."""
        target = direct(location, self.map_location)
        if target is not None:
            return made(view, dtype, target)
        return restored(made(view, dtype, "cpu"), location, self.map_location)

    def _over_map(self, view: memoryview, dtype: DType) -> UntypedStorage:
        count = view.nbytes // dtype.itemsize
        st = storage_of(tensor_over(Memory(view, (count,), (1,), dtype), dtype))
        return UntypedStorage._of(st)

    def unpickled(
        self, source: Source, start: int, persistent: Callable[..., Any]
    ) -> tuple[Any, int]:
        """The object of a pickle, and where it ends."""
        if not self.weights_only:
            return self._unrestricted(source, start, persistent)
        machine = Interpreter(
            source,
            find=_names.find_safe,
            may_call=_names.may_call,
            may_build=_names.may_build,
            persistent=persistent,
            budget=self.budget,
            encoding=self.options.get("encoding", "utf-8"),
        )
        return machine.run(start)

    def _unrestricted(
        self, source: Source, start: int, persistent: Callable[..., Any]
    ) -> tuple[Any, int]:
        class Unpickler(self.module.Unpickler):  # type: ignore[misc, name-defined]
            def find_class(self, module: str, name: str) -> Callable[..., Any]:
                found = _names.find_any(module, name)
                return super().find_class(module, name) if found is None else found

            def persistent_load(self, pid: object) -> TypedStorage:
                return persistent(pid)

        file = source.stream(start)
        options = {"encoding": "utf-8", **self.options}
        try:
            found = Unpickler(file, **options).load()
        except CheckpointError:
            raise
        except (
            pickle.UnpicklingError,
            EOFError,
            UnicodeDecodeError,
            IndexError,
            KeyError,
        ) as error:
            raise CheckpointError(
                f"damaged pickle: {type(error).__name__}: {error}", self.path, file.tell()
            ) from error
        return found, file.tell()
