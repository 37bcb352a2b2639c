"""A set that keeps the order in which its elements came."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, MutableSet
from typing import TypeVar

__all__ = ["OrderedSet"]

T = TypeVar("T", bound=Hashable)


class OrderedSet(MutableSet[T]):
    """Each element once, in the order of insertion.

    Args:
        iterable: the first elements.

    >>> OrderedSet([3, 1, 3]) | {2}
    OrderedSet([3, 1, 2])
    """

    __slots__ = ("_dict",)

    def __init__(self, iterable: Iterable[T] | None = None) -> None:
        self._dict: dict[T, None] = dict.fromkeys(iterable or ())

    def __contains__(self, elem: object) -> bool:
        return elem in self._dict

    def __iter__(self) -> Iterator[T]:
        return iter(self._dict)

    def __reversed__(self) -> Iterator[T]:
        return reversed(self._dict)

    def __len__(self) -> int:
        return len(self._dict)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)})"

    def add(self, elem: T) -> None:
        """Put an element at the end, if it is new."""
        self._dict[elem] = None

    def discard(self, elem: T) -> None:
        """Take an element out, if it is there."""
        self._dict.pop(elem, None)

    def copy(self) -> OrderedSet[T]:
        """Another set of the same elements."""
        return type(self)(self)

    def update(self, *others: Iterable[T]) -> None:
        """Add the elements of others."""
        for each in others:
            self._dict.update(dict.fromkeys(each))

    def union(self, *others: Iterable[T]) -> OrderedSet[T]:
        """A set of these elements and those of others."""
        made = self.copy()
        made.update(*others)
        return made

    def intersection(self, *others: Iterable[T]) -> OrderedSet[T]:
        """A set of the elements that all have."""
        sets = [frozenset(each) for each in others]
        return type(self)(e for e in self if all(e in each for each in sets))

    def difference(self, *others: Iterable[T]) -> OrderedSet[T]:
        """A set of the elements that no other has."""
        gone = frozenset(e for each in others for e in each)
        return type(self)(e for e in self if e not in gone)

    def issubset(self, other: Iterable[T]) -> bool:
        """Whether another has all the elements."""
        return frozenset(self) <= frozenset(other)

    def issuperset(self, other: Iterable[T]) -> bool:
        """Whether this has all elements of another."""
        return all(e in self for e in other)
