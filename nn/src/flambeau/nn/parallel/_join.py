"""Who still has batches, while processes have different numbers of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as fb


class Attendance:
    """What the processes of a group tell each other before every step.

    Args:
        group: the processes.
        device: where the numbers they exchange live.
        whole: averages are over the whole group, not over those that are present.
        strict: it is an error if one is absent.
    """

    def __init__(self, group: Any, device: Any, whole: bool, strict: bool) -> None:
        self._group = group
        self._device = device
        self._whole = whole
        self._strict = strict

    def _exchange(self, *facts: bool) -> tuple[list[int], bool, bool]:
        """Ranks that are present, and whether they exchange gradients and buffers."""
        mine = fb.tensor([int(fact) for fact in facts], device=self._device)
        every = fb.empty((self._group.size(), 3), dtype=mine.dtype, device=self._device)
        fb.distributed.all_gather_into_tensor(every, mine, group=self._group)
        rows = every.tolist()
        there = [rank for rank, row in enumerate(rows) if row[0]]
        if self._strict and len(there) < len(rows):
            raise RuntimeError(
                "Detected at least one rank that exhausted inputs. Throwing across all ranks."
            )
        return there, any(row[1] for row in rows), any(row[2] for row in rows)

    def _divisor(self, there: list[int]) -> int:
        return self._group.size() if self._whole else len(there)

    def present(self, sync: bool, buffers: bool) -> tuple[int, int]:
        """Tell of a step; whose buffers count in it, and what sums are divided by."""
        there, _, _ = self._exchange(True, sync, buffers)
        return there[0], self._divisor(there)

    def absent(self, step: Callable[[int, int, bool, bool], None]) -> int:
        """Take part in the steps of others until nobody has one; who had the last."""
        last = self._group.size() - 1
        while True:
            there, sync, buffers = self._exchange(False, False, False)
            if not there:
                return last
            last = there[0]
            step(there[0], self._divisor(there), sync, buffers)
