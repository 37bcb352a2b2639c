"""MT19937 in plain Python: the source of random bits of backends that bring none of their own.

Source: M.  Matsumoto and T.  Nishimura, "Mersenne Twister: a 623-dimensionally equidistributed
uniform pseudo-random number generator", ACM TOMACS 8 (1998); seeding as in their 2002 revision.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Protocol

WORDS = 624  # length of the recurrence, and of the state
_MIDDLE = 397
_UPPER, _LOWER = 0x80000000, 0x7FFFFFFF
_MATRIX = 0x9908B0DF


class Bits(Protocol):
    """What `random_bits` returns: 32-bit words that convert to a list of Python ints."""

    def __len__(self) -> int: ...

    def tolist(self) -> list[int]: ...


class BitEngine(Protocol):
    """What `Backend.generator` returns: MT19937, however it is computed.

    The position counts the words already drawn from the current block of 624.  It is 624 when the
    block is used up and 0 directly after seeding; in both cases the next draw makes a new block.
    """

    def seed(self, seed: int, /) -> None: ...

    def random_bits(self, n: int, /) -> Bits: ...

    def get_words(self) -> tuple[list[int], int]: ...

    def set_words(self, words: Sequence[int], position: int, /) -> None: ...


class MT19937:
    """The Mersenne Twister with 624 words of state, giving 32 random bits per draw.

    >>> from flambeau._random.mt19937 import MT19937
    >>> engine = MT19937(5489)
    >>> engine.random_bits(3).tolist()
    [3499211612, 581869302, 3890346734]
    """

    __slots__ = ("_position", "_words")

    def __init__(self, seed: int = 5489) -> None:
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Start the sequence that belongs to the low 32 bits of `seed`."""
        word = seed & 0xFFFFFFFF
        words = [word]
        for j in range(1, WORDS):
            word = (1812433253 * (word ^ (word >> 30)) + j) & 0xFFFFFFFF
            words.append(word)
        self._words = words
        self._position = 0

    def random_bits(self, n: int) -> array[int]:
        """The next `n` words of 32 random bits.

        Raises:
            MemoryError: there is no room for them.
        """
        bits = array("I")
        if n > WORDS:
            bytes(n * bits.itemsize)  # refuses what has no room before anything is drawn
        while n > 0:
            if self._position in (0, WORDS):
                self._words = _next_block(self._words)
                self._position = 0
            taken = self._words[self._position : self._position + n]
            bits.extend(_tempered(word) for word in taken)
            self._position += len(taken)
            n -= len(taken)
        return bits

    def get_words(self) -> tuple[list[int], int]:
        """The 624 words of state and the position among them (see `BitEngine`)."""
        return list(self._words), self._position

    def set_words(self, words: Sequence[int], position: int) -> None:
        """Continue from a state that `get_words` returned, here or in another engine."""
        self._words = list(words)
        self._position = position


def _next_block(old: list[int]) -> list[int]:
    split = WORDS - _MIDDLE
    new = [old[k + _MIDDLE] ^ _twisted(old[k], old[k + 1]) for k in range(split)]
    for k in range(split, WORDS - 1):
        new.append(new[k - split] ^ _twisted(old[k], old[k + 1]))
    new.append(new[_MIDDLE - 1] ^ _twisted(old[-1], new[0]))
    return new


def _twisted(u: int, v: int) -> int:
    mixed = ((u & _UPPER) | (v & _LOWER)) >> 1
    return mixed ^ _MATRIX if v & 1 else mixed


def _tempered(y: int) -> int:
    y ^= y >> 11
    y ^= (y << 7) & 0x9D2C5680
    y ^= (y << 15) & 0xEFC60000
    return y ^ (y >> 18)
