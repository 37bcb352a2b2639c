"""Data sets: samples by index, or samples in a stream."""

from __future__ import annotations

import bisect
import itertools
import math
import numbers
import warnings
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from typing_extensions import deprecated

import flambeau as fb
from flambeau.overrides import takes_as_annotated

if TYPE_CHECKING:
    from flambeau import Generator, Tensor

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class Dataset(Generic[_T_co]):
    """Base class of data sets that map an index to a sample.

    A subclass defines `__getitem__`, usually `__len__`, and, where it can read many samples at
    once, ``__getitems__(indices)`` giving their list.  ``a + b`` is their concatenation.

    >>> import flambeau as fb
    >>> class Squares(fb.utils.data.Dataset):
    ...     def __getitem__(self, index):
    ...         return index**2
    ...     def __len__(self):
    ...         return 4
    >>> [len(Squares() + Squares()), (Squares() + Squares())[5]]
    [8, 1]
    """

    def __getitem__(self, index: Any) -> _T_co:
        raise NotImplementedError(f"{type(self).__name__} does not define __getitem__()")

    def __add__(self, other: Dataset[_T_co]) -> ConcatDataset[_T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[_T_co], Iterable[_T_co]):
    """Base class of data sets that are streams: a subclass defines `__iter__`.

    ``a + b`` is one stream after the other.

    >>> import flambeau as fb
    >>> class Count(fb.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(3))
    >>> [batch.tolist() for batch in fb.utils.data.DataLoader(Count() + Count(), batch_size=4)]
    [[0, 1, 2, 0], [1, 2]]
    """

    def __add__(self, other: Dataset[_T_co]) -> ChainDataset[_T_co]:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset["tuple[Tensor, ...]"]):
    """Samples are rows of tensors: sample i is ``(tensors[0][i], tensors[1][i], …)``.

    Args:
        *tensors: tensors of one length along the first dimension.

    Raises:
        AssertionError: the lengths differ.

    >>> import flambeau as fb
    >>> fb.utils.data.TensorDataset(fb.arange(3), fb.ones(3))[1]
    (tensor(1), tensor(1.))
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        for tensor in tensors:
            if isinstance(tensor, type) or not callable(getattr(tensor, "size", None)):
                raise TypeError(f"TensorDataset takes tensors, not {type(tensor).__name__}")
        lengths = [tensor.size(0) for tensor in tensors]
        if len(set(lengths)) > 1:
            raise AssertionError(
                f"Size mismatch between tensors: lengths along the first dimension are {lengths}"
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset[Any]):
    """Several data sets side by side: sample i is the tuple (or dict) of their samples i.

    Args:
        *args: data sets of one length; samples are tuples.
        **kwargs: named data sets of one length, instead; samples are dicts.

    Raises:
        ValueError: the lengths differ, both forms are used, or there is no data set.

    >>> import flambeau as fb
    >>> fb.utils.data.StackDataset(letter="ab", number=[1, 2])[1]
    {'letter': 'b', 'number': 2}
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or ``dict``- (via ``kwargs``) like "
                "input/output, but both types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        lengths = [len(dataset) for dataset in args or kwargs.values()]
        if len(set(lengths)) > 1:
            raise ValueError(f"Size mismatch between datasets: lengths are {lengths}")
        self.datasets = args or kwargs
        self._length = lengths[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        if isinstance(self.datasets, dict):
            columns = [_samples(dataset, indices) for dataset in self.datasets.values()]
            return [
                dict(zip(self.datasets, row, strict=True)) for row in zip(*columns, strict=True)
            ]
        return list(zip(*(_samples(dataset, indices) for dataset in self.datasets), strict=True))

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[_T_co]):
    """Several data sets one after the other; samples are read from them when asked for.

    Args:
        datasets: data sets with a length.

    Raises:
        AssertionError: there is none, or one of them is a stream.

    >>> import flambeau as fb
    >>> both = fb.utils.data.ConcatDataset(["ab", "cde"])
    >>> both[3], both[-5], both.cumulative_sizes
    ('d', 'a', [2, 5])
    """

    datasets: list[Dataset[_T_co]]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Dataset[_T_co]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """The sums of the first one, two, … lengths."""
        return list(itertools.accumulate(len(part) for part in sequence))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    @takes_as_annotated
    def __getitem__(self, idx: int) -> _T_co:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        part = bisect.bisect_right(self.cumulative_sizes, idx)
        start = self.cumulative_sizes[part - 1] if part else 0
        return self.datasets[part][idx - start]

    @property
    @deprecated(
        "`cummulative_sizes` attribute is renamed to `cumulative_sizes`", category=FutureWarning
    )
    def cummulative_sizes(self) -> list[int]:
        """The old spelling of `cumulative_sizes`."""
        return self.cumulative_sizes


class ChainDataset(IterableDataset[_T_co]):
    """Several streams one after the other.

    Args:
        datasets: an iterable of `IterableDataset`.

    Raises:
        AssertionError: one of them is not a stream (when it is reached).

    >>> import flambeau as fb
    >>> class Count(fb.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(2))
    >>> list(fb.utils.data.ChainDataset([Count(), Count()]))
    [0, 1, 0, 1]
    """

    def __init__(self, datasets: Iterable[Dataset[_T_co]]) -> None:
        self.datasets = datasets

    def _streams(self) -> Iterator[IterableDataset[_T_co]]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self) -> Iterator[_T_co]:
        for stream in self._streams():
            yield from stream

    def __len__(self) -> int:
        return sum(len(cast(Sized, stream)) for stream in self._streams())


class Subset(Dataset[_T_co]):
    """The samples of another data set at given indices.

    A subclass that defines `__getitem__` must define `__getitems__` too, which loaders prefer.

    Args:
        dataset: the whole data set.
        indices: which of its samples, in which order.

    Raises:
        NotImplementedError: a subclass defines `__getitem__` alone.

    >>> import flambeau as fb
    >>> list(fb.utils.data.DataLoader(fb.utils.data.Subset("abcd", [3, 0]), batch_size=None))
    ['d', 'a']
    """

    dataset: Dataset[_T_co]
    indices: Sequence[int]

    def __init__(self, dataset: Dataset[_T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices
        own = type(self)
        if own.__getitem__ is not Subset.__getitem__ and own.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{own.__name__} overrides __getitem__ but not __getitems__, from which a "
                "DataLoader reads batches. Define it too, for example as\n\n"
                "def __getitems__(self, indices):\n"
                "    return [self[i] for i in indices]"
            )

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[_T_co]:
        mapped = [self.indices[i] for i in indices]
        if many := getattr(self.dataset, "__getitems__", None):
            return many(mapped)
        return [self.dataset[i] for i in mapped]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[_T],
    lengths: Sequence[int | float],
    generator: Generator | None = None,
) -> list[Subset[_T]]:
    """Divide a data set at random into parts that share no sample.

    Args:
        dataset: a data set with a length n.
        lengths: the lengths of the parts, whose sum is n; or fractions, whose sum is 1.  A fraction
            f gives floor(f·n) samples, and what is left goes one by one to the first parts.
        generator: source of the permutation; the global one by default.

    Returns:
        one `Subset` per part.

    Raises:
        ValueError: the lengths do not add up, or a fraction is outside [0, 1].

    >>> import flambeau as fb
    >>> [len(part) for part in fb.utils.data.random_split(range(10), [0.33, 0.33, 0.34])]
    [4, 3, 3]
    """
    n = len(cast(Sized, dataset))
    for length in lengths:
        if not isinstance(length, (numbers.Real, fb.Tensor)) or abs(length) > 1 << 63:
            raise TypeError(f"random_split(): a length is a number, not {length!r:.80}")
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _lengths_of_fractions(n, lengths)
    if sum(lengths) != n:
        raise ValueError(
            "Sum of input lengths does not equal the length of the input dataset! "
            f"The lengths {list(lengths)} sum to {sum(lengths)}, and the data set has {n} samples."
        )
    order = iter(fb.randperm(n, generator=generator).tolist())
    return [Subset(dataset, list(itertools.islice(order, cast(int, size)))) for size in lengths]


def _lengths_of_fractions(n: int, fractions: Sequence[float]) -> list[int]:
    for i, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueError(f"Fraction at index {i} is not between 0 and 1: {fraction}")
    lengths = [math.floor(n * fraction) for fraction in fractions]
    for i in range(n - sum(lengths)):
        lengths[i % len(lengths)] += 1
    for i, length in enumerate(lengths):
        if length == 0:
            warnings.warn(
                f"Length of split at index {i} is 0. This might result in an empty dataset.",
                stacklevel=3,
            )
    return lengths


def _samples(dataset: Any, indices: list[Any]) -> list[Any]:
    if not callable(getattr(dataset, "__getitems__", None)):
        return [dataset[i] for i in indices]
    samples = dataset.__getitems__(indices)
    if len(samples) != len(indices):
        raise ValueError(
            f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(samples)}"
        )
    return samples
