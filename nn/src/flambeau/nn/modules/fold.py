"""Layers that take images apart into windows and put them together again."""

from __future__ import annotations

from collections.abc import Sequence

from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn.module import Module

Size = int | Sequence[int]


class Unfold(Module):
    """The windows of an image as columns; see `functional.unfold`.

    >>> import flambeau as fb
    >>> fb.nn.Unfold((2, 3))(fb.randn(2, 5, 3, 4)).shape
    torch.Size([2, 30, 4])
    """

    kernel_size: Size
    dilation: Size
    padding: Size
    stride: Size

    def __init__(
        self, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """The columns."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )


class Fold(Module):
    """The sum of windows, given as columns, where they lie in an image; see `functional.fold`.

    >>> import flambeau as fb
    >>> fb.nn.Fold((4, 5), (2, 2))(fb.randn(1, 3 * 2 * 2, 12)).shape
    torch.Size([1, 3, 4, 5])
    """

    output_size: Size
    kernel_size: Size
    dilation: Size
    padding: Size
    stride: Size

    def __init__(
        self,
        output_size: Size,
        kernel_size: Size,
        dilation: Size = 1,
        padding: Size = 0,
        stride: Size = 1,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """The images."""
        settings = self.kernel_size, self.dilation, self.padding, self.stride
        return F.fold(input, self.output_size, *settings)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, "
            f"dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
        )
