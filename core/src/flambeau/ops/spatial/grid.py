"""Sampling of images and volumes at the points of a grid, and affine grids.

Of the three canonical ops each is a derivative of the others, as their weights may be derivatives:
`orders` says how often in each coordinate, that of the first dimension first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau.ops.creation.creation import ones_like, zeros
from flambeau.ops.creation.ranges import linspace
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.layers.activation import wide
from flambeau.ops.shapes.movement import stack
from flambeau.ops.spatial.grid_taps import (
    BICUBIC,
    BILINEAR,
    BORDER,
    NEAREST,
    REFLECTION,
    ZEROS,
    _tap_dot,
    _tap_spread,
    _tap_sum,
    bordered,
    tapped,
)


def _samples(S: Any, arguments: Callable[..., tuple[Any, ...]]) -> list[Any]:
    """Samples by ``arguments(image, values, grid, size, *how)``: points in and around the image."""
    found = []
    for size, mode, padding, align, orders in [
        ((3, 4), BILINEAR, ZEROS, False, (0, 0)),
        ((3, 4), BILINEAR, BORDER, True, (0, 0)),
        ((2, 3), BILINEAR, REFLECTION, False, (0, 1)),
        ((3, 3), NEAREST, REFLECTION, True, (0, 0)),
        ((3, 4), BICUBIC, ZEROS, False, (0, 0)),
        ((4, 3), BICUBIC, REFLECTION, True, (1, 0)),
        ((2, 3, 2), BILINEAR, ZEROS, False, (0, 0, 0)),
        ((2, 2, 3), BILINEAR, BORDER, False, (1, 0, 0)),
        ((2, 3, 2), NEAREST, BORDER, True, (0, 0, 0)),
    ]:
        rank = len(size)
        out = (2, 3, 1)[:rank]
        grid = S.Arr((2, *out, rank), low=-1.3, high=1.3, seed=159)  # far from every kink
        name = f"mode {mode}, padding {padding}, {rank} dimensions, orders {orders}"
        given = S.Arr((2, 2, *size)), S.Arr((2, 2, *out), seed=1), grid, size
        call = arguments(*given, mode, padding, align, orders)
        found.append(S.Sample(call, name, True))
    return found


def _derived(orders: tuple[int, ...]) -> list[tuple[int, ...]]:
    """`orders` after one more derivative in each coordinate, which come last dimension first."""
    places = range(len(orders) - 1, -1, -1)
    return [(*orders[:d], orders[d] + 1, *orders[d + 1 :]) for d in places]


def _over_coordinates(F: Any, g: Any, orders: tuple[int, ...], term: Any) -> Any:
    """The sum of the terms of all coordinates, of ``g[:, None, ..., k]`` and the orders for it."""
    total, shape = None, (g.shape[0], 1, *g.shape[1:-1])
    lead = tuple(slice(0, n, 1) for n in g.shape[:-1])
    for k, one in enumerate(_derived(orders)):
        part = term(F.reshape(F.slice(g, (*lead, k)), shape), one)
        total = part if total is None else F.add(total, part)
    return total


@composite(title="GridSamplerBackward0")
def _grid_values(
    input: Tensor,
    grid: Tensor,
    mode: int,
    padding: int,
    align: bool,
    orders: tuple[int, ...],
) -> Tensor:
    """The values of `input` at the points of `grid`, see `grid_sampler`, or derivatives of them."""
    n, c, *size = input.shape
    index, weight = tapped(grid, size, mode, padding, align, orders)
    # One more element, of 0, is what points outside read: not even a nan at 0 weight leaks there.
    planes = bordered(wide(input), n, c, prod(size))
    return cast(_tap_sum.run(planes, index, weight), input.dtype).reshape((n, c, *grid.shape[1:-1]))


_grid_values.jointly("input", "grid")


@_grid_values.gradient("input")
def _(F, g, input_shape, grid, mode, padding, align, orders):
    return F.grid_spread(g, grid, tuple(input_shape[2:]), mode, padding, align, orders)


@_grid_values.gradient("grid")
def _(F, g, input, grid, mode, padding, align, orders):
    return F.grid_slopes(g, input, grid, mode, padding, align, orders)


@_grid_values.samples
def _(S):
    return _samples(S, lambda image, values, grid, _, *how: (image, grid, *how))


@composite(title="GridSamplerBackwardBackward0")
def _grid_spread(
    grad: Tensor,
    grid: Tensor,
    size: tuple[int, ...],
    mode: int,
    padding: int,
    align: bool,
    orders: tuple[int, ...],
) -> Tensor:
    """The adjoint of `grid_values` in its input, whose images or volumes are of this size."""
    n, c, *_ = grad.shape
    index, weight = tapped(grid, size, mode, padding, align, orders)
    g = wide(grad).reshape((n, c, index.shape[2]))
    planes = _tap_spread.run(g, index, weight, prod(size) + 1)
    return cast(planes[:, :, : prod(size)], grad.dtype).reshape((n, c, *size))


@_grid_spread.gradient("grad")
def _(F, g, grid, mode, padding, align, orders):
    return F.grid_values(g, grid, mode, padding, align, orders)


@_grid_spread.gradient("grid")
def _(F, g, grad, grid, mode, padding, align, orders):
    return F.grid_slopes(grad, g, grid, mode, padding, align, orders)


@_grid_spread.samples
def _(S):
    return _samples(S, lambda image, values, grid, size, *how: (values, grid, size, *how))


@composite(title="GridSamplerBackwardBackward0")
def _grid_slopes(
    grad: Tensor,
    input: Tensor,
    grid: Tensor,
    mode: int,
    padding: int,
    align: bool,
    orders: tuple[int, ...],
) -> Tensor:
    """The adjoint of `grid_values` in its grid: Σ_c grad · the derivative in each coordinate."""
    n, c, *size = input.shape
    planes = bordered(wide(input), n, c, prod(size))
    found = []
    for one in _derived(orders):
        index, weight = tapped(grid, size, mode, padding, align, one)
        dots = _tap_dot.run(wide(grad).reshape((n, c, index.shape[2])), planes, index)
        found.append((dots * weight).sum(1).reshape(grid.shape[:-1]))
    return cast(stack(found, -1), grid.dtype)


@_grid_slopes.gradient("grad")
def _(F, g, input, grid, mode, padding, align, orders):
    if mode == NEAREST:
        return None  # they are zeros
    return _over_coordinates(
        F,
        g,
        orders,
        lambda part, one: F.mul(F.grid_values(input, grid, mode, padding, align, one), part),
    )


@_grid_slopes.gradient("input")
def _(F, g, grad, input_shape, grid, mode, padding, align, orders):
    if mode == NEAREST:
        return None
    size = tuple(input_shape[2:])
    return _over_coordinates(
        F,
        g,
        orders,
        lambda part, one: F.grid_spread(F.mul(grad, part), grid, size, mode, padding, align, one),
    )


@_grid_slopes.gradient("grid")
def _(F, g, grad, input, grid, mode, padding, align, orders):
    if mode == NEAREST:
        return None  # they are zeros
    return _over_coordinates(
        F,
        g,
        orders,
        lambda part, one: F.grid_slopes(F.mul(grad, part), input, grid, mode, padding, align, one),
    )


@_grid_slopes.samples
def _(S):
    return _samples(S, lambda image, values, grid, _, *how: (values, image, grid, *how))


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
    how = int(interpolation_mode), int(padding_mode), bool(align_corners)
    return _grid_values.run(x, points, *how, (0,) * (x.dim() - 2))


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
    if mode == BICUBIC and rank == 3:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if x.dtype is not grid.dtype:
        raise RuntimeError(
            f"grid_sampler(): expected input and grid of one dtype, but got {x.dtype} and "
            f"{grid.dtype}"
        )
    if not x.dtype.is_floating_point:
        raise NotImplementedError(f"grid_sampler(): not implemented for {x.dtype}")
