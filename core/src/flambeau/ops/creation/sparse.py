"""The way into and out of sparse tensors, and what dense tensors answer to questions about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import checked_sizes, need_tensor, sizes
from flambeau._dispatch.keywords import documented
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.dtype import dtype as DType
from flambeau._types.hints import DeviceLike, Number
from flambeau._types.layout import layout as Layout
from flambeau._types.layout import sparse_coo
from flambeau.ops.creation.creation import as_tensor, empty
from flambeau.ops.declaration.public import public

_DIMENSIONS = 1 << 16


@public(method=False)
def sparse_coo_tensor(
    indices: object = None,
    values: object = None,
    size: Sequence[int] | None = None,
    *,
    dtype: DType | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """A sparse tensor with `values` at `indices`; values of a repeated position add up.

    Args:
        indices: positions of the stored elements, (sparse_dim, nnz).
        values: the elements, (nnz, *dense sizes).
        size: of the tensor; by default the smallest one that has room for all positions.
        check_invariants: accepted; positions are always checked.
        is_coalesced: states that positions are sorted and unique.

    Raises:
        RuntimeError: a position lies outside of `size`, or the shapes do not fit.

    >>> import flambeau as fb
    >>> fb.sparse_coo_tensor([[0, 2]], [1.0, 5.0], (4,)).to_dense()
    tensor([1., 0., 5., 0.])
    """
    from flambeau.sparse import _coo

    if values is None:
        shape: Any = size if indices is None else indices
        like = empty((0,), dtype=dtype, device=device)
        made = _coo.empty(checked_sizes(sizes((tuple(shape),))), like)
        return made.requires_grad_(requires_grad)
    stored = as_tensor(values, dtype=dtype, device=device)
    where = as_tensor(indices, device=stored.device)
    if where.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(where.shape)}")
    where = where.to(D.int64)
    n, count = where.shape
    if n > _DIMENSIONS:
        raise RuntimeError(f"sparse tensors have at most {_DIMENSIONS} sparse dimensions, got {n}")
    if stored.dim() == 0:
        stored = stored.expand((1,))
    if stored.shape[0] != count:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {count}, nnz from "
            f"values: {stored.shape[0]}"
        )
    lowest = where.amin(1).tolist() if count else [0] * n
    highest = where.amax(1).tolist() if count else [-1] * n
    for d, low in enumerate(lowest):
        if low < 0:
            raise RuntimeError(f"found negative index {low} for dim {d}")
    if size is None:
        shape = (*(h + 1 for h in highest), *stored.shape[1:])
    else:
        shape = checked_sizes(sizes((tuple(size),)))
        dense = stored.dim() - 1
        if len(shape) != n + dense:
            raise RuntimeError(
                "'len(size) == sparse_dim + dense_dim' is not satisfied: "
                f"len(size) = {len(shape)}, sparse_dim = {n}, dense_dim = {dense}"
            )
        for d, high in enumerate(highest):
            if high >= shape[d]:
                raise RuntimeError(
                    f"size is inconsistent with indices: for dim {d}, size is {shape[d]} but found "
                    f"index {high}"
                )
        if tuple(shape[n:]) != tuple(stored.shape[1:]):
            raise RuntimeError(
                f"values has incorrect size, expected {[count, *shape[n:]]}, got "
                f"{list(stored.shape)}"
            )
    # Other tensors over the same memory: resizing what was given leaves this one as it is.
    stored = (
        stored.view_as(stored) if stored.requires_grad and not requires_grad else stored.detach()
    )
    where = where.detach()
    made = _coo.SparseTensor.make(where, stored, shape, coalesced=bool(is_coalesced))
    return made.requires_grad_() if requires_grad else made


@public(function=False, names={"sparseDims": "sparse_dim"})
@takes_as_annotated
def to_sparse(
    input: Tensor, sparse_dim: int | None = None, *, layout: Layout | None = None
) -> Tensor:
    """The nonzero elements as a sparse tensor; dimensions from `sparse_dim` on stay dense.

    Raises:
        RuntimeError: `sparse_dim` is not between 0 and the number of dimensions.

    >>> import flambeau as fb
    >>> fb.tensor([[0.0, 7.0], [0.0, 0.0]]).to_sparse().indices()
    tensor([[0],
            [1]])
    """
    from flambeau.sparse._coo import SparseTensor

    x = need_tensor(input, "to_sparse", "input")
    if layout not in (None, sparse_coo):
        raise RuntimeError(f"to_sparse: the layout must be torch.sparse_coo, got {layout}")
    if x.is_sparse:
        return x
    n = x.dim() if sparse_dim is None else sparse_dim
    if not 0 <= n <= x.dim() or (n == 0 and x.dim() > 0):
        raise RuntimeError(f"to_sparse: sparse_dim must be in [1, {x.dim()}], got {n}")
    found = x != 0
    if n < x.dim():
        found = found.any(tuple(range(n, x.dim())))
    where = found.nonzero()
    values = x[tuple(where.unbind(1))] if n else x.reshape((1,))[: where.shape[0]]
    return SparseTensor.make(where.t().contiguous(), values, x._a.shape, coalesced=True)


@public(function=False)
def to_sparse_coo(input: Tensor) -> Tensor:
    """The nonzero elements as a sparse tensor in coordinate form, as `Tensor.to_sparse` gives them.

    >>> import flambeau as fb
    >>> fb.tensor([0.0, 7.0]).to_sparse_coo().indices()
    tensor([[1]])
    """
    return to_sparse(need_tensor(input, "to_sparse_coo", "input"))


@public(function=False)
def to_dense(
    input: Tensor, dtype: DType | None = None, *, masked_grad: bool | None = None
) -> Tensor:
    """The tensor in dense memory; a dense one is returned as it is.

    >>> import flambeau as fb
    >>> fb.ones(2).to_dense()
    tensor([1., 1.])
    """
    return input if dtype is None else input.to(dtype)


@public(function=False)
def sparse_mask(input: Tensor, mask: Tensor) -> Tensor:
    """The elements of `input` at the positions that the sparse tensor `mask` stores.

    Raises:
        RuntimeError: the sizes differ.
        TypeError: `mask` is not sparse.

    >>> import flambeau as fb
    >>> mask = fb.sparse_coo_tensor([[1]], [9.0], (3,))
    >>> fb.tensor([4.0, 5.0, 6.0]).sparse_mask(mask).values()
    tensor([5.])
    """
    from flambeau.sparse import _ops

    if not need_tensor(mask, "sparse_mask", "mask").is_sparse:
        raise TypeError("sparse_mask(): the mask must be a sparse tensor")
    return _ops.sparse_mask(input, mask)  # type: ignore[arg-type] - checked


@public(function=False)
def sparse_dim(input: Tensor) -> int:
    """The number of dimensions that indices address: 0 for dense tensors.

    >>> import flambeau as fb
    >>> fb.ones(2, 3).sparse_dim(), fb.ones(2, 3).to_sparse().sparse_dim()
    (0, 2)
    """
    return 0


@public(function=False)
def dense_dim(input: Tensor) -> int:
    """The number of dimensions that each stored value has: all of a dense tensor.

    >>> import flambeau as fb
    >>> fb.ones(2, 3).dense_dim()
    2
    """
    return input.dim()


def _dense(name: str) -> NoReturn:
    raise RuntimeError(
        f"{name} expected sparse coordinate tensor layout but got Strided; convert with to_sparse()"
    )


@public(function=False)
def coalesce(input: Tensor) -> Tensor:
    """A sparse tensor with sorted positions, each stored once.

    Raises:
        RuntimeError: the tensor is dense.

    >>> import flambeau as fb
    >>> fb.sparse_coo_tensor([[1, 1]], [2.0, 3.0]).coalesce().values()
    tensor([5.])
    """
    _dense("coalesce")


@public(function=False)
def is_coalesced(input: Tensor) -> bool:
    """Whether a sparse tensor stores sorted positions, each once.

    Raises:
        RuntimeError: the tensor is dense.

    >>> import flambeau as fb
    >>> fb.sparse_coo_tensor([[1, 1]], [2.0, 3.0]).is_coalesced()
    False
    """
    _dense("is_coalesced")


@public(function=False)
def indices(input: Tensor) -> Tensor:
    """The positions that a coalesced sparse tensor stores, (sparse_dim, nnz).

    Raises:
        RuntimeError: the tensor is dense or not coalesced.

    >>> import flambeau as fb
    >>> fb.tensor([0.0, 3.0]).to_sparse().indices()
    tensor([[1]])
    """
    _dense("indices")


@public(function=False)
def values(input: Tensor) -> Tensor:
    """The elements that a coalesced sparse tensor stores, (nnz, *dense sizes).

    Raises:
        RuntimeError: the tensor is dense or not coalesced.

    >>> import flambeau as fb
    >>> fb.tensor([0.0, 3.0]).to_sparse().values()
    tensor([3.])
    """
    _dense("values")


def _need_sparse(name: str, x: Tensor) -> None:
    if not need_tensor(x, name, "input").is_sparse:
        raise RuntimeError(f"{name}: expected a sparse matrix as the first operand of the product")


@public(method=False)
def hspmm(mat1: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A sparse matrix times a dense one, as a tensor with one sparse and one dense dimension.

    >>> import flambeau as fb
    >>> fb.hspmm(fb.eye(2).to_sparse(), fb.ones(2, 3))._values().shape
    torch.Size([2, 3])
    """
    return _product("hspmm", mat1, (mat1, mat2), out)


@public(names={"mat2": "mat"})
@documented({"mat2": "mat"})
def smm(input: Tensor, mat: Tensor) -> Tensor:
    """A sparse matrix times a dense one, as a sparse matrix.

    >>> import flambeau as fb
    >>> fb.smm(fb.eye(2).to_sparse(), fb.ones(2, 3)).to_dense()
    tensor([[1., 1., 1.],
            [1., 1., 1.]])
    """
    return _product("smm", input, (input, mat), None)


@public(method=False)
def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """A sparse matrix times a dense one; `flambeau.mm` is the name to use.

    >>> import flambeau as fb
    >>> fb.spmm(fb.eye(2).to_sparse(), fb.ones(2, 1))
    tensor([[1.],
            [1.]])
    """
    return _product("mm", input, (input, mat2), None)


dsmm = spmm
hsmm = hspmm


@public
def sspaddmm(
    input: Tensor,
    *matrices: Tensor | Number,
    beta: Number = 1,
    alpha: Number = 1,
    out: Tensor | None = None,
) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2) of sparse `input` and `mat1`, as a sparse matrix.

    >>> import flambeau as fb
    >>> eye = fb.eye(2).to_sparse()
    >>> fb.sspaddmm(eye, eye, fb.ones(2, 2)).to_dense()
    tensor([[2., 1.],
            [1., 2.]])
    """
    need_tensor(input, "sspaddmm", "input")
    for matrix in matrices[-2:]:
        need_tensor(matrix, "sspaddmm", "mat")
    from flambeau.sparse import _ops

    result = _ops.sspaddmm(input, *matrices, beta=beta, alpha=alpha)
    return result if out is None else out.become(result)  # type: ignore[attr-defined] - sparse


saddmm = sspaddmm


def _product(name: str, sparse: Tensor, operands: tuple[Any, ...], out: Any) -> Any:
    from flambeau.sparse import _ops

    for operand in operands:
        need_tensor(operand, name, "mat")
    _need_sparse(name, sparse)
    result = _ops.HANDLERS[name](*operands)
    return result if out is None else out.become(result)
