"""Names of ``torch.utils.data.dataloader`` that only programs for PyTorch want."""

from __future__ import annotations

from flambeau.utils.data._utils.passes import MultiProcessPass, SingleProcessPass

__all__ = [
    "_BaseDataLoaderIter",
    "_DatasetKind",
    "_MultiProcessingDataLoaderIter",
    "_SingleProcessDataLoaderIter",
]

_SingleProcessDataLoaderIter = SingleProcessPass
_MultiProcessingDataLoaderIter = MultiProcessPass


class _BaseDataLoaderIter:
    """What both kinds of passes are for `isinstance`."""


class _DatasetKind:
    """How samples are had: by index, or one after another."""

    Map, Iterable = 0, 1
