"""The loader that turns a data set into batches."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, cast

import flambeau as fb
from flambeau.utils.data._utils.collate import default_collate, default_convert
from flambeau.utils.data.dataset import Dataset, IterableDataset, Subset, TensorDataset
from flambeau.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

if TYPE_CHECKING:
    from flambeau import Generator

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

_T_co = TypeVar("_T_co", covariant=True)


class DataLoader(Generic[_T_co]):
    """An iterable over the batches of a data set.

    Each iteration visits the indices that a sampler gives, reads the samples, and collates them.
    It draws a seed from the generator first, also where the order is not random, as PyTorch does.

    Args:
        dataset: a `Dataset` (or anything indexable), or an `IterableDataset`.
        batch_size: samples per batch; None to yield samples one by one, converted but not collated.
        shuffle: visit the samples in a new random order each time.
        sampler: an iterable of indices, instead of `shuffle`.
        batch_sampler: an iterable of lists of indices, instead of `batch_size`, `shuffle`,
            `sampler` and `drop_last`.
        num_workers: 0; batches are made in the calling process.
        collate_fn: makes a batch of a list of samples; `default_collate` by default, or
            `default_convert` without batches.
        pin_memory: accepted; batches stay in ordinary memory, which a warning says.
        drop_last: leave out a last batch that is smaller.
        timeout, worker_init_fn, multiprocessing_context, prefetch_factor, persistent_workers,
            in_order: for worker processes.
        generator: source of the random numbers; the global one by default.
        pin_memory_device: accepted and ignored.

    Raises:
        ValueError: options that exclude each other, or are out of range.
        NotImplementedError: `num_workers` is positive.

    >>> import flambeau as fb
    >>> loader = fb.utils.data.DataLoader([1.0, 2.0, 3.0], batch_size=2)
    >>> len(loader), [batch.tolist() for batch in loader]
    (2, [[1.0, 2.0], [3.0]])
    """

    _FROZEN = frozenset(
        {"batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"}
    )
    _initialized = False

    def __init__(
        self,
        dataset: Dataset[_T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: object = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_worker_options(
            num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context
        )
        if isinstance(dataset, IterableDataset):
            _check_stream_options(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive "
                    "with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching "
                "and is mutually exclusive with drop_last"
            )

        if sampler is None:
            sized = cast(Sized, dataset)
            if isinstance(dataset, IterableDataset):
                sampler = _EndlessSampler()
            elif shuffle:
                sampler = RandomSampler(sized, generator=generator)
            else:
                sampler = SequentialSampler(sized)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate

        self.dataset = dataset
        self.batch_size = batch_size
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.collate_fn = collate_fn
        self.pin_memory = pin_memory
        self.drop_last = drop_last
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.prefetch_factor = prefetch_factor
        self.persistent_workers = persistent_workers
        self.pin_memory_device = pin_memory_device
        self.in_order = in_order
        self._reported_length: int | None = None
        self._initialized = True

    def __setattr__(self, name: str, value: object) -> None:
        if self._initialized and name in self._FROZEN:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[Any]:
        return _Batches(self)

    def __len__(self) -> int:
        """The number of batches; for a stream, what its own length promises.

        Raises:
            TypeError: the sampler or the stream has no length.
        """
        if not isinstance(self.dataset, IterableDataset):
            return len(cast(Sized, self._index_sampler))
        length = self._reported_length = len(cast(Sized, self.dataset))
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    @property
    def _index_sampler(self) -> Iterable[Any]:
        return self.sampler if self.batch_sampler is None else self.batch_sampler


class _Batches:
    """One pass over the batches of a loader."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        if loader.timeout != 0:
            raise AssertionError(
                f"timeout={loader.timeout} is for worker processes; with num_workers=0 it must be 0"
            )
        if loader.pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, "
                "then device pinned memory won't be used.",
                stacklevel=3,
            )
        self._index_sampler = loader._index_sampler
        self._indices = iter(self._index_sampler)
        # The seed of worker processes.  Drawn without them too, for later numbers depend on it.
        fb.empty((), dtype=fb.int64).random_(generator=loader.generator)
        self._dataset = loader.dataset
        self._batched = loader.batch_sampler is not None
        self._collate = loader.collate_fn
        self._drop_last = loader.drop_last
        self._stream: Iterator[Any] | None = None
        self._ended = False
        self._reported_length: int | None = None
        if isinstance(self._dataset, IterableDataset):
            self._stream = iter(self._dataset)
            self._reported_length = loader._reported_length
        self._yielded = 0

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        index = next(self._indices)
        batch = self._read(index) if self._stream is None else self._read_stream(index)
        self._yielded += 1
        if self._reported_length is not None and self._yielded > self._reported_length:
            warnings.warn(
                f"Length of IterableDataset {self._dataset} was reported to be "
                f"{self._reported_length} (when accessing len(dataloader)), but {self._yielded} "
                "samples have been fetched.",
                stacklevel=2,
            )
        return batch

    def __len__(self) -> int:
        return len(cast(Sized, self._index_sampler))

    def __getstate__(self) -> NoReturn:
        raise NotImplementedError(
            "An iterator of a DataLoader cannot be pickled; pickle the DataLoader instead"
        )

    def _read(self, index: Any) -> Any:
        if not self._batched:
            return self._collate(self._dataset[index])
        if self._collate is default_collate:
            gathered = _gathered(self._dataset, index)
            if gathered is not None:
                return gathered
        if many := getattr(self._dataset, "__getitems__", None):
            return self._collate(many(index))
        return self._collate([self._dataset[i] for i in index])

    def _read_stream(self, index: Any) -> Any:
        assert self._stream is not None
        if not self._batched:
            return self._collate(next(self._stream))
        if self._ended:  # a stream that has ended is not asked again
            raise StopIteration
        samples = []
        for _ in index:
            try:
                samples.append(next(self._stream))
            except StopIteration:
                self._ended = True
                break
        if not samples or (self._drop_last and len(samples) < len(index)):
            raise StopIteration
        return self._collate(samples)


def _gathered(dataset: Any, indices: Any) -> list[Any] | None:
    """The batch of a `TensorDataset`, or `Subset` of one, by one indexing per tensor.

    The same tensors as reading and stacking the samples, in a fraction of the time.  None where
    the types do not allow it: subclasses may define samples, and samplers indices, in other ways.
    """
    if type(indices) is not list or not indices:
        return None
    while type(dataset) is Subset:
        indices = [dataset.indices[i] for i in indices]
        dataset = dataset.dataset
    if type(dataset) is not TensorDataset or any(type(i) is not int for i in indices):
        return None
    index = fb.tensor(indices)
    return [tensor[index.to(tensor.device)] for tensor in dataset.tensors]


class _EndlessSampler(Sampler[None]):
    """None for ever: the indices of a stream, which ends by itself."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


def get_worker_info() -> None:
    """What a worker process knows of itself: None in the main process, where all loading is done.

    >>> import flambeau as fb
    >>> fb.utils.data.get_worker_info() is None
    True
    """
    return None


def _check_worker_options(
    num_workers: int,
    timeout: float,
    prefetch_factor: int | None,
    persistent_workers: bool,
    multiprocessing_context: object,
) -> None:
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; "
            "use num_workers=0 to disable multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if prefetch_factor is not None and num_workers == 0:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing. "
            "Let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")
    if multiprocessing_context is not None and num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading "
            f"(num_workers > 0), but got num_workers={num_workers}"
        )
    if num_workers > 0:
        raise NotImplementedError(
            f"DataLoader(num_workers={num_workers}): this version loads data in the main process "
            "only; use num_workers=0"
        )


def _check_stream_options(shuffle: object, sampler: object, batch_sampler: object) -> None:
    given = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, "
                f"but got {name}={value}"
            )
