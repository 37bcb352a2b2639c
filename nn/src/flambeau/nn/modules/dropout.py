"""Dropout layers; they do nothing in evaluation mode."""

from __future__ import annotations

from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn.module import Module


class _DropoutNd(Module):
    """The probability and the mode of all dropout layers."""

    p: float
    inplace: bool

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Zeroes each element with probability `p` and divides the others by 1 - `p`.

    >>> import flambeau as fb
    >>> sorted(set(fb.nn.Dropout(0.5)(fb.ones(100)).tolist()))
    [0.0, 2.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        """`functional.dropout`, in training mode."""
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Zeroes whole channels of signals, (N, C, L) or (C, L).

    >>> import flambeau as fb
    >>> fb.nn.Dropout1d(0.2)(fb.ones(20, 16, 32)).shape
    torch.Size([20, 16, 32])
    """

    def forward(self, input: Tensor) -> Tensor:
        """`functional.dropout1d`, in training mode."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Zeroes whole channels of images, (N, C, H, W).

    >>> import flambeau as fb
    >>> fb.nn.Dropout2d(0.2)(fb.ones(20, 16, 32, 32)).shape
    torch.Size([20, 16, 32, 32])
    """

    def forward(self, input: Tensor) -> Tensor:
        """`functional.dropout2d`, in training mode."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Zeroes whole channels of volumes, (N, C, D, H, W) or (C, D, H, W).

    >>> import flambeau as fb
    >>> fb.nn.Dropout3d(0.2)(fb.ones(2, 16, 4, 3, 3)).shape
    torch.Size([2, 16, 4, 3, 3])
    """

    def forward(self, input: Tensor) -> Tensor:
        """`functional.dropout3d`, in training mode."""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout that keeps the mean 0 and variance 1 that SELU gives.

    >>> import flambeau as fb
    >>> fb.nn.AlphaDropout(0.2)(fb.randn(20, 16)).shape
    torch.Size([20, 16])
    """

    def forward(self, input: Tensor) -> Tensor:
        """`functional.alpha_dropout`, in training mode."""
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_DropoutNd):
    """`AlphaDropout` of whole channels.

    >>> import flambeau as fb
    >>> fb.nn.FeatureAlphaDropout(0.2)(fb.randn(20, 16, 4, 4)).shape
    torch.Size([20, 16, 4, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        """`functional.feature_alpha_dropout`, in training mode."""
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
