"""Rows of a table."""

from __future__ import annotations

import numpy as np

from flambeau_numpy.allocator import zeros
from flambeau_numpy.casts import narrow, wide
from flambeau_numpy.kernels.indexing import index_put_
from flambeau_numpy.pointwise import Array
from flambeau_numpy.silence import quiet


def embedding(weight: Array, indices: Array, padding_idx: int, scale_grad_by_freq: bool) -> Array:
    """Row ``indices[i]`` of `weight` for each i; the last two arguments concern the gradient."""
    return weight.take(indices, 0)


def embedding_backward(grad: Array, indices: Array, rows: int) -> Array:
    """`rows` rows, each the sum of the rows ``grad[i]`` for which ``indices[i]`` is its number."""
    out = zeros((rows, grad.shape[-1]), grad.dtype)
    index_put_(out, (indices,), grad, True)
    return out


@quiet
def embedding_bag(
    weight: Array,
    indices: Array,
    starts: Array,
    factors: Array | None,
    mode: int,
    padding: int,
    scale_grad_by_freq: bool,
) -> tuple[Array, Array, Array, Array]:
    """Sums, means or maxima of the rows in each bag; the last argument concerns the gradient."""
    count, bags = indices.shape[0], starts.shape[0]
    ends = np.append(starts[1:], count)
    lengths = np.diff(ends, prepend=0)
    if lengths.min() < 0:
        raise RuntimeError("embedding_bag: offsets have to ascend")
    bag = np.repeat(np.arange(bags), lengths)
    counts = indices != padding
    sizes = np.bincount(bag[counts], minlength=bags)
    rows = wide(weight.take(indices[counts], 0))
    if factors is not None:
        rows = rows * wide(factors)[counts, None]
    out = np.zeros((bags, weight.shape[1]), rows.dtype)
    winners = np.zeros(out.shape if mode == 2 else (0,), np.int64)
    kept, end = indices[counts], 0
    for b in sizes.nonzero()[0]:
        begin, end = end, end + sizes[b]
        mine = rows[begin:end]
        if mode == 2:
            # A NaN outdoes nothing, and only as the first of its bag stays.
            known = np.where(np.isnan(mine), -np.inf, mine)
            place = np.where(np.isnan(mine[0]), 0, known.argmax(0))
            out[b] = np.take_along_axis(mine, place[None], 0)[0]
            winners[b] = kept[begin:end][place]
        else:
            np.add.reduce(mine, 0, out=out[b])
    if mode == 1:
        out /= np.maximum(sizes, 1).astype(out.dtype)[:, None]
    return narrow(out, weight.dtype), bag, sizes, winners


KERNELS = {
    "embedding": embedding,
    "embedding_backward": embedding_backward,
    "embedding_bag": embedding_bag,
}
