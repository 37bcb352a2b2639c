"""Layers that give images another size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn.module import Module

Size = int | Sequence[int]
Scale = float | Sequence[float]


class Upsample(Module):
    """`functional.interpolate` to `size`, or by `scale_factor`.

    >>> import flambeau as fb
    >>> fb.nn.Upsample(scale_factor=2, mode="bilinear")(fb.randn(1, 3, 4, 5)).shape
    torch.Size([1, 3, 8, 10])
    """

    name: str
    size: Size | None
    scale_factor: Scale | None
    mode: str
    align_corners: bool | None
    recompute_scale_factor: bool | None

    def __init__(
        self,
        size: Size | None = None,
        scale_factor: Scale | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, (tuple, list)):
            self.scale_factor = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None  # type: ignore[arg-type]
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The input in its new size."""
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("recompute_scale_factor", True)

    def extra_repr(self) -> str:
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"
        return f"size={self.size!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """An image in another size, each element that of the nearest; `Upsample` does the same.

    >>> import flambeau as fb
    >>> fb.nn.UpsamplingNearest2d(scale_factor=2)(fb.randn(1, 3, 4, 5)).shape
    torch.Size([1, 3, 8, 10])
    """

    def __init__(self, size: Size | None = None, scale_factor: Scale | None = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """An image in another size, bilinearly with aligned corners; `Upsample` does the same.

    >>> import flambeau as fb
    >>> fb.nn.UpsamplingBilinear2d((8, 9))(fb.randn(1, 3, 4, 5)).shape
    torch.Size([1, 3, 8, 9])
    """

    def __init__(self, size: Size | None = None, scale_factor: Scale | None = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
