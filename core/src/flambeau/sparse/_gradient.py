"""Sparse gradients of dense leaves: what looking up rows of a large table sends back.

Within a backward pass such a gradient is a `SparseGradient` of native arrays; it arrives in
``.grad`` as a sparse tensor.  Only leaves receive one: an op in between gets the dense gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau._autograd.modes import recording
from flambeau._autograd.node import Edges, Node, next_seq
from flambeau._dispatch.dispatch import wrap
from flambeau._memory.views import edge
from flambeau._tensor.tensor import Tensor
from flambeau.sparse._coo import SparseTensor

if TYPE_CHECKING:
    from flambeau._dispatch.bound import BoundBackend
    from flambeau._types.native import Array
    from flambeau.ops.declaration.formulas import Formulas


class SparseGradient:
    """A gradient that is zero except at some positions, in native arrays.

    Attributes:
        where: positions, int64 (sparse_dim, nnz); a position may repeat, its values then add up.
        values: (nnz, *dense sizes).
        shape: of the dense gradient.
    """

    __slots__ = ("shape", "values", "where")
    __array_ufunc__ = None  # an addition with a NumPy array fails, and `sparse_sum` takes over

    def __init__(self, where: Any, values: Any, shape: tuple[int, ...]) -> None:
        self.where = where
        self.values = values
        self.shape = shape

    def added_to(self, F: Formulas, dense: Any) -> Array:
        """The dense sum."""
        rows = tuple(F.slice(self.where, (i,)) for i in range(self.where.shape[0]))
        return F.index_put(dense, rows, self.values, True)

    def as_tensor(self, be: BoundBackend) -> SparseTensor:
        """The sparse tensor that ``.grad`` shows."""
        where = wrap(be, be.fresh(self.where), be.dtype_of(self.where))
        values = wrap(be, be.fresh(self.values), be.dtype_of(self.values))
        return SparseTensor.make(where, values, self.shape, coalesced=False)


def sparse_sum(F: Any, a: Any, b: Any) -> Any:
    """The sum of two gradients of which at least one is sparse; NotImplemented if neither is."""
    if isinstance(a, SparseGradient):
        if isinstance(b, SparseGradient):
            where, values = F.cat((a.where, b.where), 1), F.cat((a.values, b.values), 0)
            return SparseGradient(where, values, a.shape)
        return a.added_to(F, b)
    if isinstance(b, SparseGradient):
        return b.added_to(F, a)
    return NotImplemented


class SelectionBackward(Node):
    """The gradient of elements taken from `source` at the positions `where`: sparse for a leaf."""

    __slots__ = ("kept", "shape", "where")

    where: Tensor  # (sparse_dim, nnz)
    kept: Tensor | None  # which of the taken elements send a gradient; None: all
    shape: tuple[int, ...]

    def apply(self, F: Any, g: Any, edges: Edges = None) -> tuple[Any, ...]:
        """The gradient of the source."""
        where = self.where if not F.native else self.where._a
        inner = self.shape[where.shape[0] :]
        count = 1
        for n in g.shape[: len(g.shape) - len(inner)]:
            count *= n
        values = F.reshape(g, (count, *inner))
        if self.kept is not None:
            values = F.index(values, (self.kept if not F.native else self.kept._a,))
        target = self.edges[0]
        if not F.native:
            if not isinstance(target, Node):
                return (SparseTensor.make(where, values, self.shape, coalesced=False),)
        elif not isinstance(target, Node):
            return (SparseGradient(where, values, self.shape),)
        dense = SparseGradient(where, values, self.shape)
        return (dense.added_to(F, F.zeros(self.shape, g)),)

    def name(self) -> str:
        """The name shown in ``grad_fn=<...>``."""
        return "SelectionBackward0"


def record_selection(
    result: Tensor, source: Tensor, where: Tensor, kept: Tensor | None = None
) -> Tensor:
    """Give `result`, elements of `source` at `where`, a history that sends a sparse gradient.

    Args:
        where: positions that send a gradient, int64 (sparse_dim, nnz).
        kept: places of those positions among the elements of `result`; None: all, in their order.
    """
    if not (source.requires_grad and recording()):
        return result
    node = SelectionBackward()
    node.edges = (edge(source),)
    node.saved = ()
    node.where, node.kept, node.shape = where, kept, tuple(source._a.shape)
    node.seq = next_seq()
    result._fn = node
    result._rg = True
    return result
