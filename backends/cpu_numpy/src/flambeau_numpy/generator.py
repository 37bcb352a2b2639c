"""The CPU's source of random bits: NumPy's MT19937 behind the core's engine interface."""

from __future__ import annotations

from collections.abc import Sequence
from threading import RLock
from typing import Any, Protocol

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

_WORDS = 624
_SMALL = 128  # below this, drawing word by word beats the bounded-integer machinery of NumPy


class Generator(Protocol):
    """What kernels that draw know of the generator that they are given."""

    lock: RLock
    next_normal: float | None

    @property
    def engine(self) -> MT19937:
        """The source of random bits."""
        ...


class _Zeros(ISeedSequence):
    """What a state is made of that is seeded right after: NumPy's own way takes 80 µs."""

    def generate_state(self, n_words: int, dtype: object = np.uint32) -> Any:
        return [0] * n_words  # whose elements it takes one by one, faster than an array's


_ZEROS: Any = _Zeros()


class MT19937:
    """MT19937 computed by NumPy, seeded as PyTorch's CPU generator seeds it.

    Besides the core's engine interface it draws whole arrays (`random_bits`, `random_bits64`) and
    lends its memory to compiled code (`memory`).

    >>> from flambeau_numpy.generator import MT19937
    >>> MT19937(5489).random_bits(3)
    array([3499211612,  581869302, 3890346734], dtype=uint32)
    """

    __slots__ = ("_address", "_bits", "_integers", "_untouched")

    def __init__(self, seed: int = 5489) -> None:
        self._bits = np.random.MT19937(_ZEROS)
        self._integers = np.random.Generator(self._bits).integers
        self._address = 0  # until someone asks
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Start the sequence that belongs to the low 32 bits of `seed`."""
        np.random.RandomState(self._bits).seed(seed & 0xFFFFFFFF)
        self._untouched = True

    def random_bits(self, n: int) -> NDArray[np.uint32]:
        """The next `n` words of 32 random bits."""
        if not n:
            return np.empty(0, np.uint32)
        self._untouched = False
        return self._bits.random_raw(n).astype(np.uint32)

    def random_bits64(self, n: int) -> NDArray[np.uint64]:
        """The next `n` pairs of words as 64-bit numbers, the first word of each pair on top."""
        if not n:
            return np.empty(0, np.uint64)
        self._untouched = False
        if n < _SMALL:
            pairs = self._bits.random_raw(2 * n)
            return (pairs[::2] << np.uint64(32)) | pairs[1::2]
        return self._integers(0, 0xFFFFFFFFFFFFFFFF, size=n, dtype=np.uint64, endpoint=True)

    def memory(self) -> int:
        """The address of the state, 624 words and a position, for a caller that draws by itself."""
        self._untouched = False
        if not self._address:
            self._address = self._bits.ctypes.state_address
        return self._address

    def get_words(self) -> tuple[list[int], int]:
        """The 624 words of state and how many of them are drawn; 0 directly after seeding."""
        state = self._bits.state["state"]
        return state["key"].tolist(), 0 if self._untouched else int(state["pos"])

    def set_words(self, words: Sequence[int], position: int) -> None:
        """Continue from a state that `get_words` returned, here or in another engine."""
        self._untouched = position == 0
        key = np.array(words, dtype=np.uint32)
        self._bits.state = {
            "bit_generator": "MT19937",
            "state": {"key": key, "pos": position or _WORDS},
        }
