"""Reading one batch: from indices of a map, or from a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import flambeau as fb
from flambeau.utils.data._utils.collate import default_collate
from flambeau.utils.data.dataset import Subset, TensorDataset


class DatasetKind:
    """How samples are had: by index, or one after another."""

    Map, Iterable = 0, 1


class Fetcher:
    """Makes batches of a data set; a new one starts a stream anew."""

    def __init__(
        self,
        dataset: Any,
        batched: bool,
        collate_fn: Callable[[Any], Any],
        drop_last: bool,
        kind: int,
    ) -> None:
        self._dataset = dataset
        self._batched = batched
        self._collate = collate_fn
        self._drop_last = drop_last
        self._ended = False
        self._stream: Iterator[Any] | None = None
        if kind == DatasetKind.Iterable:
            self._stream = iter(dataset)

    def fetch(self, index: object) -> Any:
        """The batch of one index of the batch sampler.

        Raises:
            StopIteration: a stream has ended.
        """
        return self._read(index) if self._stream is None else self._read_stream(index)

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
