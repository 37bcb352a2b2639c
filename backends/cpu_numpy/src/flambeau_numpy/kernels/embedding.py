"""Rows of a table."""

from __future__ import annotations

from flambeau_numpy.kernels._pointwise import Array


def embedding(weight: Array, indices: Array, padding_idx: int, scale_grad_by_freq: bool) -> Array:
    """Row ``indices[i]`` of `weight` for each i; the last two arguments concern the gradient."""
    return weight.take(indices, 0)


KERNELS = {"embedding": embedding}
