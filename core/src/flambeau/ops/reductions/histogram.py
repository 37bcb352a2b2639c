"""Histograms over bins of given number, range or edges, of numbers and of points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.printing import named_tuple
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.hints import Ints
from flambeau._writes.out import deliver_all
from flambeau.ops.creation.ranges import linspace
from flambeau.ops.declaration.public import public
from flambeau.ops.pointwise.elementwise import where
from flambeau.ops.reductions.counting import bucketize


@named_tuple
class histogram_return(NamedTuple):  # noqa: N801
    """Masses of the bins and their edges."""

    hist: Tensor
    bin_edges: Tensor


@named_tuple
class histogramdd_return(NamedTuple):  # noqa: N801
    """Masses of the bins of a grid and the edges in each dimension."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


@public
@takes_as_annotated
def histogram(
    input: Tensor,
    bins: int | Tensor = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
    out: Sequence[Tensor] | None = None,
) -> histogram_return:
    """How many elements, or which sum of their weights, each bin holds; and the edges of the bins.

    Args:
        bins: the number of equal bins, or their rising edges.
        range: where the first bin begins and the last ends; by default the extremes of the input.
        weight: what each element adds, of the shape of `input`; by default 1.
        density: divide so that the sum over bins of mass times width is 1.

    A bin holds its left edge; the last holds both.  Elements beyond the edges count nowhere.

    Raises:
        NotImplementedError: the dtype is neither float32 nor float64.
        RuntimeError: there are no bins, or the range is reversed or not finite.

    >>> import flambeau as fb
    >>> fb.histogram(fb.tensor([1.0, 2.0, 1.0]), bins=4, range=(0.0, 3.0)).hist
    tensor([0., 2., 1., 0.])
    """
    x = need_tensor(input, "histogram", "input")
    if weight is not None and need_tensor(weight, "histogram", "weight").shape != x.shape:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the "
            f"input tensor excluding its innermost dimension, but got input with shape "
            f"{list(x.shape)} and weight with shape {list(weight.shape)}"
        )
    flat = None if weight is None else weight.reshape(-1)
    found = _counted(x.reshape((-1, 1)), [bins], range, flat, density)
    return deliver_all(
        histogram_return(found.hist, found.bin_edges[0]), out, input, exact=True, share="anything"
    )


@public(method=False)
@takes_as_annotated
def histogramdd(
    input: Tensor,
    bins: Ints | Sequence[Tensor],
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> histogramdd_return:
    """How many points, the rows of the last dimension, lie in each box of a grid; and its edges.

    Args:
        bins: the number of bins in every dimension, one number for each, or a tensor of edges each.
        range: two numbers for each dimension; by default the extremes of the points.
        weight: what each point adds, of the shape of `input` without its last dimension.
        density: divide so that the sum over boxes of mass times volume is 1.

    Raises:
        NotImplementedError: the dtype is neither float32 nor float64.
        RuntimeError: the number of bins, the range or the weights do not fit the points.

    >>> import flambeau as fb
    >>> fb.histogramdd(fb.tensor([[0.0, 1.0], [1.0, 2.0]]), bins=[2, 2]).hist
    tensor([[1., 0.],
            [0., 1.]])
    """
    x = need_tensor(input, "histogramdd", "input")
    if x.dim() < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    rank = x.shape[-1]
    counts = [bins] * rank if isinstance(bins, int) else list(bins)
    if len(counts) != rank:
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input."
        )
    if weight is not None:
        need_tensor(weight, "histogramdd", "weight")
    if weight is not None and weight.shape != x.shape[:-1]:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the "
            f"input tensor excluding its innermost dimension, but got input with shape "
            f"{list(x.shape)} and weight with shape {list(weight.shape)}"
        )
    flat = None if weight is None else weight.reshape(-1)
    return _counted(x.reshape((-1, rank)), counts, range, flat, density)


def _counted(
    points: Tensor,
    bins: list[Any],
    limits: Sequence[float] | None,
    weight: Tensor | None,
    density: bool,
) -> histogramdd_return:
    points = points.detach()
    if points.dtype not in (D.float32, D.float64):
        raise NotImplementedError(f'"histogramdd" not implemented for {points.dtype}')
    if weight is not None and weight.dtype is not points.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor "
            f"should have the same dtype, but got input {points.dtype}, and weight {weight.dtype}"
        )
    if limits is not None and len(limits) != 2 * len(bins):
        raise RuntimeError(
            f"torch.histogramdd: for a {len(bins)}-dimensional histogram range should have "
            f"{2 * len(bins)} elements, but got {len(limits)}"
        )
    edges = [
        _edges(points.select(-1, d), n, None if limits is None else limits[2 * d : 2 * d + 2], d)
        for d, n in enumerate(bins)
    ]
    place = points.new_zeros((points.shape[0],), dtype=D.int64)
    inside = place == 0
    for d, edge in enumerate(edges):
        column, count = points.select(-1, d).contiguous(), edge.shape[0] - 1
        found = bucketize(column, edge, right=True)
        found = where(column == edge[-1], count, found)  # the last bin holds both its edges
        inside = inside & (found > 0) & (found <= count) & (column <= edge[-1])
        place = place * count + (found - 1)
    mass = points.new_ones((points.shape[0],)) if weight is None else weight.detach()
    shape = tuple(edge.shape[0] - 1 for edge in edges)
    total = points.new_zeros((math.prod(shape),))
    total = total.scatter_add(0, where(inside, place, 0), where(inside, mass, 0)).reshape(shape)
    if density:
        total = total / total.sum()
        for d, edge in enumerate(edges):
            total = total / edge.diff().reshape((-1, *(1,) * (len(edges) - 1 - d)))
    return histogramdd_return(total, tuple(edges))


def _edges(column: Tensor, bins: Any, limits: Sequence[float] | None, d: int) -> Tensor:
    if isinstance(bins, Tensor):
        if bins.dim() != 1 or bins.shape[0] < 2:
            raise RuntimeError(
                f"torch.histogramdd: edges of dimension {d} must be a vector of at least 2 "
                f"elements, got shape {list(bins.shape)}"
            )
        return cast(bins.detach(), column.dtype)
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension {d}")
    low, high = limits or (0.0, 1.0)
    if limits is None and column.numel():
        low, high = column.amin().item(), column.amax().item()
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(
            f"torch.histogramdd: dimension {d}'s range [{low}, {high}] is not finite"
        )
    if low > high:
        raise RuntimeError(
            f"torch.histogramdd: min should not exceed max, but got min {low} max {high} for "
            f"dimension {d}"
        )
    if low == high:
        low, high = low - 0.5, high + 0.5
    return linspace(low, high, bins + 1, dtype=column.dtype, device=column.device)
