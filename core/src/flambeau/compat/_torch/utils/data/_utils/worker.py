"""Names of ``torch.utils.data._utils.worker`` that only programs for PyTorch want."""

from __future__ import annotations

import os
from dataclasses import dataclass

__all__ = [
    "ManagerWatchdog",
    "_IterableDatasetStopIteration",
    "_ResumeIteration",
    "_generate_state",
]


class ManagerWatchdog:
    """Whether the process that started this one still runs."""

    def __init__(self) -> None:
        self.manager_pid = os.getppid()
        self.manager_dead = False

    def is_alive(self) -> bool:
        """The answer; once False, always False."""
        self.manager_dead = self.manager_dead or os.getppid() != self.manager_pid
        return not self.manager_dead


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """What a worker sends when its stream has ended."""

    worker_id: int


@dataclass(frozen=True)
class _ResumeIteration:
    """What a worker is sent, and sends back, when another pass begins."""

    seed: int | None = None


_MASK = 0xFFFFFFFF


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Four numbers of 32 bits, with which a worker may seed NumPy.

    The mixing of O'Neill's ``seed_seq`` as in `numpy.random.SeedSequence`, of the worker's number
    and the lower and the upper half of the seed.
    """
    entropy = [worker_id, base_seed & _MASK, base_seed >> 32 & _MASK, 0]
    constant = 0x43B0D7E5

    def hashed(value: int) -> int:
        nonlocal constant
        value = (value ^ constant) & _MASK
        constant = constant * 0x931E8875 & _MASK
        value = value * constant & _MASK
        return value ^ value >> 16

    pool = [hashed(value) for value in entropy]
    for source in range(4):
        for target in range(4):
            if source != target:
                mixed = 0xCA01F9DD * pool[target] - 0x4973F715 * hashed(pool[source])
                pool[target] = (mixed & _MASK) ^ (mixed & _MASK) >> 16
    state, constant = [], 0x8B51F9DD
    for value in pool:
        value = (value ^ constant) & _MASK
        constant = constant * 0x58F38DED & _MASK
        value = value * constant & _MASK
        state.append(value ^ value >> 16)
    return state
