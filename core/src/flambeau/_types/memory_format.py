"""Orders of dimensions in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

from flambeau._types.strides import contiguous_strides


class memory_format:  # noqa: N801 - PyTorch's name
    """A named order of dimensions in memory.

    >>> import flambeau as fb
    >>> fb.channels_last
    torch.channels_last
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name


contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")


_BY_RANK = {channels_last: 4, channels_last_3d: 5}


def order_of_memory(order: memory_format, rank: int) -> list[int] | None:
    """The dimensions from the slowest to the fastest for channels last, None for row-major.

    Raises:
        RuntimeError: a tensor of so many dimensions has no such order.
    """
    if order is contiguous_format:
        return None
    if order not in _BY_RANK:
        raise RuntimeError(f"contiguous: unsupported memory format {order}")
    if rank != _BY_RANK[order]:
        raise RuntimeError(
            f"required rank {_BY_RANK[order]} tensor to use {order._name} format, got rank {rank}"
        )
    return [0, *range(2, rank), 1]


def has_channels_last(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether strides read as those of an image or volume whose channels vary fastest.

    Gaps are allowed.  What can be read as row-major too is not: one channel, or one pixel whose
    elements of the batch follow each other without a gap between their channels.
    """
    if len(shape) not in (4, 5) or not stride[1] or 0 in shape:
        return False
    reach = 0
    for d in (1, *range(len(shape) - 1, 1, -1)):
        if stride[d] < reach:
            return False
        reach = stride[d] * shape[d]
    return stride[0] >= reach and reach != stride[1]


KEEPS_ORDERS = True
"""Whether a new tensor like another one has its order of dimensions where nothing else is said."""


def preserved_order(shape: Sequence[int], stride: Sequence[int]) -> list[int] | None:
    """The dimensions from the slowest to the fastest of a new tensor like one with these strides.

    None if they are in row-major order.  A dimension along which elements repeat stays where it
    is; of two with one stride, the longer one varies more slowly.
    """
    last = math.inf
    for step in stride:
        if not last > step > 0:
            break
        last = step
    else:
        return None
    order = list(range(len(shape)))
    for first in range(len(order) - 2, -1, -1):
        moved = first  # goes to the right past every faster place that belongs before it
        for i in range(first + 1, len(order)):
            a, b = order[moved], order[i]
            if not (stride[a] and stride[b]):
                continue
            if stride[a] > stride[b]:
                break
            if stride[a] < stride[b] or shape[a] < shape[b]:
                order[moved], order[i] = b, a
                moved = i
    return order if order != sorted(order) else None


def is_contiguous(
    shape: Sequence[int], stride: Sequence[int], order: memory_format | None = None
) -> bool:
    """Whether strides are those of dense memory in the given order; sizes of 1 may have any."""
    if 0 in shape:
        return True
    if order in _BY_RANK:
        rank = _BY_RANK[order]
        if len(shape) != rank:
            return False
        places = [0, *range(2, rank), 1]
    elif order in (None, contiguous_format):
        places = list(range(len(shape)))
    else:
        raise RuntimeError(f"is_contiguous: unsupported memory format {order}")
    dense = contiguous_strides([shape[d] for d in places])
    return all(shape[d] == 1 or stride[d] == s for d, s in zip(places, dense, strict=True))
