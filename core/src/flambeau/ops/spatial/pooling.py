"""Maxima of windows of signals, images and volumes."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import cast, kernel_error, recording, wrap
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.hints import Ints
from flambeau.ops.creation.creation import tensor, zeros
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.indices.indexing import _gather, _scatter_add
from flambeau.ops.layers import gradient_rules as _rules
from flambeau.ops.pointwise.elementwise import _where, div
from flambeau.ops.reductions.reduction import _argmax
from flambeau.ops.spatial.image_windows import Pair, Places, Triple, places, windows
from flambeau.ops.spatial.pooling_arguments import taps_inside, window, window_count


def _places_inside(
    size: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool
) -> Places:
    """The positions of each window, where one outside repeats the window's nearest inside.

    So the padding needs no value that compares as less than every other, and an index never falls
    into it.  The order stays ascending, hence the first of equals stays the first.
    """
    found = []
    count = window_count(size, kernel, stride, padding, dilation, ceil)
    first, taken = taps_inside(size, count, kernel, stride, padding, dilation)
    start = padding - first * dilation
    for taps in places(count, taken, stride, dilation):
        inside = [p - start for p in taps if 0 <= p - start < size]
        if not inside:
            raise RuntimeError(
                f"max_pool: the window at {taps[0] - start} has no element of a dimension of "
                f"size {size} (kernel_size={kernel}, padding={padding}, dilation={dilation}); use "
                "less padding"
            )
        found.append([min(max(p - start, inside[0]), inside[-1]) for p in taps])
    return found


def position_of_largest(x: Tensor) -> Tensor:
    """Along the last dimension: the first of equal elements, the last of nans."""
    best = _argmax(x, x.dim() - 1, True)
    if not x.dtype.is_floating_point:
        return best
    nan = x != x
    last = x.shape[-1] - 1 - _argmax(cast(nan.flip(-1), D.uint8), x.dim() - 1, True)
    return _where(nan.any(-1, True), last, best)


def largest(input: Tensor, dims: list[Places]) -> tuple[Tensor, Tensor]:
    """The largest element of each window and its position in the flattened image.

    `dims` has the places of the windows along each dimension, of one length per dimension.
    """
    n, c, *size = input.shape
    counts = [len(dim) for dim in dims]
    elements = windows(input, dims)
    flat = tensor(0, dtype=D.int64, device=input.device)
    rank = len(dims)
    for d, dim in enumerate(dims):
        shape = [1] * (2 * rank)
        shape[d], shape[rank + d] = len(dim), len(dim[0])
        along = tensor([list(p) for p in dim], dtype=D.int64, device=input.device)
        flat = flat * size[d] + along.reshape(shape)
    taps = flat.numel() // max(1, prod(counts))
    elements = elements.reshape((n, c, *counts, taps))
    best = position_of_largest(elements)
    flat = flat.reshape((*counts, taps)).expand(elements.shape)
    values, indices = (_gather(a, 2 + rank, best).squeeze(2 + rank) for a in (elements, flat))
    return values, indices


@composite(results=2, title="MaxPool2DWithIndicesBackward0", ordered_by=["input"])
def _max_pool2d(
    input: Tensor, kernel_size: Pair, stride: Pair, padding: Pair, dilation: Pair, ceil_mode: bool
) -> tuple[Tensor, Tensor]:
    """The largest element of each window and its position in H·W."""
    how = zip(input.shape[2:], kernel_size, stride, padding, dilation, strict=True)
    return largest(input, [_places_inside(*sizes, ceil_mode) for sizes in how])


_max_pool2d.jointly("input", zeros=True)


@_max_pool2d.gradient
def _(F, g, input_shape, result1):
    return F.max_pool2d_backward(g[0], result1, input_shape)


@composite(title="MaxPool2DWithIndicesBackwardBackward0", ordered_by=["indices"])
def _max_pool2d_backward(grad: Tensor, indices: Tensor, input_shape: tuple[int, ...]) -> Tensor:
    """The gradient of each window, added at the position of its maximum."""
    n, c, height, width = input_shape
    flat = (n, c, grad.shape[2] * grad.shape[3])
    empty = zeros((n, c, height * width), dtype=grad.dtype, device=grad.device)
    return _scatter_add(empty, 2, indices.reshape(flat), grad.reshape(flat)).reshape(input_shape)


_max_pool2d_backward.demand(_rules.max_pool2d_backward)


@_max_pool2d_backward.gradient("grad")
def _(F, g, grad_shape, indices):
    n, c, height, width = grad_shape
    flat = F.reshape(indices, (n, c, height * width))
    planes = F.reshape(g, (n, c, g.shape[2] * g.shape[3]))
    return F.reshape(F.gather(planes, 2, flat), grad_shape)


@_max_pool2d_backward.gradient("indices")
def _(F, g):
    return None


@composite(results=2, title="MaxPool3DWithIndicesBackward0", ordered_by=["input"])
def _max_pool3d(
    input: Tensor,
    kernel_size: Triple,
    stride: Triple,
    padding: Triple,
    dilation: Triple,
    ceil_mode: bool,
) -> tuple[Tensor, Tensor]:
    """The largest element of each window and its position in D·H·W.

    First the maxima of every frame, then those of each column of frames: both orders of the search
    are ascending, so that the first of equals and the last of nans stay what they are.
    """
    n, c, depth, height, width = input.shape
    sizes = kernel_size, stride, padding, dilation
    frames = input.reshape((n, c * depth, height, width))
    values, inside = _max_pool2d(frames, *(s[1:] for s in sizes), ceil_mode)
    area = values.shape[2:]
    columns = values.reshape((n, c, depth, area[0] * area[1]))
    fills = (1, 1, 0, 1)
    deep = [(s[0], fill) for s, fill in zip(sizes, fills, strict=True)]
    values, which = _max_pool2d(columns, *deep, ceil_mode)
    shape = (n, c, values.shape[2], *area)
    which = which.reshape((n, c, prod(shape[2:])))
    frame = div(which, area[0] * area[1], rounding_mode="floor")
    inside = inside.reshape((n, c, depth * area[0] * area[1]))
    indices = frame * (height * width) + _gather(inside, 2, which)
    return values.reshape(shape), indices.reshape(shape)


_max_pool3d.jointly("input", zeros=True)


@_max_pool3d.gradient
def _(F, g, input_shape, result1):
    # In a row of all positions, so that the images' op serves.
    n, c, d, h, w = input_shape
    row = (n, c, 1, result1.shape[2] * result1.shape[3] * result1.shape[4])
    grads, indices = F.reshape(g[0], row), F.reshape(result1, row)
    return F.reshape(F.max_pool2d_backward(grads, indices, (n, c, 1, d * h * w)), input_shape)


@public(method=False)
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = (),
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The maximum of each window.

    `stride` is the kernel size by default; the border counts as -∞; `ceil_mode` keeps windows that
    reach past the end.

    Shapes: input (N, C, H, W) or (C, H, W); result the same with
    H' = ⌊(H + 2p - d·(K - 1) - 1) / s⌋ + 1.

    Raises:
        RuntimeError: shapes or settings do not fit; says which.
        NotImplementedError: the dtype is bool or complex.

    >>> import flambeau as fb
    >>> fb.max_pool2d(fb.arange(16.0).reshape(1, 4, 4), 2)
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """
    return _maxima(2, input, (kernel_size, stride, padding, dilation, ceil_mode))


@public(method=False)
def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = (),
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """`max_pool2d`, and where each maximum stands in H·W.

    Raises:
        RuntimeError: shapes or settings do not fit; says which.
        NotImplementedError: the dtype is bool or complex.

    >>> import flambeau as fb
    >>> fb.max_pool2d_with_indices(fb.ones(1, 2, 2), 2)[1]
    tensor([[[0]]])
    """
    return _pooled(2, input, (kernel_size, stride, padding, dilation, ceil_mode))


@public(method=False)
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = (),
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """`max_pool2d` of signals, (N, C, L) or (C, L).

    Raises:
        RuntimeError: shapes or settings do not fit; says which.
        NotImplementedError: the dtype is bool or complex.

    >>> import flambeau as fb
    >>> fb.max_pool1d(fb.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
    tensor([[3., 2.]])
    """
    settings = kernel_size, stride, padding, dilation, ceil_mode
    x, batch, how = _windows(1, input, settings)
    if batch._rg and recording():
        return _pooled(1, input, settings)[0]
    be, a = batch._be, batch._a
    try:
        image = be.view(a, (*a.shape[:2], 1, a.shape[2]))
        found = be.max_pool2d(image, *_of_height_one(*how))[0]
        n, c, _, count = found.shape
        values = be.view(found, (n, c, count) if batch is x else (c, count))
    except be.error as error:
        raise kernel_error("max_pool1d", error, (x, *how)) from error
    return wrap(be, values, x.dtype)


@public(method=False)
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = (),
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """`max_pool1d`, and where each maximum stands in L.

    Raises:
        RuntimeError: shapes or settings do not fit; says which.
        NotImplementedError: the dtype is bool or complex.

    >>> import flambeau as fb
    >>> fb.max_pool1d_with_indices(fb.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)[1]
    tensor([[1, 2]])
    """
    return _pooled(1, input, (kernel_size, stride, padding, dilation, ceil_mode))


@public(method=False)
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = (),
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """`max_pool2d` of volumes, (N, C, D, H, W) or (C, D, H, W).

    Raises:
        RuntimeError: shapes or settings do not fit; says which.
        NotImplementedError: the dtype is bool or complex.

    >>> import flambeau as fb
    >>> fb.max_pool3d(fb.arange(16.0).reshape(1, 2, 2, 4), 2)
    tensor([[[[13., 15.]]]])
    """
    return _maxima(3, input, (kernel_size, stride, padding, dilation, ceil_mode))


@public(method=False)
def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = (),
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """`max_pool3d`, and where each maximum stands in D·H·W.

    Raises:
        RuntimeError: shapes or settings do not fit; says which.
        NotImplementedError: the dtype is bool or complex.

    >>> import flambeau as fb
    >>> fb.max_pool3d_with_indices(fb.arange(16.0).reshape(1, 2, 2, 4), 2)[1].flatten()
    tensor([13, 15])
    """
    return _pooled(3, input, (kernel_size, stride, padding, dilation, ceil_mode))


Settings = tuple[object, object, object, object, bool]
"""Kernel size, stride, padding, dilation and ceil mode as they were given."""


def _maxima(rank: int, input: Tensor, settings: Settings) -> Tensor:
    """The maxima of images or volumes, without their places."""
    x, batch, how = _windows(rank, input, settings)
    values = _OF_RANK[rank].head(batch, *how)
    return values if batch is x else values.squeeze(0)


def _pooled(rank: int, input: Tensor, settings: Settings) -> tuple[Tensor, Tensor]:
    x, batch, how = _windows(rank, input, settings)
    if rank == 1:  # a signal is an image of height 1
        both = _max_pool2d(batch.unsqueeze(2), *_of_height_one(*how))
        values, indices = (r.squeeze(2) for r in both)
    else:
        values, indices = _OF_RANK[rank](batch, *how)
    return (values, indices) if batch is x else (values.squeeze(0), indices.squeeze(0))


@lru_cache(maxsize=64)
def _of_height_one(*how: Any) -> tuple[Any, ...]:
    """What the settings of a signal are to an image."""
    *sizes, ceil = how
    return *[(fill, *s) for fill, s in zip((1, 1, 0, 1), sizes, strict=True)], ceil


_OF_RANK = {2: _max_pool2d, 3: _max_pool3d}
_NAMES = {rank: f"max_pool{rank}d" for rank in (1, 2, 3)}


def _windows(
    rank: int, input: Tensor, settings: Settings
) -> tuple[Tensor, Tensor, tuple[Any, ...]]:
    """The input, the same as a batch, and the checked settings."""
    where = _NAMES[rank]
    x = input if type(input) is Tensor else need_tensor(input, where, "input")
    if x.dtype is D.bool_ or x.dtype.is_complex:
        raise NotImplementedError(f"{where}(): not implemented for {x.dtype}")
    kernel_size, stride, padding, dilation, ceil_mode = settings
    ceil = bool(ceil_mode)
    batch, how = window(where, rank, x, kernel_size, stride, padding, dilation, ceil)
    return x, batch, (*how, ceil)
