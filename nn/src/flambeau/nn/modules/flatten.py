"""Merging and splitting dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from flambeau import Tensor
from flambeau.nn.module import Module


class Flatten(Module):
    """Merges the dimensions from `start_dim` to `end_dim` into one.

    >>> import flambeau as fb
    >>> fb.nn.Flatten()(fb.ones(32, 1, 5, 5)).shape
    torch.Size([32, 25])
    """

    start_dim: int
    end_dim: int

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """`input` with the dimensions merged."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits the dimension `dim` into several of sizes `unflattened_size`, one of which may be -1.

    Raises:
        TypeError: `unflattened_size` is not a tuple or list of ints.

    >>> import flambeau as fb
    >>> fb.nn.Unflatten(1, (2, 5))(fb.ones(3, 10)).shape
    torch.Size([3, 2, 5])
    """

    dim: int
    unflattened_size: Sequence[int]

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                "unflattened_size must be a tuple of ints, "
                f"but found type {type(unflattened_size).__name__}"
            )
        for place, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    "unflattened_size must be tuple of ints, "
                    f"but found element of type {type(size).__name__} at pos {place}"
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        """`input` with the dimension split."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
