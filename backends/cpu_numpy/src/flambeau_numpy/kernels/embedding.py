"""Rows of a table."""

from __future__ import annotations

from flambeau_numpy.allocator import zeros
from flambeau_numpy.kernels.indexing import index_put_
from flambeau_numpy.pointwise import Array


def embedding(weight: Array, indices: Array, padding_idx: int, scale_grad_by_freq: bool) -> Array:
    """Row ``indices[i]`` of `weight` for each i; the last two arguments concern the gradient."""
    return weight.take(indices, 0)


def embedding_backward(grad: Array, indices: Array, rows: int) -> Array:
    """`rows` rows, each the sum of the rows ``grad[i]`` for which ``indices[i]`` is its number."""
    out = zeros((rows, grad.shape[-1]), grad.dtype)
    index_put_(out, (indices,), grad, True)
    return out


KERNELS = {"embedding": embedding, "embedding_backward": embedding_backward}
