"""Saving: the archive, the stream of old PyTorch, and other formats by name."""

from __future__ import annotations

import os
import pickle
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._storages.typed import LEGACY, FloatStorage
from flambeau.serialization import _formats
from flambeau.serialization._archive import ALIGNMENT, ArchiveWriter
from flambeau.serialization._files import replacing
from flambeau.serialization._pickler import (
    StorageTable,
    Stored,
    TorchPickler,
    host_bytes,
    reduced,
)
from flambeau.serialization._stream import LEGACY_MAGIC, LEGACY_PROTOCOL

if TYPE_CHECKING:
    from flambeau._types.dtype import dtype as DType


AS_ARCHIVES = True
"""Whether checkpoints are archives where nothing else is said, and not streams as before 1.6."""


@takes_as_annotated
def save(
    obj: object,
    f: object,
    pickle_module: object = pickle,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
    *,
    format: str | None = None,
) -> None:
    """Write an object to a file that `load`, and PyTorch's, can read.

    Tensors that share memory share it again after loading; of a view all the memory behind it is
    written.  A file given by its path is replaced when all data are on the disk, and otherwise left
    as it was.

    Args:
        obj: tensors, numbers, strings and containers of them, such as a ``state_dict``; other
            objects are pickled, and loading them needs ``weights_only=False``.
        f: a path, or a binary file object with ``write``.
        pickle_module: another module with a ``Pickler``; such files are for flambeau alone.
        pickle_protocol: PyTorch reads 2 with ``weights_only=True``.
        _use_new_zipfile_serialization: False writes the format of PyTorch before 1.6, with a
            warning, because it has no checksums: damage to numbers in such a file goes unnoticed.
        _disable_byteorder_record: leave out the note about the order of bytes.
        format: ``"safetensors"``, or what an installed plugin offers.

    Raises:
        OSError: the file cannot be written.
        RuntimeError: tensors of different dtypes share memory, or there is no such folder.
        ValueError: there is no such format.

    >>> import flambeau as fb, io
    >>> file = io.BytesIO(); x = fb.arange(4)
    >>> fb.save({"x": x, "tail": x[2:]}, file); _ = file.seek(0)
    >>> loaded = fb.load(file); loaded["x"][3] = 9; loaded["tail"]
    tensor([2, 9])
    """
    with _opened(f) as (file, root):
        if format is not None:
            _formats.named(format).save(obj, file)
        elif _use_new_zipfile_serialization and AS_ARCHIVES:
            no_byteorder = _disable_byteorder_record
            _write_archive(obj, file, root, pickle_module, pickle_protocol, no_byteorder)
        else:
            if AS_ARCHIVES:
                warnings.warn(
                    "the format of PyTorch before 1.6 carries no checksums: damage to the numbers "
                    "in such a file goes unnoticed. Write it only for programs that read nothing "
                    "newer",
                    UserWarning,
                    stacklevel=2,
                )
            _write_stream(obj, file, pickle_module, pickle_protocol)


@contextmanager
def _opened(f: Any) -> Iterator[tuple[Any, str]]:
    """The file object to write to, and the name of an archive's folder."""
    if isinstance(f, (str, bytes, os.PathLike)):
        folder, name = os.path.split(os.fsdecode(os.fspath(f)))
        if folder and not os.path.isdir(folder):
            raise RuntimeError(f"Parent directory {folder} does not exist.")
        with replacing(f) as file:
            yield file, os.path.splitext(name)[0] or "archive"
    elif hasattr(f, "write"):
        yield f, "archive"
        if hasattr(f, "flush"):
            f.flush()
    else:
        raise AttributeError(
            f"expected 'f' to be string, path, or a file-like object with a 'write' attribute, got "
            f"{type(f).__name__}"
        )


def _pickled(
    obj: object, module: object, protocol: int, table: StorageTable, legacy: bool
) -> bytes:
    out = BytesIO()
    if module is pickle:
        TorchPickler(out, protocol, table, legacy).dump(obj)
    else:
        _foreign_pickler(module, out, protocol, table, legacy).dump(obj)
    return out.getvalue()


def storage_class(dtype: DType) -> Any:
    """The storage class of a dtype: Python cannot import it under its name."""
    return LEGACY[dtype]


def _foreign_pickler(
    module: Any, out: BytesIO, protocol: int, table: StorageTable, legacy: bool
) -> pickle.Pickler:
    class Pickler(module.Pickler):  # type: ignore[misc]
        def persistent_id(self, obj: object) -> object:
            return table.id_of(obj, legacy=legacy) if type(obj) is Stored else None

        def reducer_override(self, obj: Any) -> object:
            if type(obj) is type(FloatStorage) and obj.dtype in LEGACY:
                return storage_class, (obj.dtype,)
            found = reduced(obj)
            if found is NotImplemented and hasattr(super(), "reducer_override"):
                return super().reducer_override(obj)
            return found

    return Pickler(out, protocol)


def _write_archive(
    obj: object, file: Any, root: str, module: object, protocol: int, no_byteorder: bool
) -> None:
    table = StorageTable()
    data = _pickled(obj, module, protocol, table, False)
    archive = ArchiveWriter(file.write, root)
    archive.record("data.pkl", data)
    archive.record(".format_version", b"1")
    archive.record(".storage_alignment", b"%d" % ALIGNMENT)
    if not no_byteorder:
        archive.record("byteorder", b"little")
    for key, st in table.found.items():
        archive.record(f"data/{key}", host_bytes(st))
    archive.record("version", b"3\n")
    archive.record(".data/serialization_id", _identity(archive))
    archive.close()


def _identity(archive: ArchiveWriter) -> bytes:
    """40 digits that differ between files of different contents."""
    import hashlib

    digest = hashlib.sha256(repr(archive.checksums()).encode()).hexdigest()
    return f"{int(digest, 16) % 10**40:040d}".encode()


def _write_stream(obj: object, file: Any, module: object, protocol: int) -> None:
    table = StorageTable()
    sizes = {"short": 2, "int": 4, "long": 4}
    facts = {"protocol_version": LEGACY_PROTOCOL, "little_endian": True, "type_sizes": sizes}
    body = _pickled(obj, module, protocol, table, True)
    for part in (LEGACY_MAGIC, LEGACY_PROTOCOL, facts):
        file.write(pickle.dumps(part, protocol=2))
    file.write(body)
    file.write(pickle.dumps(list(table.found), protocol=2))
    for key, st in table.found.items():
        data = memoryview(host_bytes(st))
        file.write(struct.pack("<q", data.nbytes // table.itemsize(key)))
        if data.nbytes:
            file.write(data.cast("B"))
