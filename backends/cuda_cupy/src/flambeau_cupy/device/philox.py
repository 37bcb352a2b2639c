"""Philox 4x32-10: random words that are a function of a seed and a place in the stream.

Source: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as
1, 2, 3", SC'11.

The stream of a generator, which all kernels draw from in the same way:

* the key is the seed, its low 32 bits first;
* block number c, the counter (c mod 2^32, c div 2^32, 0, 0), gives the words 4c to 4c + 3;
* an element that needs any number of words goes on with 1, 2, ... in place of the first 0;
* a draw of n words that begins at offset o (a multiple of 4) takes the words o to o + n - 1, and
  the offset becomes o + n, rounded up to a multiple of 4;
* a number of 64 bits is two words, the first one on top.
"""

from __future__ import annotations

from typing import Any

import numpy as np

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
_MASK = 0xFFFFFFFF


def block(seed: int, number: int) -> tuple[int, int, int, int]:
    """The four words of one block, in plain Python: what all other forms are tested against.

    >>> [hex(word) for word in block(0, 0)]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    return cipher((number & _MASK, number >> 32 & _MASK, 0, 0), (seed & _MASK, seed >> 32 & _MASK))


def cipher(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Ten rounds of the bijection on a counter of four words."""
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(ROUNDS):
        p0, p1 = MULTIPLIERS[0] * c0, MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = p1 >> 32 ^ c1 ^ k0, p1 & _MASK, p0 >> 32 ^ c3 ^ k1, p0 & _MASK
        k0, k1 = k0 + WEYL[0] & _MASK, k1 + WEYL[1] & _MASK
    return c0, c1, c2, c3


def words(xp: Any, seed: int, offset: int, count: int) -> Any:
    """The words `offset` to ``offset + count - 1`` as uint32, computed by an array module."""
    number = xp.arange(offset // 4, offset // 4 + (count + 3) // 4, dtype=np.uint64)
    mask, half = np.uint64(_MASK), np.uint64(32)
    zero = xp.zeros(number.shape, np.uint64)
    c0, c1, c2, c3 = number & mask, number >> half, zero, zero
    k0, k1 = seed & _MASK, seed >> 32 & _MASK
    m0, m1 = (np.uint64(m) for m in MULTIPLIERS)
    for _ in range(ROUNDS):
        p0, p1 = c0 * m0, c2 * m1
        c0, c1 = (p1 >> half) ^ c1 ^ np.uint64(k0), p1 & mask
        c2, c3 = (p0 >> half) ^ c3 ^ np.uint64(k1), p0 & mask
        k0, k1 = k0 + WEYL[0] & _MASK, k1 + WEYL[1] & _MASK
    return xp.stack([c0, c1, c2, c3], -1).astype(np.uint32).reshape(-1)[:count]


class Philox:
    """The source of random bits of one device: a seed and an offset, nothing else.

    Attributes:
        offset: the next word of the stream that is drawn, a multiple of 4.

    >>> engine = Philox(0)
    >>> [hex(word) for word in engine.random_bits(2).tolist()], engine.offset
    (['0x6627e8d5', '0xe169c58d'], 4)
    """

    __slots__ = ("__weakref__", "_base", "_recorded", "_seed", "offset")

    def __init__(self, seed: int = 0) -> None:
        self._base: Any = None  # while a graph is recorded: where it will read seed and offset
        self._recorded = 0
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Start the stream of a seed of 64 bits."""
        self._seed = seed
        self.offset = 0

    def reserve(self, count: int) -> tuple[int, int]:
        """Seed and offset of the next `count` words, which are thereby drawn.

        Raises:
            RuntimeError: a graph is recorded; it must not contain the numbers of today.
        """
        if self._base is not None:
            raise RuntimeError("this draw is made on the host and cannot be part of a graph")
        start = self.offset
        self.offset = (start + count + 3) // 4 * 4
        return self._seed, start

    def place(self, count: int) -> tuple[Any, Any, Any]:
        """What kernels are told of the next `count` words, which are thereby drawn.

        Seed, offset, and None: both are in the launch.  While a graph is recorded the offset is
        counted from the second number of the memory that is the third.
        """
        if self._base is not None:
            start = self._recorded
            self._recorded = (start + count + 3) // 4 * 4
            return np.uint64(0), np.uint64(start), self._base
        seed, offset = self.reserve(count)
        return np.uint64(seed), np.uint64(offset), None

    def begin_recording(self, base: object) -> None:
        """Let draws read seed and offset from `base`, two numbers of 64 bits on the device."""
        self._base, self._recorded = base, 0

    def end_recording(self) -> int:
        """Draw as before; how many words each replay of the recording draws."""
        self._base = None
        return self._recorded

    def random_bits(self, n: int) -> np.ndarray:
        """The next `n` words, computed on the host."""
        return words(np, *self.reserve(n), n)

    def drawn(self, xp: object, n: int) -> Any:
        """The next `n` words, computed by an array module."""
        return words(xp, *self.reserve(n), n)
