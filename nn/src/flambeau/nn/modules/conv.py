"""Convolutions, under PyTorch's name for this module."""

from flambeau.nn.modules.convolution import Conv1d, Conv2d, Conv3d, _ConvNd
from flambeau.nn.modules.lazy_layers import (
    LazyConv1d,
    LazyConv2d,
    LazyConv3d,
    LazyConvTranspose1d,
    LazyConvTranspose2d,
    LazyConvTranspose3d,
)
from flambeau.nn.modules.transposed_convolution import (
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    _ConvTransposeNd,
)
from flambeau.nn.modules.utils import _pair, _reverse_repeat_tuple, _single, _triple

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
    "_ConvNd",
    "_ConvTransposeNd",
    "_pair",
    "_reverse_repeat_tuple",
    "_single",
    "_triple",
]
