"""Pooling over windows that are given by the size of the result.

Window i of O along a dimension of n elements goes from ⌊i·n/O⌋ to ⌈(i+1)·n/O⌉.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.orders import ordered_like
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.ops.creation.creation import zeros
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.shapes.movement import cat
from flambeau.ops.spatial.average_pooling import avg_pool2d
from flambeau.ops.spatial.image_windows import Pair, Places, Sizes, Triple
from flambeau.ops.spatial.pooling import largest
from flambeau.ops.spatial.resampling import _resample

_TERMS = 128  # elements of a window, up to which their places are listed
_MANY = 1 << 10  # windows, before whose lists memory for their results is tried


def _spans(size: int, count: int) -> list[tuple[int, int]]:
    """First element and end of each window."""
    return [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


@public(method=False)
def adaptive_avg_pool1d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The means of `output_size` windows that cover a signal.

    Shapes: input (N, C, L) or (C, L); result the same with the output size.

    Raises:
        RuntimeError: shapes or sizes do not fit; says which.

    >>> import flambeau as fb
    >>> fb.adaptive_avg_pool1d(fb.tensor([[1.0, 2.0, 3.0]]), 2)
    tensor([[1.5000, 2.5000]])
    """
    return _means("adaptive_avg_pool1d", input, output_size, 1)


@public(method=False)
def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The means of `output_size` windows that cover the image: from ⌊i·H/O⌋ to ⌈(i+1)·H/O⌉.

    A None in `output_size` keeps the input's size.

    Shapes: input (N, C, H, W) or (C, H, W); result the same with the output size.

    Raises:
        RuntimeError: shapes or sizes do not fit; says which.

    >>> import flambeau as fb
    >>> fb.adaptive_avg_pool2d(fb.arange(4.0).reshape(1, 2, 2), 1)
    tensor([[[1.5000]]])
    """
    return _means("adaptive_avg_pool2d", input, output_size, 2)


@public(method=False)
def adaptive_avg_pool3d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """`adaptive_avg_pool2d` of volumes, (N, C, D, H, W) or (C, D, H, W).

    Raises:
        RuntimeError: shapes or sizes do not fit; says which.

    >>> import flambeau as fb
    >>> fb.adaptive_avg_pool3d(fb.arange(8.0).reshape(1, 2, 2, 2), (2, 1, 1)).flatten()
    tensor([1.5000, 5.5000])
    """
    return _means("adaptive_avg_pool3d", input, output_size, 3)


@public(method=False)
def adaptive_max_pool1d(
    input: Tensor, output_size: int | Sequence[int | None] | None
) -> tuple[Tensor, Tensor]:
    """The maxima of `output_size` windows that cover a signal, and where they stand in L.

    Shapes: input (N, C, L) or (C, L); results the same with the output size.

    Raises:
        RuntimeError: shapes or sizes do not fit; says which.
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.adaptive_max_pool1d(fb.tensor([[1.0, 2.0, 3.0]]), 2)
    (tensor([[2., 3.]]), tensor([[1, 2]]))
    """
    return _maxima("adaptive_max_pool1d", input, output_size, 1)


@public(method=False)
def adaptive_max_pool2d(
    input: Tensor, output_size: int | Sequence[int | None] | None
) -> tuple[Tensor, Tensor]:
    """The maxima of `output_size` windows that cover an image, and where they stand in H·W.

    Shapes: input (N, C, H, W) or (C, H, W); results the same with the output size.

    Raises:
        RuntimeError: shapes or sizes do not fit; says which.
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.adaptive_max_pool2d(fb.arange(4.0).reshape(1, 2, 2), 1)
    (tensor([[[3.]]]), tensor([[[3]]]))
    """
    return _maxima("adaptive_max_pool2d", input, output_size, 2)


@public(method=False)
def adaptive_max_pool3d(
    input: Tensor, output_size: int | Sequence[int | None] | None
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool2d` of volumes, with positions in D·H·W.

    Shapes: input (N, C, D, H, W) or (C, D, H, W); results the same with the output size.

    Raises:
        RuntimeError: shapes or sizes do not fit; says which.
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.adaptive_max_pool3d(fb.arange(8.0).reshape(1, 2, 2, 2), (2, 1, 1))[1].flatten()
    tensor([3, 7])
    """
    return _maxima("adaptive_max_pool3d", input, output_size, 3)


def _means(where: str, input: Tensor, output_size: object, rank: int) -> Tensor:
    x = need_tensor(input, where, "input")
    size = _checked(where, x, output_size, rank)
    first = x.dim() - rank
    if max(size) == min(size) == 1:  # of complex numbers as well
        return x.mean(tuple(range(first, x.dim())), True)
    if not x.dtype.is_floating_point:
        raise NotImplementedError(f"{where}(): not implemented for {x.dtype}")
    if rank == 2 and all(n and x.shape[first + d] % n == 0 for d, n in enumerate(size)):
        kernel = x.shape[-2] // size[0], x.shape[-1] // size[1]
        return avg_pool2d(x, kernel)
    result = x
    for dim, wanted in enumerate(size, first):
        if wanted != x.shape[dim]:
            result = _window_means(result, dim, wanted)
    if result is x:
        result = x.clone()
    return ordered_like(x, result) if rank == 2 else result


def _window_means(x: Tensor, dim: int, count: int) -> Tensor:
    """Means of windows along one dimension; of all in turn, as the windows are boxes."""
    size = x.shape[dim]
    if count and size % count == 0:
        return x.unflatten(dim, (count, size // count)).mean(dim + 1)
    if count and max(b - a for a, b in _spans(size, count)) <= max(2 * count, _TERMS):
        return _resample.run(x, dim, *_shares(size, count))
    means = [x.narrow(dim, a, b - a).mean(dim, True) for a, b in _spans(size, count)]
    return cat(means, dim) if means else x.narrow(dim, 0, 0)


@lru_cache(maxsize=64)  # a network pools the same few shapes over and over
def _shares(size: int, count: int) -> tuple[Places, tuple[tuple[float, ...], ...]]:
    """What each window has of which elements: as many of each, the last ones parts of the same."""
    spans = _spans(size, count)
    terms = max(b - a for a, b in spans)
    places, weights = [], []
    for a, b in spans:
        rest = terms - (b - a)
        places.append([*range(a, b), *[b - 1] * rest])
        weights.append([1 / (b - a)] * (b - a - 1) + [1 / (b - a) / (rest + 1)] * (rest + 1))
    return tuple(zip(*places, strict=True)), tuple(zip(*weights, strict=True))


def _maxima(where: str, input: Tensor, output_size: object, rank: int) -> tuple[Tensor, Tensor]:
    x = input if type(input) is Tensor else need_tensor(input, where, "input")
    size = _checked(where, x, output_size, rank)
    if not x.dtype.is_floating_point:
        raise NotImplementedError(f"{where}(): not implemented for {x.dtype}")
    unbatched = len(x._a.shape) == rank + 1
    batch = x.unsqueeze(0) if unbatched else x
    if rank == 1:
        batch, size = batch.unsqueeze(2), (1, *size)
    values, indices = _largest_of_spans(batch, size)
    if rank == 1:
        values, indices = values.squeeze(2), indices.squeeze(2)
    return (values.squeeze(0), indices.squeeze(0)) if unbatched else (values, indices)


def _largest_of_spans(x: Tensor, wanted: Sizes) -> tuple[Tensor, Tensor]:
    if 0 in wanted or 0 in x._a.shape:
        shape = (*x.shape[:2], *wanted)
        empty = zeros(shape, dtype=D.int64, device=x.device)
        return x.sum() * zeros(shape, dtype=x.dtype, device=x.device), empty
    run = _adaptive_max_pool2d.run if len(wanted) == 2 else _adaptive_max_pool3d.run
    return run(x, wanted)


@composite(results=2, ordered_by=["input"])
def _adaptive_max_pool2d(input: Tensor, output_size: Pair) -> tuple[Tensor, Tensor]:
    """The largest element of each window and its position in H·W."""
    dims = [_places(m, o) for m, o in zip(input.shape[2:], output_size, strict=True)]
    return largest(input, dims)


@composite(results=2)
def _adaptive_max_pool3d(input: Tensor, output_size: Triple) -> tuple[Tensor, Tensor]:
    """The largest element of each window and its position in D·H·W."""
    dims = [_places(m, o) for m, o in zip(input.shape[2:], output_size, strict=True)]
    return largest(input, dims)


_adaptive_max_pool2d.jointly("input", zeros=True)


@_adaptive_max_pool2d.gradient
def _(F, g, input_shape, result1):
    return F.max_pool2d_backward(g[0], result1, input_shape)


_adaptive_max_pool3d.jointly("input", zeros=True)


@_adaptive_max_pool3d.gradient
def _(F, g, input_shape, result1):
    # In a row of all positions, so that the images' op serves.
    n, c, d, h, w = input_shape
    row = (n, c, 1, result1.shape[2] * result1.shape[3] * result1.shape[4])
    grads, indices = F.reshape(g[0], row), F.reshape(result1, row)
    return F.reshape(F.max_pool2d_backward(grads, indices, (n, c, 1, d * h * w)), input_shape)


def _places(size: int, count: int) -> Places:
    """The positions of each window, all of one length: shorter ones repeat their last element."""
    spans = _spans(size, count)
    length = max(b - a for a, b in spans)
    return [[min(p, b - 1) for p in range(a, a + length)] for a, b in spans]


def _checked(where: str, x: Tensor, output_size: Any, rank: int) -> Sizes:
    shape = tuple(x._a.shape)
    if type(output_size) is int:
        size = _sizes(where, shape, output_size, rank)
    else:  # a tuple of floats equals one of integers
        given = tuple(output_size) if isinstance(output_size, list) else output_size
        size = _sizes.__wrapped__(where, shape, given, rank)
    if max(size) > _MANY and x._be.device.type != "meta":
        x.new_empty((*shape[: len(shape) - rank], *size))
    return size


@lru_cache(maxsize=256)  # a network pools the same few shapes over and over
def _sizes(where: str, shape: Sizes, output_size: Any, rank: int) -> Sizes:
    count = len(shape)
    if count not in (rank + 1, rank + 2):
        raise RuntimeError(
            f"{where}(): Expected {rank + 1}D or {rank + 2}D tensor, but got {list(shape)}"
        )
    sides = shape[count - rank :]
    if 0 in sides:
        raise RuntimeError(
            f"{where}(): Expected input to have non-zero size for non-batch dimensions, but "
            f"input has sizes {list(shape)} with dimension {count - rank + sides.index(0)} being "
            "empty"
        )
    given = output_size if isinstance(output_size, tuple) else (output_size,) * rank
    if len(given) != rank:
        raise RuntimeError(f"{where}: output_size must be {rank}, got {list(given)}")
    size = tuple([n if m is None else operator.index(m) for n, m in zip(sides, given, strict=True)])
    if min(size) < 0:
        raise RuntimeError(
            f"{where}: elements of output_size must be greater than or equal to 0 but received "
            f"{list(given)}"
        )
    if max(size) >= 1 << 31:  # before lists of windows are made
        raise RuntimeError(f"{where}: output_size {list(given)} is too large")
    return size
