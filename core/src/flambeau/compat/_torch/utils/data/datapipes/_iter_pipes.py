"""Streams of one stream: mapped, filtered, shuffled, in batches and groups."""

from __future__ import annotations

import copy
import random
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import flambeau as fb
from flambeau.compat._torch.utils.data.datapipes._decorator import functional_datapipe
from flambeau.compat._torch.utils.data.datapipes.datapipe import DataChunk, IterDataPipe
from flambeau.compat._torch.utils.data.datapipes.utils.common import (
    StreamWrapper,
    _check_unpickable_fn,
    validate_input_col,
)
from flambeau.utils.data import SequentialSampler, default_collate, get_worker_info

__all__ = [
    "BatcherIterDataPipe",
    "CollatorIterDataPipe",
    "FilterIterDataPipe",
    "GrouperIterDataPipe",
    "IterableWrapperIterDataPipe",
    "MapperIterDataPipe",
    "SamplerIterDataPipe",
    "ShufflerIterDataPipe",
    "UnBatcherIterDataPipe",
]


def length(pipe: Any, source: Any) -> int:
    """The length of the source of a pipe.

    Raises:
        TypeError: it has none.
    """
    if not hasattr(type(source), "__len__"):
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")
    return len(source)


def _of_columns(fn: Callable[..., Any], columns: Any, data: Any) -> Any:
    if columns is None:
        return fn(data)
    if isinstance(columns, (list, tuple)):
        return fn(*(data[column] for column in columns))
    return fn(data[columns])


class IterableWrapperIterDataPipe(IterDataPipe[Any]):
    """The samples of an iterable, of which each pass copies what is in it."""

    def __init__(self, iterable: Iterable[Any], deepcopy: bool = True) -> None:
        self.iterable = iterable
        self.deepcopy = deepcopy

    def __iter__(self) -> Iterator[Any]:
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(source)
            except TypeError:
                warnings.warn(
                    "The input iterable can not be deepcopied, please be aware of in-place "
                    "modification would affect source data.",
                    stacklevel=2,
                )
        yield from source

    def __len__(self) -> int:
        return length(self, self.iterable)


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe[Any]):
    """What a function makes of each sample, or of some columns of it."""

    def __init__(
        self,
        datapipe: Iterable[Any],
        fn: Callable[..., Any],
        input_col: Any = None,
        output_col: Any = None,
    ) -> None:
        _check_unpickable_fn(fn)
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = next(iter(output_col))
        validate_input_col(fn, input_col)
        self.datapipe, self.fn = datapipe, fn
        self.input_col, self.output_col = input_col, output_col

    def _apply_fn(self, data: Any) -> Any:
        result = _of_columns(self.fn, self.input_col, data)
        if self.input_col is None:
            return result
        columns: Any = self.input_col
        changed: Any = list(data) if isinstance(data, tuple) else data
        if self.output_col == -1:
            changed.append(result)
        elif self.output_col is not None:
            changed[self.output_col] = result
        elif isinstance(columns, (list, tuple)):
            changed[columns[0]] = result
            for column in sorted(columns[1:], reverse=True):
                del changed[column]
        else:
            changed[columns] = result
        return tuple(changed) if isinstance(data, tuple) else changed

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            yield self._apply_fn(data)

    def __len__(self) -> int:
        return length(self, self.datapipe)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Samples joined to tensors."""

    def __init__(
        self,
        datapipe: Iterable[Any],
        conversion: Callable[..., Any] = default_collate,
        collate_fn: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(datapipe, conversion if collate_fn is None else collate_fn)


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe[Any]):
    """The samples of which a function says True."""

    def __init__(
        self, datapipe: Iterable[Any], filter_fn: Callable[..., Any], input_col: Any = None
    ) -> None:
        _check_unpickable_fn(filter_fn)
        validate_input_col(filter_fn, input_col)
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            wanted = _of_columns(self.filter_fn, self.input_col, data)
            if not isinstance(wanted, bool):
                raise ValueError(
                    "Boolean output is required for `filter_fn` of FilterIterDataPipe, got",
                    type(wanted),
                )
            if wanted:
                yield data
            else:
                StreamWrapper.close_streams(data)


class SamplerIterDataPipe(IterDataPipe[Any]):
    """What a class of samplers draws from a stream that has a length."""

    def __init__(
        self,
        datapipe: Any,
        sampler: Callable[..., Any] = SequentialSampler,
        sampler_args: tuple[Any, ...] | None = None,
        sampler_kwargs: dict[str, Any] | None = None,
    ) -> None:
        if not hasattr(type(datapipe), "__len__"):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        self.datapipe = datapipe
        self.sampler_args: tuple[object, ...] = sampler_args or ()
        self.sampler_kwargs = {**(sampler_kwargs or {}), "data_source": datapipe}
        self.sampler = sampler(*self.sampler_args, **self.sampler_kwargs)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def __len__(self) -> int:
        return length(self, self.sampler)


def drawn_seed(passes: int) -> int:
    """A seed for one pass: from flambeau's generator, and the same one in all workers."""
    if (info := get_worker_info()) is not None:
        return info.seed - info.id + passes
    return int(fb.empty((), dtype=fb.int64).random_().item())


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(IterDataPipe[Any]):
    """The samples in the order in which they are drawn from a buffer."""

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.datapipe = datapipe.unbatch(unbatch_level=unbatch_level) if unbatch_level else datapipe
        self.buffer_size = buffer_size
        self._buffer: list[Any] = []
        self._enabled = True
        self._seed: int | None = None
        self._rng = random.Random()
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
            yield from self.datapipe
            return
        for value in self.datapipe:
            if len(self._buffer) < self.buffer_size:
                self._buffer.append(value)
                continue
            place = self._rng.randint(0, len(self._buffer) - 1)
            chosen, self._buffer[place] = self._buffer[place], value
            yield chosen
        while self._buffer:
            yield self._buffer.pop(self._rng.randint(0, len(self._buffer) - 1))

    def __len__(self) -> int:
        return length(self, self.datapipe)

    def reset(self) -> None:
        """Seed the order of a new pass."""
        self._buffer = []
        if self._enabled:
            self._rng.seed(drawn_seed(self._passes) if self._seed is None else self._seed)
            self._seed = None
            self._passes += 1


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe[Any]):
    """Samples in batches."""

    def __init__(
        self,
        datapipe: Iterable[Any],
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: Callable[[list[Any]], Any] = DataChunk,
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last = datapipe, batch_size, drop_last
        self.wrapper_class = wrapper_class

    def __iter__(self) -> Iterator[Any]:
        batch: list[Any] = []
        for value in self.datapipe:
            batch.append(value)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        count = length(self, self.datapipe)
        return (count if self.drop_last else count + self.batch_size - 1) // self.batch_size


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe[Any]):
    """The samples of batches, of so many levels, or of all where `unbatch_level` is -1."""

    def __init__(self, datapipe: Iterable[Any], unbatch_level: int = 1) -> None:
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self) -> Iterator[Any]:
        for element in self.datapipe:
            yield from self._dive(element, self.unbatch_level)

    def _dive(self, element: Any, unbatch_level: int) -> Iterator[Any]:
        if unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        if unbatch_level and isinstance(element, list):
            for item in element:
                yield from self._dive(item, max(unbatch_level - 1, -1))
        elif unbatch_level > 0:
            raise IndexError(
                f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe"
            )
        else:
            yield element


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe[Any]):
    """Samples in batches of one key each; the largest leaves a buffer that is full."""

    def __init__(
        self,
        datapipe: Iterable[Any],
        group_key_fn: Callable[[Any], Any],
        *,
        keep_key: bool = False,
        buffer_size: int = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ) -> None:
        _check_unpickable_fn(group_key_fn)
        if group_size is not None and not 0 < group_size <= buffer_size:
            raise AssertionError("group_size must be > 0 and <= buffer_size")
        least = group_size if guaranteed_group_size is None else guaranteed_group_size
        if least is not None and (group_size is None or not 0 < least <= group_size):
            raise AssertionError(
                "guaranteed_group_size must be > 0 and <= group_size and group_size must be set"
            )
        self.datapipe, self.group_key_fn, self.keep_key = datapipe, group_key_fn, keep_key
        self.max_buffer_size, self.group_size = buffer_size, group_size
        self.guaranteed_group_size, self.drop_remaining = least, drop_remaining
        self.buffer_elements: defaultdict[Any, list[Any]] = defaultdict(list)

    def _largest(self) -> list[Any] | None:
        key = max(self.buffer_elements, key=lambda each: len(self.buffer_elements[each]))
        found = self.buffer_elements[key]
        enough = self.guaranteed_group_size is None or len(found) >= self.guaranteed_group_size
        if not (enough or self.drop_remaining):
            raise RuntimeError("Failed to group items", str(found))
        del self.buffer_elements[key]
        return found if enough else None

    def __iter__(self) -> Iterator[Any]:
        def formed(key: Any, values: list[Any]) -> Any:
            chunk = DataChunk(values)
            return (key, chunk) if self.keep_key else chunk

        held = 0
        for value in self.datapipe:
            key = self.group_key_fn(value)
            self.buffer_elements[key].append(value)
            held += 1
            if len(self.buffer_elements[key]) == self.group_size:
                yield formed(key, self.buffer_elements.pop(key))
                held = sum(map(len, self.buffer_elements.values()))
            if held == self.max_buffer_size:
                found = self._largest()
                held = sum(map(len, self.buffer_elements.values()))
                if found is not None:
                    # As in PyTorch: the key of the sample that came last.
                    yield formed(key, found)
        for key in tuple(self.buffer_elements):
            yield formed(key, self.buffer_elements.pop(key))

    def reset(self) -> None:
        """Empty the buffer."""
        self.buffer_elements = defaultdict(list)
