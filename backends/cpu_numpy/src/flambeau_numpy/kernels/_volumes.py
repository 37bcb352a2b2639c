"""Convolution of volumes as convolution of images.

Frame z of the output is the image convolution of the kd frames z·sd + i·dd - pd of the padded
input, stacked as channels, with the kernel's kd frames stacked likewise:

    stacked[n, z, c, i] = padded[n, c, z·sd + i·dd]

So the images' kernels serve, at the price of kd copies of the input.
"""

from __future__ import annotations

import numpy as np

from flambeau_numpy.allocator import empty, zeros
from flambeau_numpy.pointwise import Array

Triple = tuple[int, int, int]


class Stack:
    """Depths of one convolution.

    Attributes:
        shape, kernel: shapes of the input and of the weight.
        frames: depth of the output.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        kernel: tuple[int, ...],
        stride: Triple,
        padding: Triple,
        dilation: Triple,
    ) -> None:
        self.shape, self.kernel = shape, kernel
        self.stride, self.padding, self.dilation = stride[0], padding[0], dilation[0]
        reach = dilation[0] * (kernel[2] - 1) + 1
        self.frames = (shape[2] + 2 * padding[0] - reach) // stride[0] + 1

    @property
    def images_shape(self) -> tuple[int, ...]:
        """Shape of the stacked input as images."""
        n, c, _, h, w = self.shape
        return n * self.frames, c * self.kernel[2], h, w

    def _taps(self, padded: Array) -> list[Array]:
        """Per frame of the kernel: the padded frames (n, z, c, h, w) that it meets."""
        end = self.stride * (self.frames - 1) + 1
        starts = (i * self.dilation for i in range(self.kernel[2]))
        return [padded[:, s : s + end : self.stride] for s in starts]

    def images(self, x: Array) -> Array:
        """The input as images whose channels are (c, i)."""
        n, c, d, h, w = x.shape
        padded = x.transpose(0, 2, 1, 3, 4)
        if p := self.padding:
            padded = zeros((n, d + 2 * p, c, h, w), x.dtype)
            padded[:, p : p + d] = x.transpose(0, 2, 1, 3, 4)
        stacked = empty((n, self.frames, c, self.kernel[2], h, w), x.dtype)
        for i, tap in enumerate(self._taps(padded)):
            stacked[:, :, :, i] = tap
        return stacked.reshape(self.images_shape)

    def volume(self, images: Array) -> Array:
        """The adjoint of `images`: gradients of stacked frames, summed where they overlap."""
        n, c, d, h, w = self.shape
        p = self.padding
        padded = zeros((n, d + 2 * p, c, h, w), images.dtype)
        stacked = images.reshape(n, self.frames, c, self.kernel[2], h, w)
        for i, tap in enumerate(self._taps(padded)):
            tap += stacked[:, :, :, i]
        return np.ascontiguousarray(padded[:, p : p + d].transpose(0, 2, 1, 3, 4))

    def filters(self, weight: Array) -> Array:
        """The weight for images."""
        o, c, kd, kh, kw = weight.shape
        return np.ascontiguousarray(weight).reshape(o, c * kd, kh, kw)

    def joined(self, images: Array) -> Array:
        """Frames (n·z, o, h, w) as volumes (n, o, z, h, w)."""
        shape = (self.shape[0], self.frames, *images.shape[1:])
        return np.ascontiguousarray(images.reshape(shape).transpose(0, 2, 1, 3, 4))

    def parted(self, volume: Array) -> Array:
        """Volumes (n, o, z, h, w) as frames (n·z, o, h, w)."""
        frames = np.ascontiguousarray(volume.transpose(0, 2, 1, 3, 4))
        return frames.reshape(-1, *frames.shape[2:])
