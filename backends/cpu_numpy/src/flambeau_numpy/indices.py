"""Which package looks at indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["offer_indices"]

Array = np.ndarray[Any, Any]
LiesWithin = Callable[[Array, int], "bool | None"]

_offers: dict[str, LiesWithin] = {}
lies_within: LiesWithin | None = None
"""What tells whether all of an int64 array are in [0, size), or None of one it does not take."""


def offer_indices(provider: str, look: LiesWithin | None) -> None:
    """Let a package look at int64 arrays: ``look(array, size)``.

    It says whether all elements are in [0, size), or None of an array that it does not take, as
    those with gaps.  A package calls this where it offers its kernels; None takes back what it
    offered before.
    """
    global lies_within
    _offers.pop(provider, None)
    if look is not None:
        _offers[provider] = look
    lies_within = next(iter(_offers.values()), None)
