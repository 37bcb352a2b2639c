"""Streams of several streams, and several streams of one."""

from __future__ import annotations

import copy as copying
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Literal

from flambeau.compat._torch.utils.data.datapipes._decorator import functional_datapipe
from flambeau.compat._torch.utils.data.datapipes._iter_pipes import length
from flambeau.compat._torch.utils.data.datapipes.datapipe import IterDataPipe
from flambeau.compat._torch.utils.data.datapipes.utils.common import (
    StreamWrapper,
    _check_unpickable_fn,
)

__all__ = [
    "ConcaterIterDataPipe",
    "DemultiplexerIterDataPipe",
    "ForkerIterDataPipe",
    "MultiplexerIterDataPipe",
    "ZipperIterDataPipe",
    "_ChildDataPipe",
]


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe[Any]):
    """One stream after the other."""

    def __init__(self, *datapipes: IterDataPipe[Any]) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `IterDataPipe`")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(length(self, pipe) for pipe in self.datapipes)


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe[Any]):
    """A sample of each stream in turn, until the shortest has ended."""

    def __init__(self, *datapipes: IterDataPipe[Any]) -> None:
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for row in zip(*self.datapipes, strict=False):
            yield from row

    def __len__(self) -> int:
        return min(length(self, pipe) for pipe in self.datapipes) * len(self.datapipes)


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe[Any]):
    """Tuples of a sample of each stream, until the shortest has ended."""

    def __init__(self, *datapipes: IterDataPipe[Any]) -> None:
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        yield from zip(*self.datapipes, strict=False)

    def __len__(self) -> int:
        return min(length(self, pipe) for pipe in self.datapipes)


class _Shared(IterDataPipe[Any]):
    """One pass over a stream on behalf of several children."""

    def __init__(self, datapipe: Any, num_instances: int, buffer_size: int, name: str) -> None:
        if buffer_size < 0:
            warnings.warn(
                f"Unlimited buffer size is set for `{name}`, please be aware of OOM at random "
                "places",
                UserWarning,
                stacklevel=4,
            )
        self.main_datapipe, self.num_instances = datapipe, num_instances
        self.buffer_size = buffer_size
        self.reset()

    def reset(self) -> None:
        """Begin the stream anew."""
        self._source: Iterator[Any] | None = None
        self._ended = False
        self._stopped = [True] * self.num_instances

    def pass_of(self, child: int) -> Iterator[Any]:
        """The samples of one child."""
        if self._source is None and self._stopped[child]:
            self._source, self._ended = iter(self.main_datapipe), False
            self._stopped = [False] * self.num_instances
        try:
            while not self._stopped[child]:
                try:
                    value = self._next(child)
                except StopIteration:
                    return
                yield value
        finally:
            self._stopped[child] = True
            if all(self._stopped):
                self._source = None
                self._empty()

    def is_every_instance_exhausted(self) -> bool:
        """Whether the stream has ended for all children."""
        return self._ended and all(self._stopped)

    def length_of(self) -> int:
        """The length of a child."""
        raise TypeError("a DataPipe whose length is not known")

    def _draw(self) -> Any:
        if self._ended or self._source is None:
            raise StopIteration
        try:
            return next(self._source)
        except StopIteration:
            self._ended = True
            raise

    def _next(self, child: int) -> Any:
        raise NotImplementedError

    def _empty(self) -> None:
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_source": None, "_stopped": [True] * self.num_instances}


class _Forked(_Shared):
    """Each child gets all samples."""

    def __init__(self, datapipe: Any, num_instances: int, buffer_size: int, copy: Any) -> None:
        if copy not in (None, "shallow", "deep"):
            raise ValueError(
                f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`."
            )
        self.copy = copy
        super().__init__(datapipe, num_instances, buffer_size, "fork")

    def reset(self) -> None:
        super().reset()
        self._held: deque[Any] = deque()
        self._first = 0
        self._places = [0] * self.num_instances

    def _next(self, child: int) -> Any:
        place = self._places[child] - self._first
        if place == len(self._held):
            self._held.append(self._draw())
        value = self._held[place]
        self._places[child] += 1
        if min(self._places) > self._first:
            self._held.popleft()
            self._first += 1
        if 0 <= self.buffer_size < len(self._held):
            raise BufferError(
                "ForkerIterDataPipe buffer overflow, buffer size "
                f"{self.buffer_size} is insufficient."
            )
        if self.copy is None:
            return value
        return copying.copy(value) if self.copy == "shallow" else copying.deepcopy(value)

    def _empty(self) -> None:
        StreamWrapper.close_streams(list(self._held))
        self._held.clear()

    def length_of(self) -> int:
        return len(self.main_datapipe)


class _Sorted(_Shared):
    """Each child gets the samples of which a function says its number."""

    def __init__(
        self,
        datapipe: Any,
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool,
        buffer_size: int,
    ) -> None:
        self.classifier_fn, self.drop_none = classifier_fn, drop_none
        super().__init__(datapipe, num_instances, buffer_size, "demux")

    def reset(self) -> None:
        super().reset()
        self._held: list[deque[Any]] = [deque() for _ in range(self.num_instances)]

    def _next(self, child: int) -> Any:
        if self._held[child]:
            return self._held[child].popleft()
        while True:
            value = self._draw()
            kind = self.classifier_fn(value)
            if kind is None and self.drop_none:
                StreamWrapper.close_streams(value)
                continue
            if kind is None or not 0 <= kind < self.num_instances:
                raise ValueError(
                    "Output of the classification fn should be between 0 and "
                    f"{self.num_instances - 1}. {kind} is returned."
                )
            if kind == child:
                return value
            self._held[kind].append(value)
            if 0 <= self.buffer_size < sum(map(len, self._held)):
                raise BufferError(
                    "DemultiplexerIterDataPipe buffer overflow, buffer size "
                    f"{self.buffer_size} is insufficient."
                )

    def _empty(self) -> None:
        for held in self._held:
            StreamWrapper.close_streams(list(held))
            held.clear()


class _ChildDataPipe(IterDataPipe[Any]):
    """One of several streams of one; a second pass of it begins a new one of all."""

    def __init__(self, main_datapipe: _Shared, instance_id: int) -> None:
        self.main_datapipe, self.instance_id = main_datapipe, instance_id

    def __iter__(self) -> Iterator[Any]:
        return self.main_datapipe.pass_of(self.instance_id)

    def __len__(self) -> int:
        return self.main_datapipe.length_of()

    def _begin(self) -> int:
        main = self.main_datapipe
        if main._valid_iterator_id is None:
            main._valid_iterator_id = 0
        elif main._valid_iterator_id == self._valid_iterator_id:
            main._valid_iterator_id += 1
            if not main.is_every_instance_exhausted():
                warnings.warn(
                    "Some child DataPipes are not exhausted when __iter__ is called. We are "
                    "resetting the buffer and each child DataPipe will read from the start again.",
                    UserWarning,
                    stacklevel=3,
                )
            main.reset()
        self._valid_iterator_id = main._valid_iterator_id
        return self._valid_iterator_id

    def _is_current(self, number: int) -> bool:
        return number == self._valid_iterator_id == self.main_datapipe._valid_iterator_id


def _children(container: _Shared) -> list[_ChildDataPipe]:
    return [_ChildDataPipe(container, place) for place in range(container.num_instances)]


def _check_count(num_instances: int) -> None:
    if num_instances < 1:
        raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe[Any]):
    """Several streams with the samples of one."""

    def __new__(
        cls,
        datapipe: Any,
        num_instances: int,
        buffer_size: int = 1000,
        copy: Literal["shallow", "deep"] | None = None,
    ) -> Any:
        _check_count(num_instances)
        if num_instances == 1:
            return datapipe
        return _children(_Forked(datapipe, num_instances, buffer_size, copy))


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe[Any]):
    """Several streams, with those samples of one of which a function says their number."""

    def __new__(
        cls,
        datapipe: Any,
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> Any:
        _check_count(num_instances)
        _check_unpickable_fn(classifier_fn)
        return _children(_Sorted(datapipe, num_instances, classifier_fn, drop_none, buffer_size))
