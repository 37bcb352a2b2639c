"""Layers that rearrange channels and pixels."""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.module import Module


class PixelShuffle(Module):
    """(…, C·r², H, W) as (…, C, H·r, W·r): each r² channels become a square of pixels.

    >>> import flambeau as fb
    >>> fb.nn.PixelShuffle(3)(fb.randn(1, 9, 4, 4)).shape
    torch.Size([1, 1, 12, 12])
    """

    upscale_factor: int

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The input with more pixels and fewer channels."""
        return fb.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """(…, C, H·r, W·r) as (…, C·r², H, W): the inverse of `PixelShuffle`.

    >>> import flambeau as fb
    >>> fb.nn.PixelUnshuffle(3)(fb.randn(1, 1, 12, 12)).shape
    torch.Size([1, 9, 4, 4])
    """

    downscale_factor: int

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The input with fewer pixels and more channels."""
        return fb.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """(N, C, …) with channel i·C/g + j moved to j·g + i.

    >>> import flambeau as fb
    >>> fb.nn.ChannelShuffle(2)(fb.arange(4.0).reshape(1, 4, 1, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    groups: int

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """The input with its channels mixed."""
        return fb.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
