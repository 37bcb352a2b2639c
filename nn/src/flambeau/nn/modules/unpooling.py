"""Layers that undo max pooling."""

from __future__ import annotations

from collections.abc import Sequence

from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn.functional._arguments import Size
from flambeau.nn.module import Module
from flambeau.nn.modules.utils import ntuple


class _MaxUnpoolNd(Module):
    """The settings of the pooling to undo."""

    _dimensions: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]

    def __init__(self, kernel_size: Size, stride: Size | None = None, padding: Size = 0) -> None:
        super().__init__()
        count = self._dimensions
        self.kernel_size = ntuple(kernel_size, count)
        self.stride = self.kernel_size if stride is None else ntuple(stride, count)
        self.padding = ntuple(padding, count)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """A signal of zeros with pooled maxima at their indices; see `functional.max_unpool1d`.

    >>> import flambeau as fb
    >>> pooled, at = fb.nn.MaxPool1d(2, return_indices=True)(fb.randn(1, 4, 8))
    >>> fb.nn.MaxUnpool1d(2)(pooled, at).shape
    torch.Size([1, 4, 8])
    """

    _dimensions = 1

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        """The elements of `input` at `indices`, in `output_size` if that is given."""
        settings = self.kernel_size, self.stride, self.padding, output_size
        return F.max_unpool1d(input, indices, *settings)


class MaxUnpool2d(_MaxUnpoolNd):
    """An image of zeros with pooled maxima at their indices; see `functional.max_unpool2d`.

    >>> import flambeau as fb
    >>> pooled, at = fb.nn.MaxPool2d(2, return_indices=True)(fb.randn(1, 4, 8, 6))
    >>> fb.nn.MaxUnpool2d(2)(pooled, at).shape
    torch.Size([1, 4, 8, 6])
    """

    _dimensions = 2

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        """The elements of `input` at `indices`, in `output_size` if that is given."""
        settings = self.kernel_size, self.stride, self.padding, output_size
        return F.max_unpool2d(input, indices, *settings)


class MaxUnpool3d(_MaxUnpoolNd):
    """A volume of zeros with pooled maxima at their indices; see `functional.max_unpool3d`.

    >>> import flambeau as fb
    >>> pooled, at = fb.nn.MaxPool3d(2, return_indices=True)(fb.randn(1, 4, 8, 6, 4))
    >>> fb.nn.MaxUnpool3d(2)(pooled, at).shape
    torch.Size([1, 4, 8, 6, 4])
    """

    _dimensions = 3

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        """The elements of `input` at `indices`, in `output_size` if that is given."""
        settings = self.kernel_size, self.stride, self.padding, output_size
        return F.max_unpool3d(input, indices, *settings)
