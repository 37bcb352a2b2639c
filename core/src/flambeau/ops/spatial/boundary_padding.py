"""Padding with entries of the tensor itself: what a boundary reflects, repeats or closes over."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import lru_cache

from flambeau._dispatch.arguments import checked_sizes, need_tensor
from flambeau._tensor.tensor import Tensor
from flambeau.ops.creation.creation import unfilled
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.spatial.resampling import _resample, _resample_backward

Pairs = tuple[tuple[int, int], ...]

MODES = "reflect", "replicate", "circular"
_MANY = 1 << 20


@lru_cache(maxsize=256)
def places(mode: str, size: int, before: int, after: int) -> tuple[int, ...]:
    """Which entry of `size` stands at each place of the padded dimension.

    A circle closes over what is left of a cropped dimension; the other modes extend the whole, of
    which is kept what was not cropped.

    >>> places("reflect", 4, 2, 1)
    (2, 1, 0, 1, 2, 3, 2)
    >>> places("circular", 4, 1, -1)
    (2, 0, 1, 2)
    """
    wanted, last = range(-before, size + after), size - 1
    if mode == "reflect":
        return tuple([abs(i) if i < size else 2 * last - i for i in wanted])
    if mode == "replicate":
        return tuple([min(max(i, 0), last) for i in wanted])
    start = max(-before, 0)
    left = size - start - max(-after, 0)
    return tuple([start + (i - start) % left for i in wanted])


@composite(title="PadBackward0", ordered_by=["self"])
def _boundary_pad_nd(self: Tensor, pad: Pairs, mode: str) -> Tensor:
    """More entries before and after each dimension, of the tensor itself; negative numbers crop."""
    result = self
    for dim, (before, after) in enumerate(pad):
        if before or after:
            read = places(mode, result.shape[dim], before, after)
            result = _resample(result, dim, (read,), None)
    return result.clone() if result is self else result


@_boundary_pad_nd.gradient
def _(F, g, pad, mode):
    return F.boundary_pad_nd_backward(g, pad, mode)


@_boundary_pad_nd.samples
def _(S):
    return [
        S.Sample((S.Arr((2, 4)), ((0, 0), (2, 1)), "reflect"), "reflected", True),
        S.Sample((S.Arr((2, 3, 4)), ((0, 0), (1, 1), (3, -2)), "reflect"), "and cropped", True),
        S.Sample((S.Arr((2, 3)), ((0, 0), (4, 1)), "replicate"), "repeated", True),
        S.Sample((S.Arr((1, 2, 2, 3)), ((0, 0), (1, 0), (0, 2), (1, 1)), "replicate"), "3d", True),
        S.Sample((S.Arr((2, 3, 4)), ((0, 0), (0, 0), (2, -1)), "circular"), "in a circle", True),
        S.Sample((S.Arr((2, 3)), ((0, 0), (0, 0)), "circular"), "nothing", True),
        S.Sample((S.Arr(()), (), "reflect"), "scalar", True),
        S.Sample((S.Arr((0, 3)), ((0, 0), (1, 0)), "reflect"), "empty"),
    ]


@composite(title="PadBackwardBackward0", ordered_by=["grad"])
def _boundary_pad_nd_backward(grad: Tensor, pad: Pairs, mode: str) -> Tensor:
    """The adjoint of `boundary_pad_nd`: what was read from one entry is added."""
    result = grad
    for dim, (before, after) in enumerate(pad):
        if before or after:
            size = result.shape[dim] - before - after
            read = places(mode, size, before, after)
            result = _resample_backward(result, dim, size, (read,), None)
    return result.clone() if result is grad else result


@_boundary_pad_nd_backward.gradient
def _(F, g, pad, mode):
    return F.boundary_pad_nd(g, pad, mode)


@_boundary_pad_nd_backward.samples
def _(S):
    return [
        S.Sample((S.Arr((2, 7)), ((0, 0), (2, 1)), "reflect"), "reflected", True),
        S.Sample((S.Arr((2, 5, 5)), ((0, 0), (1, 1), (3, -2)), "reflect"), "and cropped", True),
        S.Sample((S.Arr((2, 8)), ((0, 0), (4, 1)), "replicate"), "repeated", True),
        S.Sample((S.Arr((1, 3, 4, 5)), ((0, 0), (1, 0), (0, 2), (1, 1)), "replicate"), "3d", True),
        S.Sample((S.Arr((2, 3, 5)), ((0, 0), (0, 0), (2, -1)), "circular"), "in a circle", True),
        S.Sample((S.Arr((2, 3)), ((0, 0), (0, 0)), "circular"), "nothing", True),
        S.Sample((S.Arr((0, 4)), ((0, 0), (1, 0)), "reflect"), "empty"),
    ]


@public(method=False)
def boundary_pad_nd(input: Tensor, pad: Sequence[int], mode: str) -> Tensor:
    """`input` with ``pad[0]`` entries before and ``pad[1]`` after the last dimension, and so on.

    The pairs of `pad` go from the last dimension backwards; negative numbers crop.  The new
    entries are the tensor's own: with `mode` ``"reflect"`` mirrored without the edge, with
    ``"replicate"`` the edge, with ``"circular"`` those of the opposite side.

    Raises:
        RuntimeError: `pad` is odd or too long, too wide for the mode, or crops more than there is.
        NotImplementedError: an unknown mode.

    >>> import flambeau as fb
    >>> fb.boundary_pad_nd(fb.tensor([1, 2, 3]), (2, 1), "reflect")
    tensor([3, 2, 1, 2, 3, 2])
    """
    x = need_tensor(input, "boundary_pad_nd", "input")
    if mode not in MODES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    try:
        counts = tuple(map(operator.index, pad))
    except TypeError:
        raise TypeError(f"pad(): argument 'pad' must be integers, not {pad!r:.200}") from None
    pairs, large = _pairs(mode, x.shape, counts)
    if large is not None:  # refused before places are counted, which takes longer
        unfilled(x._be, checked_sizes(large), x.dtype)
    if mode == "circular":  # whose results are row-major, as PyTorch's
        x = x.contiguous()
    return _boundary_pad_nd.run(x, pairs, mode)


@lru_cache(maxsize=256)
def _pairs(
    mode: str, shape: tuple[int, ...], counts: tuple[int, ...]
) -> tuple[Pairs, tuple[int, ...] | None]:
    """What is added before and after each dimension, if that is possible; a shape that is large."""
    rank = len(shape)
    if len(counts) % 2 or len(counts) // 2 > rank:
        raise RuntimeError(f"pad: {len(counts)} numbers are no pairs for {rank} dimensions")
    pairs = [(0, 0)] * rank
    for i in range(0, len(counts), 2):
        dim = rank - 1 - i // 2
        pairs[dim] = counts[i], counts[i + 1]
        _check(mode, shape, dim, *pairs[dim])
    is_large = max(counts, default=0) > _MANY
    sizes = tuple([n + before + after for n, (before, after) in zip(shape, pairs, strict=True)])
    return tuple(pairs), sizes if is_large else None


def _check(mode: str, shape: tuple[int, ...], dim: int, before: int, after: int) -> None:
    size, told = shape[dim], list(shape)
    left = size + min(before, 0) + min(after, 0)
    if left < 0 or size + before + after < 0:
        raise RuntimeError(
            f"pad: cannot crop ({before}, {after}) from dimension {dim} of shape {told}"
        )
    wide = max(before, after, 0)
    if not wide:
        return
    if mode == "reflect" and wide >= size:
        raise RuntimeError(
            "Padding size should be less than the corresponding input dimension, but got: "
            f"padding ({before}, {after}) at dimension {dim} of input {told}"
        )
    if mode == "replicate" and size == 0:
        raise RuntimeError(f"pad: mode 'replicate' needs a non-empty dimension {dim}, got {told}")
    if mode == "circular" and wide > left:
        raise RuntimeError(
            "Padding value causes wrapping around more than once: "
            f"padding ({before}, {after}) at dimension {dim} of input {told}"
        )
