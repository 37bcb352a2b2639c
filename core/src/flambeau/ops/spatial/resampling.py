"""Resampling: signals, images and volumes in another size."""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import checked_sizes, need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau.ops.creation.creation import tensor, unfilled, zeros
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.indices.indexing import _index, _index_put
from flambeau.ops.layers.activation import wide
from flambeau.ops.shapes.movement import cat
from flambeau.ops.spatial.resampling_taps import Places, Weights, taps

_MANY, _BYTES_OF_POSITION = 1 << 20, 100


def _factors(weights: Sequence[float], dim: int, like: Tensor) -> Tensor:
    """Weights to multiply along `dim`."""
    shape = (len(weights), *(1 for _ in like.shape[dim + 1 :]))
    return tensor(list(weights), dtype=like.dtype, device=like.device).reshape(shape)


def _at(places: Sequence[int], dim: int, like: Tensor) -> tuple[Tensor | None, ...]:
    """An index of `places` along `dim`."""
    return *(None,) * dim, tensor(list(places), dtype=D.int64, device=like.device)


@composite(title="UpsampleBackward0", ordered_by=["input"])
def _resample(input: Tensor, dim: int, places: Places, weights: Weights) -> Tensor:
    """Σ_t weights[t][i] · input[places[t][i]] along `dim`; without weights the one tap itself."""
    if weights is None:
        return _index(input, _at(places[0], dim, input))
    x = wide(input)
    total = None
    for place, weight in zip(places, weights, strict=True):
        part = _index(x, _at(place, dim, x)) * _factors(weight, dim, x)
        total = part if total is None else total + part
    assert total is not None
    return cast(total, input.dtype)


@_resample.gradient
def _(F, g, input_shape, dim, places, weights):
    return F.resample_backward(g, dim, input_shape[dim], places, weights)


@composite(title="UpsampleBackwardBackward0", ordered_by=["grad"])
def _resample_backward(
    grad: Tensor, dim: int, size: int, places: Places, weights: Weights
) -> Tensor:
    """The adjoint of `resample`: what was read from one element is added."""
    g = wide(grad)
    parts = g
    if weights is not None:
        parts = cat([g * _factors(weight, dim, g) for weight in weights], dim)
    shape = (*g.shape[:dim], size, *g.shape[dim + 1 :])
    empty = zeros(shape, dtype=g.dtype, device=g.device)
    index = _at([p for place in places for p in place], dim, g)
    return cast(_index_put(empty, index, parts, True), grad.dtype)


@_resample_backward.gradient
def _(F, g, dim, places, weights):
    return F.resample(g, dim, places, weights)


def _resample_bytes(x: Tensor, dim: int, places: Places, weights: Weights) -> Tensor:
    """`resample` of bytes, kept in float64: weights of 16 bits, a rounded sum.

    The weights are whole multiples of 2^-p, with p as large as their size allows; a half is added
    to the sum, what is behind the point is cut off, and what is no byte becomes the nearest.
    """
    assert weights is not None
    merged = [[0.0] * len(tap) for tap in weights]  # at the border, taps on one place are one
    for i, (where, shares) in enumerate(
        zip(zip(*places, strict=True), zip(*weights, strict=True), strict=True)
    ):
        for place, share in zip(where, shares, strict=True):
            merged[where.index(place)][i] += share
    largest = max(0.0, *(w for tap in merged for w in tap))
    bits = next(p for p in range(23) if int(0.5 + largest * 2 ** (p + 1)) >= 2**15 or p == 22)
    whole = tuple(tuple(float(int(w * 2**bits + copysign(0.5, w))) for w in t) for t in merged)
    total = _resample(x, dim, places, whole)
    return ((total + 2.0 ** (bits - 1)) / 2.0**bits).floor().clamp(0, 255)


@public(method=False)
@takes_as_annotated
def resample(
    input: Tensor,
    size: Sequence[int],
    mode: str = "nearest",
    align_corners: bool = False,
    scales: Sequence[float | None] | None = None,
    antialias: bool = False,
) -> Tensor:
    """`input` with its last dimensions in another `size`, one dimension after the other.

    `mode` is ``"nearest"``, ``"nearest-exact"``, ``"linear"`` or ``"cubic"``.  Output i of O lies
    at (i + ½)·n/O - ½ in the input, with `align_corners` at i·(n - 1)/(O - 1); a scale replaces
    O/n.  With `antialias` linear and cubic kernels widen when the input shrinks.

    Shapes: input (N, C, *spatial); result (N, C, *size).

    Raises:
        RuntimeError: a size is not positive, the channels are empty, or the ranks differ.
        NotImplementedError: the dtype is neither floating nor uint8 (of which only images have
            linear and cubic: each dimension is rounded, with weights of 16 bits).

    >>> import flambeau as fb
    >>> fb.resample(fb.tensor([[[0.0, 1.0]]]), [4], "linear")
    tensor([[[0.0000, 0.2500, 0.7500, 1.0000]]])
    """
    x = need_tensor(input, "resample", "input")
    rank = len(size)
    if x.dim() != rank + 2:
        raise RuntimeError(
            f"It is expected input_size equals to {rank + 2}, but got size {x.dim()}"
        )
    if min(size) <= 0 or 0 in x.shape[2:]:
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input {list(x.shape[2:])} "
            f"output {list(size)}"
        )
    if x.shape[1] == 0:
        raise RuntimeError(
            f"Non-empty {x.dim()}D data tensor expected but got a tensor with sizes {list(x.shape)}"
        )
    if max(size) > _MANY:  # refused before positions are counted, which takes longer
        unfilled(x._be, checked_sizes((*x.shape[:2], *size)), x.dtype)
        unfilled(x._be, (sum(size), _BYTES_OF_POSITION), D.uint8)
    nearest = mode in ("nearest", "nearest-exact")
    of_bytes = x.dtype is D.uint8 and not nearest
    if not (x.dtype.is_floating_point or (x.dtype is D.uint8 and (nearest or rank == 2))):
        raise NotImplementedError(f"resample(): mode {mode!r} is not implemented for {x.dtype}")
    given = x
    x = x if nearest else cast(x, D.float64) if of_bytes else wide(x)
    single = x.dtype is not D.float64 or nearest
    resized = _resample_bytes if of_bytes else _resample
    for d in reversed(range(rank)):  # the last dimension first, as long as there are few rows
        old, new = x.shape[2 + d], size[d]
        scale = scales[d] if scales is not None else None
        if old == new and (align_corners or not scale or scale == 1):
            continue
        x = resized(x, 2 + d, *taps(mode, old, new, scale, align_corners, antialias, single))
    if x is given:
        return x.clone()
    return cast(x, given.dtype)
