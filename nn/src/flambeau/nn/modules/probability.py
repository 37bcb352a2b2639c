"""Layers that turn the scores along a dimension into (log-)probabilities."""

from __future__ import annotations

from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn._refusals import require_tensors
from flambeau.nn.module import Module


class _AlongDim(Module):
    """A layer that works along one dimension."""

    dim: int | None

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim


class Softmax(_AlongDim):
    """exp(x) / sum of exp(x) along `dim`.

    >>> import flambeau as fb
    >>> fb.nn.Softmax(dim=0)(fb.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        """`functional.softmax` along this dimension."""
        return F.softmax(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmin(_AlongDim):
    """`Softmax` of -x.

    >>> import flambeau as fb
    >>> fb.nn.Softmin(dim=0)(fb.tensor([0.0, 1.0]))
    tensor([0.7311, 0.2689])
    """

    def forward(self, input: Tensor) -> Tensor:
        """`functional.softmin` along this dimension."""
        return F.softmin(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(_AlongDim):
    """log(softmax(x)) along `dim`.

    >>> import flambeau as fb
    >>> fb.nn.LogSoftmax(dim=0)(fb.tensor([0.0, 0.0]))
    tensor([-0.6931, -0.6931])
    """

    def forward(self, input: Tensor) -> Tensor:
        """`functional.log_softmax` along this dimension."""
        return F.log_softmax(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax2d(Module):
    """`Softmax` over the channels of images, (N, C, H, W) or (C, H, W).

    Raises:
        ValueError: the input does not have three or four dimensions.

    >>> import flambeau as fb
    >>> fb.nn.Softmax2d()(fb.zeros(2, 1, 1)).flatten()
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        """`functional.softmax` over the channels."""
        require_tensors("Softmax2d", input=input)
        if input.dim() not in (3, 4):
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead"
            )
        return F.softmax(input, -3)
