"""Direction numbers of Sobol sequences.

S. Joe and F. Y. Kuo, Constructing Sobol sequences with better two-dimensional projections, SIAM
Journal on Scientific Computing 30 (2008): search criterion D(6), for 21201 dimensions.

``directions.bin`` has for every dimension but the first a primitive polynomial over the integers
modulo 2 and its first odd numbers m₁, m₂, …, mₛ with mᵢ < 2ⁱ, where s is the degree: s - 1 inner
bits of the polynomial, then i - 1 upper bits of each mᵢ, lowest bit first, filled up to bytes.
The dimensions are sorted by degree.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

MAXBIT = 30
_COUNTS = (1, 1, 2, 2, 6, 6, 18, 16, 48, 60, 176, 144, 630, 756, 1800, 2048, 7710, 7776)
"""How many primitive polynomials of degrees 1, 2, … there are, and the table has; then the rest."""


@cache
def _table() -> bytes:
    return files("flambeau.quasirandom").joinpath("directions.bin").read_bytes()


def directions(dimension: int) -> list[list[int]]:
    """The direction numbers of the first dimensions, `MAXBIT` each, as integers of `MAXBIT` bits.

    >>> from flambeau.quasirandom._directions import directions
    >>> [f"{v >> 26:04b}" for v in directions(2)[1][:4]]
    ['1000', '1100', '1010', '1111']
    """
    found = [[1 << (MAXBIT - 1 - i) for i in range(MAXBIT)]]
    table, at = _table(), 0
    for degree, count in enumerate(_COUNTS, 1):
        inner = degree - 1
        size = (inner + degree * inner // 2 + 7) // 8
        for _ in range(min(count, dimension - len(found))):
            bits = int.from_bytes(table[at : at + size], "little")
            at += size
            taps = [lag for lag in range(1, degree) if bits >> (inner - lag) & 1]
            bits >>= inner
            numbers = []
            for i in range(degree):
                numbers.append(((bits & ((1 << i) - 1)) << 1 | 1) << (MAXBIT - 1 - i))
                bits >>= i
            for i in range(degree, MAXBIT):
                last = numbers[i - degree]
                number = last ^ last >> degree
                for lag in taps:
                    number ^= numbers[i - lag]
                numbers.append(number)
            found.append(numbers)
    return found
