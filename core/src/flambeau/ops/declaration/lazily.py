"""Attributes that are made when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

_Made = TypeVar("_Made")


class lazily(Generic[_Made]):  # noqa: N801 - used as a decorator
    """A method that becomes an attribute: what it returned first, for everybody.

    `functools.cached_property` has a lock in Python 3.11, which a forked child may find taken by a
    thread of its parent. Here two threads may both make it, and one of the two is kept.
    """

    def __init__(self, make: Callable[[Any], _Made]) -> None:
        self.make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> lazily[_Made]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> _Made: ...
    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None:
            return self
        return instance.__dict__.setdefault(self.name, self.make(instance))
