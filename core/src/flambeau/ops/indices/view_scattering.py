"""Copies of a tensor in which the region that a view shows is replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import dim_of, need_tensor
from flambeau._dispatch.dispatch import wrap
from flambeau._tensor.tensor import Tensor
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import OPS


@public
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """`input` with one entry of a dimension replaced by `src`.

    Raises:
        RuntimeError: the shape of `src` is not that of the entry.

    >>> import flambeau as fb
    >>> fb.select_scatter(fb.zeros(2, 2), fb.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    return _replaced("select_scatter", input, src, lambda x: x.select(dim, index))


@public
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """`input` with the entries ``start:end:step`` of a dimension replaced by `src`.

    Raises:
        RuntimeError: the shape of `src` is not that of the slice.

    >>> import flambeau as fb
    >>> fb.slice_scatter(fb.zeros(4), fb.ones(2), 0, 1, 3)
    tensor([0., 1., 1., 0.])
    """
    d = dim_of(dim, need_tensor(input, "slice_scatter", "input").dim())
    key = (*[slice(None)] * d, slice(start, end, step))
    return _replaced("slice_scatter", input, src, lambda x: x[key])


@public
def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """`input` with a diagonal replaced by `src`.

    Raises:
        RuntimeError: the shape of `src` is not that of the diagonal.

    >>> import flambeau as fb
    >>> fb.diagonal_scatter(fb.zeros(2, 2), fb.ones(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return _replaced(
        "diagonal_scatter", input, src, lambda x: x.diagonal(offset=offset, dim1=dim1, dim2=dim2)
    )


@public
@takes_as_annotated
def as_strided_scatter(
    input: Tensor,
    src: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> Tensor:
    """`input` with the elements of a view by strides of its memory replaced by `src`.

    Raises:
        RuntimeError: the shape of `src` is not `size`, or an element would lie outside.

    >>> import flambeau as fb
    >>> fb.as_strided_scatter(fb.zeros(2, 2), fb.ones(2), (2,), (3,))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return _replaced(
        "as_strided_scatter", input, src, lambda x: x.as_strided(size, stride, storage_offset)
    )


def _replaced(name: str, input: Tensor, src: Tensor, region: Any) -> Tensor:
    x, be = need_tensor(input, name, "input"), input._be
    made = wrap(be, x._a, x.dtype) if be.strided else x.clone()
    view = region(made)
    if view.shape != need_tensor(src, name, "src").shape:
        raise RuntimeError(
            f"{name}: expected src to have a size equal to the region of input that it replaces, "
            f"{list(view.shape)}, but got {list(src.shape)}"
        )
    if be.strided and src._be is be and src.dtype is x.dtype and view._view[0] is made:
        _, op, args, title = view._view
        return OPS["view_put"].run(x, src, ((op, args, tuple(x._a.shape), title),))
    if be.strided:
        made = x.clone()
        view = region(made)
    view.copy_(src)
    return made
