"""The layer that mixes groups of channels, under PyTorch's name for this module."""

from flambeau.nn.modules.shuffling import ChannelShuffle

__all__ = ["ChannelShuffle"]
