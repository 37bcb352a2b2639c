"""One pass over the batches of a loader, in the calling process or with workers."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Sized
from typing import TYPE_CHECKING, Any, NoReturn, cast

import flambeau as fb
from flambeau.utils.data._utils.fetch import DatasetKind, Fetcher
from flambeau.utils.data._utils.pin import pin_memory
from flambeau.utils.data._utils.pool import WorkerPool
from flambeau.utils.data._utils.worker import END, ERROR

if TYPE_CHECKING:
    from flambeau.utils.data.dataloader import DataLoader

    pass


class Pass:
    """What both kinds of passes share: the order, the seed, and what a stream promised."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._pins = loader.pin_memory and fb.accelerator.is_available()
        if loader.pin_memory and not self._pins:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, "
                "then device pinned memory won't be used.",
                stacklevel=4,
            )
        self._loader = loader
        self._begin()
        # Drawn without workers too, for later numbers of the generator depend on it.
        seed = fb.empty((), dtype=fb.int64).random_(generator=loader.generator)
        self._base_seed = int(seed.item())

    def _begin(self) -> None:
        loader = self._loader
        self._index_sampler = loader._index_sampler
        self._indices = iter(self._index_sampler)
        self._streams = loader._dataset_kind == DatasetKind.Iterable
        self._reported_length = loader._IterableDataset_len_called if self._streams else None
        self._yielded = 0

    def __iter__(self) -> Iterator[Any]:
        return self

    def next(self) -> Any:
        """The next batch, in the form of older programs."""
        return next(self)

    def __next__(self) -> Any:
        batch = self._next()
        self._yielded += 1
        if self._reported_length is not None and self._yielded > self._reported_length:
            hint = (
                " For multiprocessing data-loading, this could be caused by not properly "
                "configuring the IterableDataset replica at each worker: see get_worker_info()."
                if self._loader.num_workers
                else ""
            )
            warnings.warn(
                f"Length of IterableDataset {self._loader.dataset} was reported to be "
                f"{self._reported_length} (when accessing len(dataloader)), but {self._yielded} "
                f"samples have been fetched.{hint}",
                stacklevel=2,
            )
        if self._pins:
            return pin_memory(batch, self._loader.pin_memory_device or None)
        return batch

    def _next(self) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(cast(Sized, self._index_sampler))

    def __getstate__(self) -> NoReturn:
        raise NotImplementedError(
            "An iterator of a DataLoader cannot be pickled; pickle the DataLoader instead"
        )


class SingleProcessPass(Pass):
    """Batches made in the calling process."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        if loader.timeout != 0:
            raise AssertionError(
                f"timeout={loader.timeout} is for worker processes; with num_workers=0 it must be 0"
            )
        super().__init__(loader)
        self._fetcher = Fetcher(
            loader.dataset,
            loader._auto_collation,
            loader.collate_fn,
            loader.drop_last,
            loader._dataset_kind,
        )

    def _next(self) -> Any:
        return self._fetcher.fetch(next(self._indices))


class MultiProcessPass(Pass):
    """Batches made by worker processes, some ahead of time.

    Task n goes to the next worker in turn that still has data, and batches come out in the order
    of their tasks (or, without `in_order`, as they arrive): with the same seed always the same.
    After an error of one batch the next ones can be asked for.

    Attributes:
        workers: the processes, also once they have ended; to today's programs ``_workers``.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        self._epoch = 0
        self._pool = WorkerPool(
            (loader.dataset, loader.collate_fn, loader.worker_init_fn),
            loader.num_workers,
            self._base_seed,
            loader._auto_collation,
            loader.drop_last,
            loader._dataset_kind,
            loader.multiprocessing_context,
        )
        self._workers = self.workers = tuple(self._pool.processes)
        self._start_pass()

    def reset(self) -> None:
        """Begin another pass with the same workers, which keep their random numbers."""
        self._begin()
        self._pool.restart()
        self._start_pass()

    @property
    def alive(self) -> bool:
        """Whether the workers still run."""
        return bool(self._pool.processes)

    def _start_pass(self) -> None:
        n = self._loader.num_workers
        self._epoch += 1  # what an abandoned pass has left under way is told by its number
        self._next_task = 0
        self._next_out = 0
        self._owner: dict[int, int] = {}  # tasks under way -> worker
        self._arrived: dict[int, Any] = {}  # batches, None for a task without one
        self._active = set(range(n))
        self._turn = itertools.cycle(range(n))
        ahead = self._loader.prefetch_factor
        for _ in range((2 if ahead is None else ahead) * n):
            self._submit()

    def _submit(self) -> None:
        for _ in range(self._loader.num_workers):
            worker = next(self._turn)
            if worker in self._active:
                break
        else:
            return
        try:
            index = next(self._indices)
        except StopIteration:
            return
        self._owner[self._next_task] = worker
        self._next_task += 1
        self._pool.submit(worker, self._epoch, self._next_task - 1, index)

    def _next(self) -> Any:
        if not self._pool.need_workers():
            raise StopIteration
        while True:
            number = self._ready()
            if number is None:
                if not self._owner:
                    self._finish()
                    raise StopIteration
                self._collect()
                continue
            kind, load = self._arrived.pop(number)
            self._next_out = max(self._next_out, number + 1)
            if kind == END:
                continue
            self._submit()
            value = load()
            if kind == ERROR:
                value.reraise()
            return value

    def _ready(self) -> int | None:
        if not self._loader.in_order:
            return next(iter(self._arrived), None)
        return self._next_out if self._next_out in self._arrived else None

    def _collect(self) -> None:
        waiting = sorted(set(self._owner.values()))
        for worker, (kind, epoch, number), load in self._pool.receive(
            waiting, self._loader.timeout
        ):
            if epoch != self._epoch:
                continue
            del self._owner[number]
            self._arrived[number] = (kind, load)
            if kind == END:
                self._active.discard(worker)
                # Its later tasks get no answer: a stream that has ended is not asked again.
                for later in [n for n, owner in self._owner.items() if owner == worker]:
                    del self._owner[later]
                    self._arrived[later] = (END, None)
                self._submit()

    def _finish(self) -> None:
        if not self._loader.persistent_workers:
            self._pool.close()
