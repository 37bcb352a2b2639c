"""A native array as the core sees it."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Array"]


class Array(Protocol):
    """What a backend computes with: it has a shape, and everything else its backend does.

    Tensors are such too, so a gradient formula can be written once for both.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        ...
