"""Saving and loading in step: who writes what, and when all have."""

from __future__ import annotations

import os
import secrets
import traceback
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, TypeVar

import flambeau as fb
from flambeau import distributed as dist
from flambeau._dispatch.annotated import takes_as_annotated
from flambeau.distributed.checkpoint._files import (
    BytesStorageMetadata,
    FileSystemReader,
    FileSystemWriter,
    Metadata,
    TensorStorageMetadata,
)
from flambeau.serialization import CheckpointError

StateDict = MutableMapping[str, Any]
_About = TensorStorageMetadata | BytesStorageMetadata
_T = TypeVar("_T")


class CheckpointException(RuntimeError):  # noqa: N818 - PyTorch's name
    """What went wrong, by the ranks on which it did.

    Attributes:
        failures: tracebacks by rank.
    """

    def __init__(self, msg: str, failures: dict[int, str]) -> None:
        lines = [f"rank {rank}:\n{text}" for rank, text in sorted(failures.items())]
        super().__init__("\n".join([f"{msg} failed on ranks {sorted(failures)}", *lines]))
        self.failures = failures


class _Job:
    """The processes that save or load together; one alone if there is no job."""

    def __init__(self, group: dist.ProcessGroup | None, alone: bool) -> None:
        self.group = group
        self.alone = alone or not dist.is_initialized()
        self.rank = 0 if self.alone else dist.get_rank(group)

    def all(self, what: str, make: Callable[[], _T]) -> list[_T]:
        """What every process makes, by rank; if one cannot, all raise."""
        made, text = None, ""
        try:
            made = make()
        except Exception:  # whatever it is, the others wait for word of it
            if self.alone:
                raise
            text = traceback.format_exc()
        if self.alone:
            return [made]  # type: ignore[list-item] - it did not raise
        found: list[Any] = [None] * dist.get_world_size(self.group)
        dist.all_gather_object(found, (made, text), group=self.group)
        failures = {rank: why for rank, (_, why) in enumerate(found) if why}
        if failures:
            raise CheckpointException(what, failures)
        return [value for value, _ in found]


def _flat(state: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """What nested dictionaries hold, and lists in which there are tensors or dictionaries."""
    if isinstance(state, dict) or (isinstance(state, list) and _is_nested(state)):
        for key, value in state.items() if isinstance(state, dict) else enumerate(state):
            yield from _flat(value, (*path, key))
    else:
        yield path, state


def _is_nested(values: list[Any]) -> bool:
    return any(
        isinstance(value, fb.Tensor | dict) or (isinstance(value, list) and _is_nested(value))
        for value in values
    )


def _leaves(state: StateDict) -> dict[str, tuple[tuple[Any, ...], Any]]:
    found: dict[str, tuple[tuple[Any, ...], Any]] = {}
    for path, value in _flat(dict(state)):
        key = ".".join(map(str, path))
        if key in found:
            raise ValueError(f"two values of the state have the key {key!r} once joined with dots")
        found[key] = path, value
    return found


def _about(value: object) -> _About:
    if isinstance(value, fb.Tensor):
        return TensorStorageMetadata(tuple(value.shape), str(value.dtype))
    return BytesStorageMetadata()


def _owners(tables: list[dict[str, tuple[_About, int]]]) -> dict[str, int]:
    """Which rank writes what: of those that have it the one with the least to write so far."""
    there: dict[str, list[int]] = {}
    for rank, table in enumerate(tables):
        for key in table:
            there.setdefault(key, []).append(rank)
    written = [0] * len(tables)
    owners = {}
    for key in sorted(there, key=lambda key: (-tables[there[key][0]][key][1], key)):
        ranks = there[key]
        kinds = {tables[rank][key][0] for rank in ranks}
        if len(kinds) > 1:
            told = ", ".join(f"rank {rank}: {tables[rank][key][0]}" for rank in ranks)
            raise ValueError(f"{key!r} is not the same on all ranks that save it: {told}")
        owner = owners[key] = min(ranks, key=lambda rank: (written[rank], rank))
        written[owner] += tables[owner][key][1]
    return owners


def _resolved(state: StateDict) -> dict[str, Any]:
    return {
        key: value.state_dict() if _keeps_state(value) else value for key, value in state.items()
    }


def _keeps_state(value: object) -> bool:
    return hasattr(value, "state_dict") and hasattr(value, "load_state_dict")


def _compact(value: object) -> Any:
    """A tensor without the rest of the memory that it is a view of."""
    if not isinstance(value, fb.Tensor):
        return value
    value = value.detach()
    whole = value.layout is not fb.strided or value.untyped_storage().nbytes() == value.nbytes
    return value if whole else value.clone()


@takes_as_annotated
def save(
    state_dict: StateDict,
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: FileSystemWriter | None = None,
    process_group: dist.ProcessGroup | None = None,
    no_dist: bool = False,
) -> Metadata:
    """Save a state that processes have in common; each writes a part of about the same size.

    A tensor that several processes have under one name is written by one of them.  Until all parts
    are on the disk the folder keeps its former checkpoint; then the new one takes its place at
    once.

    Objects that `flambeau.load` would not let in with ``weights_only=True`` are refused; for those
    there are `FileSystemWriter` and `FileSystemReader` with ``weights_only=False``.

    Args:
        state_dict: nested dictionaries and lists of tensors and values, and objects with
            ``state_dict`` and ``load_state_dict``.
        checkpoint_id: the folder, which all processes have to see.
        storage_writer: says the folder instead.
        process_group: who saves; all by default.
        no_dist: this process saves alone.

    Raises:
        CheckpointException: a process could not write its part; alone, the error itself.  The
            former checkpoint is whole.
        ValueError: no folder is given, or a name means different tensors on different ranks.
        WeightsOnlyError: a value could not be loaded again.

    >>> import flambeau as fb, tempfile
    >>> import flambeau.distributed.checkpoint as dcp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorted(dcp.save({"a": {"x": fb.ones(2)}}, checkpoint_id=folder).state_dict_metadata)
    ['a.x']
    """
    if storage_writer is None:
        if checkpoint_id is None:
            raise ValueError("save: give the folder as checkpoint_id or with a storage_writer")
        storage_writer = FileSystemWriter(checkpoint_id)
    writer, job = storage_writer, _Job(process_group, no_dist)

    def table() -> tuple[dict[str, tuple[_About, int]], str]:
        leaves.update(_leaves(_resolved(state_dict)))
        sized = {
            key: (_about(value), value.nbytes if isinstance(value, fb.Tensor) else 0)
            for key, (_, value) in leaves.items()
        }
        return sized, secrets.token_hex(8)

    leaves: dict[str, tuple[tuple[Any, ...], Any]] = {}
    told = job.all("collecting what to save", table)
    tables, token = [sized for sized, _ in told], told[0][1]
    owners = _owners(tables)
    mine = [key for key, owner in owners.items() if owner == job.rank]
    name = "__{}_" + token

    def write() -> None:
        writer.write_part(name.format(job.rank), {key: _compact(leaves[key][1]) for key in mine})

    job.all("writing", write)
    metadata = Metadata(
        {key: tables[owner][key][0] for key, owner in owners.items()},
        {key: name.format(owner) for key, owner in owners.items()},
    )
    job.all("finishing", lambda: writer.finish(metadata) if job.rank == 0 else None)
    return metadata


@takes_as_annotated
def load(
    state_dict: StateDict,
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: FileSystemReader | None = None,
    process_group: dist.ProcessGroup | None = None,
    no_dist: bool = False,
) -> None:
    """Load a checkpoint into a state, in place; the number of processes may be another.

    Tensors keep their memory, dtype and device; other values are put into their dictionaries, and
    objects with ``load_state_dict`` are given theirs.  What the checkpoint has beyond the state is
    left alone.

    Args:
        state_dict: as of `save`; its keys say what is loaded.
        checkpoint_id: the folder.
        storage_reader: says the folder instead, and may let in any object.
        process_group: who loads; all by default.
        no_dist: this process loads alone.

    Raises:
        CheckpointException: a process could not load; alone, the error itself.
        FileNotFoundError: there is no checkpoint.
        RuntimeError: the checkpoint lacks a key, or a file is damaged.
        ValueError: no folder is given, or a shape differs.

    >>> import flambeau as fb, tempfile
    >>> import flambeau.distributed.checkpoint as dcp
    >>> state = {"x": fb.zeros(2)}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = dcp.save({"x": fb.ones(2), "y": 1}, checkpoint_id=folder)
    ...     dcp.load(state, checkpoint_id=folder)
    >>> state
    {'x': tensor([1., 1.])}
    """
    if storage_reader is None:
        if checkpoint_id is None:
            raise ValueError("load: give the folder as checkpoint_id or with a storage_reader")
        storage_reader = FileSystemReader(checkpoint_id)
    reader, job = storage_reader, _Job(process_group, no_dist)
    job.all("loading", lambda: _load(state_dict, reader))


def _load(state_dict: StateDict, reader: FileSystemReader) -> None:
    metadata = reader.read_metadata()
    resolved = _resolved(state_dict)
    leaves = _leaves(resolved)
    by_file: dict[str, list[str]] = {}
    for key, (_, value) in leaves.items():
        if (saved := metadata.state_dict_metadata.get(key)) is None:
            raise RuntimeError(f"Missing key in checkpoint state_dict: {key}.")
        if isinstance(value, fb.Tensor):
            if not isinstance(saved, TensorStorageMetadata):
                raise ValueError(f"{key} is a tensor here and none in the checkpoint")
            if saved.size != tuple(value.shape):
                raise ValueError(
                    f"Size mismatch between saved {list(saved.size)} and current: "
                    f"{list(value.shape)} for {key}"
                )
        by_file.setdefault(metadata.storage_data[key], []).append(key)
    for file, keys in sorted(by_file.items()):
        part = reader.read_part(file)
        for key in keys:
            path, value = leaves[key]
            saved = metadata.state_dict_metadata[key]
            held = part.get(key)
            size = tuple(held.shape) if isinstance(held, fb.Tensor) else None
            wanted = saved.size if isinstance(saved, TensorStorageMetadata) else size
            if key not in part or size != wanted:
                raise CheckpointError(f"{key} is not what the contents say", file)
            if isinstance(value, fb.Tensor):
                with fb.no_grad():
                    value.copy_(part[key])
            else:
                _put(resolved, path, part[key])
    for key, value in state_dict.items():
        if _keeps_state(value):
            value.load_state_dict(resolved[key])
        else:
            state_dict[key] = resolved[key]


def _put(state: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        state = state[key]
    state[path[-1]] = value
