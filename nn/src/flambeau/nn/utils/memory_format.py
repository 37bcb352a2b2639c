"""Convolution weights in the order of memory that suits images stored channels last."""

from __future__ import annotations

from typing import TypeVar

from flambeau import memory_format as MemoryFormat
from flambeau.nn.module import Module
from flambeau.nn.modules.convolution import Conv2d, Conv3d
from flambeau.nn.modules.transposed_convolution import ConvTranspose2d, ConvTranspose3d
from flambeau.overrides import takes_as_annotated

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]

M = TypeVar("M", bound=Module)


@takes_as_annotated
def convert_conv2d_weight_memory_format(module: M, memory_format: MemoryFormat) -> M:
    """Store the weights of the `Conv2d` and `ConvTranspose2d` in `module` in `memory_format`.

    Values stay; whether the order in memory changes is up to the backend.

    >>> import flambeau as fb
    >>> layer = fb.nn.Conv2d(3, 4, 2)
    >>> layer = fb.nn.utils.convert_conv2d_weight_memory_format(layer, fb.channels_last)
    >>> layer.weight.shape
    torch.Size([4, 3, 2, 2])
    """
    return _converted(module, (Conv2d, ConvTranspose2d), memory_format)


@takes_as_annotated
def convert_conv3d_weight_memory_format(module: M, memory_format: MemoryFormat) -> M:
    """Store the weights of the `Conv3d` and `ConvTranspose3d` in `module` in `memory_format`.

    Values stay; whether the order in memory changes is up to the backend.

    >>> import flambeau as fb
    >>> layer = fb.nn.Conv3d(3, 4, 2)
    >>> layer = fb.nn.utils.convert_conv3d_weight_memory_format(layer, fb.channels_last_3d)
    >>> layer.weight.shape
    torch.Size([4, 3, 2, 2, 2])
    """
    return _converted(module, (Conv3d, ConvTranspose3d), memory_format)


def _converted(module: M, kinds: tuple[type[Module], ...], memory_format: MemoryFormat) -> M:
    for part in module.modules():
        if isinstance(part, kinds):
            weight = part.weight
            weight.data = weight.detach().clone(memory_format=memory_format)
    return module
