"""Tensors as the vectors that engines move: contiguous, and written back where they are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau._memory.views import storage_of


def need(name: str, *values: object) -> None:
    """Refuse what is no tensor.

    Raises:
        TypeError: one is none.
    """
    for value in values:
        if not isinstance(value, Tensor):
            raise TypeError(
                f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor, "
                f"got {type(value).__name__}"
            )
        if value.layout is not fb.strided:
            raise RuntimeError(f"`{name}`: tensors have to be dense, got {value.layout}")


def same_dtype(tensors: Sequence[Tensor]) -> None:
    """Refuse tensors of several dtypes.

    Raises:
        ValueError: there are several.
    """
    if len({tensor.dtype for tensor in tensors}) > 1:
        found = ", ".join(str(tensor.dtype) for tensor in tensors)
        raise ValueError(f"Invalid usage of tensors with different dtypes, found {found}")


def vector(tensor: Tensor) -> Any:
    """The elements of a tensor as a native vector, to be read."""
    flat = tensor.detach()
    if not flat.is_contiguous():
        flat = flat.contiguous()
    return flat.view(-1)._a


def target(tensor: Tensor) -> tuple[Any, Callable[[], None]]:
    """The same to be written, and what has to be called once it has been.

    A tensor that is not contiguous is read and written by a copy.
    """
    if tensor.is_contiguous():
        return vector(tensor), lambda: _count_write(tensor)
    copy = tensor.detach().contiguous()

    def write_back() -> None:
        with fb.no_grad():
            tensor.detach().copy_(copy)

    return copy.view(-1)._a, write_back


def _count_write(tensor: Tensor) -> None:
    """Let the autograd engine notice a write that went past it."""
    storage_of(tensor).version += 1
