"""Channels rearranged into pixels, pixels into channels, and channels among groups."""

from __future__ import annotations

import operator
from functools import lru_cache
from math import prod

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.orders import ordered_like
from flambeau._tensor.tensor import Tensor
from flambeau._types.memory_format import contiguous_format
from flambeau.ops.declaration.public import public
from flambeau.ops.spatial.resampling import _resample


@public(method=False)
@takes_as_annotated
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(…, C·r², H, W) as (…, C, H·r, W·r): each r² channels become a square of pixels.

    Source: Shi et al., *Real-time single image and video super-resolution*, arXiv:1609.05158.

    Raises:
        RuntimeError: fewer than 3 dimensions, or channels that r² does not divide.

    >>> import flambeau as fb
    >>> fb.pixel_shuffle(fb.arange(4.0).reshape(4, 1, 1), 2)
    tensor([[[0., 1.],
             [2., 3.]]])
    """
    x = need_tensor(input, "pixel_shuffle", "input")
    r = _checked("pixel_shuffle", x, "upscale_factor", upscale_factor)
    *lead, c, h, w = x.shape
    if c % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
            f"of upscale_factor, but input.size(-3)={c} is not divisible by {r * r}"
        )
    flat = x.reshape((prod(lead), c // (r * r), r, r, h, w)).permute((0, 1, 4, 2, 5, 3))
    flat = flat.clone(memory_format=contiguous_format)  # also where nothing moves
    return ordered_like(x, flat.reshape((*lead, c // (r * r), h * r, w * r)))


@public(method=False)
@takes_as_annotated
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(…, C, H·r, W·r) as (…, C·r², H, W): the inverse of `pixel_shuffle`.

    Raises:
        RuntimeError: fewer than 3 dimensions, or a height or width that r does not divide.

    >>> import flambeau as fb
    >>> fb.pixel_unshuffle(fb.arange(4.0).reshape(1, 2, 2), 2).flatten()
    tensor([0., 1., 2., 3.])
    """
    x = need_tensor(input, "pixel_unshuffle", "input")
    r = _checked("pixel_unshuffle", x, "downscale_factor", downscale_factor)
    *lead, c, h, w = x.shape
    for name, dim, size in (("height", -2, h), ("width", -1, w)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but "
                f"input.size({dim})={size} is not divisible by {r}"
            )
    flat = x.reshape((prod(lead), c, h // r, r, w // r, r)).permute((0, 1, 3, 5, 2, 4))
    flat = flat.clone(memory_format=contiguous_format)
    return flat.reshape((*lead, c * r * r, h // r, w // r))


@public(method=False)
@takes_as_annotated
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """(N, C, …) with channel i·C/g + j moved to j·g + i: neighbours come from different groups.

    Source: Zhang et al., *ShuffleNet*, arXiv:1707.01083.

    Raises:
        RuntimeError: fewer than 3 dimensions, or groups that do not divide the channels.

    >>> import flambeau as fb
    >>> fb.channel_shuffle(fb.arange(4.0).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    x = need_tensor(input, "channel_shuffle", "input")
    if x.dim() < 3:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(x.shape)}"
        )
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    c = x.shape[1]
    if c % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups."
        )
    return _resample.run(x, 1, _shuffled(c, operator.index(groups)), None)


@lru_cache(maxsize=64)
def _shuffled(channels: int, groups: int) -> tuple[tuple[int, ...]]:
    """Where each channel comes from."""
    of_each = channels // groups
    return (tuple([i * of_each + j for j in range(of_each) for i in range(groups)]),)


@public(method=False)
def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """`channel_shuffle` under the name of PyTorch's kernel.

    >>> import flambeau as fb
    >>> fb.native_channel_shuffle(fb.arange(4.0).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    return channel_shuffle(input, groups)


def _checked(where: str, x: Tensor, name: str, factor: int) -> int:
    if x.dim() < 3:
        raise RuntimeError(
            f"{where} expects input to have at least 3 dimensions, but got input with {x.dim()} "
            "dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{where} expects a positive {name}, but got {factor}")
    return operator.index(factor)
