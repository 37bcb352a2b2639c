"""Diagonals, triangles, and the vectors of a tensor: traces, cross products, bounded norms."""

from __future__ import annotations

import builtins
import operator
from typing import Any

from flambeau._dispatch.arguments import broadcast_shapes, dim_of, need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._dispatch.keywords import documented
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.dtype import dtype as DType
from flambeau._writes.out import deliver
from flambeau.ops.creation.creation import arange
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import OPS
from flambeau.ops.pointwise.elementwise import where
from flambeau.ops.shapes.movement import stack


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
    lower: bool, row: int, col: int, offset: int, dtype: DType, device: Any
) -> Tensor:
    name = "tril_indices" if lower else "triu_indices"
    if row < 0 or col < 0:
        raise RuntimeError(f"{name}: row and col must be non-negative, got {row} and {col}")
    i, j = arange(row, device=device).unsqueeze(1), arange(col, device=device)
    mask = (j - i <= offset) if lower else (j - i >= offset)
    return cast(mask.nonzero().t().contiguous(), dtype)


@public(method=False)
@documented({"column": "col"})
def tril_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: DType = D.int64,
    device: Any = None,
    layout: Any = None,
) -> Tensor:
    """Rows and columns of the elements on and below a diagonal, row by row, as a (2, n) tensor.

    >>> import flambeau as fb
    >>> fb.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return _triangle_indices(True, row, col, offset, dtype, device)


@public(method=False)
@documented({"column": "col"})
def triu_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: DType = D.int64,
    device: Any = None,
    layout: Any = None,
) -> Tensor:
    """Rows and columns of the elements on and above a diagonal, row by row, as a (2, n) tensor.

    >>> import flambeau as fb
    >>> fb.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return _triangle_indices(False, row, col, offset, dtype, device)


@public
def cross(
    input: Tensor, other: Tensor, dim: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """The cross products of vectors along `dim` (default: the first dimension of size 3).

    Raises:
        RuntimeError: the dimension has another size than 3, or none has it.

    >>> import flambeau as fb
    >>> fb.cross(fb.tensor([1, 0, 0]), fb.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    x, y = need_tensor(input, "cross", "input"), need_tensor(other, "cross", "other")
    if x.dim() != y.dim():
        raise RuntimeError(
            "linalg.cross: inputs must have the same number of dimensions, got "
            f"{x.dim()} and {y.dim()}"
        )
    shape = broadcast_shapes(tuple(x.shape), tuple(y.shape))
    if dim is None:
        if 3 not in x.shape:
            raise RuntimeError(f"no dimension of size 3 in input of shape {list(x.shape)}")
        dim = tuple(x.shape).index(3)
    d = dim_of(dim, x.dim())
    if x.shape[d] != 3 or y.shape[d] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {x.shape[d]} and "
            f"{y.shape[d]}"
        )
    if x.dtype is D.bool_:
        raise NotImplementedError("\"cross\" not implemented for 'Bool'")
    a, b = x.expand(shape).unbind(d), y.expand(shape).unbind(d)
    parts = [a[i] * b[j] - a[j] * b[i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return deliver(stack(parts, d), out, input, other, exact=True, share="nothing")


@public(inplace="method")
def renorm(
    input: Tensor, p: float, dim: int, maxnorm: float, *, out: Tensor | None = None
) -> Tensor:
    """Each sub-tensor along `dim` shrunk to the p-norm `maxnorm` where its p-norm is larger.

    Raises:
        RuntimeError: `p` is not positive, `maxnorm` is negative, or the input has one dimension.

    >>> import flambeau as fb
    >>> fb.renorm(fb.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    x = need_tensor(input, "renorm", "input")
    if not p > 0:
        raise RuntimeError(f"renorm: non-positive-norm not supported, got p = {p}")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if x.dim() < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {x.dim()} dimensions")
    d = dim_of(dim, x.dim())
    others = tuple(i for i in builtins.range(x.dim()) if i != d)
    length = x.norm(p, others, True)
    # PyTorch's margin against the rounding of the quotient.
    factor = where(length > maxnorm, maxnorm / (length + 1e-7), length.new_ones(()))
    return deliver((x * factor).contiguous(), out, input, exact=True)
