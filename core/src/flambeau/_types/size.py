"""The shape of a tensor: a tuple that knows its product."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any


class Size(tuple[int, ...]):
    """The shape of a tensor, a tuple of ints.

    >>> import flambeau as fb
    >>> fb.zeros(2, 3).shape, fb.zeros(2, 3).size().numel()
    (torch.Size([2, 3]), 6)
    """

    __slots__ = ()

    def __new__(cls, sizes: Iterable[int] = ()) -> Size:
        return super().__new__(cls, sizes)

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(repr, self))}])"

    def __getitem__(self, item: Any) -> Any:
        found = super().__getitem__(item)
        return Size(found) if isinstance(item, slice) else found

    def __add__(self, other: tuple[Any, ...]) -> Any:
        return Size(super().__add__(other))

    def __mul__(self, times: Any) -> Any:
        return Size(super().__mul__(times))

    __rmul__ = __mul__

    def __reduce__(self) -> tuple[Any, ...]:
        return Size, (tuple(self),)
