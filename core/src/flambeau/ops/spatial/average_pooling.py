"""Means of windows of signals, images and volumes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.hints import Ints
from flambeau.ops.creation.creation import ones, tensor
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.layers.activation import wide
from flambeau.ops.layers.gradient_rules import check_shape
from flambeau.ops.pointwise.elementwise import div
from flambeau.ops.spatial.convolution import (
    _conv2d,
    _conv2d_input_grad,
    _conv3d,
    _conv3d_input_grad,
)
from flambeau.ops.spatial.image_windows import Pair, Sizes, Triple, framed
from flambeau.ops.spatial.pooling_arguments import (
    taps_inside,
    window,
    window_count,
    window_sizes,
)


def _covered(
    size: Sequence[int], kernel: Sizes, stride: Sizes, padding: Sizes, ceil: bool
) -> tuple[list[int], list[int], list[int], list[int]]:
    """Per dimension: the number of windows; what of their sizes and of the padding in front meets
    elements; and how far they reach from there.
    """
    count, kernels, before, reach = [], [], [], []
    for n, k, s, p in zip(size, kernel, stride, padding, strict=True):
        o = window_count(n, k, s, p, 1, ceil)
        first, taken = taps_inside(n, o, k, s, p, 1)
        count.append(o)
        kernels.append(taken)
        before.append(p - first)
        reach.append((o - 1) * s + taken)
    return count, kernels, before, reach


def _divisors(
    like: Tensor,
    size: Sequence[int],
    count: Sequence[int],
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor | float:
    """How many elements each window averages over, (*count); windows end with the padding."""
    if divisor_override is not None:
        return divisor_override
    counts = []
    for n, o, k, s, p in zip(size, count, kernel_size, stride, padding, strict=True):
        starts = [i * s - p for i in range(o)]
        spans = [(y, min(y + k, n + p)) for y in starts]
        if not count_include_pad:
            spans = [(max(y, 0), min(z, n)) for y, z in spans]
        counts.append(tensor([z - y for y, z in spans], dtype=like.dtype, device=like.device))
    total = counts[0]
    for spans in counts[1:]:
        total = total.unsqueeze(-1) * spans
    return total


def _averaged(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    n, c, *size = input.shape
    count, kernels, before, reach = _covered(size, kernel_size, stride, padding, ceil_mode)
    x = wide(input).reshape((n * c, 1, *size))
    after = [r - m - p for r, m, p in zip(reach, size, before, strict=True)]
    kernel = ones((1, 1, *kernels), dtype=x.dtype, device=x.device)
    convolve = _conv2d if len(size) == 2 else _conv3d
    none, one = (0,) * len(size), (1,) * len(size)
    total = convolve(framed(x, before, after), kernel, None, stride, none, one, 1)
    divisors = _divisors(
        total, size, count, kernel_size, stride, padding, count_include_pad, divisor_override
    )
    mean = div(total, divisors, rounding_mode=None if x.dtype.fp else "trunc")
    return cast(mean, input.dtype).reshape((n, c, *count))


def _shared(
    grad: Tensor,
    input_shape: Sizes,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    n, c, *size = input_shape
    count, kernels, before, reach = _covered(size, kernel_size, stride, padding, ceil_mode)
    g = wide(grad)
    share = g / _divisors(
        g, size, count, kernel_size, stride, padding, count_include_pad, divisor_override
    )
    kernel = ones((1, 1, *kernels), dtype=g.dtype, device=g.device)
    flat = share.reshape((n * c, 1, *count))
    adjoint = _conv2d_input_grad if len(size) == 2 else _conv3d_input_grad
    none, one = (0,) * len(size), (1,) * len(size)
    whole = adjoint(flat, kernel, (n * c, 1, *reach), stride, none, one, 1)
    after = [m + p - r for r, m, p in zip(reach, size, before, strict=True)]
    inside = framed(whole, [-p for p in before], after)
    return cast(inside, grad.dtype).reshape(input_shape)


def _demands_of_windows(
    grad: Tensor,
    input_shape: Sizes,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> None:
    """A gradient has an element for each window: kernels go from windows to elements unasked."""
    rank = len(kernel_size)
    dims = zip(input_shape[-rank:], kernel_size, stride, padding, strict=False)
    counts = tuple(window_count(n, k, s, p, 1, ceil_mode) for n, k, s, p in dims)
    check_shape("avg_pool backward", "grad", grad, (*input_shape[:-rank], *counts))


@composite(title="AvgPool2DBackward0", ordered_by=["input"])
def _avg_pool2d(
    input: Tensor,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    """Sums of windows, a convolution with ones, divided by the windows' sizes."""
    return _averaged(
        input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


_avg_pool2d.jointly("input", zeros=True)


@_avg_pool2d.gradient
def _(
    F, g, input_shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
):
    return F.avg_pool2d_backward(
        g, input_shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


@composite(title="AvgPool2DBackwardBackward0", ordered_by=["grad"])
def _avg_pool2d_backward(
    grad: Tensor,
    input_shape: tuple[int, ...],
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    """The gradient of each window, shared among its elements."""
    return _shared(
        *(grad, input_shape, kernel_size, stride, padding, ceil_mode),
        *(count_include_pad, divisor_override),
    )


_avg_pool2d_backward.demand(_demands_of_windows)


@_avg_pool2d_backward.gradient
def _(F, g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    return F.avg_pool2d(
        g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


@composite(title="AvgPool3DBackward0")
def _avg_pool3d(
    input: Tensor,
    kernel_size: Triple,
    stride: Triple,
    padding: Triple,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    """Sums of windows, a convolution with ones, divided by the windows' sizes."""
    return _averaged(
        input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


_avg_pool3d.jointly("input", zeros=True)


@_avg_pool3d.gradient
def _(
    F, g, input_shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
):
    return F.avg_pool3d_backward(
        g, input_shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


@composite(title="AvgPool3DBackwardBackward0")
def _avg_pool3d_backward(
    grad: Tensor,
    input_shape: tuple[int, ...],
    kernel_size: Triple,
    stride: Triple,
    padding: Triple,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    """The gradient of each window, shared among its elements."""
    return _shared(
        *(grad, input_shape, kernel_size, stride, padding, ceil_mode),
        *(count_include_pad, divisor_override),
    )


_avg_pool3d_backward.demand(_demands_of_windows)


@_avg_pool3d_backward.gradient
def _(F, g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    return F.avg_pool3d(
        g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


@public(method=False)
def avg_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = (),
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """`avg_pool2d` of signals, (N, C, L) or (C, L).

    Raises:
        RuntimeError: shapes or settings do not fit; says which.
        NotImplementedError: the dtype is neither floating nor int64.

    >>> import flambeau as fb
    >>> fb.avg_pool1d(fb.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[2., 1.]])
    """
    return _means(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@public(method=False)
def avg_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window.

    The border counts as zeros; `count_include_pad` says whether it counts in the divisor, which
    `divisor_override` replaces.

    Shapes: input (N, C, H, W) or (C, H, W); result the same with H' = ⌊(H + 2p - K) / s⌋ + 1.

    Raises:
        RuntimeError: shapes or settings do not fit; says which.
        NotImplementedError: the dtype is neither floating nor int64.

    >>> import flambeau as fb
    >>> fb.avg_pool2d(fb.arange(4.0).reshape(1, 2, 2), 2)
    tensor([[[1.5000]]])
    """
    included, divisor = count_include_pad, divisor_override
    return _means(2, input, kernel_size, stride, padding, ceil_mode, included, divisor)


@public(method=False)
def avg_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """`avg_pool2d` of volumes, (N, C, D, H, W) or (C, D, H, W).

    Raises:
        RuntimeError: shapes or settings do not fit; says which.
        NotImplementedError: the dtype is neither floating nor int64.

    >>> import flambeau as fb
    >>> fb.avg_pool3d(fb.arange(16.0).reshape(1, 2, 2, 4), 2)
    tensor([[[[6.5000, 8.5000]]]])
    """
    included, divisor = count_include_pad, divisor_override
    return _means(3, input, kernel_size, stride, padding, ceil_mode, included, divisor)


def _means(
    rank: int,
    input: Tensor,
    kernel_size: object,
    stride: object,
    padding: object,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    where = _NAMES[rank]
    x = input if type(input) is Tensor else need_tensor(input, where, "input")
    if not x.dtype.is_floating_point and x.dtype is not D.int64:
        raise NotImplementedError(f"{where}(): not implemented for {x.dtype}")
    batch, shape, are_ints = x, x._a.shape, type(kernel_size) is int and type(padding) is int
    rest = ceil_mode, count_include_pad, divisor_override
    if are_ints and stride is None and type(shape) is tuple and len(shape) == rank + 2:
        how = _usual(rank, shape, kernel_size, padding, *rest)
    else:
        batch, sizes = window(where, rank, x, kernel_size, stride, padding, 1, bool(ceil_mode))
        how = _settings(rank, sizes, *rest)
    if rank == 1:  # a signal is an image of height 1
        result = _avg_pool2d(batch.unsqueeze(2), *how).squeeze(2)
    else:
        result = (_avg_pool2d.run if rank == 2 else _avg_pool3d.run)(batch, *how)
    return result if batch is x else result.squeeze(0)


def _settings(
    rank: int,
    sizes: Sequence[Sizes],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> tuple[Any, ...]:
    """What the op is told beside its input."""
    if divisor_override == 0:
        raise RuntimeError(f"{_NAMES[rank]}: divisor must be not zero")
    kernel, step, edge, _ = sizes
    if rank == 1:
        kernel, step, edge = (1, *kernel), (1, *step), (0, *edge)
    return kernel, step, edge, bool(ceil_mode), bool(count_include_pad), divisor_override


@lru_cache(maxsize=256)  # a network pools the same few shapes over and over
def _usual(rank: int, shape: Sizes, kernel_size: int, padding: int, *rest: Any) -> tuple[Any, ...]:
    """`_settings` of windows that do not overlap."""
    where = _NAMES[rank]
    sizes = window_sizes(where, rank, shape, kernel_size, None, padding, 1, bool(rest[0]))
    return _settings(rank, sizes, *rest)


_NAMES = {rank: f"avg_pool{rank}d" for rank in (1, 2, 3)}
