"""Copies of views: what the view of the same name shows, row-major in memory of its own."""

from __future__ import annotations

from collections.abc import Sequence

from flambeau._dispatch.arguments import dim_of, need_tensor
from flambeau._tensor.tensor import Tensor
from flambeau._types.dtype import dtype as DType
from flambeau._types.memory_format import contiguous_format
from flambeau._writes.out import deliver
from flambeau.ops.declaration.public import public
from flambeau.ops.pointwise.complexes import view_as_complex, view_as_real
from flambeau.ops.shapes.movement import (
    alias,
    as_strided,
    diagonal,
    expand,
    narrow,
    permute,
    reshape,
    select,
    squeeze,
    t,
    transpose,
    unfold,
    unsqueeze,
    view,
)
from flambeau.ops.shapes.splitting import split, unbind

Dims = Sequence[int]


def _copy(part: Tensor, out: Tensor | None, source: Tensor) -> Tensor:
    whole = part.clone(memory_format=contiguous_format)
    return deliver(whole, out, source, share="anything", exact=True)


def _copies(
    name: str, parts: Sequence[Tensor], out: Sequence[Tensor] | None, source: Tensor
) -> tuple[Tensor, ...]:
    if out is not None and len(out) != len(parts):
        raise RuntimeError(
            f"{name}_out() expected an out= argument of size {len(parts)}, got size {len(out)}."
        )
    places = [None] * len(parts) if out is None else out
    return tuple(_copy(part, o, source) for part, o in zip(parts, places, strict=True))


@public(method=False)
def alias_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`alias` that shares no memory.

    Raises:
        RuntimeError: as `alias` does.

    >>> import flambeau as fb
    >>> fb.alias_copy(fb.tensor([1, 2]))
    tensor([1, 2])
    """
    need_tensor(input, "alias_copy", "input")
    return _copy(alias(input), out, input)


@public(method=False)
def as_strided_copy(
    input: Tensor,
    size: Dims,
    stride: Dims,
    storage_offset: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`as_strided` that shares no memory.

    Raises:
        RuntimeError: as `as_strided` does.

    >>> import flambeau as fb
    >>> fb.as_strided_copy(fb.arange(6), (2, 2), (1, 2))
    tensor([[0, 2],
            [1, 3]])
    """
    need_tensor(input, "as_strided_copy", "input")
    return _copy(as_strided(input, size, stride, storage_offset), out, input)


@public(method=False)
def detach_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy without history.

    >>> import flambeau as fb
    >>> fb.detach_copy(fb.ones(2, requires_grad=True))
    tensor([1., 1.])
    """
    return _copy(need_tensor(input, "detach_copy", "input").detach(), out, input)


@public(method=False)
def diagonal_copy(
    input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1, *, out: Tensor | None = None
) -> Tensor:
    """`diagonal` that shares no memory.

    Raises:
        RuntimeError: as `diagonal` does.

    >>> import flambeau as fb
    >>> fb.diagonal_copy(fb.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    need_tensor(input, "diagonal_copy", "input")
    return _copy(diagonal(input, offset, dim1, dim2), out, input)


@public(method=False)
def expand_copy(
    input: Tensor, size: Dims, *, implicit: bool = False, out: Tensor | None = None
) -> Tensor:
    """`expand` that shares no memory.

    Raises:
        RuntimeError: as `expand` does.

    >>> import flambeau as fb
    >>> fb.expand_copy(fb.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    need_tensor(input, "expand_copy", "input")
    return _copy(expand(input, size), out, input)


@public
def narrow_copy(
    input: Tensor, dim: int, start: int | Tensor, length: int, *, out: Tensor | None = None
) -> Tensor:
    """`narrow` that shares no memory.

    Raises:
        RuntimeError: as `narrow` does.

    >>> import flambeau as fb
    >>> fb.narrow_copy(fb.arange(4), 0, 1, 2)
    tensor([1, 2])
    """
    need_tensor(input, "narrow_copy", "input")
    return _copy(narrow(input, dim, start, length), out, input)


@public(method=False)
def permute_copy(input: Tensor, dims: Dims, *, out: Tensor | None = None) -> Tensor:
    """`permute` that shares no memory.

    Raises:
        RuntimeError: as `permute` does.

    >>> import flambeau as fb
    >>> fb.permute_copy(fb.tensor([[1, 2]]), (1, 0))
    tensor([[1],
            [2]])
    """
    need_tensor(input, "permute_copy", "input")
    return _copy(permute(input, dims), out, input)


@public(method=False)
def select_copy(input: Tensor, dim: int, index: int, *, out: Tensor | None = None) -> Tensor:
    """`select` that shares no memory.

    Raises:
        RuntimeError: as `select` does.

    >>> import flambeau as fb
    >>> fb.select_copy(fb.tensor([[1, 2], [3, 4]]), 0, 1)
    tensor([3, 4])
    """
    need_tensor(input, "select_copy", "input")
    return _copy(select(input, dim, index), out, input)


@public(method=False)
def slice_copy(
    input: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The entries ``start:end:step`` of dimension `dim`, copied.

    Raises:
        IndexError: there is no such dimension.
        ValueError: the step is not positive.

    >>> import flambeau as fb
    >>> fb.slice_copy(fb.arange(6), 0, 1, None, 2)
    tensor([1, 3, 5])
    """
    x = need_tensor(input, "slice_copy", "input")
    if not x.dim():
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    key = (slice(None),) * dim_of(dim, x.dim()) + (slice(start, end, step),)
    return _copy(x[key], out, x)


@public(method=False)
def split_copy(
    input: Tensor, split_size: int, dim: int = 0, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """`split` into parts that share no memory; `out` has a tensor for each.

    Raises:
        RuntimeError: as `split` does, or `out` has not as many tensors.

    >>> import flambeau as fb
    >>> fb.split_copy(fb.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    need_tensor(input, "split_copy", "input")
    return _copies("split_copy", split(input, split_size, dim), out, input)


@public(method=False)
def split_with_sizes_copy(
    input: Tensor, split_sizes: Dims, dim: int = 0, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """`split_with_sizes` into parts that share no memory; `out` has a tensor for each.

    Raises:
        RuntimeError: as `split_with_sizes` does, or `out` has not as many tensors.

    >>> import flambeau as fb
    >>> fb.split_with_sizes_copy(fb.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))
    """
    need_tensor(input, "split_with_sizes_copy", "input")
    return _copies("split_with_sizes_copy", split(input, list(split_sizes), dim), out, input)


@public(method=False)
def squeeze_copy(
    input: Tensor, dim: int | Dims | None = None, *, out: Tensor | None = None
) -> Tensor:
    """`squeeze` that shares no memory.

    Raises:
        RuntimeError: as `squeeze` does.

    >>> import flambeau as fb
    >>> fb.squeeze_copy(fb.ones(2, 1)).shape
    torch.Size([2])
    """
    need_tensor(input, "squeeze_copy", "input")
    return _copy(squeeze(input, dim), out, input)


@public(method=False)
def t_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`t` that shares no memory.

    Raises:
        RuntimeError: as `t` does.

    >>> import flambeau as fb
    >>> fb.t_copy(fb.tensor([[1, 2]]))
    tensor([[1],
            [2]])
    """
    need_tensor(input, "t_copy", "input")
    return _copy(t(input), out, input)


@public(method=False)
def transpose_copy(input: Tensor, dim0: int, dim1: int, *, out: Tensor | None = None) -> Tensor:
    """`transpose` that shares no memory.

    Raises:
        RuntimeError: as `transpose` does.

    >>> import flambeau as fb
    >>> fb.transpose_copy(fb.tensor([[1, 2]]), 0, 1)
    tensor([[1],
            [2]])
    """
    need_tensor(input, "transpose_copy", "input")
    return _copy(transpose(input, dim0, dim1), out, input)


@public(method=False)
def unbind_copy(
    input: Tensor, dim: int = 0, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """`unbind` into parts that share no memory; `out` has a tensor for each.

    Raises:
        RuntimeError: as `unbind` does, or `out` has not as many tensors.

    >>> import flambeau as fb
    >>> fb.unbind_copy(fb.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    need_tensor(input, "unbind_copy", "input")
    return _copies("unbind_copy", unbind(input, dim), out, input)


@public(method=False)
def unfold_copy(
    input: Tensor, dimension: int, size: int, step: int, *, out: Tensor | None = None
) -> Tensor:
    """`unfold` that shares no memory.

    Raises:
        RuntimeError: as `unfold` does.

    >>> import flambeau as fb
    >>> fb.unfold_copy(fb.arange(4), 0, 2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    need_tensor(input, "unfold_copy", "input")
    return _copy(unfold(input, dimension, size, step), out, input)


@public(method=False)
def unsqueeze_copy(input: Tensor, dim: int, *, out: Tensor | None = None) -> Tensor:
    """`unsqueeze` that shares no memory.

    Raises:
        RuntimeError: as `unsqueeze` does.

    >>> import flambeau as fb
    >>> fb.unsqueeze_copy(fb.tensor([1, 2]), 0)
    tensor([[1, 2]])
    """
    need_tensor(input, "unsqueeze_copy", "input")
    return _copy(unsqueeze(input, dim), out, input)


@public(method=False)
def view_as_complex_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`view_as_complex` that shares no memory.

    Raises:
        RuntimeError: as `view_as_complex` does.

    >>> import flambeau as fb
    >>> fb.view_as_complex_copy(fb.tensor([1.0, 2.0]))
    tensor(1.+2.j)
    """
    need_tensor(input, "view_as_complex_copy", "input")
    return _copy(view_as_complex(input), out, input)


@public(method=False)
def view_as_real_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`view_as_real` that shares no memory.

    Raises:
        RuntimeError: as `view_as_real` does.

    >>> import flambeau as fb
    >>> fb.view_as_real_copy(fb.tensor(1 + 2j))
    tensor([1., 2.])
    """
    need_tensor(input, "view_as_real_copy", "input")
    return _copy(view_as_real(input), out, input)


@public(method=False)
def view_copy(input: Tensor, size: Sequence[int], *, out: Tensor | None = None) -> Tensor:
    """The elements in another shape, or, if `size` is a dtype, the bytes as that dtype; copied.

    Raises:
        RuntimeError: the number of elements differs.

    >>> import flambeau as fb
    >>> fb.view_copy(fb.arange(4), (2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    x = need_tensor(input, "view_copy", "input")
    return _copy(view(x, dtype=size) if isinstance(size, DType) else reshape(x, size), out, x)
