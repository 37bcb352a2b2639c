"""Sampling of images and volumes at the points of a grid, and affine grids.

The canonical ops are one trilinear form of gradients, weights and elements: each is a derivative of
the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.ops.creation.creation import ones_like, zeros, zeros_like
from flambeau.ops.creation.ranges import linspace
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.indices.indexing import _gather, _scatter_add
from flambeau.ops.layers.activation import wide
from flambeau.ops.pointwise.elementwise import where
from flambeau.ops.shapes.movement import cat, stack

_BILINEAR, _NEAREST, _BICUBIC = range(3)
_ZEROS, _BORDER, _REFLECTION = range(3)

Tap = tuple[Tensor, Tensor | None]  # positions along a dimension, whole numbers, and weights


def _taken(planes: Tensor, index: Tensor) -> Tensor:
    """The elements of (N, C, P) at (N, T, Q), as (N, C, T, Q)."""
    n, c, _ = planes.shape
    _, t, q = index.shape
    flat = index.reshape((n, 1, t * q)).expand((n, c, t * q))
    return _gather(planes, 2, flat).reshape((n, c, t, q))


@composite(title="GridSamplerBackward0")
def _tap_sum(planes: Tensor, index: Tensor, weight: Tensor) -> Tensor:
    """y[n, c, q] = Σ_t weight[n, t, q] · planes[n, c, index[n, t, q]]."""
    total = (wide(_taken(planes, index)) * wide(weight).unsqueeze(1)).sum(2)
    return cast(total, planes.dtype)


_tap_sum.jointly("planes", "weight")


@_tap_sum.gradient("planes")
def _(F, g, planes_shape, index, weight):
    return F.tap_spread(g, index, weight, planes_shape[2])


@_tap_sum.gradient("weight")
def _(F, g, planes, index):
    return F.tap_dot(g, planes, index)


@_tap_sum.gradient("index")
def _(F, g):
    return None


@composite(title="GridSamplerBackwardBackward0")
def _tap_spread(grad: Tensor, index: Tensor, weight: Tensor, size: int) -> Tensor:
    """The adjoint of `tap_sum` in its planes, of `size` elements each."""
    n, c, q = grad.shape
    parts = wide(grad).unsqueeze(2) * wide(weight).unsqueeze(1)
    flat = index.reshape((n, 1, index.shape[1] * q)).expand((n, c, index.shape[1] * q))
    empty = zeros((n, c, size), dtype=parts.dtype, device=grad.device)
    return cast(_scatter_add(empty, 2, flat, parts.reshape(flat.shape)), grad.dtype)


@_tap_spread.gradient("grad")
def _(F, g, index, weight):
    return F.tap_sum(g, index, weight)


@_tap_spread.gradient("weight")
def _(F, g, grad, index):
    return F.tap_dot(grad, g, index)


@_tap_spread.gradient("index")
def _(F, g):
    return None


@composite(title="GridSamplerBackwardBackward0")
def _tap_dot(grad: Tensor, planes: Tensor, index: Tensor) -> Tensor:
    """The adjoint of `tap_sum` in its weights: Σ_c grad[n, c, q] · planes[n, c, index[n, t, q]]."""
    total = (wide(grad).unsqueeze(2) * wide(_taken(planes, index))).sum(1)
    return cast(total, grad.dtype)


@_tap_dot.gradient("grad")
def _(F, g, planes, index):
    return F.tap_sum(planes, index, g)


@_tap_dot.gradient("planes")
def _(F, g, grad, planes_shape, index):
    return F.tap_spread(grad, index, g, planes_shape[2])


@_tap_dot.gradient("index")
def _(F, g):
    return None


@public(method=False)
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """The values of `input` at the points of `grid`.

    A point has its last coordinate first (x, y or x, y, z); -1 and 1 are the borders of the image,
    with `align_corners` the centres of its outermost elements.

    Args:
        interpolation_mode: 0 bilinear, 1 nearest, 2 bicubic (images only; Keys 1981, a = -0.75).
        padding_mode: what lies outside: 0 zeros, 1 the nearest element, 2 the mirrored image.

    Shapes: input (N, C, H, W) and grid (N, H', W', 2), result (N, C, H', W'); or
    (N, C, D, H, W), (N, D', H', W', 3) and (N, C, D', H', W').

    Raises:
        RuntimeError: shapes, dtypes or modes do not fit; says which.
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> x = fb.arange(4.0).reshape(1, 1, 2, 2)
    >>> fb.grid_sampler(x, fb.tensor([[[[0.0, 0.0], [1.0, -1.0]]]]), 0, 0, True)
    tensor([[[[1.5000, 1.0000]]]])
    """
    x, points = (
        need_tensor(input, "grid_sampler", "input"),
        need_tensor(grid, "grid_sampler", "grid"),
    )
    _check(x, points, interpolation_mode)
    n, c, *size = x.shape
    out = points.shape[1:-1]
    rank = len(size)
    taps = [
        _taps(points[..., rank - 1 - d], m, interpolation_mode, padding_mode, bool(align_corners))
        for d, m in enumerate(size)
    ]
    # One more element, of 0, is what points outside read: not even a nan at 0 weight leaks there.
    border = zeros((n, c, 1), dtype=x.dtype, device=x.device)
    planes = cat([x.reshape((n, c, prod(size))), border], 2)
    chosen = [_combined(size, one) for one in product(*taps)]
    index, weight = (cat(list(parts), 1) for parts in zip(*chosen, strict=True))
    return _tap_sum.run(planes, index, weight).reshape((n, c, *out))


@public(method=False)
def grid_sampler_2d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`grid_sampler` of images.

    Raises:
        RuntimeError: shapes, dtypes or modes do not fit; says which.

    >>> import flambeau as fb
    >>> fb.grid_sampler_2d(fb.ones(1, 1, 2, 2), fb.zeros(1, 1, 1, 2), 0, 0, False)
    tensor([[[[1.]]]])
    """
    _check_rank("grid_sampler_2d", input, 4)
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@public(method=False)
def grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`grid_sampler` of volumes.

    Raises:
        RuntimeError: shapes, dtypes or modes do not fit; says which.

    >>> import flambeau as fb
    >>> fb.grid_sampler_3d(fb.ones(1, 1, 2, 2, 2), fb.zeros(1, 1, 1, 1, 3), 0, 0, False).item()
    1.0
    """
    _check_rank("grid_sampler_3d", input, 5)
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@public(method=False)
def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """The points of a regular grid after the affine maps `theta`, for `grid_sampler`.

    Shapes: theta (N, 2, 3) and size (N, C, H, W), result (N, H, W, 2); or (N, 3, 4),
    (N, C, D, H, W) and (N, D, H, W, 3).

    Raises:
        RuntimeError: shapes do not fit; says which.

    >>> import flambeau as fb
    >>> identity = fb.eye(2, 3).unsqueeze(0)
    >>> fb.affine_grid_generator(identity, (1, 1, 1, 2), True)
    tensor([[[[-1.,  0.],
              [ 1.,  0.]]]])
    """
    maps = need_tensor(theta, "affine_grid_generator", "theta")
    n, _, *spatial = size
    rank = len(spatial)
    if rank not in (2, 3) or tuple(maps.shape) != (n, rank, rank + 1):
        raise RuntimeError(
            f"affine_grid_generator: for size {list(size)}, of 4 or 5 dimensions, theta must be "
            f"{[n, rank, rank + 1]}, but got {list(maps.shape)}"
        )
    axes = []
    for d, count in enumerate(spatial):
        shape = [1] * rank
        shape[d] = count
        axes.append(_axis(count, bool(align_corners), maps).reshape(shape).expand(spatial))
    base = stack([*reversed(axes), ones_like(axes[0])], -1).reshape((1, prod(spatial), rank + 1))
    return (base.expand((n, *base.shape[1:])) @ maps.mT).reshape((n, *spatial, rank))


def _axis(count: int, align: bool, like: Tensor) -> Tensor:
    """The coordinates of `count` elements along a dimension."""
    if count == 1:
        return zeros(1, dtype=like.dtype, device=like.device)
    ends = linspace(-1, 1, count, dtype=like.dtype, device=like.device)
    return ends if align else ends * ((count - 1) / count)


def _taps(at: Tensor, size: int, mode: int, padding: int, align: bool) -> list[Tap]:
    """Where along one dimension to read for every point, and the weights."""
    n = at.shape[0]
    at = at.reshape((n, 1, prod(at.shape[1:])))
    at = (at + 1) / 2 * (size - 1) if align else ((at + 1) * size - 1) / 2
    if mode != _BICUBIC:
        at = _inside(at, size, padding, align)
    if mode == _NEAREST:
        return [(at.round(), None)]
    low = at.floor()
    part = at - low.detach()
    if mode == _BILINEAR:
        return [(low, 1 - part), (low + 1, part)]
    return [
        (_inside(low + (k - 1), size, padding, align), weight)
        for k, weight in enumerate(_cubic_weights(part))
    ]


def _cubic_weights(t: Tensor) -> list[Tensor]:
    a = -0.75

    def near(x: Tensor) -> Tensor:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Tensor) -> Tensor:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _inside(at: Tensor, size: int, padding: int, align: bool) -> Tensor:
    """Positions after what the padding does to those outside."""
    if padding == _ZEROS:
        return at
    if padding == _REFLECTION:
        at = _reflected(at, size, align)
    zero = zeros_like(at)
    at = where(at > 0, at, zero)  # nan becomes 0, as in PyTorch
    return where(at < size - 1, at, zero + (size - 1))


def _reflected(at: Tensor, size: int, align: bool) -> Tensor:
    """Positions mirrored at the first and last centre (`align`) or border until they are inside."""
    low, span = (0.0, float(size - 1)) if align else (-0.5, float(size))
    if span == 0:
        return zeros_like(at)
    distance = (at - low).abs()
    rest = distance.fmod(span)
    odd = (distance.detach() / span).floor() % 2 == 1
    return where(odd, span - rest, rest) + low


def _combined(size: Sequence[int], chosen: Sequence[Tap]) -> tuple[Tensor, Tensor]:
    """Indices and weights (N, 1, points) of one combination of taps.

    The index past the last element stands for all that lies outside.
    """
    flat: Any = 0
    inside: Any = True
    weight = None
    for (at, factor), m in zip(chosen, size, strict=True):
        here = (at >= 0) & (at < m)
        index = cast(where(here, at, zeros_like(at)).detach(), D.int64)
        flat, inside = flat * m + index, here & inside
        if factor is not None:
            weight = factor if weight is None else weight * factor
    outside = zeros_like(flat) + prod(size)
    return where(inside, flat, outside), ones_like(chosen[0][0]) if weight is None else weight


def _check_rank(where: str, input: Tensor, rank: int) -> None:
    if need_tensor(input, where, "input").dim() != rank:
        raise RuntimeError(f"{where}(): expected {rank}D input, but got {list(input.shape)}")


def _check(x: Tensor, grid: Tensor, mode: int) -> None:
    both = f"input with sizes {list(x.shape)} and grid with sizes {list(grid.shape)}"
    rank = x.dim() - 2
    if x.device != grid.device:
        raise RuntimeError(
            "grid_sampler(): expected input and grid to be on same device, but input is on "
            f"{x.device} and grid is on {grid.device}"
        )
    if x.dim() == 0 or grid.dim() == 0 or x.shape[0] != grid.shape[0]:
        raise RuntimeError(
            f"grid_sampler(): expected grid and input to have same batch size, but got {both}"
        )
    if grid.shape[-1] != rank:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {rank} in last dimension, but got grid "
            f"with sizes {list(grid.shape)}"
        )
    if rank not in (2, 3) or grid.dim() != x.dim():
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but "
            f"got {both}"
        )
    if 0 in x.shape[2:]:
        raise RuntimeError(
            "grid_sampler(): expected input to have non-empty spatial dimensions, but input has "
            f"sizes {list(x.shape)}"
        )
    if mode == _BICUBIC and rank == 3:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if x.dtype is not grid.dtype:
        raise RuntimeError(
            f"grid_sampler(): expected input and grid of one dtype, but got {x.dtype} and "
            f"{grid.dtype}"
        )
    if not x.dtype.is_floating_point:
        raise NotImplementedError(f"grid_sampler(): not implemented for {x.dtype}")
