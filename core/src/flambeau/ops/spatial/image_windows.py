"""Windows of images, for decompositions that need neither strides nor in-place writes.

Images have any number of dimensions behind those of the batch and the channels.
"""

from __future__ import annotations

from collections.abc import Sequence

from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.ops.creation.creation import tensor, zeros
from flambeau.ops.indices.indexing import _index
from flambeau.ops.shapes.movement import cat

Pair = tuple[int, int]
Triple = tuple[int, int, int]
Sizes = tuple[int, ...]
Places = Sequence[Sequence[int]]  # for each window, the positions of its elements along a dimension


def places(count: int, kernel: int, stride: int, dilation: int) -> Places:
    """The positions of `count` windows of `kernel` elements."""
    return [[i * stride + u * dilation for u in range(kernel)] for i in range(count)]


def windows(x: Tensor, dims: Sequence[Places]) -> Tensor:
    """The elements of (N, C, *size) at the places of each dimension, as (N, C, *count, *kernel)."""
    n = len(dims)
    found = [
        tensor([p for window in dim for p in window], dtype=D.int64, device=x.device).reshape(
            (-1, *(1 for _ in dims[d + 1 :]))
        )
        for d, dim in enumerate(dims)
    ]
    taken = _index(x, (None, None, *found))
    shape = [size for dim in dims for size in (len(dim), len(dim[0]))]
    order = (0, 1, *range(2, 2 + 2 * n, 2), *range(3, 3 + 2 * n, 2))
    return taken.reshape((*x.shape[:2], *shape)).permute(order)


def framed(x: Tensor, before: Sequence[int], after: Sequence[int]) -> Tensor:
    """(N, C, *size) with zeros before and after the size's dimensions; negative numbers cut off."""
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
    """(N, C, *size) with zeros between neighbours, which are `step` apart then."""
    for dim, s in enumerate(step, start=2):
        n = x.shape[dim]
        if s > 1 and n > 1:
            shape = (*x.shape[: dim + 1], s - 1, *x.shape[dim + 1 :])
            gaps = zeros(shape, dtype=x.dtype, device=x.device)
            x = cat([x.unsqueeze(dim + 1), gaps], dim + 1).flatten(dim, dim + 1)
            x = x.narrow(dim, 0, (n - 1) * s + 1)
    return x
