"""Random bits that are a function of a seed and a place in the stream, as devices draw them."""

import numpy as np


class Counter:
    """A source of random bits: a seed and an offset, nothing else.

    Attributes:
        offset: words of 32 bits that were drawn, a multiple of 4.
    """

    def __init__(self, refuse):
        self._refuse, self._seed, self.offset = refuse, 0, 0

    def seed(self, seed):
        """Start the stream of `seed`."""
        self._seed, self.offset = seed, 0

    def random_bits(self, count):
        """The next words."""
        self._refuse()
        blocks = -(-count // 4)
        source = np.random.Philox(key=self._seed % 2**64, counter=self.offset // 4)
        self.offset += 4 * blocks
        return (source.random_raw(4 * blocks)[:count] >> np.uint64(32)).astype(np.uint32)
