"""Stacking: tensors side by side, one above the other, one behind the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from flambeau._dispatch.arguments import need_tensors
from flambeau._tensor.tensor import Tensor
from flambeau.ops.declaration.public import public
from flambeau.ops.shapes.movement import cat


def _at_least(x: Tensor, rank: int) -> Tensor:
    n = x.dim()
    if n >= rank:
        return x
    if n == 0:
        return x.reshape((1,) * rank)
    if rank == 2:
        return x.unsqueeze(0)
    return x.unsqueeze(0).unsqueeze(2) if n == 1 else x.unsqueeze(2)


def _all_at_least(tensors: tuple[Any, ...], rank: int) -> Tensor | tuple[Tensor, ...]:
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return _at_least(tensors[0], rank)
    return tuple(_at_least(x, rank) for x in need_tensors(tensors, f"atleast_{rank}d"))


@overload
def atleast_1d(tensor: Tensor, /) -> Tensor: ...
@overload
def atleast_1d(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]: ...
@overload
def atleast_1d(first: Tensor, second: Tensor, /, *rest: Tensor) -> tuple[Tensor, ...]: ...
@public(method=False)
def atleast_1d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Scalars as vectors of one element; other tensors as they are.

    >>> import flambeau as fb
    >>> fb.atleast_1d(fb.tensor(2))
    tensor([2])
    """
    return _all_at_least(tensors, 1)


@overload
def atleast_2d(tensor: Tensor, /) -> Tensor: ...
@overload
def atleast_2d(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]: ...
@overload
def atleast_2d(first: Tensor, second: Tensor, /, *rest: Tensor) -> tuple[Tensor, ...]: ...
@public(method=False)
def atleast_2d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Scalars and vectors as matrices of one row; other tensors as they are.

    >>> import flambeau as fb
    >>> fb.atleast_2d(fb.tensor([1, 2]))
    tensor([[1, 2]])
    """
    return _all_at_least(tensors, 2)


@overload
def atleast_3d(tensor: Tensor, /) -> Tensor: ...
@overload
def atleast_3d(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]: ...
@overload
def atleast_3d(first: Tensor, second: Tensor, /, *rest: Tensor) -> tuple[Tensor, ...]: ...
@public(method=False)
def atleast_3d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Scalars, vectors (n,) and matrices (m, n) in shapes (1, 1, 1), (1, n, 1) and (m, n, 1).

    >>> import flambeau as fb
    >>> fb.atleast_3d(fb.ones(2, 3)).shape
    torch.Size([2, 3, 1])
    """
    return _all_at_least(tensors, 3)


def _some(name: str, tensors: Sequence[Tensor]) -> list[Tensor]:
    found = need_tensors((tensors,), name)
    if not found:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return found


@public(method=False)
def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors side by side: along dimension 1, vectors along their only one.

    >>> import flambeau as fb
    >>> fb.hstack([fb.tensor([1]), fb.tensor([2, 3])])
    tensor([1, 2, 3])
    """
    parts = [_at_least(x, 1) for x in _some("hstack", tensors)]
    return cat(parts, 0 if parts[0].dim() == 1 else 1, out=out)


@public(method=False)
def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors one above the other, vectors as rows.

    >>> import flambeau as fb
    >>> fb.vstack([fb.tensor([1, 2]), fb.tensor([3, 4])])
    tensor([[1, 2],
            [3, 4]])
    """
    return cat([_at_least(x, 2) for x in _some("vstack", tensors)], 0, out=out)


row_stack = vstack


@public(method=False)
def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors one behind the other: along dimension 2.

    >>> import flambeau as fb
    >>> fb.dstack([fb.tensor([1, 2]), fb.tensor([3, 4])]).shape
    torch.Size([1, 2, 2])
    """
    return cat([_at_least(x, 3) for x in _some("dstack", tensors)], 2, out=out)


@public(method=False)
def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors side by side, vectors as columns.

    >>> import flambeau as fb
    >>> fb.column_stack([fb.tensor([1, 2]), fb.tensor([3, 4])])
    tensor([[1, 3],
            [2, 4]])
    """
    parts = [x if x.dim() > 1 else x.reshape(-1, 1) for x in _some("column_stack", tensors)]
    return cat(parts, 1, out=out)
