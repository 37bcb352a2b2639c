"""Products and arrangements of vectors."""

from __future__ import annotations

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import need_input
from flambeau._tensor.tensor import Tensor
from flambeau._writes.out import deliver
from flambeau.ops.matrices import products
from flambeau.ops.matrices.matrix_algebra import conjugate
from flambeau.ops.shapes.movement import cat
from flambeau.ops.shapes.movement import diagonal as _diagonal


def cross(input: Tensor, other: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """The cross products of vectors along `dim`, which has length 3; other dimensions broadcast.

    Raises:
        RuntimeError: the dimension has another length.

    >>> import flambeau as fb
    >>> fb.linalg.cross(fb.tensor([1, 0, 0]), fb.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    return products.cross(input, other, dim, out=out)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """The sum of conj(x) * y along `dim`; other dimensions broadcast.

    >>> import flambeau as fb
    >>> fb.linalg.vecdot(fb.tensor([1.0, 2.0]), fb.tensor([3.0, 4.0]))
    tensor(11.)
    """
    a, b = need_input(x, "linalg.vecdot", "x"), need_input(y, "linalg.vecdot", "y")
    return deliver((conjugate(a) * b).sum(dim), out, x, y, exact=True, share="anything")


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of matrices, as a view; `torch.diagonal` with the last two dimensions.

    >>> import flambeau as fb
    >>> fb.linalg.diagonal(fb.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    return _diagonal(A, offset, dim1, dim2)


@takes_as_annotated
def vander(x: Tensor, N: int | None = None) -> Tensor:
    """The powers 0 to N - 1 (default: as many as elements) of each element of vectors, as rows.

    Shapes: x (..., n), result (..., n, N); a number is a vector of one.

    Raises:
        RuntimeError: N is not greater than 1.

    >>> import flambeau as fb
    >>> fb.linalg.vander(fb.tensor([2, 3]), N=3)
    tensor([[1, 2, 4],
            [1, 3, 9]])
    """
    v = need_input(x, "linalg.vander", "x")
    v = v if v.dim() else v.reshape((1,))
    count = v.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    column = v.unsqueeze(-1)
    powers = column.expand(*v.shape, count - 1).cumprod(-1)
    return cat([powers.new_ones(tuple(column.shape)), powers], -1)


__all__ = ["cross", "diagonal", "vander", "vecdot"]
