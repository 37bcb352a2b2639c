"""Layers that move channels to places, under PyTorch's name for this module."""

from flambeau.nn.modules.shuffling import PixelShuffle, PixelUnshuffle

__all__ = ["PixelShuffle", "PixelUnshuffle"]
