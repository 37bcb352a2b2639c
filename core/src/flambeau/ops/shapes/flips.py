"""Flips of rows and columns, and quarter turns; `flip` is in `movement`."""

from __future__ import annotations

from collections.abc import Sequence

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import dim_of, need_tensor
from flambeau._tensor.tensor import Tensor
from flambeau._types.memory_format import contiguous_format
from flambeau.ops.declaration.public import public
from flambeau.ops.shapes.movement import flip


@public
def fliplr(input: Tensor) -> Tensor:
    """The columns in reverse order.

    >>> import flambeau as fb
    >>> fb.fliplr(fb.tensor([[1, 2]]))
    tensor([[2, 1]])
    """
    if need_tensor(input, "fliplr", "input").dim() < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, (1,))


@public
def flipud(input: Tensor) -> Tensor:
    """The rows in reverse order.

    >>> import flambeau as fb
    >>> fb.flipud(fb.tensor([1, 2]))
    tensor([2, 1])
    """
    if need_tensor(input, "flipud", "input").dim() < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, (0,))


@public
@takes_as_annotated
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """The tensor turned by `k` quarter turns, from the first of two dimensions to the second.

    Raises:
        RuntimeError: `dims` are not two different dimensions.
        IndexError: a dimension is out of range.

    >>> import flambeau as fb
    >>> fb.rot90(fb.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    x = need_tensor(input, "rot90", "input")
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if x.dim() < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {x.dim()}")
    a, b = (dim_of(d, x.dim()) for d in dims)
    if a == b:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    quarter = k % 4
    if quarter == 0:
        return x.clone(memory_format=contiguous_format)
    if quarter == 2:
        return flip(x, (a, b))
    return flip(x, (b if quarter == 1 else a,)).transpose(a, b)
