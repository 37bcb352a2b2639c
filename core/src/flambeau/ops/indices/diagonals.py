"""Diagonals and triangles of matrices, and matrices made of them."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import dim_of, need_tensor
from flambeau._dispatch.bound import home
from flambeau._dispatch.dispatch import cast, wrap
from flambeau._dispatch.keywords import documented
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.dtype import dtype as DType
from flambeau._types.hints import DeviceLike
from flambeau._types.layout import layout as Layout
from flambeau.ops.creation.creation import (
    cannot_create,
    device_or,
    dtype_or,
    empty,
    filled,
    finished,
    is_sparse,
    size_of,
)
from flambeau.ops.creation.ranges import arange
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import OPS
from flambeau.ops.shapes.movement import cat

_MANY = 1 << 20


@public
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The last dimension as diagonals of matrices in dimensions `dim1` and `dim2` of the result.

    Raises:
        RuntimeError: the two dimensions are the same.

    >>> import flambeau as fb
    >>> fb.diag_embed(fb.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    x = need_tensor(input, "diag_embed", "input")
    rank = x.dim() + 1
    a, b, offset = dim_of(dim1, rank), dim_of(dim2, rank), operator.index(offset)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    n = x.shape[-1] + builtins.abs(offset)
    shape = list(x.shape[:-1])
    for d in sorted((a, b)):
        shape.insert(d, n)
    return OPS["diagonal_backward"](x, tuple(shape), offset, a, b)


@public
@documented({"diagonal": "offset"})
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """All elements, in order, as the diagonal of a square matrix.

    >>> import flambeau as fb
    >>> fb.diagflat(fb.tensor([[1], [2]]), 1)
    tensor([[0, 1, 0],
            [0, 0, 2],
            [0, 0, 0]])
    """
    return diag_embed(need_tensor(input, "diagflat", "input").reshape(-1), offset)


@public(function=False)
def fill_diagonal_(input: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Write `fill_value` on the main diagonal, of a matrix or of a cube of any rank.

    With `wrap` the diagonal of a tall matrix starts anew below a row that is left out.

    Raises:
        RuntimeError: there are fewer than two dimensions, or more whose sizes differ.

    >>> import flambeau as fb
    >>> fb.zeros(2, 2).fill_diagonal_(5)
    tensor([[5., 0.],
            [0., 5.]])
    """
    x = need_tensor(input, "fill_diagonal_", "input")
    if x.dim() < 2:
        raise RuntimeError("dimensions must larger than 1")
    if x.dim() > 2 and len(set(x.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    rows, columns = x.shape[0], x.shape[1]
    step = columns + 1
    if x.dim() == 2:
        for top in range(0, rows if wrap else min(rows, 1), step):
            x.narrow(0, top, rows - top).diagonal().fill_(fill_value)
        return x
    index = arange(rows, device=x.device)
    return x.index_put_((index,) * x.dim(), x.new_full((), fill_value))


@public
def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix.

    Raises:
        RuntimeError: the input is no matrix.

    >>> import flambeau as fb
    >>> fb.trace(fb.tensor([[1, 2], [3, 4]]))
    tensor(5)
    """
    x = need_tensor(input, "trace", "input")
    if x.dim() != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {x.dim()}")
    return x.diagonal().sum()


def _triangle_indices(
    lower: bool,
    row: int,
    col: int,
    offset: int,
    dtype: DType,
    device: DeviceLike | None,
    layout: Layout | None,
) -> Tensor:
    name = "tril_indices" if lower else "triu_indices"
    if is_sparse(name, layout):
        raise RuntimeError(f"{name} only supports layout=torch.strided, got layout={layout}")
    if dtype not in (D.int32, D.int64):
        raise NotImplementedError(f'"{name}" not implemented for {dtype}')
    if row < 0 or col < 0:
        raise RuntimeError(f"{name}: row and col must be non-negative, got {row} and {col}")
    if type(offset) is int and row * col <= _MANY:
        be = home(device)
        if (kernel := getattr(be.arange, "triangle", None)) is not None:
            return cast(wrap(be, kernel(row, col, offset, lower), D.int64), dtype)
    i, j = arange(row, device=device).unsqueeze(1), arange(col, device=device)
    mask = (j - i <= offset) if lower else (j - i >= offset)
    return cast(mask.nonzero().t().contiguous(), dtype)


@public(method=False)
@documented({"column": "col"})
@takes_as_annotated
def tril_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: DType = D.int64,
    device: DeviceLike | None = None,
    layout: Layout | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Rows and columns of the elements on and below a diagonal, row by row, as a (2, n) tensor.

    >>> import flambeau as fb
    >>> fb.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    found = _triangle_indices(True, row, col, offset, dtype, device, layout)
    return finished(found, requires_grad, None)


@public(method=False)
@documented({"column": "col"})
@takes_as_annotated
def triu_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: DType = D.int64,
    device: DeviceLike | None = None,
    layout: Layout | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Rows and columns of the elements on and above a diagonal, row by row, as a (2, n) tensor.

    >>> import flambeau as fb
    >>> fb.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    found = _triangle_indices(False, row, col, offset, dtype, device, layout)
    return finished(found, requires_grad, None)


@public(method=False)
def block_diag(*tensors: Tensor | Sequence[Tensor]) -> Tensor:
    """A matrix with the given matrices (vectors as rows) along its diagonal, zeros elsewhere.

    Raises:
        RuntimeError: one has more than two dimensions.

    >>> import flambeau as fb
    >>> fb.block_diag(fb.tensor([1, 2]), fb.tensor([[3], [4]]))
    tensor([[1, 2, 0],
            [0, 0, 3],
            [0, 0, 4]])
    """
    blocks = []
    for i, t in enumerate(tensors):
        x = need_tensor(t, "block_diag", "tensors")
        if x.dim() > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input "
                f"{i} has {x.dim()} dimensions"
            )
        blocks.append(x.reshape((1,) * (2 - x.dim()) + tuple(x.shape)))
    if not blocks:
        return empty((1, 0))
    dtype = blocks[0].dtype
    for block in blocks[1:]:
        dtype = D.promote_types(dtype, block.dtype)
    width = sum(block.shape[1] for block in blocks)
    rows, before = [], 0
    for block in blocks:
        n, m = block.shape
        left = block.new_zeros((n, before), dtype=dtype)
        right = block.new_zeros((n, width - before - m), dtype=dtype)
        rows.append(cat([left, cast(block, dtype), right], 1))
        before += m
    return cat(rows, 0)


@public(method=False)
def eye(
    n: int,
    m: int | None = None,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A matrix with ones on the diagonal.

    >>> import flambeau as fb
    >>> fb.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    if type(n) is int and (m is None or type(m) is int) and out is None:
        kind = D.get_default_dtype() if dtype is None else dtype
        if (made := _in_one(n, n if m is None else m, kind, device)) is not None:
            return made.requires_grad_() if requires_grad else made
    return _eye(n, m, out=out, dtype=dtype, device=device, requires_grad=requires_grad)


def _in_one(n: int, m: int, dtype: DType, device: DeviceLike | None) -> Tensor | None:
    """`eye` by the kernel that makes it; None if there is none, or it would be too large."""
    if not (0 <= n <= _MANY and 0 <= m <= _MANY and type(dtype) is DType):
        return None
    be = home(device)
    if (kernel := getattr(be.full, "identity", None)) is None:
        return None
    try:
        return wrap(be, kernel(n, m, dtype), dtype)
    except be.error as error:
        raise cannot_create(f"shape {[n, m]}", error, (n, m), dtype) from error


@takes_as_annotated
def _eye(
    n: int,
    m: int | None,
    *,
    out: Tensor | None,
    dtype: DType | None,
    device: DeviceLike | None,
    requires_grad: bool,
) -> Tensor:
    m = n if m is None else m
    if n < 0 or m < 0:
        raise RuntimeError(f"n must be greater or equal to 0, got {n} and {m}")
    where, dtype = device_or(device, out), dtype_or(dtype, out)
    if home(where).strided:
        made = filled(size_of("eye", (n, m), None), 0, dtype, where)
        made._be.fill_(made._be.diagonal(made._a, 0, 0, 1), 1)
    else:
        rows, columns = arange(n, device=where).unsqueeze(1), arange(m, device=where)
        made = cast(rows == columns, dtype)
    return finished(made, requires_grad, out)
