"""The shuffle of Fisher and Yates, given its draws."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SMALL = 400  # below this, the loop is faster


def swapped(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """0 … n-1 after swapping, for every i in turn, entry i with entry places[i] ≥ i.

    >>> import numpy as np
    >>> from flambeau_numpy._permutation import swapped
    >>> swapped(np.array([2, 1, 2]))
    array([2, 1, 0])
    """
    if places.size < _SMALL:
        return np.array(_one_by_one(places.tolist()), np.int64)
    return _at_once(places)


def _one_by_one(places: list[int]) -> list[int]:
    order = list(range(len(places)))
    for i, j in enumerate(places):
        order[i], order[j] = order[j], order[i]
    return order


def _at_once(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """All swaps without a loop over them.

    Swap i leaves at place j = places[i] what stood at i, and takes away what the last swap before
    it with the same place has left there (j itself, if there was none).  What stood at i was in
    turn left by the last swap with place i.  Following these links back, for all i at once and
    with doubled steps, ends at an entry that no swap had moved before.
    """
    n = places.size
    swap = _by_place(places)
    place = places[swap]
    same = place[1:] == place[:-1]

    before = np.full(n, -1)  # of each swap: the last earlier one with the same place
    before[swap[1:]] = np.where(same, swap[:-1], -1)

    ends = np.flatnonzero(np.append(~same, True))
    place, swap = place[ends], swap[ends]
    swap = np.where(swap == place, before[place], swap)  # a swap of i with itself is not earlier
    source = np.arange(n)  # of each i: the swap that left there what swap i finds, or i
    source[place] = np.where(swap >= 0, swap, place)
    while True:
        further = source[source]
        if np.array_equal(further, source):
            break
        source = further
    return np.where(before >= 0, source[before], places)


def _by_place(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """The swaps ordered by place and then by time: a radix sort, which NumPy has for 16 bits."""
    order = np.argsort(places.astype(np.uint16), kind="stable")
    if places.size <= 1 << 16:
        return order
    return order[np.argsort((places >> 16).astype(np.uint16)[order], kind="stable")]
