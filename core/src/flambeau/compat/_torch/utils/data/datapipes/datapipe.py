"""The bases of data pipes, and how their classes become methods."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Generic, TypeVar

from flambeau.utils.data import Dataset, IterableDataset

__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe"]

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class DataChunk(list[_T], Generic[_T]):
    """A batch of samples.

    Attributes:
        items: the samples, as a plain list.
    """

    def __init__(self, items: Iterable[_T]) -> None:
        self.items = list(items)
        super().__init__(self.items)

    def as_str(self, indent: str = "") -> str:
        """The samples in brackets."""
        return f"{indent}[{', '.join(map(str, self))}]"

    def raw_iterator(self) -> Iterator[_T]:
        """The samples one by one."""
        yield from self.items


class _Functional:
    """What both bases share: pipes made from others by a method."""

    functions: ClassVar[dict[str, Callable[..., Any]]]

    def __getattr__(self, attribute_name: str) -> Any:
        function = self.functions.get(attribute_name)
        if function is None:
            raise AttributeError(
                f"'{type(self).__name__}' object has no attribute '{attribute_name}'"
            )
        return functools.partial(function, self)

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Make a function of a pipe a method of all pipes."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: Any, enable_df_api_tracing: bool = False
    ) -> None:
        """Make a class of pipes a method of all pipes.

        Raises:
            Exception: there is such a method.
        """
        if function_name in cls.functions:
            raise Exception(
                f"Unable to add DataPipe function name {function_name} as it is already taken"
            )
        cls.functions[function_name] = lambda source, *args, **kwargs: cls_to_register(
            source, *args, **kwargs
        )

    def __repr__(self) -> str:
        return type(self).__qualname__

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.functions]


class IterDataPipe(_Functional, IterableDataset[_T_co]):
    """A stream made of another one: a subclass defines `__iter__`, and `reset` if it has a state.

    The newest iterator is the only valid one.
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}
    _valid_iterator_id: int | None = None
    _number_of_samples_yielded = 0

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if "__iter__" in cls.__dict__:
            setattr(cls, "__iter__", _guarded(cls.__dict__["__iter__"]))  # noqa: B010 - no method

    def __iter__(self) -> Iterator[_T_co]:
        return self  # type: ignore[return-value]

    def reset(self) -> None:
        """Called when a new iterator begins."""

    def _begin(self) -> int:
        """The number of a new iterator, which makes the one before it invalid."""
        last = self._valid_iterator_id
        self._valid_iterator_id = 0 if last is None else last + 1
        self.reset()
        return self._valid_iterator_id

    def _is_current(self, number: int) -> bool:
        return self._valid_iterator_id == number

    def _check(self, number: int) -> None:
        if not self._is_current(number):
            raise RuntimeError(
                "This iterator has been invalidated because another iterator has been created "
                f"from the same IterDataPipe: {self!r}\nThis may be caused by multiple references "
                "to the same IterDataPipe. We recommend using `.fork()` if that is necessary."
            )


class _Pass:
    """An iterator that is refused once there is a newer one."""

    def __init__(self, iterator: Iterator[Any], pipe: IterDataPipe[Any], number: int) -> None:
        self.iterator, self.datapipe, self.iterator_id = iterator, pipe, number

    def __iter__(self) -> _Pass:
        return self

    def __next__(self) -> Any:
        self.datapipe._check(self.iterator_id)
        value = next(self.iterator)
        self.datapipe._number_of_samples_yielded += 1
        return value

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["iterator"], name)


def _guarded(iterate: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Any]:
    """The `__iter__` of a class of pipes, whose iterators are refused once there is a newer one.

    The iterator of a generator begins with its first sample, any other one with `iter`.
    """
    if not inspect.isgeneratorfunction(iterate):

        @functools.wraps(iterate)
        def at_once(self: Any) -> Any:
            iterator = iterate(self)
            return _Pass(iterator, self, self._begin())

        return at_once

    @functools.wraps(iterate)
    def with_first(self: Any) -> Any:
        number = self._begin()
        samples = iterate(self)
        try:
            for value in samples:
                self._number_of_samples_yielded += 1
                yield value
                self._check(number)
        finally:
            samples.close()

    return with_first


class DFIterDataPipe(IterDataPipe[_T_co]):
    """A stream of data frames."""

    def _is_dfpipe(self) -> bool:
        return True


class MapDataPipe(_Functional, Dataset[_T_co]):
    """Samples by index made of others: a subclass defines `__getitem__`, usually `__len__`."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}
