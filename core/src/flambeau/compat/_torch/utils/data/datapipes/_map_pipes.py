"""Maps made of maps: applied functions, batches, joined and side by side; a shuffled stream."""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from flambeau.compat._torch.utils.data.datapipes._decorator import functional_datapipe
from flambeau.compat._torch.utils.data.datapipes._iter_pipes import drawn_seed
from flambeau.compat._torch.utils.data.datapipes.datapipe import (
    DataChunk,
    IterDataPipe,
    MapDataPipe,
)
from flambeau.compat._torch.utils.data.datapipes.utils.common import _check_unpickable_fn

__all__ = [
    "BatcherMapDataPipe",
    "ConcaterMapDataPipe",
    "MapperMapDataPipe",
    "SequenceWrapperMapDataPipe",
    "ShufflerIterDataPipe",
    "ZipperMapDataPipe",
    "default_fn",
]


def default_fn(data: Any) -> Any:
    """The sample."""
    return data


class SequenceWrapperMapDataPipe(MapDataPipe[Any]):
    """The samples of a sequence or a mapping, copied once."""

    def __init__(self, sequence: Any, deepcopy: bool = True) -> None:
        self.sequence = sequence
        if deepcopy:
            try:
                self.sequence = copy.deepcopy(sequence)
            except TypeError:
                warnings.warn(
                    "The input sequence can not be deepcopied, please be aware of in-place "
                    "modification would affect source data",
                    stacklevel=2,
                )

    def __getitem__(self, index: object) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe[Any]):
    """What a function makes of each sample."""

    def __init__(self, datapipe: Any, fn: Callable[[Any], Any] = default_fn) -> None:
        _check_unpickable_fn(fn)
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)


class _OfSeveral(MapDataPipe[Any]):
    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, MapDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `MapDataPipe`")
        if not all(hasattr(type(pipe), "__len__") for pipe in datapipes):
            raise TypeError("Expected all inputs to be `Sized`")
        self.datapipes = datapipes


@functional_datapipe("concat")
class ConcaterMapDataPipe(_OfSeveral):
    """One map after the other."""

    def __getitem__(self, index: Any) -> Any:
        place = index
        for pipe in self.datapipes:
            if place < len(pipe):
                return pipe[place]
            place -= len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class ZipperMapDataPipe(_OfSeveral):
    """Tuples of a sample of each map."""

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        found = []
        for pipe in self.datapipes:
            try:
                found.append(pipe[index])
            except IndexError as error:
                raise IndexError(
                    f"Index {index} is out of range for one of the input MapDataPipes {pipe}."
                ) from error
        return tuple(found)

    def __len__(self) -> int:
        return min(map(len, self.datapipes))


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe[Any]):
    """Samples in batches."""

    def __init__(
        self,
        datapipe: Any,
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: Callable[[list[Any]], Any] = DataChunk,
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last = datapipe, batch_size, drop_last
        self.wrapper_class = wrapper_class

    def __getitem__(self, index: Any) -> Any:
        batch: list[Any] = []
        for place in range(index * self.batch_size, (index + 1) * self.batch_size):
            try:
                batch.append(self.datapipe[place])
            except IndexError as error:
                if batch and not self.drop_last:
                    break
                raise IndexError(f"Index {index} is out of bound.") from error
        return self.wrapper_class(batch)

    def __len__(self) -> int:
        count = len(self.datapipe)
        return (count if self.drop_last else count + self.batch_size - 1) // self.batch_size


class ShufflerIterDataPipe(IterDataPipe[Any]):
    """The samples of a map in the order of shuffled indices."""

    def __init__(self, datapipe: Any, *, indices: list[Any] | None = None) -> None:
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices
        self._enabled = True
        self._seed: int | None = None
        self._rng = random.Random()
        self._shuffled_indices = self.indices
        self._passes = 0

    def set_shuffle(self, shuffle: bool = True) -> ShufflerIterDataPipe:
        """Whether to shuffle at all."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> ShufflerIterDataPipe:
        """The seed of the next pass."""
        self._seed = seed
        return self

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            for index in self.indices:
                yield self.datapipe[index]
            return
        while self._shuffled_indices:
            yield self.datapipe[self._shuffled_indices.pop()]

    def reset(self) -> None:
        """Shuffle the indices for a new pass."""
        if self._enabled and self._seed is None:
            self._seed = drawn_seed(self._passes)
        self._rng.seed(self._seed)
        self._seed = None
        self._passes += 1
        self._shuffled_indices = self._rng.sample(self.indices, len(self.indices))

    def __len__(self) -> int:
        return len(self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
