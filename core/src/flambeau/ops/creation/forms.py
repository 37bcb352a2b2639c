"""Short forms of other ops: splitting by sizes, summing to a shape, comparing shapes."""

from __future__ import annotations

from typing import Any

from flambeau._dispatch.arguments import broadcast_shapes, need_tensor, sizes
from flambeau._dispatch.dispatch import wrap
from flambeau._tensor.tensor import Tensor
from flambeau._types.dtype import dtype as DType
from flambeau._types.dtype import get_default_dtype
from flambeau._writes.out import deliver
from flambeau.ops.creation.creation import empty, full
from flambeau.ops.declaration.public import public
from flambeau.ops.pointwise.elementwise import replaced
from flambeau.ops.reductions.reduction import norm
from flambeau.ops.shapes.movement import chunk, split


@public(method=False)
def empty_strided(
    size: Any,
    stride: Any,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """An unspecified tensor of shape `size` whose neighbours are `stride` elements apart.

    On devices without strides the result is row-major.

    Raises:
        RuntimeError: lengths differ, or a size or stride is negative.

    >>> import flambeau as fb
    >>> fb.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    shape, strides = tuple(size), tuple(stride)
    if len(shape) != len(strides):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides "
            f"({len(strides)})"
        )
    if any(n < 0 for n in (*shape, *strides)):
        raise RuntimeError(
            f"empty_strided: sizes {list(shape)} and strides {list(strides)} must not be negative"
        )
    reach = 0 if 0 in shape else 1 + sum(s * (n - 1) for n, s in zip(shape, strides, strict=True))
    memory = empty((reach,), dtype=dtype, layout=layout, device=device)
    be = memory._be
    if be.strided:
        made = wrap(be, be.backend.as_strided(memory._a, shape, strides, 0), memory.dtype)
    else:
        made = empty(shape, dtype=dtype, device=device)
    return made.requires_grad_(requires_grad)


@public(method=False)
def scalar_tensor(
    s: Any,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A 0-d tensor holding the number `s`, of the default dtype unless another is given.

    >>> import flambeau as fb
    >>> fb.scalar_tensor(2)
    tensor(2.)
    """
    dtype = get_default_dtype() if dtype is None else dtype
    return full((), s, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


@public
def hardshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """x where abs(x) > `lambd`, else 0.

    Raises:
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.hardshrink(fb.tensor([-1.0, 0.2]))
    tensor([-1.,  0.])
    """
    x = need_tensor(input, "hardshrink", "input")
    if not x.dtype.is_floating_point:
        raise NotImplementedError(f"hardshrink is not implemented for {x.dtype}: use a float dtype")
    return deliver(replaced(x, (x >= -lambd) & (x <= lambd), 0.0), out, input, exact=True)


@public
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape.

    >>> import flambeau as fb
    >>> fb.is_same_size(fb.ones(2), fb.zeros(2))
    True
    """
    need_tensor(input, "is_same_size", "input")
    need_tensor(other, "is_same_size", "other")
    return need_tensor(input, "is_same_size", "input").shape == other.shape


@public
def is_distributed(input: Tensor) -> bool:
    """Whether a tensor is spread over processes: never, tensors live in one.

    >>> import flambeau as fb
    >>> fb.is_distributed(fb.ones(2))
    False
    """
    need_tensor(input, "is_distributed", "input")
    return False


@public
def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of consecutive parts of a dimension, of the given sizes.

    Raises:
        RuntimeError: the sizes do not add up to the size of the dimension.

    >>> import flambeau as fb
    >>> fb.split_with_sizes(fb.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))
    """
    return split(input, list(split_sizes), dim)


@public
def sum_to_size(input: Tensor, size: Any) -> Tensor:
    """`input` summed over the dimensions along which `size` would be broadcast to its shape.

    Raises:
        RuntimeError: `size` does not broadcast to the shape.

    >>> import flambeau as fb
    >>> fb.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    x = need_tensor(input, "sum_to_size", "input")
    shape, have = sizes((size,), "size"), tuple(x.shape)
    try:
        fits = broadcast_shapes(shape, have) == have
    except RuntimeError:
        fits = False
    if not fits:
        raise RuntimeError(f"size {list(shape)} is not expandable to size {list(have)}.")
    lead = len(have) - len(shape)
    dims = [*range(lead), *(i + lead for i, n in enumerate(shape) if n == 1 != have[i + lead])]
    return x.sum(dims, keepdim=True).reshape(shape) if dims else x


@public(method=False)
def fill(input: Tensor, value: Any) -> Tensor:
    """`value`, a number or a 0-d tensor, everywhere in a tensor of the shape and dtype of `input`.

    >>> import flambeau as fb
    >>> fb.fill(fb.zeros(2), 3)
    tensor([3., 3.])
    """
    return need_tensor(input, "fill", "input").clone().fill_(value)


@public(method=False)
def frobenius_norm(
    input: Tensor, dim: Any = (), keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The root of the sum of squares, of all elements or along dimensions.

    >>> import flambeau as fb
    >>> fb.frobenius_norm(fb.ones(2, 2))
    tensor(2.)
    """
    return norm(input, 2, dim, keepdim, out=out)


@public(method=False)
def nuclear_norm(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The sum of the singular values of the matrices in two dimensions, by default the last.

    Raises:
        RuntimeError: the input has fewer than two dimensions.

    >>> import flambeau as fb
    >>> fb.nuclear_norm(fb.eye(3))
    tensor(3.)
    """
    if isinstance(dim, bool):  # nuclear_norm(input, keepdim)
        dim, keepdim = None, dim
    if dim is None:
        if need_tensor(input, "nuclear_norm", "input").dim() < 2:
            raise RuntimeError(
                f"nuclear_norm: the input must have at least 2 dimensions, got {input.dim()}"
            )
        dim = (input.dim() - 2, input.dim() - 1)
    return norm(input, "nuc", dim, keepdim, out=out)


@public
def unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`split`; its results are views here, and writes to them are seen by `input`.

    >>> import flambeau as fb
    >>> fb.unsafe_split(fb.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    return split(input, split_size, dim)


@public
def unsafe_split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
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
