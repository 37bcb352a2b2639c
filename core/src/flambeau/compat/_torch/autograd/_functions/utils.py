"""What exporters of PyTorch 1 ask of shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import flambeau as fb


def maybe_view(tensor: fb.Tensor, size: Sequence[int], check_same_size: bool = True) -> fb.Tensor:
    """The tensor in another shape."""
    if check_same_size and tuple(tensor.shape) == tuple(size):
        return tensor
    return tensor.contiguous().view(size)


def maybe_unexpand(
    tensor: fb.Tensor, old_size: Sequence[int], check_same_size: bool = True
) -> fb.Tensor:
    """The sums over the dimensions that broadcasting from a shape made or enlarged."""
    if check_same_size and tuple(tensor.shape) == tuple(old_size):
        return tensor
    return tensor.sum_to_size(old_size)


def prepare_onnx_paddings(dim: int, pad: Sequence[int]) -> list[int]:
    """The paddings of `pad`, which go in pairs from the last dimension, in the order of ONNX.

    First what is before each dimension, then what is behind each.
    """
    assert isinstance(dim, int) and len(pad) <= 2 * dim
    paddings = [*pad, *[0] * (2 * dim - len(pad))]
    return paddings[-2::-2] + paddings[-1::-2]


def check_onnx_broadcast(dims1: Sequence[int], dims2: Sequence[int]) -> bool:
    """Whether the second shape must be broadcast to the first.

    Raises:
        ValueError: ONNX of that time could not: the second is neither one element nor how the
            first ends.
    """
    first, second = tuple(dims1), tuple(dims2)
    if first == second:
        return False
    ends = len(first) > len(second) and first[len(first) - len(second) :] == second
    if math.prod(second) != 1 and not ends:
        raise ValueError(
            f"Numpy style broadcasting is not supported in ONNX. Input dims are: {dims1}, {dims2}"
        )
    return True
