"""The part of a data set that one of several training processes visits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sized
from typing import Any, cast

import flambeau as fb
from flambeau.overrides import all_take_as_annotated
from flambeau.utils.data.dataset import Dataset
from flambeau.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th index, from the `rank`-th on, of an order that all replicas share.

    All replicas get equally many indices: some are repeated, or, with `drop_last`, left out.  Call
    `set_epoch` before each pass, or `shuffle` gives the same order every time.

    Args:
        dataset: what is divided; its length counts.
        num_replicas: number of processes; that of the process group by default.
        rank: of this process; that in the process group by default.
        shuffle: divide a random order, the same one in all processes.
        seed: of that order; it must be the same in all processes.
        drop_last: leave out the last indices instead of repeating the first ones.

    Raises:
        ValueError: `rank` is not one of the replicas.
        RuntimeError: `num_replicas` or `rank` is missing and there is no process group.

    >>> from flambeau.utils.data.distributed import DistributedSampler
    >>> list(DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False))
    [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Sized | Dataset[Any],
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None:
            num_replicas = _process_group().get_world_size()
        if rank is None:
            rank = _process_group().get_rank()
        assert num_replicas is not None
        assert rank is not None
        if not 0 <= rank < num_replicas:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            )
        self.dataset = cast("Sized", dataset)
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        count = len(self.dataset)
        if drop_last and count % num_replicas:
            self.num_samples = math.ceil((count - num_replicas) / num_replicas)
        else:
            self.num_samples = math.ceil(count / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        if self.shuffle:
            generator = fb.Generator()
            generator.manual_seed(self.seed + self.epoch)
            order = fb.randperm(count, generator=generator).tolist()
        else:
            order = list(range(count))
        # Beyond the end it begins anew, without a list of `total_size`.
        places = range(self.rank, self.total_size, self.num_replicas) if order else ()
        return (order[place % count] for place in places)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose another order for the next pass: the seed of the shuffle is ``seed + epoch``."""
        self.epoch = epoch


def _process_group() -> Any:
    try:
        from flambeau import distributed  # type: ignore[attr-defined] - a package of its own
    except ImportError:
        raise RuntimeError(
            "Requires distributed package to be available: pass num_replicas and rank"
        ) from None
    return distributed


all_take_as_annotated(globals())
