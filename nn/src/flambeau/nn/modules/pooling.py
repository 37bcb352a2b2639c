"""Pooling layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn.functional._arguments import Size
from flambeau.nn.module import Module
from flambeau.nn.modules.fractional_pooling import FractionalMaxPool2d as FractionalMaxPool2d
from flambeau.nn.modules.fractional_pooling import FractionalMaxPool3d as FractionalMaxPool3d
from flambeau.nn.modules.unpooling import MaxUnpool1d as MaxUnpool1d
from flambeau.nn.modules.unpooling import MaxUnpool2d as MaxUnpool2d
from flambeau.nn.modules.unpooling import MaxUnpool3d as MaxUnpool3d
from flambeau.nn.modules.unpooling import _MaxUnpoolNd as _MaxUnpoolNd
from flambeau.nn.modules.utils import ntuple

Sizes = int | Sequence[int | None] | None


class _MaxPoolNd(Module):
    """The settings of maximum pooling."""

    kernel_size: Size
    stride: Size
    padding: Size
    dilation: Size
    return_indices: bool
    ceil_mode: bool

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def _settings(self) -> tuple[Any, ...]:
        return (
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """The maximum of each window of a signal; see `functional.max_pool1d`.

    Shapes: input (N, C, L) or (C, L); result with
    L' = ⌊(L + 2·padding - dilation·(kernel_size - 1) - 1) / stride⌋ + 1.

    >>> import flambeau as fb
    >>> fb.nn.MaxPool1d(3, stride=2)(fb.randn(20, 16, 50)).shape
    torch.Size([20, 16, 24])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The maxima and, if `return_indices`, where they stand."""
        return F.max_pool1d(input, *self._settings())  # type: ignore[return-value] - a pair too is taken apart into tensors


class MaxPool2d(_MaxPoolNd):
    """The maximum of each window of an image; see `functional.max_pool2d`.

    Shapes: input (N, C, H, W) or (C, H, W); result with
    H' = ⌊(H + 2·padding - dilation·(kernel_size - 1) - 1) / stride⌋ + 1.

    >>> import flambeau as fb
    >>> fb.nn.MaxPool2d(3, stride=2)(fb.randn(20, 16, 50, 32)).shape
    torch.Size([20, 16, 24, 15])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The maxima and, if `return_indices`, where they stand."""
        return F.max_pool2d(input, *self._settings())  # type: ignore[return-value] - a pair too is taken apart into tensors


class MaxPool3d(_MaxPoolNd):
    """The maximum of each window of a volume; see `functional.max_pool3d`.

    Shapes: input (N, C, D, H, W) or (C, D, H, W); result with
    D' = ⌊(D + 2·padding - dilation·(kernel_size - 1) - 1) / stride⌋ + 1.

    >>> import flambeau as fb
    >>> fb.nn.MaxPool3d(2)(fb.randn(2, 3, 4, 6, 5)).shape
    torch.Size([2, 3, 2, 3, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The maxima and, if `return_indices`, where they stand."""
        return F.max_pool3d(input, *self._settings())  # type: ignore[return-value] - a pair too is taken apart into tensors


class AvgPool1d(Module):
    """The mean of each window of a signal; see `functional.avg_pool1d`.

    Shapes: input (N, C, L) or (C, L); result with
    L' = ⌊(L + 2·padding - kernel_size) / stride⌋ + 1.

    >>> import flambeau as fb
    >>> fb.nn.AvgPool1d(3, stride=2)(fb.tensor([[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]]]))
    tensor([[[2., 4., 6.]]])
    """

    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    ceil_mode: bool
    count_include_pad: bool

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = ntuple(kernel_size, 1)
        self.stride = self.kernel_size if stride is None else ntuple(stride, 1)
        self.padding = ntuple(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """The means."""
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPoolNd(Module):
    """The settings of mean pooling of images and volumes."""

    kernel_size: Size
    stride: Size
    padding: Size
    ceil_mode: bool
    count_include_pad: bool
    divisor_override: int | None

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def _settings(self) -> tuple[Any, ...]:
        return (
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_AvgPoolNd):
    """The mean of each window of an image; see `functional.avg_pool2d`.

    Shapes: input (N, C, H, W) or (C, H, W); result with
    H' = ⌊(H + 2·padding - kernel_size) / stride⌋ + 1.

    >>> import flambeau as fb
    >>> fb.nn.AvgPool2d(3, stride=2)(fb.randn(20, 16, 50, 32)).shape
    torch.Size([20, 16, 24, 15])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The means."""
        return F.avg_pool2d(input, *self._settings())


class AvgPool3d(_AvgPoolNd):
    """The mean of each window of a volume; see `functional.avg_pool3d`.

    Shapes: input (N, C, D, H, W) or (C, D, H, W); result with
    H' = ⌊(H + 2·padding - kernel_size) / stride⌋ + 1.

    >>> import flambeau as fb
    >>> fb.nn.AvgPool3d(2)(fb.randn(2, 3, 4, 6, 5)).shape
    torch.Size([2, 3, 2, 3, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The means."""
        return F.avg_pool3d(input, *self._settings())


class _AdaptiveAvgPoolNd(Module):
    """The settings of pooling to a given size."""

    output_size: int | Sequence[int | None] | None

    def __init__(self, output_size: int | Sequence[int | None] | None) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """The means of `output_size` windows that cover a signal, (N, C, L) or (C, L).

    >>> import flambeau as fb
    >>> fb.nn.AdaptiveAvgPool1d(5)(fb.randn(1, 64, 8)).shape
    torch.Size([1, 64, 5])
    """

    def forward(self, input: Tensor) -> Tensor:
        """`functional.adaptive_avg_pool1d` to this size."""
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """The means of `output_size` windows that cover an image, (N, C, H, W) or (C, H, W).

    >>> import flambeau as fb
    >>> fb.nn.AdaptiveAvgPool2d((5, None))(fb.randn(1, 64, 8, 9)).shape
    torch.Size([1, 64, 5, 9])
    """

    def forward(self, input: Tensor) -> Tensor:
        """`functional.adaptive_avg_pool2d` to this size."""
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """The means of `output_size` windows that cover a volume, (N, C, D, H, W) or (C, D, H, W).

    >>> import flambeau as fb
    >>> fb.nn.AdaptiveAvgPool3d((5, None, 1))(fb.randn(1, 6, 8, 9, 4)).shape
    torch.Size([1, 6, 5, 9, 1])
    """

    def forward(self, input: Tensor) -> Tensor:
        """`functional.adaptive_avg_pool3d` to this size."""
        return F.adaptive_avg_pool3d(input, self.output_size)


class _AdaptiveMaxPoolNd(Module):
    """The settings of maximum pooling to a given size."""

    output_size: Sizes
    return_indices: bool

    def __init__(self, output_size: Sizes, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """The maxima of `output_size` windows that cover a signal, (N, C, L) or (C, L).

    >>> import flambeau as fb
    >>> fb.nn.AdaptiveMaxPool1d(5)(fb.randn(1, 64, 8)).shape
    torch.Size([1, 64, 5])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The maxima and, if `return_indices`, where they stand."""
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)  # type: ignore[return-value] - a pair too is taken apart into tensors


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """The maxima of `output_size` windows that cover an image, (N, C, H, W) or (C, H, W).

    >>> import flambeau as fb
    >>> fb.nn.AdaptiveMaxPool2d((5, None))(fb.randn(1, 64, 8, 9)).shape
    torch.Size([1, 64, 5, 9])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The maxima and, if `return_indices`, where they stand."""
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)  # type: ignore[return-value] - a pair too is taken apart into tensors


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """The maxima of `output_size` windows that cover a volume, (N, C, D, H, W) or (C, D, H, W).

    >>> import flambeau as fb
    >>> fb.nn.AdaptiveMaxPool3d(2)(fb.randn(1, 6, 8, 9, 4)).shape
    torch.Size([1, 6, 2, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The maxima and, if `return_indices`, where they stand."""
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)  # type: ignore[return-value] - a pair too is taken apart into tensors


class _LPPoolNd(Module):
    """The settings of pooling to norms."""

    norm_type: float
    kernel_size: Size
    stride: Size | None
    ceil_mode: bool

    def __init__(
        self,
        norm_type: float,
        kernel_size: Size,
        stride: Size | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    """The `norm_type`-norm of each window of a signal; see `functional.lp_pool1d`.

    >>> import flambeau as fb
    >>> fb.nn.LPPool1d(2, 3)(fb.ones(1, 4, 9)).shape
    torch.Size([1, 4, 3])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The norms."""
        settings = self.norm_type, self.kernel_size, self.stride, self.ceil_mode
        return F.lp_pool1d(input, *settings)


class LPPool2d(_LPPoolNd):
    """The `norm_type`-norm of each window of an image; see `functional.lp_pool2d`.

    >>> import flambeau as fb
    >>> fb.nn.LPPool2d(2, 3, stride=2)(fb.ones(1, 4, 9, 7)).shape
    torch.Size([1, 4, 4, 3])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The norms."""
        settings = self.norm_type, self.kernel_size, self.stride, self.ceil_mode
        return F.lp_pool2d(input, *settings)


class LPPool3d(_LPPoolNd):
    """The `norm_type`-norm of each window of a volume; see `functional.lp_pool3d`.

    >>> import flambeau as fb
    >>> fb.nn.LPPool3d(2, 3)(fb.ones(1, 4, 9, 6, 3)).shape
    torch.Size([1, 4, 3, 2, 1])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The norms."""
        settings = self.norm_type, self.kernel_size, self.stride, self.ceil_mode
        return F.lp_pool3d(input, *settings)
