"""Coordinates: grids of points, and all tuples and choices of elements."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import need_tensor, need_tensors
from flambeau._dispatch.keywords import documented
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.ops.creation.creation import ones
from flambeau.ops.creation.ranges import arange
from flambeau.ops.declaration.public import public
from flambeau.ops.shapes.movement import stack


@public(method=False)
def meshgrid(
    *tensors: Tensor | Sequence[Tensor], indexing: str | None = None
) -> tuple[Tensor, ...]:
    """Coordinates on a grid: the i-th result varies along dimension i as the i-th vector does.

    With ``indexing="xy"`` the first two dimensions are exchanged. The results are expanded views.

    Raises:
        RuntimeError: an input is no vector, or dtypes differ, or `indexing` is neither "ij" nor
            "xy".

    >>> import flambeau as fb
    >>> fb.meshgrid(fb.tensor([1, 2]), fb.tensor([3, 4]), indexing="ij")[0]
    tensor([[1, 1],
            [2, 2]])
    """
    parts = need_tensors(tensors, "meshgrid")
    if not parts:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(
            f"meshgrid: indexing must be one of 'xy' or 'ij', but received: {indexing!r}"
        )
    for x in parts:
        if x.dim() > 1:
            raise RuntimeError(
                f"meshgrid: Expected 0D or 1D tensor in the tensor list but got: {x.dim()}D"
            )
        if x.dtype is not parts[0].dtype:
            raise RuntimeError(
                "meshgrid expects all tensors to have the same dtype, got "
                f"{parts[0].dtype} and {x.dtype}"
            )
    exchanged = indexing == "xy" and len(parts) > 1
    if exchanged:
        parts[:2] = parts[1::-1]
    shape = tuple(x.numel() for x in parts)
    grids = [
        x.reshape(tuple(n if j == i else 1 for j, n in enumerate(shape))).expand(shape)
        for i, x in enumerate(parts)
    ]
    if exchanged:
        grids[:2] = grids[1::-1]
    return tuple(grids)


@public(method=False)
def cartesian_prod(*tensors: Tensor | Sequence[Tensor]) -> Tensor:
    """All tuples with one element of each vector, as rows in lexicographic order.

    >>> import flambeau as fb
    >>> fb.cartesian_prod(fb.tensor([1, 2]), fb.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    parts = need_tensors(tensors, "cartesian_prod")
    for x in parts:
        if x.dim() != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(x.shape)}")
    if len(parts) == 1:
        return parts[0]
    return stack([g.reshape(-1) for g in meshgrid(*parts, indexing="ij")], 1)


@public(method=False)
@documented({"tensor": "input"})
@takes_as_annotated
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of `r` elements of a vector, as rows in lexicographic order of their places.

    >>> import flambeau as fb
    >>> fb.combinations(fb.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    x = need_tensor(input, "combinations", "input")
    if x.dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(x.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return x.new_empty((0,))
    if r > 64:
        raise RuntimeError(f"combinations of {r} elements need more than 64 dimensions")
    places = arange(x.numel(), device=x.device)
    grids = meshgrid(*[places] * r, indexing="ij")
    chosen = ones((x.numel(),) * r, dtype=D.bool_, device=x.device)
    for before, after in itertools.pairwise(grids):
        chosen = chosen & (before <= after if with_replacement else before < after)
    return stack([g.masked_select(chosen) for g in meshgrid(*[x] * r, indexing="ij")], 1)
