"""Copies, sums and parts of tensors on several devices, as `flambeau.cuda.comm` makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau import Tensor
from flambeau.cuda.comm import broadcast, broadcast_coalesced, gather, reduce_add, scatter

__all__ = [
    "broadcast",
    "broadcast_coalesced",
    "gather",
    "reduce_add",
    "reduce_add_coalesced",
    "scatter",
]


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Tensor]], destination: Any = None, buffer_size: int = 10 << 20
) -> tuple[Tensor, ...]:
    """The sums of tensors of several devices, which come device by device."""
    together = zip(*inputs, strict=True)
    return tuple(reduce_add(list(parts), destination) for parts in together)
