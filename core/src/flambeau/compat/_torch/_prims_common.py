"""Questions about strides that libraries ask of PyTorch's list of primitive functions."""

from __future__ import annotations

from collections.abc import Sequence

import flambeau as fb
from flambeau import Tensor

__all__ = ["is_channels_last_contiguous", "make_contiguous_strides_for", "suggest_memory_format"]


def make_contiguous_strides_for(shape: Sequence[int], row_major: bool = True) -> tuple[int, ...]:
    """Strides of a contiguous tensor.

    Args:
        shape: its shape.
        row_major: if false, every matrix of the last two dimensions lies column by column.
    """
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    found = tuple(reversed(strides))
    if row_major or len(shape) < 2:
        return found
    return (*found[:-2], 1, max(shape[-2], 1))


def is_channels_last_contiguous(a: Tensor) -> bool:
    """Whether the elements of images or volumes lie in the order of channels last."""
    formats = {4: fb.channels_last, 5: fb.channels_last_3d}
    return a.dim() in formats and a.is_contiguous(memory_format=formats[a.dim()])


def suggest_memory_format(x: Tensor) -> fb.memory_format:
    """The order in which a result would lie, seen from an input."""
    if x.layout == fb.strided and not x.is_contiguous() and is_channels_last_contiguous(x):
        return fb.channels_last if x.dim() == 4 else fb.channels_last_3d
    return fb.contiguous_format
