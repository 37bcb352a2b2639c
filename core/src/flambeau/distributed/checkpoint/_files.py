"""The folder of a checkpoint: parts of processes, and the table of contents that makes them one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from io import BytesIO
from typing import Any

from flambeau import Tensor
from flambeau.serialization import CheckpointError, WeightsOnlyError
from flambeau.serialization import load as _load
from flambeau.serialization import save as _save

_CONTENTS = ".metadata"
_PART = ".distcp"


@dataclass(frozen=True)
class TensorStorageMetadata:
    """What a checkpoint says of a tensor.

    Attributes:
        size: its shape.
        dtype: as ``str(dtype)``.
    """

    size: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class BytesStorageMetadata:
    """What a checkpoint says of an object that is no tensor: nothing."""


@dataclass(frozen=True)
class Metadata:
    """The table of contents of a checkpoint.

    Attributes:
        state_dict_metadata: what is there, by its keys joined with dots.
        storage_data: in which file it is.
    """

    state_dict_metadata: dict[str, TensorStorageMetadata | BytesStorageMetadata]
    storage_data: dict[str, str] = field(default_factory=dict)


class FileSystemWriter:
    """Writes the checkpoint of a folder, which all processes have to see.

    Args:
        path: the folder; it is made if there is none.
        weights_only: refuse what `flambeau.load` with ``weights_only=True`` would not let in; False
            writes any object, for a `FileSystemReader` with ``weights_only=False``.

    >>> import flambeau.distributed.checkpoint as dcp
    >>> dcp.FileSystemWriter("step_100").path
    'step_100'
    """

    def __init__(self, path: str | os.PathLike[str], weights_only: bool = True) -> None:
        self.path = os.fspath(path)
        self.weights_only = weights_only

    def write_part(self, name: str, values: Mapping[str, Any]) -> None:
        """Write what belongs to one process into a file that no checkpoint names yet.

        Raises:
            WeightsOnlyError: a reader with ``weights_only=True`` could not load it again.
        """
        if self.weights_only:
            for key, value in values.items():
                _require_loadable(key, value)
        os.makedirs(self.path, exist_ok=True)
        _save(dict(values), os.path.join(self.path, name + _PART))

    def finish(self, metadata: Metadata) -> None:
        """Make the parts the checkpoint of the folder, and remove those of others."""
        os.makedirs(self.path, exist_ok=True)
        tensors, others = {}, []
        for key, about in metadata.state_dict_metadata.items():
            if isinstance(about, TensorStorageMetadata):
                tensors[key] = asdict(about)
            else:
                others.append(key)
        told = {"tensors": tensors, "others": others, "files": metadata.storage_data}
        _save(told, os.path.join(self.path, _CONTENTS))
        named = {name + _PART for name in metadata.storage_data.values()}
        for entry in os.listdir(self.path):
            if entry.endswith(_PART) and entry not in named:
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(self.path, entry))


class FileSystemReader:
    """Reads the checkpoint of a folder.

    Args:
        path: the folder.
        weights_only: let in tensors and plain containers alone, as `flambeau.load` does; False runs
            whatever the files say, with your rights.

    >>> import flambeau as fb, tempfile
    >>> import flambeau.distributed.checkpoint as dcp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = dcp.save({"x": fb.zeros(2, 3)}, checkpoint_id=folder)
    ...     dcp.FileSystemReader(folder).read_metadata().state_dict_metadata["x"].size
    (2, 3)
    """

    def __init__(self, path: str | os.PathLike[str], weights_only: bool = True) -> None:
        self.path = os.fspath(path)
        self.weights_only = weights_only

    def read_metadata(self) -> Metadata:
        """The table of contents.

        Raises:
            CheckpointError: what is there is no table of contents, or is damaged.
            FileNotFoundError: there is no checkpoint in the folder.
        """
        path = os.path.join(self.path, _CONTENTS)
        if not os.path.exists(path):
            raise FileNotFoundError(
                f"{self.path} has no checkpoint: {_CONTENTS} is written last, when all processes "
                "have written their parts"
            )
        told = _load(path, weights_only=True)
        if (odd := _odd_in_table(told)) is not None:
            raise CheckpointError(f"no table of contents of a checkpoint: {odd}", path)
        about: dict[str, TensorStorageMetadata | BytesStorageMetadata] = {
            key: TensorStorageMetadata(tuple(facts["size"]), facts["dtype"])
            for key, facts in told["tensors"].items()
        }
        about |= {key: BytesStorageMetadata() for key in told["others"]}
        return Metadata(about, told["files"])

    def read_part(self, name: str) -> dict[str, Any]:
        """What one file holds, its sums checked; objects are limited as `flambeau.load` has it.

        Raises:
            CheckpointError: it is no part of a checkpoint, or is damaged.
        """
        path = os.path.join(self.path, name + _PART)
        found: dict[str, Any] = _load(path, map_location="cpu", weights_only=self.weights_only)
        if not isinstance(found, dict):
            raise CheckpointError("no part of a checkpoint", path)
        return found


def _odd_in_table(told: Any) -> str | None:
    """What is not as a table of contents has it; None if all is."""
    if not isinstance(told, dict):
        return f"a {type(told).__name__}"
    kinds = (("tensors", dict), ("others", (list, tuple)), ("files", dict))
    for name, kind in kinds:
        if not isinstance(told.get(name), kind):
            return f"no {name}"
    for key, facts in told["tensors"].items():
        size = facts.get("size") if isinstance(facts, dict) else None
        if not isinstance(size, (list, tuple)) or not all(type(n) is int and n >= 0 for n in size):
            return f"{key!r:.80} has no size"
        if not isinstance(facts.get("dtype"), str):
            return f"{key!r:.80} has no dtype"
    for key in [*told["tensors"], *told["others"]]:
        name = told["files"].get(key) if isinstance(key, str) else None
        if not isinstance(name, str) or not name or os.path.basename(name) != name:
            return f"{key!r:.80} is in no file of the folder"
    return None


def _require_loadable(key: str, value: object) -> None:
    """Load back what is written of a value, unless it is a plain tensor."""
    if type(value) is Tensor or value is None or type(value) in (bool, int, float, str):
        return
    file = BytesIO()
    _save(value, file)
    file.seek(0)
    try:
        _load(file, map_location="cpu", weights_only=True)
    except WeightsOnlyError as error:
        raise WeightsOnlyError(
            f"{key!r} is a {type(value).__name__} that could not be loaded again with "
            f"weights_only=True: {error}. Save it in another form, or use FileSystemWriter and "
            "FileSystemReader with weights_only=False"
        ) from error
