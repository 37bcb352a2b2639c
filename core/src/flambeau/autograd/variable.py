"""``Variable``, which became the tensor itself."""

from __future__ import annotations

from typing import Any

from flambeau._tensor import Tensor


class _VariableMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """Deprecated: ``Variable(tensor, requires_grad)`` returns a tensor.

    >>> import flambeau as fb
    >>> fb.autograd.Variable(fb.ones(1), True)
    tensor([1.], requires_grad=True)
    """

    def __new__(cls, tensor: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
        t = tensor.detach()
        return t.requires_grad_() if requires_grad and not volatile else t
