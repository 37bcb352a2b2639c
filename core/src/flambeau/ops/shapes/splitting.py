"""Splitting: views of consecutive parts of a dimension."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, cast

from flambeau._dispatch.arguments import checked_sizes, dim_of, need_input, need_number, need_tensor
from flambeau._dispatch.bound import bind
from flambeau._dispatch.keywords import documented
from flambeau._memory.views import make_slices
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.hints import Ints
from flambeau.ops.creation.creation import unfilled
from flambeau.ops.declaration.public import public
from flambeau.ops.shapes.movement import _full, narrow

_MANY, _BYTES_OF_TENSOR = 1 << 20, 512


@public
def tensor_split(
    input: Tensor,
    indices_or_sections: Ints | Tensor | None = None,
    dim: int = 0,
    *,
    indices: Sequence[int] | Tensor | None = None,
    sections: int | None = None,
    tensor_indices_or_sections: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """Views of the parts of a dimension: about equal ones, or those between given indices.

    Args:
        indices_or_sections: a number of parts, of which the first are longer by one where it does
            not divide the size; or indices, which may lie beyond the end. Either as a tensor too.
        indices: the same by another name, as are `sections` and `tensor_indices_or_sections`.

    Raises:
        RuntimeError: the tensor is 0-d, or there are no parts.
        TypeError: not one of the four is given.

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
    forms = indices_or_sections, indices, sections, tensor_indices_or_sections
    given = [form for form in forms if form is not None]
    if len(given) != 1:
        raise TypeError(
            f"tensor_split(): one of indices_or_sections, indices and sections, got {len(given)}"
        )
    how: Any = given[0]
    if isinstance(how, Tensor):
        how = how.tolist()
    if isinstance(how, (list, tuple)):
        edges = [slice(None, operator.index(i)).indices(n)[1] for i in how]
        starts, stops = [0, *edges], [*edges, n]
    else:
        parts = operator.index(how)
        if parts <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {parts}")
        _need_room(parts)
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
    parts = None if isinstance(how, (list, tuple, Tensor)) else need_number(how, name, "sections")
    if parts is not None and (parts <= 0 or x.shape[dim] % parts):
        raise RuntimeError(
            f"torch.{name} attempted to split along dimension {dim}, but the size of the "
            f"dimension {x.shape[dim]} is not divisible by the split_size {how}!"
        )
    return tensor_split(x, how, dim)


@public
def hsplit(input: Tensor, indices_or_sections: Ints | Tensor) -> tuple[Tensor, ...]:
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
def vsplit(input: Tensor, indices_or_sections: Ints | Tensor) -> tuple[Tensor, ...]:
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
def dsplit(input: Tensor, indices_or_sections: Ints | Tensor) -> tuple[Tensor, ...]:
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
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Views of consecutive parts of a dimension, of the given sizes.

    Raises:
        RuntimeError: the sizes do not add up to the size of the dimension.

    >>> import flambeau as fb
    >>> fb.split_with_sizes(fb.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))
    """
    return split(input, list(split_sizes), dim)


@public
def unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`split`; its results are views here, and writes to them are seen by `input`.

    >>> import flambeau as fb
    >>> fb.unsafe_split(fb.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    return split(input, split_size, dim)


@public
def unsafe_split_with_sizes(
    input: Tensor, split_sizes: Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """`split_with_sizes`; see `unsafe_split`.

    >>> import flambeau as fb
    >>> fb.unsafe_split_with_sizes(fb.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))
    """
    return split(input, split_sizes, dim)


@public
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`chunk`; see `unsafe_split`.

    >>> import flambeau as fb
    >>> fb.unsafe_chunk(fb.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """
    return chunk(input, chunks, dim)


@public(names={"split_size": "split_size_or_sections"})
def split(tensor: Tensor, split_size_or_sections: Ints, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of consecutive pieces: of one size (the last may be smaller) or of given sizes.

    Raises:
        RuntimeError: the sizes do not add up.

    >>> import flambeau as fb
    >>> fb.split(fb.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    x = need_input(tensor, "split", "tensor")
    shape = x._a.shape
    if not shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    d = dim_of(dim, len(shape))
    n = shape[d]
    if isinstance(split_size_or_sections, (list, tuple)):
        parts = [operator.index(s) for s in split_size_or_sections]
        if sum(parts) != n or min(parts, default=0) < 0:
            raise RuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size "
                f"at dimension {d}), but got split_sizes={parts}"
            )
        title = "SplitWithSizes"
    else:
        size = operator.index(cast(int, split_size_or_sections))
        if size < 0:
            raise RuntimeError(
                f"split expects split_size be non-negative, but got split_size={size}"
            )
        if size == 0 and n != 0:
            raise RuntimeError(
                f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}"
            )
        parts = _equal_parts(n, size)
        title = "Split"
    return _pieces(x, d, parts, title)


def _need_room(count: int) -> None:
    """Raise unless there is memory for so many tensors."""
    if count > _MANY:
        unfilled(bind("cpu"), checked_sizes((count, _BYTES_OF_TENSOR)), D.uint8)


def _equal_parts(n: int, size: int) -> list[int]:
    if not (size and n):
        return [n]
    _need_room(n // size)
    parts = [size] * (n // size)
    return [*parts, n % size] if n % size else parts


def _pieces(x: Tensor, d: int, lengths: list[int], title: str) -> tuple[Tensor, ...]:
    """The views of consecutive pieces of a dimension."""
    lead = tuple([_full(n) for n in x._a.shape[:d]]) if d else ()
    regions, start = [], 0
    for length in lengths:
        stop = start + length
        regions.append((*lead, slice(start, stop, 1)))
        start = stop
    return make_slices(x, regions, title)


@public
@documented({"tensor": "input"})
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` views of equal size along `dim` (the last may be smaller).

    >>> import flambeau as fb
    >>> fb.chunk(fb.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    x = need_input(input, "chunk", "input")
    shape = x._a.shape
    if not shape:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    chunks = operator.index(chunks)
    if not 0 < chunks < 1 << 63:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    d = dim_of(dim, len(shape))
    n = shape[d]
    size = -(-n // chunks)
    if size == 0:
        _need_room(chunks)
        return split(x, [0] * chunks, d)
    return _pieces(x, d, _equal_parts(n, size), "Split")


@public
@documented({"tensor": "input"})
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The views at each index of dimension `dim`.

    >>> import flambeau as fb
    >>> fb.unbind(fb.tensor([1, 2]))
    (tensor(1), tensor(2))
    """
    x = need_input(input, "unbind", "input")
    shape = x._a.shape
    if not shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    d = dim_of(dim, len(shape))
    _need_room(shape[d])
    lead = [_full(n) for n in shape[:d]]
    return make_slices(x, [(*lead, i) for i in range(shape[d])], "Unbind")
