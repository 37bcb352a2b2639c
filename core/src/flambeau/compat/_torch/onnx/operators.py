"""Shapes as tensors, which keeps them variable in exported graphs of older programs."""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor

__all__ = ["reshape_from_tensor_shape", "shape_as_tensor"]


def shape_as_tensor(x: Tensor) -> Tensor:
    """The sizes of a tensor as a vector of int64."""
    return fb.tensor(x.shape, dtype=fb.int64)


def reshape_from_tensor_shape(x: Tensor, shape: Tensor) -> Tensor:
    """A tensor with the sizes that a vector has."""
    return x.reshape(shape.tolist())
