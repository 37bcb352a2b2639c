"""Functions that do nothing but what the method of their name does."""

from __future__ import annotations

from typing import Any

from flambeau._dispatch.arguments import need_tensor
from flambeau._tensor.tensor import Tensor


def detach(input: Tensor) -> Tensor:
    """The same memory without history; see `Tensor.detach`.

    >>> import flambeau as fb
    >>> fb.detach(fb.ones(1, requires_grad=True)).requires_grad
    False
    """
    need_tensor(input, "detach", "input")
    return input.detach()


def detach_(input: Tensor) -> Tensor:
    """Forget the history of a tensor, in place; see `Tensor.detach_`.

    >>> import flambeau as fb
    >>> x = fb.ones(1, requires_grad=True) * 2; fb.detach_(x).requires_grad
    False
    """
    need_tensor(input, "detach_", "input")
    return input.detach_()


def fill_(input: Tensor, value: object) -> Tensor:
    """Write one number everywhere.

    >>> import flambeau as fb
    >>> fb.fill_(fb.zeros(2), 3)
    tensor([3., 3.])
    """
    need_tensor(input, "fill_", "input")
    return input.fill_(value)


def zero_(input: Tensor) -> Tensor:
    """Write zero everywhere.

    >>> import flambeau as fb
    >>> fb.zero_(fb.ones(2))
    tensor([0., 0.])
    """
    need_tensor(input, "zero_", "input")
    return input.zero_()


def as_strided_(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """Make a tensor the view of its storage with another shape, stride and offset.

    >>> import flambeau as fb
    >>> fb.as_strided_(fb.arange(4), (2,), (2,))
    tensor([0, 2])
    """
    need_tensor(input, "as_strided_", "input")
    return input.as_strided_(size, stride, storage_offset)


def resize_as_(input: Tensor, the_template: Tensor) -> Tensor:
    """Give a tensor the shape of another, in place; see `Tensor.resize_`.

    >>> import flambeau as fb
    >>> fb.resize_as_(fb.arange(4), fb.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    x = need_tensor(input, "resize_as_", "input")
    return x.resize_as_(need_tensor(the_template, "resize_as_", "the_template"))


def pin_memory(input: Tensor) -> Tensor:
    """The tensor in page-locked memory; itself where no accelerator needs that.

    >>> import flambeau as fb
    >>> fb.pin_memory(fb.ones(1))
    tensor([1.])
    """
    return need_tensor(input, "pin_memory", "input").pin_memory()
