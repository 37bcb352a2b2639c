"""Jacobi's rotations: orthogonal columns for any backend, by arithmetic on whole batches.

One-sided (Hestenes 1958): columns are rotated in pairs until all are orthogonal; their lengths are
the singular values.  The pairs of one round are disjoint, as in a tournament, and rotate at once.
"""

from __future__ import annotations

from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types.finfo import finfo
from flambeau.ops.matrices.matrix_algebra import conjugate, eye_like, magnitude, on_meta
from flambeau.ops.pointwise.elementwise import atan2, cos, sin, where
from flambeau.ops.shapes.movement import cat

MOST_SWEEPS = 30


def orthogonalised(a: Tensor) -> tuple[Tensor, Tensor]:
    """(X, V) with A V = X, V unitary and the columns of X orthogonal, the longest first."""
    n = a.shape[-1]
    x, v = a, eye_like(a, n).expand(*a.shape[:-2], n, n)
    if n < 2 or on_meta(a) or a.numel() == 0:
        return x, v.clone()
    scale = magnitude(a)
    x = a / scale
    rounds = _tournament(n)
    # The threshold of the last sweep is below what rounding leaves of the columns' products.
    small = n * finfo(a.dtype).eps
    settled = False
    for _ in range(MOST_SWEEPS):
        largest = 0.0
        for first, second in rounds:
            x, v, cosine = _rotated(x, v, first, second)
            largest = max(largest, cosine)
        if settled:
            break
        # One sweep more than the values need: their derivatives converge one sweep later.
        settled = largest <= small
    return x * scale, v


def _tournament(n: int) -> list[tuple[list[int], list[int]]]:
    """Rounds of disjoint pairs (smaller, larger) in which each two of n columns meet once."""
    players = [*range(n), *([-1] if n % 2 else [])]
    half = len(players) // 2
    rounds = []
    for _ in range(len(players) - 1):
        met = [
            (min(a, b), max(a, b))
            for a, b in zip(players[:half], reversed(players[half:]), strict=True)
            if -1 not in (a, b)
        ]
        rounds.append(([a for a, _ in met], [b for _, b in met]))
        players = [players[0], players[-1], *players[1:-1]]
    return rounds


def _rotated(
    x: Tensor, v: Tensor, first: list[int], second: list[int]
) -> tuple[Tensor, Tensor, float]:
    """X and V with pairs of columns of X made orthogonal, and the largest |cosine| there was."""
    p, q = x[..., first], x[..., second]
    length_p = p.abs().square().sum(-2, True)
    length_q = q.abs().square().sum(-2, True)
    product = (conjugate(p) * q).sum(-2, True)
    size = product.abs()
    scale = (length_p * length_q).sqrt()
    apart = size > 0
    cosine = (size / where(scale > 0, scale, scale.new_ones(()))).detach().amax().item()
    if x.dtype.is_complex:
        phase = where(apart, product / cast(where(apart, size, size.new_ones(())), x.dtype), 1.0)
        signed = size
    else:
        phase, signed = None, product
    level = (length_p == length_q) & ~apart
    angle = atan2(2 * signed, where(level, scale.new_ones(()), length_p - length_q)) / 2
    c, s = cast(cos(angle), x.dtype), cast(sin(angle), x.dtype)
    x = _turned(x, p, q, c, s, phase, first, second)
    v = _turned(v, v[..., first], v[..., second], c, s, phase, first, second)
    return x, v, cosine


def _turned(
    x: Tensor,
    p: Tensor,
    q: Tensor,
    c: Tensor,
    s: Tensor,
    phase: Tensor | None,
    first: list[int],
    second: list[int],
) -> Tensor:
    """The columns of `x` with p and q replaced by c p + s q and c q - s p, q turned by a phase."""
    q = q if phase is None else q * conjugate(phase)
    n = x.shape[-1]
    idle = [i for i in range(n) if i not in first and i not in second]
    columns = cat([c * p + s * q, c * q - s * p, x[..., idle]], -1)
    order = [*first, *second, *idle]
    return columns[..., [order.index(i) for i in range(n)]]


def sorted_columns(x: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The columns of X by falling length, and those of V alike."""
    order = (x.detach() / magnitude(x)).abs().square().sum(-2, True).argsort(-1, True)
    return (
        x.gather(-1, order.expand(*x.shape)),
        v.gather(-1, order.expand(*v.shape)),
    )
