"""Names of ``torch.utils.data.dataloader`` that only programs for PyTorch want."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from flambeau.utils.data import Sampler
from flambeau.utils.data._utils.fetch import DatasetKind
from flambeau.utils.data._utils.passes import MultiProcessPass, SingleProcessPass

__all__ = [
    "_BaseDataLoaderIter",
    "_DatasetKind",
    "_InfiniteConstantSampler",
    "_MultiProcessingDataLoaderIter",
    "_SingleProcessDataLoaderIter",
    "_collate_fn_t",
    "_worker_init_fn_t",
]

_SingleProcessDataLoaderIter = SingleProcessPass
_MultiProcessingDataLoaderIter = MultiProcessPass
_DatasetKind = DatasetKind
_collate_fn_t = Callable[[list[Any]], Any]
_worker_init_fn_t = Callable[[int], None]


class _BaseDataLoaderIter:
    """What both kinds of passes are for `isinstance`."""


class _InfiniteConstantSampler(Sampler[None]):
    """None without end: the indices of a stream."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None
