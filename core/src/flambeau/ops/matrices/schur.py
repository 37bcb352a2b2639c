"""Eigenvalues of one general matrix in Python's complex numbers, for devices without LAPACK.

Householder's reduction to Hessenberg form, the QR iteration with Wilkinson's shift, and back
substitution for the vectors; Golub and Van Loan, "Matrix Computations", sections 7.4 to 7.6.
"""

from __future__ import annotations

import cmath
import math

Matrix = list[list[complex]]

_EPSILON = 2.0**-52
_STEPS_PER_VALUE = 60


def eigensystem(a: list[list[float | complex]]) -> tuple[list[complex], Matrix]:
    """The eigenvalues, and the matrix whose columns are their eigenvectors of length 1.

    The largest component of each vector is real.  Vectors of a defective matrix are dependent.

    Raises:
        RuntimeError: the iteration does not converge.
    """
    n = len(a)
    h: Matrix = [[complex(x) for x in row] for row in a]
    q: Matrix = [[complex(i == j) for j in range(n)] for i in range(n)]
    _reduce(h, q)
    _triangularise(h, q)
    values = [h[k][k] for k in range(n)]
    vectors = [_vector(h, q, k) for k in range(n)]
    if not any(isinstance(x, complex) for row in a for x in row):
        values, vectors = _conjugates(values, vectors)
    return values, [list(row) for row in zip(*vectors, strict=True)]


def _conjugates(values: list[complex], vectors: Matrix) -> tuple[list[complex], Matrix]:
    """Eigenvalues of a real matrix: real, or pairs of exact conjugates, the upper one first."""
    limit = 16 * len(values) * _EPSILON * max(map(abs, values))
    rest = list(range(len(values)))
    order: list[complex] = []
    columns: Matrix = []
    while rest:
        i = rest.pop(0)
        w, v = values[i], vectors[i]
        if abs(w.imag) <= limit or not rest:
            order.append(complex(w.real))
            columns.append([complex(x.real) for x in v])
            continue
        rest.remove(min(rest, key=lambda j: abs(values[j] - w.conjugate())))
        if w.imag < 0:
            w, v = w.conjugate(), [x.conjugate() for x in v]
        order += [w, w.conjugate()]
        columns += [v, [x.conjugate() for x in v]]
    return order, columns


def _reduce(h: Matrix, q: Matrix) -> None:
    """Make H zero below its first subdiagonal, keeping Q H Qᴴ."""
    n = len(h)
    for k in range(n - 2):
        length = math.hypot(*(abs(h[i][k]) for i in range(k + 1, n)))
        if not length:
            continue
        v = [0j] * n
        v[k + 1 :] = [h[i][k] for i in range(k + 1, n)]
        v[k + 1] += cmath.rect(length, cmath.phase(v[k + 1]))
        scale = 2 / sum(abs(x) ** 2 for x in v)
        for j in range(n):
            t = scale * sum(v[i].conjugate() * h[i][j] for i in range(k + 1, n))
            for i in range(k + 1, n):
                h[i][j] -= t * v[i]
        for matrix in (h, q):
            for row in matrix:
                t = scale * sum(row[j] * v[j] for j in range(k + 1, n))
                for j in range(k + 1, n):
                    row[j] -= t * v[j].conjugate()
        for i in range(k + 2, n):
            h[i][k] = 0j


def _triangularise(h: Matrix, q: Matrix) -> None:
    """Make a Hessenberg matrix upper triangular, keeping Q H Qᴴ."""
    n = len(h)
    top = n - 1
    steps = 0
    norm = max(abs(x) for row in h for x in row)
    while top > 0:
        low = top
        while low > 0:
            size = abs(h[low][low]) + abs(h[low - 1][low - 1])
            if abs(h[low][low - 1]) <= _EPSILON * (size or norm):
                h[low][low - 1] = 0j
                break
            low -= 1
        if low == top:
            top, steps = top - 1, 0
            continue
        steps += 1
        if steps > _STEPS_PER_VALUE:
            raise RuntimeError(
                f"eig: an eigenvalue of a {n} by {n} matrix did not converge in {steps - 1} steps"
            )
        shift = _shift(h, top)
        if steps % 10 == 0:  # an unusual shift breaks cycles
            shift = h[top][top] + abs(h[top][top - 1])
        _step(h, q, low, top, shift)


def _shift(h: Matrix, top: int) -> complex:
    """Wilkinson's: the eigenvalue of the last 2 by 2 block that is nearer to the last entry."""
    a, b, c, d = h[top - 1][top - 1], h[top - 1][top], h[top][top - 1], h[top][top]
    half = (a - d) / 2
    root = cmath.sqrt(half * half + b * c)
    if abs(half - root) > abs(half + root):
        root = -root
    return d - b * c / (half + root) if half + root else d


def _step(h: Matrix, q: Matrix, low: int, top: int, shift: complex) -> None:
    """One step H - s = Q R, R Q + s by plane rotations on rows and columns low to top."""
    n = len(h)
    turns = []
    for i in range(low, top + 1):
        h[i][i] -= shift
    for k in range(low, top):
        x, y = h[k][k], h[k + 1][k]
        length = math.hypot(abs(x), abs(y))
        c, s = (x / length, y / length) if length else (1 + 0j, 0j)
        turns.append((c, s))
        upper, lower = h[k], h[k + 1]
        for j in range(k, n):
            u, w = upper[j], lower[j]
            upper[j] = c.conjugate() * u + s.conjugate() * w
            lower[j] = c * w - s * u
    for k, (c, s) in enumerate(turns, low):
        for matrix, stop in ((h, min(k + 2, top + 1)), (q, n)):
            for row in matrix[:stop]:
                u, w = row[k], row[k + 1]
                row[k] = u * c + w * s
                row[k + 1] = w * c.conjugate() - u * s.conjugate()
    for i in range(low, top + 1):
        h[i][i] += shift


def _vector(t: Matrix, q: Matrix, k: int) -> list[complex]:
    """The eigenvector of Q T Qᴴ that belongs to the k-th diagonal entry of T."""
    norm = max(abs(x) for row in t for x in row)
    least = max(_EPSILON * norm, math.ulp(0.0) / _EPSILON)
    x = [0j] * len(t)
    x[k] = 1 + 0j
    for i in reversed(range(k)):
        gap = t[i][i] - t[k][k]
        if abs(gap) < least:
            gap = complex(least)
        x[i] = -sum(t[i][j] * x[j] for j in range(i + 1, k + 1)) / gap
    v = [sum(row[j] * x[j] for j in range(k + 1)) for row in q]
    length = math.hypot(*(abs(y) for y in v))
    largest = max(v, key=abs)
    turn = largest.conjugate() / abs(largest) / length
    return [y * turn for y in v]
