"""The Bunch-Kaufman factorisation of one matrix, in Python numbers.

Source: Bunch & Kaufman, "Some stable methods for calculating inertia and solving symmetric linear
systems" (1977); the packing is LAPACK's (``sytrf`` and ``hetrf`` of the lower triangle).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

Rows = list[list[Any]]

_GROWTH = (1 + math.sqrt(17)) / 8  # below this ratio a pivot of two rows grows less than one of one


def _mirror(hermitian: bool) -> Callable[[Any], Any]:
    return (lambda z: z.conjugate()) if hermitian else (lambda z: z)


def _size(z: complex) -> float:
    return abs(z.real) + abs(z.imag)


def _over(a: complex, b: complex) -> complex:
    return a / b if b else a * math.inf


def factored(rows: Rows, hermitian: bool) -> tuple[Rows, list[int], int]:
    """D and what is below its blocks of L, the interchanges, and the place of a zero pivot or 0.

    A positive number says that row k was exchanged with that row (from 1) before its pivot; two
    equal negative ones that rows k and k + 1 are one pivot, the second of them exchanged.
    """
    n = len(rows)
    c = _mirror(hermitian)
    a = [[*row[: i + 1], *(0 * z for z in row[i + 1 :])] for i, row in enumerate(rows)]
    if hermitian:
        for k in range(n):
            a[k][k] = a[k][k].real + 0 * a[k][k]
    pivots, info, k = [0] * n, 0, 0
    while k < n:
        place, count = _pivot(a, k)
        last = k + count - 1
        if count == 1 and place == k and not _size(a[k][k]) > 0:
            info = info or k + 1
            pivots[k] = k + 1
            k += 1
            continue
        if place != last:
            _exchange(a, k, last, place, c)
        (_one if count == 1 else _two)(a, k, c)
        if hermitian:
            for j in range(k, n):
                a[j][j] = a[j][j].real + 0 * a[j][j]
        pivots[k : k + count] = [place + 1] if count == 1 else [-place - 1] * 2
        k += count
    return a, pivots, info


def _pivot(a: Rows, k: int) -> tuple[int, int]:
    """Which row to exchange with the last of the next pivot, and how many rows that has."""
    n = len(a)
    own = _size(a[k][k])
    column = [_size(a[i][k]) for i in range(k + 1, n)]
    largest = max(column, default=0.0)
    if own >= _GROWTH * largest or own != own:
        return k, 1
    place = k + 1 + column.index(largest)
    across = [_size(a[place][j]) for j in range(k, place)]
    across += [_size(a[i][place]) for i in range(place + 1, n)]
    widest = max(across)
    if own >= _GROWTH * largest * (largest / widest):
        return k, 1
    return place, 1 if _size(a[place][place]) >= _GROWTH * widest else 2


def _exchange(a: Rows, k: int, i: int, j: int, c: Callable[[Any], Any]) -> None:
    """Rows and columns i < j exchanged in what is left from row k on."""
    for m in range(j + 1, len(a)):
        a[m][i], a[m][j] = a[m][j], a[m][i]
    for m in range(i + 1, j):
        a[m][i], a[j][m] = c(a[j][m]), c(a[m][i])
    a[j][i] = c(a[j][i])
    a[i][i], a[j][j] = a[j][j], a[i][i]
    if i > k:
        a[i][k], a[j][k] = a[j][k], a[i][k]


def _one(a: Rows, k: int, c: Callable[[Any], Any]) -> None:
    n = len(a)
    factors = [_over(a[i][k], a[k][k]) for i in range(k + 1, n)]
    for j in range(k + 1, n):
        for i in range(j, n):
            a[i][j] -= factors[i - k - 1] * c(a[j][k])
    for i in range(k + 1, n):
        a[i][k] = factors[i - k - 1]


def _two(a: Rows, k: int, c: Callable[[Any], Any]) -> None:
    n = len(a)
    for j in range(k + 2, n):
        first, second = a[j][k], a[j][k + 1]
        # The row times the inverse of the block.
        x, y = _block(a, k, c, c(first), c(second))
        x, y = c(x), c(y)
        for i in range(j, n):
            a[i][j] -= a[i][k] * c(x) + a[i][k + 1] * c(y)
        a[j][k], a[j][k + 1] = x, y


def _block(a: Rows, k: int, c: Callable[[Any], Any], x: complex, y: complex) -> tuple[Any, Any]:
    """The solution of the two equations of a pivot of two rows, scaled by what couples them."""
    e = a[k + 1][k]
    p, q = _over(a[k][k], e), _over(a[k + 1][k + 1], c(e))
    scale = p * q - 1
    return _over(q * x - y, e * scale), _over(p * y - x, c(e) * scale)


def solved(rows: Rows, pivots: Sequence[int], right: Rows, hermitian: bool) -> Rows:
    """X with A X = B from the factors of A."""
    n = len(rows)
    c = _mirror(hermitian)
    b = [list(row) for row in right]
    k = 0
    while k < n:
        count = 1 if pivots[k] > 0 else 2
        last, place = k + count - 1, abs(pivots[k]) - 1
        b[last], b[place] = b[place], b[last]
        for i in range(k + count, n):
            for m in range(k, k + count):
                b[i] = [z - rows[i][m] * w for z, w in zip(b[i], b[m], strict=True)]
        if count == 1:
            b[k] = [_over(z, rows[k][k]) for z in b[k]]
        else:
            pairs = [_block(rows, k, c, x, y) for x, y in zip(b[k], b[k + 1], strict=True)]
            b[k], b[k + 1] = [p[0] for p in pairs], [p[1] for p in pairs]
        k += count
    while k > 0:
        count = 1 if pivots[k - 1] > 0 else 2
        for m in range(k - count, k):
            for i in range(k, n):
                b[m] = [z - c(rows[i][m]) * w for z, w in zip(b[m], b[i], strict=True)]
        place = abs(pivots[k - 1]) - 1
        b[k - 1], b[place] = b[place], b[k - 1]
        k -= count
    return b
