"""Streams of files, and a process's share of a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Any

from flambeau.compat._torch.utils.data.datapipes._decorator import functional_datapipe
from flambeau.compat._torch.utils.data.datapipes._iter_pipes import length
from flambeau.compat._torch.utils.data.datapipes.datapipe import IterDataPipe
from flambeau.compat._torch.utils.data.datapipes.utils.common import (
    get_file_binaries_from_pathnames,
    get_file_pathnames_from_root,
)
from flambeau.utils.data import get_worker_info

__all__ = [
    "SHARDING_PRIORITIES",
    "FileListerIterDataPipe",
    "FileOpenerIterDataPipe",
    "ShardingFilterIterDataPipe",
    "StreamReaderIterDataPipe",
]


class SHARDING_PRIORITIES(IntEnum):  # noqa: N801 - PyTorch's name
    """What shares of a stream are for."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(IterDataPipe[Any]):
    """This process's share of a stream; in a worker, this worker's."""

    def __init__(self, source_datapipe: Any, sharding_group_filter: Any = None) -> None:
        self.source_datapipe = source_datapipe
        self.sharding_group_filter = sharding_group_filter
        self.groups: dict[int, tuple[int, int]] = {}

    def apply_sharding(
        self,
        num_of_instances: int,
        instance_id: int,
        sharding_group: int = SHARDING_PRIORITIES.DEFAULT,
    ) -> None:
        """Take every n-th sample.

        Raises:
            ValueError: there are not so many instances.
            RuntimeError: shares of a kind and of none.
        """
        if instance_id >= num_of_instances:
            raise ValueError(
                f"instance_id({instance_id}) should be smaller than "
                f"num_of_instances({num_of_instances})"
            )
        plain = SHARDING_PRIORITIES.DEFAULT
        if any((group == plain) != (sharding_group == plain) for group in self.groups):
            raise RuntimeError("ShardingFilter cannot mix DEFAULT and non DEFAULT groups")
        self.groups[sharding_group] = (num_of_instances, instance_id)

    def _share(self) -> tuple[int, int]:
        groups = dict(self.groups)
        info = get_worker_info()
        if info is not None and SHARDING_PRIORITIES.DEFAULT not in groups:
            groups.setdefault(SHARDING_PRIORITIES.MULTIPROCESSING, (info.num_workers, info.id))
        count, place = 1, 0
        for group in sorted(groups, reverse=True):
            if self.sharding_group_filter in (None, group):
                place += count * groups[group][1]
                count *= groups[group][0]
        return count, place

    def __iter__(self) -> Iterator[Any]:
        count, mine = self._share()
        for place, item in enumerate(self.source_datapipe):
            if place % count == mine:
                yield item

    def __len__(self) -> int:
        count, mine = self._share()
        return (length(self, self.source_datapipe) - mine + count - 1) // count


@functional_datapipe("list_files")
class FileListerIterDataPipe(IterDataPipe[str]):
    """The paths of files in folders."""

    def __init__(
        self,
        root: Any = ".",
        masks: str | list[str] = "",
        *,
        recursive: bool = False,
        abspath: bool = False,
        non_deterministic: bool = False,
        length: int = -1,
    ) -> None:
        self.datapipe = [root] if isinstance(root, str) else root
        self.masks, self.recursive, self.abspath = masks, recursive, abspath
        self.non_deterministic, self.length = non_deterministic, length

    def __iter__(self) -> Iterator[str]:
        for path in self.datapipe:
            yield from get_file_pathnames_from_root(
                path, self.masks, self.recursive, self.abspath, self.non_deterministic
            )

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(IterDataPipe[Any]):
    """Pairs of a path and its file."""

    def __init__(
        self,
        datapipe: Iterable[str],
        mode: str = "r",
        encoding: str | None = None,
        length: int = -1,
    ) -> None:
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe, self.mode = datapipe, mode
        self.encoding, self.length = encoding, length

    def __iter__(self) -> Iterator[Any]:
        yield from get_file_binaries_from_pathnames(self.datapipe, self.mode, self.encoding)

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe[Any]):
    """Pairs of a name and what is in its file, in pieces of a size."""

    def __init__(self, datapipe: Iterable[Any], chunk: int | None = None) -> None:
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self) -> Iterator[Any]:
        for name, stream in self.datapipe:
            while piece := stream.read(self.chunk):
                yield name, piece
            stream.close()
