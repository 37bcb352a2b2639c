"""Which package looks at indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["lies_within", "offer_indices"]

Array = np.ndarray[Any, Any]
InRange = Callable[[Array, int, int], object]

_offers: dict[str, InRange] = {}
_in_range: InRange | None = None


def offer_indices(provider: str, in_range: InRange | None) -> None:
    """Let a package look at int64 arrays without gaps: ``in_range(array, count, size)``.

    It raises IndexError if one of the `count` elements is not in [0, size).  A package calls this
    where it offers its kernels; None takes back what it offered before.
    """
    global _in_range
    _offers.pop(provider, None)
    if in_range is not None:
        _offers[provider] = in_range
    _in_range = next(iter(_offers.values()), None)


def lies_within(index: Array, size: int) -> bool | None:
    """Whether all of an int64 array are in [0, size), or None if nobody looks."""
    look = _in_range
    if look is None or not index.flags.c_contiguous:
        return None
    try:
        look(index, index.size, size)
    except IndexError:
        return False
    return True
