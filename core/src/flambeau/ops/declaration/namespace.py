"""The namespace ``F`` of gradient formulas when the backward pass is itself recorded.

It offers the same names as `flambeau._dispatch.bound.BoundBackend`, on tensors.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from flambeau._autograd.node import Node, Out
from flambeau._dispatch.dispatch import cast, new, scalar_native, wrap
from flambeau._memory.record import Storage
from flambeau._tensor.tensor import Tensor
from flambeau.ops.declaration.table import OPS

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend
    from flambeau.ops.declaration.table import Op


class TensorNamespace:
    """Canonical ops on tensors, and the helpers of formulas."""

    native = False
    array: type = Tensor

    def __getattr__(self, name: str) -> Op:
        try:
            op = OPS[name]
        except KeyError:
            raise AttributeError(f"no canonical op {name!r}") from None
        self.__dict__[name] = op
        return op

    def scalar(self, value: float, like: Tensor) -> Tensor:
        """A number as an operand for tensors like `like`."""
        return wrap(like._be, scalar_native(like._be, value, like.dtype), like.dtype)

    def constant(self, native: object, like: Tensor) -> Tensor:
        """A native scalar that a node kept, as a tensor."""
        be = _home(native, like._be)
        return wrap(be, native, be.dtype_of(native))

    def zeros(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """Zeros with the dtype and device of `like`."""
        return wrap(like._be, like._be.full(tuple(shape), 0, like.dtype), like.dtype)

    def mT(self, a: Tensor) -> Tensor:
        """The matrix transpose: the last two dimensions swapped."""
        n = len(a._a.shape)
        return self.permute(a, (*range(n - 2), n - 1, n - 2))

    def cast_like(self, a: Tensor, like: Tensor) -> Tensor:
        """`a` in the dtype of `like`."""
        return cast(a, like.dtype)

    def is_complex(self, a: Tensor) -> bool:
        """Whether the numbers of `a` are complex."""
        return a.dtype.is_complex

    def sum_to(self, a: Tensor, shape: tuple[int, ...]) -> Tensor:
        """`a` summed over the dimensions along which `shape` was broadcast."""
        have = a._a.shape
        if tuple(have) == tuple(shape):
            return a
        lead = len(have) - len(shape)
        if lead and tuple(have[lead:]) == tuple(shape):
            return self.sum(a, tuple(range(lead)), False)
        dims = (*range(lead), *(i + lead for i, n in enumerate(shape) if n == 1 != have[i + lead]))
        if dims:
            a = self.sum(a, dims, True)
        return self.reshape(a, tuple(shape)) if lead else a

    def reshape(self, a: Tensor, shape: tuple[int, ...]) -> Tensor:
        """`a` in another shape."""
        return a.reshape(shape)

    def flat(self, a: Tensor) -> Tensor:
        """`a` as a vector."""
        return a.reshape((prod(a._a.shape),))

    def as_strided_region(self, a: Tensor, shape: tuple[int, ...], *args: object) -> Tensor:
        """The elements of `a` that an as_strided view of its base selects."""
        return OPS["as_strided_region"](a, shape, *args)

    def result(self, node: Node, native: Any, be: Any, index: int = 0) -> Tensor:
        """A saved result as a tensor with the history of its node, if it can have one."""
        be = _home(native, be)
        t = new(Tensor)
        t._a = native
        t._be = be
        t.dtype = be.dtype_of(native)
        t._rg = t.dtype.fp
        if t._rg:
            t._fn = Out(node, index) if node.n_out > 1 else node
        t._st = Storage(native, be, t.dtype)  # that of the node's own result counts the writes
        return t


def _home(native: object, be: BoundBackend) -> Any:
    """The backend of an array: `be`, or below it where gradients are a transform's."""
    return be.below if type(native) is not be.array and hasattr(be, "level") else be


TENSORS = TensorNamespace()
