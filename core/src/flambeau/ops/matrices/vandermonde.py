"""The Vandermonde matrix."""

from __future__ import annotations

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.ops.declaration.public import public
from flambeau.ops.shapes.movement import stack


@public(method=False)
@takes_as_annotated
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The Vandermonde matrix: powers of the elements of a vector as columns, highest first.

    Raises:
        RuntimeError: `x` is no vector, or `N` is negative.

    >>> import flambeau as fb
    >>> fb.vander(fb.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    x = need_tensor(x, "vander", "x")
    if x.dim() != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x.shape[0] if N is None else N
    if n < 0:
        raise RuntimeError("N must be non-negative.")
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        x = cast(x, D.int64)
    result = x.new_empty((x.shape[0], n))  # refuses what has no room, before the columns are made
    if not n:
        return result
    if not x.shape[0]:
        return x.unsqueeze(1).expand(0, n).clone()
    columns = [x.new_ones(tuple(x.shape))]
    for _ in range(n - 1):
        columns.append(columns[-1] * x)
    columns = columns[:n] if increasing else columns[:n][::-1]
    return stack(columns, 1)
