"""Samplers: iterables of the indices (or lists of indices) at which a data set is read.

Random samplers draw from the generators exactly as PyTorch's do, so a seed gives PyTorch's order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import TYPE_CHECKING, Generic, TypeVar

import flambeau as fb
from flambeau.overrides import all_take_as_annotated

if TYPE_CHECKING:
    from flambeau import Generator, Tensor

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

_T_co = TypeVar("_T_co", covariant=True)


class Sampler(Generic[_T_co]):
    """Base class of samplers: a subclass defines `__iter__`, and `__len__` where it is known.

    There is no default `__len__`, for `list()` asks for it and would take its error for a real one.

    Args:
        data_source: ignored; accepted for programs written before PyTorch 2.

    >>> import flambeau as fb
    >>> class Reversed(fb.utils.data.Sampler):
    ...     def __init__(self, data):
    ...         self.data = data
    ...     def __iter__(self):
    ...         return iter(reversed(range(len(self.data))))
    >>> list(fb.utils.data.DataLoader("abc", sampler=Reversed("abc"), batch_size=3))
    [['c', 'b', 'a']]
    """

    def __init__(self, data_source: Sized | None = None) -> None:
        pass

    def __iter__(self) -> Iterator[_T_co]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__()")


class SequentialSampler(Sampler[int]):
    """0, 1, … n - 1, in this order.

    Args:
        data_source: anything with a length n.

    >>> import flambeau as fb
    >>> list(fb.utils.data.SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Random indices: a shuffle of all, or draws with replacement.

    Without a `generator`, each iteration seeds a fresh one from the global generator.

    Args:
        data_source: anything with a length n.
        replacement: draw each index independently.
        num_samples: how many indices to give, n by default; without replacement, more than n means
            several shuffles in a row.
        generator: source of the random numbers.

    Raises:
        TypeError: `replacement` is not a bool.
        ValueError: `num_samples` is not a positive int.

    >>> import flambeau as fb
    >>> sorted(fb.utils.data.RandomSampler("abcd"))
    [0, 1, 2, 3]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(
                "num_samples should be a positive integer value, "
                f"but got num_samples={self.num_samples}"
            )

    @property
    def num_samples(self) -> int:
        """How many indices an iteration gives; follows the data source where it was not set."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n = len(self.data_source)
        generator = self.generator
        if generator is None:
            generator = fb.Generator()
            generator.manual_seed(int(fb.empty((), dtype=fb.int64).random_().item()))
        count = self.num_samples
        if self.replacement:
            for start in range(0, count, 32):
                size = (min(32, count - start),)
                yield from fb.randint(n, size, dtype=fb.int64, generator=generator).tolist()
        else:
            for _ in range(count // n):
                yield from fb.randperm(n, generator=generator).tolist()
            # Drawn even where none of it is needed, as PyTorch does: the generator may be shared.
            yield from fb.randperm(n, generator=generator).tolist()[: count % n]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order.

    Args:
        indices: a sequence of indices.
        generator: source of the random numbers; the global one by default.

    >>> import flambeau as fb
    >>> sorted(fb.utils.data.SubsetRandomSampler([3, 5, 7]))
    [3, 5, 7]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in fb.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Random indices, each with a probability proportional to its weight.

    Args:
        weights: one non-negative weight per index; their sum need not be one.
        num_samples: how many indices to draw.
        replacement: whether an index may come twice.
        generator: source of the random numbers; the global one by default.

    Raises:
        ValueError: `num_samples` is not a positive int, `replacement` not a bool, or `weights` not
            one-dimensional.

    >>> import flambeau as fb
    >>> list(fb.utils.data.WeightedRandomSampler([0.0, 1.0], 3))
    [1, 1, 1]
    """

    weights: Tensor

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        if not _is_positive_int(num_samples):
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={num_samples}"
            )
        if not isinstance(replacement, bool):
            raise ValueError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        self.weights = fb.as_tensor(weights, dtype=fb.float64)
        if self.weights.dim() != 1:
            raise ValueError(
                "weights should be a 1d sequence but given "
                f"weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = fb.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` consecutive indices of another sampler.

    Args:
        sampler: any iterable of indices.
        batch_size: length of the lists.
        drop_last: leave out a last list that is shorter.

    Raises:
        ValueError: `batch_size` is not a positive int, or `drop_last` not a bool.

    >>> import flambeau as fb
    >>> list(fb.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool
    ) -> None:
        if not _is_positive_int(batch_size):
            raise ValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        full, rest = divmod(len(self.sampler), self.batch_size)  # type: ignore[arg-type]
        return full + (rest > 0 and not self.drop_last)


def _is_positive_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


all_take_as_annotated(globals())
