"""Differences of neighbours, and the derivatives of sampled functions made of them."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import Any

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import dim_of, need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.hints import Ints
from flambeau._writes.out import deliver
from flambeau.ops.declaration.public import public
from flambeau.ops.shapes.movement import cat


@public(method=False)
def gradient(
    input: Tensor, *, spacing: object = 1, dim: Ints | None = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """The derivative along each dimension of a function of which `input` holds samples.

    Inside, the parabola through three neighbours is derived, which has an error of second order;
    at both ends the line through two (`edge_order` 1) or the parabola through three points (2).

    Args:
        spacing: the distance of samples, one number or one for each dimension, or for each
            dimension a vector of coordinates; None is 1.
        dim: the dimension or dimensions, by default all.

    Raises:
        RuntimeError: a dimension has too few samples, or `spacing` does not fit.
        TypeError: `spacing` is of neither numbers nor tensors.

    >>> import flambeau as fb
    >>> fb.gradient(fb.tensor([1.0, 4.0, 9.0, 16.0]))
    (tensor([3., 4., 6., 7.]),)
    """
    x = need_tensor(input, "gradient", "input")
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    dims = list(range(x.dim())) if dim is None else _listed(dim)
    dims = [dim_of(d, x.dim(), scalar_as_vector=False) for d in dims]
    for d in dims:
        if dims.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
        if x.shape[d] < edge_order + 1:
            raise RuntimeError(
                "torch.gradient expected each dimension size to be at least edge_order+1"
            )
    spacing = 1 if spacing is None else spacing
    if isinstance(spacing, Tensor) or not isinstance(spacing, Sequence):
        spacing = [spacing] * len(dims)
    if len(spacing) != len(dims):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length "
            f"equal to the number of dimensions ({len(dims)}), but got a list of length "
            f"{len(spacing)}"
        )
    for s in spacing:
        if not isinstance(s, (Tensor, Number)):
            raise TypeError(
                "gradient(): argument 'spacing' must be numbers or Tensors, not " + type(s).__name__
            )
    x = x if x.dtype.fp else cast(x, D.get_default_dtype())
    return tuple(_slope(x, d, s, edge_order) for d, s in zip(dims, spacing, strict=True))


def _listed(dim: Any) -> list[int]:
    return list(dim) if isinstance(dim, (tuple, list)) else [dim]


def _slope(x: Tensor, d: int, spacing: Any, edge_order: int) -> Tensor:
    n = x.shape[d]
    if isinstance(spacing, Tensor) and spacing.dim():
        if spacing.shape[0] != n or spacing.dim() != 1:
            raise RuntimeError(
                "torch.gradient expected the coordinates of a dimension to be a vector as long as "
                f"it ({n}), but got shape {list(spacing.shape)}"
            )
        width = spacing.diff().reshape((-1, *(1,) * (x.dim() - 1 - d)))
        uniform = False
    else:
        width, uniform = spacing, True
    rise = x.diff(dim=d) / width  # of the n - 1 intervals
    first, last = rise.narrow(d, 0, 1), rise.narrow(d, n - 2, 1)
    if n == 2:
        return cat([first, last], d)
    left, right = rise.narrow(d, 0, n - 2), rise.narrow(d, 1, n - 2)
    if uniform:
        middle = (left + right) * 0.5
        before = after = 0.5
    else:
        share = width.narrow(0, 0, n - 2) / (width.narrow(0, 0, n - 2) + width.narrow(0, 1, n - 2))
        middle = left + (right - left) * share
        before, after = share.narrow(0, 0, 1), 1 - share.narrow(0, n - 3, 1)
    if edge_order == 2:  # the slope of a parabola changes by as much on either side of its middle
        first = first - (right.narrow(d, 0, 1) - first) * before
        last = last + (last - left.narrow(d, n - 3, 1)) * after
    return cat([first, middle, last], d)


@public
@takes_as_annotated
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The differences of neighbours along `dim`, taken `n` times; of bools whether they differ.

    None are taken for `n` = 0: that is a copy of `input`, without `prepend` and `append`.

    >>> import flambeau as fb
    >>> fb.diff(fb.tensor([1, 4, 9]))
    tensor([3, 5])
    """
    x = need_tensor(input, "diff", "input")
    if x.dim() == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    d = dim_of(dim, x.dim())
    if n == 0:
        return deliver(x.clone(), out, input, share="anything")
    parts = [p for p in (prepend, x, append) if p is not None]
    x = cat(parts, d) if len(parts) > 1 else x
    for _ in range(min(n, x.shape[d])):
        size = max(x.shape[d] - 1, 0)
        after, before = x.narrow(d, min(1, x.shape[d]), size), x.narrow(d, 0, size)
        x = after ^ before if x.dtype is D.bool_ else after - before
    return deliver(x, out, input, prepend, append, share="anything")
