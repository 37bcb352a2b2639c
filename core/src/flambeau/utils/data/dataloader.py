"""The loader that turns a data set into batches."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sized
from multiprocessing.context import BaseContext
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from flambeau.overrides import takes_as_annotated
from flambeau.utils.data._utils.collate import default_collate, default_convert
from flambeau.utils.data._utils.fetch import DatasetKind
from flambeau.utils.data._utils.passes import MultiProcessPass, SingleProcessPass
from flambeau.utils.data._utils.worker import get_worker_info
from flambeau.utils.data.dataset import Dataset, IterableDataset
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
        num_workers: processes that make the batches; 0: the calling process makes them.
        collate_fn: makes a batch of a list of samples; `default_collate` by default, or
            `default_convert` without batches.
        pin_memory: put batches into page-locked memory; without an accelerator that is of no
            use, and a warning says so.
        drop_last: leave out a last batch that is smaller.
        timeout: seconds to wait for a batch of the workers; 0: without limit.
        worker_init_fn: called with its number in every worker, after seeding.
        multiprocessing_context: start method of the workers, or a context of `multiprocessing`.
        generator: source of the random numbers; the global one by default.
        prefetch_factor: batches that each worker makes ahead; 2 by default.
        persistent_workers: keep the workers between passes.
        in_order: yield batches in the order of the sampler, not as they arrive.
        pin_memory_device: for which type of accelerator; the current one by default.

    Raises:
        ValueError: options that exclude each other, or are out of range.
        RuntimeError: during a pass, a worker died or was too slow; the error names it.

    A worker has the seed of the pass plus its number, as in PyTorch, computes with one thread, and
    sends large batches through shared memory.  An exception in it is raised in the main process
    with its traceback.

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
        self._IterableDataset_len_called: int | None = None
        self._pass: MultiProcessPass | None = None  # kept by persistent workers
        self._initialized = True

    def __setattr__(self, name: str, value: object) -> None:
        if self._initialized and name in self._FROZEN:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[Any]:
        if not self.num_workers:
            return SingleProcessPass(self)
        if not self.persistent_workers:
            return MultiProcessPass(self)
        if self._pass is None or not self._pass.alive:
            self._pass = MultiProcessPass(self)
        else:
            self._pass.reset()
        return self._pass

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pass": None}  # processes do not travel

    def __len__(self) -> int:
        """The number of batches; for a stream, what its own length promises.

        Raises:
            TypeError: the sampler or the stream has no length.
        """
        if not isinstance(self.dataset, IterableDataset):
            return len(cast(Sized, self._index_sampler))
        length = self._IterableDataset_len_called = len(cast(Sized, self.dataset))
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    # Under these names what only looks like a loader has them too, and is passed over.
    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _dataset_kind(self) -> int:
        streams = isinstance(self.dataset, IterableDataset)
        return DatasetKind.Iterable if streams else DatasetKind.Map

    @property
    def _index_sampler(self) -> Iterable[Any]:
        return self.sampler if self.batch_sampler is None else self.batch_sampler


class _EndlessSampler(Sampler[None]):
    """None for ever: the indices of a stream, which ends by itself."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


@takes_as_annotated
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
    if isinstance(multiprocessing_context, str):
        valid = multiprocessing.get_all_start_methods()
        if multiprocessing_context not in valid:
            raise ValueError(
                "multiprocessing_context option should specify a valid start method in "
                f"{valid!r}, but got multiprocessing_context={multiprocessing_context!r}"
            )
    elif multiprocessing_context is not None and not isinstance(
        multiprocessing_context, BaseContext
    ):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string "
            "specifying the start method, but got multiprocessing_context="
            f"{multiprocessing_context!r}"
        )


def _check_stream_options(shuffle: object, sampler: object, batch_sampler: object) -> None:
    given = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, "
                f"but got {name}={value}"
            )
