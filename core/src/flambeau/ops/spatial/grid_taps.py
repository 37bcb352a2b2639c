"""Weighted sums of elements at given places, and the places and weights of points of a grid.

The canonical ops are one trilinear form of gradients, weights and elements: each is a derivative of
the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.ops.creation.creation import ones_like, zeros, zeros_like
from flambeau.ops.declaration.table import composite
from flambeau.ops.indices.indexing import _gather, _scatter_add
from flambeau.ops.layers.activation import wide
from flambeau.ops.pointwise.elementwise import where
from flambeau.ops.shapes.movement import cat

BILINEAR, NEAREST, BICUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)

Tap = tuple[Tensor, Tensor]  # positions along a dimension, whole numbers, and weights


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


def bordered(x: Tensor, n: int, c: int, elements: int) -> Tensor:
    """Images as lines (N, C, elements + 1), whose last element is 0."""
    border = zeros((n, c, 1), dtype=x.dtype, device=x.device)
    return cat([x.reshape((n, c, elements)), border], 2)


def tapped(
    grid: Tensor,
    size: Sequence[int],
    mode: int,
    padding: int,
    align: bool,
    orders: Sequence[int],
) -> tuple[Tensor, Tensor]:
    """Where the values at all points are read in a `bordered` image, and their weights."""
    points, rank = wide(grid), len(size)
    taps = [
        _taps(points[..., rank - 1 - d], m, mode, padding, align, orders[d])
        for d, m in enumerate(size)
    ]
    chosen = [_combined(size, one) for one in product(*taps)]
    index, weight = (cat(list(parts), 1) for parts in zip(*chosen, strict=True))
    return index, weight


def _taps(at: Tensor, size: int, mode: int, padding: int, align: bool, order: int) -> list[Tap]:
    """Where along one dimension to read for every point, and the weights, derived `order` times."""
    n = at.shape[0]
    at = at.reshape((n, 1, prod(at.shape[1:])))
    at = (at + 1) / 2 * (size - 1) if align else ((at + 1) * size - 1) / 2
    slope: Any = (size - 1) / 2 if align else size / 2
    if mode == BILINEAR and order:
        slope = _slope(at, size, padding, align, slope)
    if mode != BICUBIC:
        at = _inside(at, size, padding, align)
    if mode == NEAREST:
        return [(at.round(), ones_like(at) if order == 0 else zeros_like(at))]
    low = at.floor()
    part = at - low
    if mode == BILINEAR:
        if order == 0:
            return [(low, 1 - part), (low + 1, part)]
        slope = slope if order == 1 else zeros_like(at)
        return [(low, -slope), (low + 1, slope)]
    return [
        (_inside(low + (k - 1), size, padding, align), weight * slope**order)
        for k, weight in enumerate(_cubic_weights(part, order))
    ]


def _cubic_weights(t: Tensor, order: int) -> list[Tensor]:
    a = -0.75
    near, far = [a + 2, -a - 3, 0.0, 1.0], [a, -5 * a, 8 * a, -4 * a]
    for _ in range(order):
        near, far = ([0.0, 3 * p[0], 2 * p[1], p[2]] for p in (near, far))
    sign = -1 if order % 2 else 1

    def polynomial(p: list[float], x: Tensor) -> Tensor:
        return ((p[0] * x + p[1]) * x + p[2]) * x + p[3]

    return [
        polynomial(far, t + 1),
        polynomial(near, t),
        sign * polynomial(near, 1 - t),
        sign * polynomial(far, 2 - t),
    ]


def _slope(at: Tensor, size: int, padding: int, align: bool, slope: float) -> Tensor:
    """The derivative of positions after the padding, where it is `slope` before; 0 on its edges."""
    slopes = zeros_like(at) + slope
    if padding == ZEROS:
        return slopes
    if padding == REFLECTION:
        low, span = _mirrors(size, align)
        odd = ((at - low).abs() / span).floor() % 2 == 1 if span else at != at
        slopes = where(odd, -slopes, slopes)
        slopes = where(at < low, -slopes, slopes)
        at = _reflected(at, size, align)
    return where((at > 0) & (at < size - 1), slopes, zeros_like(at))


def _inside(at: Tensor, size: int, padding: int, align: bool) -> Tensor:
    """Positions after what the padding does to those outside."""
    if padding == ZEROS:
        return at
    if padding == REFLECTION:
        at = _reflected(at, size, align)
    zero = zeros_like(at)
    at = where(at > 0, at, zero)  # nan becomes 0, as in PyTorch
    return where(at < size - 1, at, zero + (size - 1))


def _mirrors(size: int, align: bool) -> tuple[float, float]:
    """Where the first mirror is, and how far from it the other."""
    return (0.0, float(size - 1)) if align else (-0.5, float(size))


def _reflected(at: Tensor, size: int, align: bool) -> Tensor:
    """Positions mirrored at the first and last centre (`align`) or border until they are inside."""
    low, span = _mirrors(size, align)
    if span == 0:
        return zeros_like(at)
    distance = (at - low).abs()
    rest = distance.fmod(span)
    odd = (distance / span).floor() % 2 == 1
    return where(odd, span - rest, rest) + low


def _combined(size: Sequence[int], chosen: Sequence[Tap]) -> tuple[Tensor, Tensor]:
    """Indices and weights (N, 1, points) of one combination of taps.

    The index past the last element stands for all that lies outside.
    """
    flat: Any = 0
    inside: Any = True
    weight: Any = 1
    for (at, factor), m in zip(chosen, size, strict=True):
        here = (at >= 0) & (at < m)
        index = cast(where(here, at, zeros_like(at)), D.int64)
        flat, inside = flat * m + index, here & inside
        weight = factor * weight
    return where(inside, flat, zeros_like(flat) + prod(size)), weight
