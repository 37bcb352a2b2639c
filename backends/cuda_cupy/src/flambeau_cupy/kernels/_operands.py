"""Operands that kernels in CUDA C walk by the shape of another: here they are held to it."""

from __future__ import annotations

from collections.abc import Sequence

from flambeau_cupy.device.array_module import Array


def demand(op: str, what: str, array: Array | None, shape: Sequence[int]) -> None:
    """Refuse an operand of another shape than `shape`; None is none.

    Raises:
        RuntimeError: it has another.
    """
    if array is not None and tuple(array.shape) != tuple(shape):
        raise RuntimeError(f"{op}: expected {what} of shape {list(shape)}, got {list(array.shape)}")
