"""Broadcasting: shapes and tensors that fit each other, and the sum that undoes it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from flambeau._dispatch import arguments as rules
from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import need_list, need_tensor, sizes
from flambeau._tensor.tensor import Tensor
from flambeau._types.hints import Ints
from flambeau._types.size import Size
from flambeau.ops.declaration.public import public
from flambeau.ops.shapes.movement import expand


@public(method=False)
@takes_as_annotated
def broadcast_shapes(*shapes: Ints) -> Size:
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
        result = tuple(rules.broadcast_shapes(result, tuple(shape)))
    return Size(result)


@public(method=False)
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """All tensors expanded to their common shape.

    >>> import flambeau as fb
    >>> [x.shape for x in fb.broadcast_tensors(fb.zeros(3), fb.zeros(2, 1))]
    [torch.Size([2, 3]), torch.Size([2, 3])]
    """
    for x in tensors:
        need_tensor(x, "broadcast_tensors", "tensors")
    shape = rules.broadcast_shapes(*[tuple(x._a.shape) for x in tensors])
    return tuple(x if tuple(x._a.shape) == shape else expand(x, shape) for x in tensors)


@public(variadic="size")
def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """``input.expand(size)``.

    >>> import flambeau as fb
    >>> fb.broadcast_to(fb.zeros(3), (2, 3)).shape
    torch.Size([2, 3])
    """
    return expand(input, need_list(size, "broadcast_to", "size"))


@public
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """``input.expand(other.shape)``.

    >>> import flambeau as fb
    >>> fb.zeros(1).expand_as(fb.zeros(2, 3)).shape
    torch.Size([2, 3])
    """
    need_tensor(other, "expand_as", "other")
    return Tensor.expand(need_tensor(input, "expand_as", "input"), tuple(other._a.shape))


@public(variadic="size")
def sum_to_size(input: Tensor, size: Sequence[int]) -> Tensor:
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
        fits = rules.broadcast_shapes(shape, have) == have
    except RuntimeError:
        fits = False
    if not fits:
        raise RuntimeError(f"size {list(shape)} is not expandable to size {list(have)}.")
    lead = len(have) - len(shape)
    dims = [*range(lead), *(i + lead for i, n in enumerate(shape) if n == 1 != have[i + lead])]
    if not shape:
        return x.sum()
    return x.sum(dims, keepdim=True).reshape(shape) if dims else x


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
