"""Inputs of other sizes, by which dynamic axes are told from those that stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import flambeau as fb
from flambeau import Tensor

CHANGES: tuple[Callable[[int], int], ...] = (
    lambda n: 2 * n,
    lambda n: n + 1,
    lambda n: max(2, n - 1),
    lambda n: max(2, n // 2),
)
"""Sizes to try, until the program can be run with one."""


def resized(tensors: list[Tensor], axes: list[dict[int, str]]) -> Iterator[list[Tensor] | None]:
    """The inputs with other sizes along dynamic axes; None if there are none."""
    if not any(axes):
        yield None
        return
    for change in CHANGES:
        made = [_resized(t, dims, change) for t, dims in zip(tensors, axes, strict=True)]
        if any(a.shape != b.shape for a, b in zip(made, tensors, strict=True)):
            yield made


def _resized(tensor: Tensor, dims: dict[int, str], change: Callable[[int], int]) -> Tensor:
    for dim in dims:
        if not -tensor.dim() <= dim < tensor.dim() or not tensor.shape[dim]:
            continue
        size = tensor.shape[dim]
        # What is in the input stays valid, be it indices or lengths in decreasing order: elements
        # are repeated where they are.
        tensor = tensor.index_select(dim, fb.arange(change(size)) * size // change(size))
    return tensor
