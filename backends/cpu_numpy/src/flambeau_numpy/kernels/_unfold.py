"""The geometry of a convolution, and its input as a matrix whose columns are output positions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flambeau_numpy.allocator import empty, zeros
from flambeau_numpy.pointwise import Array

Pair = tuple[int, int]

SHALLOW = 24  # products of at most this depth are not worth repeating for every kernel row
POSITIONS = 2048  # output positions that one matrix product should have
WORKSPACE = 1 << 20  # elements of unfolded input at a time, beyond one image


class Plan:
    """Sizes of one convolution, per group.

    Attributes:
        images, groups: sizes of the batch.
        channels, features: input and output channels of a group.
        size, out: height and width of input and output.
        depth: rows of the unfolded matrix of a group.
        rows: input rows per residue modulo the vertical stride (q in the module's formula).
        plain: whether the input itself is that matrix (a 1×1 kernel on every pixel).
        whole: whether all taps are unfolded, instead of one kernel row's; then every image has a
            matrix of its own, otherwise the images of a block share one.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        weight: tuple[int, ...],
        stride: Pair,
        padding: Pair,
        dilation: Pair,
        groups: int,
    ) -> None:
        self.images, _, height, width = shape
        features, self.channels, kh, kw = weight
        self.groups, self.features = groups, features // groups
        self.size, self.kernel = (height, width), (kh, kw)
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.out = (
            (height + 2 * padding[0] - dilation[0] * (kh - 1) - 1) // stride[0] + 1,
            (width + 2 * padding[1] - dilation[1] * (kw - 1) - 1) // stride[1] + 1,
        )
        self.plain = self.kernel == tuple(stride) == (1, 1) and tuple(padding) == (0, 0)
        self.whole = kh == 1 or self.channels * kw <= SHALLOW
        self.depth = self.channels * (kh * kw if self.whole else kw)
        self.rows = self.out[0] + dilation[0] * (kh - 1) // stride[0]

    @property
    def lines(self) -> int:
        """Rows of pixels in the unfolded matrix, of `out[1]` positions per image each."""
        return self.out[0] if self.whole else self.stride[0] * self.rows

    def blocks(self) -> Iterator[tuple[slice, int]]:
        """The batch in blocks that fit the workspace: slices and their lengths."""
        positions = max(1, self.out[0] * self.out[1])
        wanted = self.images if self.whole or self.plain else -(-POSITIONS // positions)
        image = self.groups * self.depth * self.lines * self.out[1]
        step = max(1, min(wanted, WORKSPACE // max(1, image)))
        for start in range(0, self.images, step):
            yield slice(start, start + step), min(step, self.images - start)

    def products(self) -> list[tuple[int, slice]]:
        """Per matrix product: the first line of its positions, and the kernel rows it applies."""
        if self.plain or self.whole:
            return [(0, slice(None))]
        found = []
        for i in range(self.kernel[0]):
            q, r = divmod(i * self.dilation[0], self.stride[0])
            found.append((r * self.rows + q, slice(i, i + 1)))
        return found

    def span(self, line: int, count: int) -> slice:
        """The columns of all output positions of `count` images, from a line on."""
        width = self.out[1] if self.whole else count * self.out[1]
        return slice(line * width, (line + self.out[0]) * width)

    def matrix(self, weight: Array, kernel: slice) -> Array:
        """The weights of some kernel rows as (groups, features, depth)."""
        part = np.ascontiguousarray(weight[:, :, kernel])
        return part.reshape(self.groups, self.features, -1)

    def workspace(self, count: int, dtype: np.dtype) -> Array:
        """Room for the unfolded matrix of `count` images."""
        batch, width = (count, self.out[1]) if self.whole else (1, count * self.out[1])
        return empty((batch, self.groups, self.depth, self.lines * width), dtype)

    def as_columns(self, g: Array) -> Array:
        """Images (n, groups, features, y, x) as matrices with the columns of the unfolded one."""
        if self.whole or self.plain:
            return g.reshape(*g.shape[:3], -1)
        return g.transpose(1, 2, 3, 0, 4).reshape(1, self.groups, self.features, -1)

    def unfold(self, x: Array) -> Array:
        """The taps of a block of images (n, groups, channels, height, width)."""
        count = x.shape[0]
        if self.plain:
            return x.reshape(*x.shape[:3], -1)
        cols = self.workspace(count, x.dtype)
        for region, place in self._pairs(self._pad(x), cols, count):
            np.copyto(place, region)
        return cols

    def fold(self, cols: Array, out: Array) -> None:
        """Sum the unfolded taps onto the pixels they came from, into a block of images."""
        count = out.shape[0]
        (ph, pw), (h, w) = self.padding, self.size
        height = max(h + 2 * ph, self._height())
        padded = zeros((*out.shape[:3], height, w + 2 * pw), out.dtype)
        for region, place in self._pairs(padded, cols, count):
            region += place
        out[...] = padded[..., ph : ph + h, pw : pw + w]

    def _height(self) -> int:
        # Lines are read in groups of the stride, so the last group may reach below the image.
        return 0 if self.whole else self.rows * self.stride[0]

    def _pad(self, x: Array) -> Array:
        (ph, pw), (h, w) = self.padding, self.size
        height = max(h + 2 * ph, self._height())
        if height == h and not pw:
            return x
        out = zeros((*x.shape[:3], height, w + 2 * pw), x.dtype)
        out[..., ph : ph + h, pw : pw + w] = x
        return out

    def _pairs(self, padded: Array, cols: Array, count: int) -> Iterator[tuple[Array, Array]]:
        """Parts of the padded images and their places in `cols`, in one order of dimensions."""
        (oh, ow), (kh, kw) = self.out, self.kernel
        (sh, sw), (dh, dw) = self.stride, self.dilation
        if self.whole:
            table = cols.reshape(count, self.groups, self.channels, kh, kw, oh, ow)
            for i in range(kh):
                rows = padded[:, :, :, i * dh : i * dh + sh * (oh - 1) + 1 : sh]
                for j in range(kw):
                    yield rows[..., j * dw : j * dw + sw * (ow - 1) + 1 : sw], table[:, :, :, i, j]
            return
        order = padded.transpose(1, 2, 3, 0, 4)
        table = cols.reshape(self.groups, self.channels, kw, sh, self.rows, count, ow)
        for r in range(sh):
            rows = order[:, :, r : r + sh * (self.rows - 1) + 1 : sh]
            for j in range(kw):
                yield rows[..., j * dw : j * dw + sw * (ow - 1) + 1 : sw], table[:, :, j, r]
