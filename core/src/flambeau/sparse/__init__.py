"""Sparse tensors: ``flambeau.sparse``.

`flambeau.sparse_coo_tensor` makes them; this module has the functions that exist for them alone,
and the legacy constructors.

>>> import flambeau as fb
>>> s = fb.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
>>> fb.sparse.sum(s, dim=0)
tensor(indices=tensor([[0, 2]]),
       values=tensor([4., 8.]),
       size=(3,), nnz=2, layout=torch.sparse_coo)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._tensor.tensor import Tensor
from flambeau.absence import tell as _tell
from flambeau.sparse import _ops
from flambeau.sparse._coo import SparseTensor
from flambeau.sparse._legacy import (
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
)

if TYPE_CHECKING:
    from flambeau._types.dtype import dtype as DType


__all__ = [
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "SparseTensor",
    "addmm",
    "log_softmax",
    "mm",
    "softmax",
    "sum",
]


def _need_sparse(name: str, argument: str, x: object) -> None:
    if not isinstance(x, SparseTensor):
        kind = "a dense tensor" if isinstance(x, Tensor) else type(x).__name__
        raise TypeError(f"sparse.{name}(): argument {argument!r} must be sparse, got {kind}")


def mm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of a sparse matrix (n, m) with a dense or sparse one (m, p).

    The result is dense if `mat2` is, else sparse; gradients flow to the stored elements and to a
    dense `mat2`.

    Raises:
        TypeError: neither is sparse.
        RuntimeError: they are not matrices that fit.

    >>> import flambeau as fb
    >>> fb.sparse.mm(fb.sparse_coo_tensor([[0], [1]], [2.0], (2, 2)), fb.eye(2))
    tensor([[0., 2.],
            [0., 0.]])
    """
    if not isinstance(mat2, SparseTensor):
        _need_sparse("mm", "mat1", mat1)
    return _ops.mm(mat1, mat2)


@takes_as_annotated
def addmm(
    mat: Tensor, mat1: Tensor, mat2: Tensor, beta: object = 1.0, alpha: object = 1.0
) -> Tensor:
    """beta * mat + alpha * (mat1 @ mat2) with a dense `mat`, a sparse `mat1` and a dense `mat2`.

    Raises:
        TypeError: `mat1` is not sparse.

    >>> import flambeau as fb
    >>> s = fb.sparse_coo_tensor([[0], [1]], [2.0], (2, 2))
    >>> fb.sparse.addmm(fb.ones(2, 2), s, fb.eye(2))
    tensor([[1., 3.],
            [1., 1.]])
    """
    _need_sparse("addmm", "mat1", mat1)
    return _ops.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sum(input: Tensor, dim: object = None, dtype: DType | None = None) -> Tensor:
    """The sum of the elements, or along dimensions; the result is dense once no sparse one is left.

    Raises:
        TypeError: `input` is not sparse.

    >>> import flambeau as fb
    >>> fb.sparse.sum(fb.sparse_coo_tensor([[0, 3]], [1.0, 2.0]))
    tensor(3.)
    """
    _need_sparse("sum", "input", input)
    return _ops.total(input, dim, dtype=dtype)  # type: ignore[arg-type] - checked


@takes_as_annotated
def softmax(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """softmax over the stored elements along `dim`; those not stored count as -inf.

    >>> import flambeau as fb
    >>> fb.sparse.softmax(fb.sparse_coo_tensor([[0, 0], [0, 2]], [1.0, 1.0], (1, 3)), 1).values()
    tensor([0.5000, 0.5000])
    """
    return _normalised("softmax", input, dim, dtype, log=False)


@takes_as_annotated
def log_softmax(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """log(softmax) over the stored elements along `dim`.

    >>> import flambeau as fb
    >>> s = fb.sparse_coo_tensor([[0, 0], [0, 2]], [1.0, 1.0], (1, 3))
    >>> fb.sparse.log_softmax(s, 1).values()
    tensor([-0.6931, -0.6931])
    """
    return _normalised("log_softmax", input, dim, dtype, log=True)


def _normalised(name: str, input: Any, dim: int, dtype: DType | None, *, log: bool) -> Tensor:
    _need_sparse(name, "input", input)
    if dtype is not None:
        input = input.to(dtype)
    dim %= input.dim()
    if dim >= input.sparse_dim():
        once = input.coalesce()
        inner = dim - input.sparse_dim() + 1
        stored = once._stored
        return once.like(stored.log_softmax(inner) if log else stored.softmax(inner))
    once, group, count = _ops.grouped(input, dim)
    values = once._stored
    at = group.reshape((-1,) + (1,) * (values.dim() - 1)).expand(tuple(values.shape))
    start = values.detach().new_full((count, *values.shape[1:]), float("-inf"))
    peak = start.scatter_reduce(0, at, values.detach(), "amax")
    shifted = values - peak.index_select(0, group)
    total = values.new_zeros(tuple(peak.shape)).index_add(0, group, shifted.exp())
    norm = total.index_select(0, group)
    return once.like(shifted - norm.log() if log else shifted.exp() / norm)


_tell(__name__)
