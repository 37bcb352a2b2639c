"""Layers of pooling to given sizes, of norms, at random places, and its inverse."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn.module import Module
from flambeau.nn.modules.utils import ntuple

Size = int | Iterable[int]
Sizes = int | Sequence[int | None] | None


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

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """The maxima and, if `return_indices`, where they stand."""
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """The maxima of `output_size` windows that cover an image, (N, C, H, W) or (C, H, W).

    >>> import flambeau as fb
    >>> fb.nn.AdaptiveMaxPool2d((5, None))(fb.randn(1, 64, 8, 9)).shape
    torch.Size([1, 64, 5, 9])
    """

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """The maxima and, if `return_indices`, where they stand."""
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """The maxima of `output_size` windows that cover a volume, (N, C, D, H, W) or (C, D, H, W).

    >>> import flambeau as fb
    >>> fb.nn.AdaptiveMaxPool3d(2)(fb.randn(1, 6, 8, 9, 4)).shape
    torch.Size([1, 6, 2, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """The maxima and, if `return_indices`, where they stand."""
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


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


class _FractionalMaxPoolNd(Module):
    """The settings of fractional maximum pooling."""

    _dimensions: int
    kernel_size: tuple[int, ...]
    output_size: tuple[int, ...] | None
    output_ratio: tuple[float, ...] | None
    return_indices: bool
    _random_samples: Tensor | None

    def __init__(
        self,
        kernel_size: Size,
        output_size: Size | None = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        count = self._dimensions
        name = f"FractionalMaxPool{count}d"
        self.kernel_size = ntuple(kernel_size, count)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else ntuple(output_size, count)
        self.output_ratio = None if output_ratio is None else ntuple(output_ratio, count)
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def _settings(self) -> tuple[Any, ...]:
        return (
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """The maxima of an image over windows at pseudo-random places.

    The result has `output_size`, or the input's size times `output_ratio`; see
    `functional.fractional_max_pool2d`.

    Raises:
        ValueError: neither or both of `output_size` and `output_ratio`, or a ratio not in (0, 1).

    >>> import flambeau as fb
    >>> fb.nn.FractionalMaxPool2d(3, output_size=(13, 12))(fb.randn(2, 4, 50, 32)).shape
    torch.Size([2, 4, 13, 12])
    """

    _dimensions = 2

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """The maxima and, if `return_indices`, where they stand."""
        return F.fractional_max_pool2d(input, *self._settings())


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """The maxima of a volume over windows at pseudo-random places.

    The result has `output_size`, or the input's size times `output_ratio`; see
    `functional.fractional_max_pool3d`.

    Raises:
        ValueError: neither or both of `output_size` and `output_ratio`, or a ratio not in (0, 1).

    >>> import flambeau as fb
    >>> fb.nn.FractionalMaxPool3d(2, output_ratio=0.5)(fb.randn(2, 4, 8, 6, 5)).shape
    torch.Size([2, 4, 4, 3, 2])
    """

    _dimensions = 3

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """The maxima and, if `return_indices`, where they stand."""
        return F.fractional_max_pool3d(input, *self._settings())


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
