"""Parameters and buffers: tensors that a module registers when they are assigned to it."""

from __future__ import annotations

from collections import OrderedDict

import flambeau as fb
from flambeau import Tensor

__all__ = ["Buffer", "Parameter"]


class Parameter(Tensor, plain=True):
    """A leaf tensor that is trained: assigning it to a module's attribute registers it.

    `data` gives the values, shared and not copied (an empty tensor if left out).  The parameter
    requires a gradient unless `requires_grad` is false.  Operations on parameters give tensors.

    Raises:
        TypeError: `data` is not a tensor.
        RuntimeError: `requires_grad` is true and `data` is neither floating nor complex.

    >>> import flambeau as fb
    >>> fb.nn.Parameter(fb.tensor([1.0, 2.0]))
    Parameter containing:
    tensor([1., 2.], requires_grad=True)
    """

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = fb.empty(0)
        return Tensor._make_subclass(cls, data, requires_grad)

    def __deepcopy__(self, memo: dict[int, object]) -> Parameter:
        if id(self) in memo:
            return memo[id(self)]  # pyright: ignore[reportReturnType]
        values = self.data.clone(memory_format=fb.preserve_format)
        copy = type(self)(values, self.requires_grad)
        memo[id(self)] = copy
        return copy

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return "Parameter containing:\n" + super().__repr__(tensor_contents=tensor_contents)

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        # Gradient hooks hold arbitrary functions; like the gradient itself they stay behind.
        return _rebuild_parameter, (self.data, self.requires_grad, OrderedDict())


def _rebuild_parameter(
    data: Tensor, requires_grad: bool, backward_hooks: OrderedDict[int, object]
) -> Parameter:
    """What a pickled parameter calls; the arguments are those of PyTorch's files."""
    return Parameter(data, requires_grad)


class Buffer(Tensor, plain=True):
    """A tensor that belongs to a module's state and is not trained: assigning it registers it.

    `persistent` says whether the module's ``state_dict`` includes it.

    >>> import flambeau as fb
    >>> module = fb.nn.Module()
    >>> module.mean = fb.nn.Buffer(fb.zeros(2))
    >>> list(module.state_dict())
    ['mean']
    """

    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        if data is None:
            data = fb.empty(0)
        buffer = Tensor._make_subclass(cls, data, data.requires_grad)
        buffer.persistent = persistent
        return buffer

    def __deepcopy__(self, memo: dict[int, object]) -> Buffer:
        if id(self) in memo:
            return memo[id(self)]  # pyright: ignore[reportReturnType]
        values = self.data.clone(memory_format=fb.preserve_format)
        copy = type(self)(values, persistent=self.persistent)
        memo[id(self)] = copy
        return copy

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        return _rebuild_buffer, (self.data, self.persistent)


def _rebuild_buffer(data: Tensor, persistent: bool) -> Buffer:
    return Buffer(data, persistent=persistent)
