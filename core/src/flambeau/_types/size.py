"""The shape of a tensor: a tuple that knows its product."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

if TYPE_CHECKING:
    from flambeau.jit._tracing.numbers import TracedInt


class Size(tuple[int, ...]):
    """The shape of a tensor, a tuple of ints.

    >>> import flambeau as fb
    >>> fb.zeros(2, 3).shape, fb.zeros(2, 3).size().numel()
    (torch.Size([2, 3]), 6)
    """

    __slots__ = ()

    def __new__(cls, sizes: Iterable[int] = ()) -> Size:
        given = tuple(sizes)
        for n in given:
            if type(n) is not int:
                return super().__new__(cls, map(_whole, range(len(given)), given))
        return super().__new__(cls, given)

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(repr, self))}])"

    @overload
    def __getitem__(self, item: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, item: slice) -> Size: ...
    def __getitem__(self, item: SupportsIndex | slice) -> int | Size:
        found = super().__getitem__(item)
        return Size(found) if isinstance(found, tuple) else found

    def __add__(self, other: tuple[int, ...]) -> Size:  # type: ignore[override]
        return Size(super().__add__(other))

    def __mul__(self, times: SupportsIndex) -> Size:
        return Size(super().__mul__(times))

    __rmul__ = __mul__

    def __reduce__(self) -> tuple[Any, ...]:
        return Size, (tuple(self),)


def _whole(place: int, n: TracedInt | int) -> int:
    if isinstance(n, int) and not isinstance(n, bool):
        return n  # of a class of its own: a traced size knows where it comes from
    try:
        return operator.index(n)
    except TypeError:
        kind = type(n).__name__
        raise TypeError(
            f"torch.Size() takes an iterable of 'int' (item {place} is {kind!r})"
        ) from None
