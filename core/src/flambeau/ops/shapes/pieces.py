"""Cutting tensors into pieces, putting pieces in place, and building tensors from blocks."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from math import prod
from typing import Any

from flambeau._dispatch import arguments as _rules
from flambeau._dispatch.arguments import dim_of, need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.size import Size
from flambeau._writes.out import deliver
from flambeau.ops.creation.creation import empty
from flambeau.ops.declaration.public import public
from flambeau.ops.indices.indexing import nonzero, sort
from flambeau.ops.shapes.movement import cat, narrow


@public
def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of the parts of a dimension: about equal ones, or those between given indices.

    Args:
        indices_or_sections: a number of parts, of which the first are longer by one where it does
            not divide the size; or indices, which may lie beyond the end. Either as a tensor too.

    Raises:
        RuntimeError: the tensor is 0-d, or there are no parts.

    >>> import flambeau as fb
    >>> fb.tensor_split(fb.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    >>> fb.tensor_split(fb.arange(5), (1, 4))
    (tensor([0]), tensor([1, 2, 3]), tensor([4]))
    """
    x = need_tensor(input, "tensor_split", "input")
    if not x.dim():
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )
    d = dim_of(dim, x.dim())
    n = x.shape[d]
    how = indices_or_sections
    if isinstance(how, Tensor):
        how = how.tolist()
    if isinstance(how, (list, tuple)):
        edges = [slice(None, operator.index(i)).indices(n)[1] for i in how]
        starts, stops = [0, *edges], [*edges, n]
    else:
        parts = operator.index(how)
        if parts <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {parts}")
        small, extra = divmod(n, parts)
        stops = [(i + 1) * small + min(i + 1, extra) for i in range(parts)]
        starts = [0, *stops[:-1]]
    return tuple(narrow(x, d, a, max(b - a, 0)) for a, b in zip(starts, stops, strict=True))


def _along(name: str, input: Tensor, how: Any, dim: int, least: int) -> tuple[Tensor, ...]:
    x = need_tensor(input, name, "input")
    if x.dim() < least:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {least} dimension"
            f"{'s' if least > 1 else ''}, but got a tensor with {x.dim()} dimensions!"
        )
    if not isinstance(how, (list, tuple, Tensor)) and (how <= 0 or x.shape[dim] % how):
        raise RuntimeError(
            f"torch.{name} attempted to split along dimension {dim}, but the size of the "
            f"dimension {x.shape[dim]} is not divisible by the split_size {how}!"
        )
    return tensor_split(x, how, dim)


@public
def hsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """`tensor_split` into equal parts along dimension 1 (0 for vectors).

    Raises:
        RuntimeError: the tensor is 0-d, or the number of parts does not divide the size.

    >>> import flambeau as fb
    >>> fb.hsplit(fb.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """
    x = need_tensor(input, "hsplit", "input")
    return _along("hsplit", x, indices_or_sections, 1 if x.dim() > 1 else 0, 1)


@public
def vsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """`tensor_split` into equal parts along dimension 0.

    Raises:
        RuntimeError: the tensor has fewer than two dimensions, or the number of parts does not
            divide the size.

    >>> import flambeau as fb
    >>> fb.vsplit(fb.eye(2), 2)
    (tensor([[1., 0.]]), tensor([[0., 1.]]))
    """
    return _along("vsplit", input, indices_or_sections, 0, 2)


@public
def dsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """`tensor_split` into equal parts along dimension 2.

    Raises:
        RuntimeError: the tensor has fewer than three dimensions, or the number of parts does not
            divide the size.

    >>> import flambeau as fb
    >>> [part.shape for part in fb.dsplit(fb.ones(1, 1, 4), 2)]
    [torch.Size([1, 1, 2]), torch.Size([1, 1, 2])]
    """
    return _along("dsplit", input, indices_or_sections, 2, 3)


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


def _replaced(name: str, input: Tensor, src: Tensor, region: Any) -> Tensor:
    made = need_tensor(input, name, "input").clone()
    view = region(made)
    if view.shape != need_tensor(src, name, "src").shape:
        raise RuntimeError(
            f"{name}: expected src to have a size equal to the region of input that it replaces, "
            f"{list(view.shape)}, but got {list(src.shape)}"
        )
    view.copy_(src)
    return made


@public
def argwhere(input: Tensor) -> Tensor:
    """The indices of the elements that are not zero, one per row.

    >>> import flambeau as fb
    >>> fb.argwhere(fb.tensor([0, 7, 8]))
    tensor([[1],
            [2]])
    """
    return nonzero(input)


@public
def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements in ascending order along the first dimension.

    >>> import flambeau as fb
    >>> fb.msort(fb.tensor([3, 1, 2]))
    tensor([1, 2, 3])
    """
    return deliver(sort(input, 0).values, out, input, exact=True)


@public
def kron(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Kronecker product: `other` scaled by each element of `input`, as blocks.

    >>> import flambeau as fb
    >>> fb.kron(fb.tensor([1, 10]), fb.tensor([1, 2]))
    tensor([ 1,  2, 10, 20])
    """
    x, y = need_tensor(input, "kron", "input"), need_tensor(other, "kron", "other")
    rank = max(x.dim(), y.dim())
    a = (*[1] * (rank - x.dim()), *x.shape)
    b = (*[1] * (rank - y.dim()), *y.shape)
    left = x.reshape(tuple(n for size in a for n in (size, 1)))
    right = y.reshape(tuple(n for size in b for n in (1, size)))
    shape = tuple(n * m for n, m in zip(a, b, strict=True))
    return deliver((left * right).reshape(shape), out, input, other, share="nothing")


@public(method=False)
def block_diag(*tensors: Any) -> Tensor:
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
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The coordinates of flat indices into a row-major tensor of `shape`.

    Raises:
        TypeError: the indices are no integers.
        ValueError: a size is negative.

    >>> import flambeau as fb
    >>> fb.unravel_index(fb.tensor([1, 5]), (2, 3))
    (tensor([0, 1]), tensor([1, 2]))
    """
    i = need_tensor(indices, "unravel_index", "indices")
    if i.dtype.category != 1 or i.dtype is D.bool_:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {i.dtype}")
    size = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(n < 0 for n in size):
        raise ValueError(f"'shape' cannot have negative values, but got {size}")
    found, step = [], prod(size)
    for n in size:
        step = step // n if n else 0
        found.append(i // step % n if step else i * 0)
    return tuple(found)


@public(method=False)
def broadcast_shapes(*shapes: Any) -> Size:
    """The shape to which the given shapes (or sizes of vectors) broadcast together.

    Raises:
        RuntimeError: they do not fit.

    >>> import flambeau as fb
    >>> fb.broadcast_shapes((2, 1), (3,), 1)
    torch.Size([2, 3])
    """
    tuples: list[Sequence[int]] = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    if any(n < 0 for n in itertools.chain(*tuples)):
        raise RuntimeError(f"Trying to create tensor with negative dimension: {tuples}")
    result: tuple[int, ...] = ()
    for shape in tuples:
        result = tuple(_rules.broadcast_shapes(result, tuple(shape)))
    return Size(result)
