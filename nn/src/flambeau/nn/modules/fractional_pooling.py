"""Layers of pooling over windows at pseudo-random places."""

from __future__ import annotations

from typing import Any

from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn.functional._arguments import Size
from flambeau.nn.module import Module
from flambeau.nn.modules.utils import ntuple


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
