"""Windows of images, for decompositions that need neither strides nor in-place writes."""

from __future__ import annotations

from collections.abc import Sequence

from flambeau import _dtype as D
from flambeau._tensor import Tensor
from flambeau.ops.creation import tensor, zeros
from flambeau.ops.indexing import _index
from flambeau.ops.movement import cat

Pair = tuple[int, int]
Places = Sequence[Sequence[int]]  # for each window, the positions of its elements along a dimension


def places(count: int, kernel: int, stride: int, dilation: int) -> Places:
    """The positions of `count` windows of `kernel` elements."""
    return [[i * stride + u * dilation for u in range(kernel)] for i in range(count)]


def windows(x: Tensor, rows: Places, columns: Places) -> Tensor:
    """The elements of (N, C, H, W) at all rows and columns, as (N, C, H', W', KH, KW)."""
    i, j = (
        tensor([place for window in dim for place in window], dtype=D.int64, device=x.device)
        for dim in (rows, columns)
    )
    taken = _index(x, (None, None, i.unsqueeze(1), j))
    shape = (*x.shape[:2], len(rows), len(rows[0]), len(columns), len(columns[0]))
    return taken.reshape(shape).permute((0, 1, 2, 4, 3, 5))


def framed(x: Tensor, before: Sequence[int], after: Sequence[int]) -> Tensor:
    """(N, C, H, W) with zeros before and after both last dimensions; negative numbers cut off."""
    for dim, (first, last) in enumerate(zip(before, after, strict=True), start=2):
        length = x.shape[dim] + first + last
        front, back = (
            zeros((*x.shape[:dim], max(n, 0), *x.shape[dim + 1 :]), dtype=x.dtype, device=x.device)
            for n in (first, last)
        )
        if first > 0 or last > 0:
            x = cat([front, x, back], dim)
        if first < 0 or last < 0:
            x = x.narrow(dim, max(-first, 0), length)
    return x


def spaced(x: Tensor, step: Sequence[int]) -> Tensor:
    """(N, C, H, W) with zeros between neighbours, which are `step` apart then."""
    for dim, s in enumerate(step, start=2):
        n = x.shape[dim]
        if s > 1 and n > 1:
            shape = (*x.shape[: dim + 1], s - 1, *x.shape[dim + 1 :])
            gaps = zeros(shape, dtype=x.dtype, device=x.device)
            x = cat([x.unsqueeze(dim + 1), gaps], dim + 1).flatten(dim, dim + 1)
            x = x.narrow(dim, 0, (n - 1) * s + 1)
    return x
