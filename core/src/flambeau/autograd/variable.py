"""``Variable``, which became the tensor itself."""

from __future__ import annotations

import warnings
from typing import Any

from flambeau._autograd.engine import queue_callback
from flambeau._tensor.tensor import Tensor


class _VariableMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)


class _ExecutionEngine:
    """What programs ask of the engine under PyTorch's name for it."""

    queue_callback = staticmethod(queue_callback)


class Variable(metaclass=_VariableMeta):
    """Deprecated: ``Variable(tensor, requires_grad)`` is a tensor over the memory of `tensor`.

    The tensor may also be given by PyTorch's name ``data``; `volatile` has no effect.

    Raises:
        TypeError: `tensor` is no tensor.
        RuntimeError: a gradient is asked for and the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.autograd.Variable(fb.ones(1), True)
    tensor([1.], requires_grad=True)
    """

    _execution_engine = _ExecutionEngine()

    def __new__(
        cls,
        tensor: Any = None,
        requires_grad: bool = False,
        volatile: bool | None = None,
        *,
        data: object = None,
    ) -> Tensor:
        tensor = data if tensor is None else tensor
        if volatile is not None:
            warnings.warn(
                "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.",
                stacklevel=2,
            )
        if tensor is None:
            return Tensor().requires_grad_(requires_grad)
        if not isinstance(tensor, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(tensor).__name__}")
        return tensor.detach().requires_grad_(requires_grad)
