"""Layers that enlarge an input at its sides; `functional.pad` explains the modes."""

from __future__ import annotations

from collections.abc import Sequence

from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn._refusals import require_tensors
from flambeau.nn.functional._arguments import sizes
from flambeau.nn.module import Module

Padding = int | Sequence[int]


class _Pad(Module):
    """Padding of the last dimensions; subclasses say how many and how."""

    spatial: int = 0
    mode: str = "constant"
    padding: tuple[int, ...]

    def __init__(self, padding: Padding) -> None:
        super().__init__()
        self.padding = sizes(padding, 2 * self.spatial, "padding", type(self).__name__)

    def forward(self, input: Tensor) -> Tensor:
        """The enlarged input."""
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    value: float

    def __init__(self, padding: Padding, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """The enlarged input."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPadNd):
    def __init__(self, padding: Padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPadNd(_Pad):
    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """The enlarged input."""
        require_tensors(type(self).__name__, input=input)
        if input.dim() not in (self.spatial + 1, self.spatial + 2):
            raise ValueError(
                f"expected {self.spatial + 1}D or {self.spatial + 2}D input "
                f"(got {input.dim()}D input)"
            )
        return super().forward(input)


class _ReflectionPadNd(_Pad):
    mode = "reflect"


class _ReplicationPadNd(_Pad):
    mode = "replicate"


class ConstantPad1d(_ConstantPadNd):
    """One `value` at the sides of sequences.

    `padding` is one number for all sides or (left, right).
    Negative numbers crop.

    Shapes: input (N, C, L) or (C, L), result alike but larger.

    >>> import flambeau as fb
    >>> fb.nn.ConstantPad1d((1, 2), 7.0)(fb.tensor([[1.0, 2.0]]))
    tensor([[7., 1., 2., 7., 7.]])
    """

    spatial = 1


class ConstantPad2d(_ConstantPadNd):
    """One `value` at the sides of images.

    `padding` is one number for all sides or (left, right, top, bottom).
    Negative numbers crop.

    Shapes: input (N, C, H, W) or (C, H, W), result alike but larger.

    >>> import flambeau as fb
    >>> fb.nn.ConstantPad2d((1, 1, 0, 2), 1.0)(fb.ones(1, 1, 3, 3)).shape
    torch.Size([1, 1, 5, 5])
    """

    spatial = 2


class ConstantPad3d(_ConstantPadNd):
    """One `value` at the sides of volumes.

    `padding` is one number for all sides or (left, right, top, bottom, front, back).
    Negative numbers crop.

    Shapes: input (N, C, D, H, W) or (C, D, H, W), result alike but larger.

    >>> import flambeau as fb
    >>> fb.nn.ConstantPad3d(1, 1.0)(fb.ones(1, 2, 2, 2)).shape
    torch.Size([1, 4, 4, 4])
    """

    spatial = 3


class ZeroPad1d(_ZeroPad):
    """Zeros at the sides of sequences.

    `padding` is one number for all sides or (left, right).
    Negative numbers crop.

    Shapes: input (N, C, L) or (C, L), result alike but larger.

    >>> import flambeau as fb
    >>> fb.nn.ZeroPad1d((1, 2))(fb.tensor([[1.0, 2.0]]))
    tensor([[0., 1., 2., 0., 0.]])
    """

    spatial = 1


class ZeroPad2d(_ZeroPad):
    """Zeros at the sides of images.

    `padding` is one number for all sides or (left, right, top, bottom).
    Negative numbers crop.

    Shapes: input (N, C, H, W) or (C, H, W), result alike but larger.

    >>> import flambeau as fb
    >>> fb.nn.ZeroPad2d((1, 1, 0, 2))(fb.ones(1, 1, 3, 3)).shape
    torch.Size([1, 1, 5, 5])
    """

    spatial = 2


class ZeroPad3d(_ZeroPad):
    """Zeros at the sides of volumes.

    `padding` is one number for all sides or (left, right, top, bottom, front, back).
    Negative numbers crop.

    Shapes: input (N, C, D, H, W) or (C, D, H, W), result alike but larger.

    >>> import flambeau as fb
    >>> fb.nn.ZeroPad3d(1)(fb.ones(1, 2, 2, 2)).shape
    torch.Size([1, 4, 4, 4])
    """

    spatial = 3


class ReflectionPad1d(_ReflectionPadNd):
    """The mirrored inside at the sides of sequences, without the edge itself.

    `padding` is one number for all sides or (left, right).
    Negative numbers crop.

    Shapes: input (N, C, L) or (C, L), result alike but larger.

    >>> import flambeau as fb
    >>> fb.nn.ReflectionPad1d(2)(fb.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 2., 1., 2., 3., 2., 1.]])
    """

    spatial = 1


class ReflectionPad2d(_ReflectionPadNd):
    """The mirrored inside at the sides of images, without the edge itself.

    `padding` is one number for all sides or (left, right, top, bottom).
    Negative numbers crop.

    Shapes: input (N, C, H, W) or (C, H, W), result alike but larger.

    >>> import flambeau as fb
    >>> fb.nn.ReflectionPad2d((1, 1, 0, 2))(fb.ones(1, 1, 3, 3)).shape
    torch.Size([1, 1, 5, 5])
    """

    spatial = 2


class ReflectionPad3d(_ReflectionPadNd):
    """The mirrored inside at the sides of volumes, without the edge itself.

    `padding` is one number for all sides or (left, right, top, bottom, front, back).
    Negative numbers crop.

    Shapes: input (N, C, D, H, W) or (C, D, H, W), result alike but larger.

    >>> import flambeau as fb
    >>> fb.nn.ReflectionPad3d(1)(fb.ones(1, 2, 2, 2)).shape
    torch.Size([1, 4, 4, 4])
    """

    spatial = 3


class ReplicationPad1d(_ReplicationPadNd):
    """The edge repeated at the sides of sequences.

    `padding` is one number for all sides or (left, right).
    Negative numbers crop.

    Shapes: input (N, C, L) or (C, L), result alike but larger.

    >>> import flambeau as fb
    >>> fb.nn.ReplicationPad1d((1, 2))(fb.tensor([[1.0, 2.0]]))
    tensor([[1., 1., 2., 2., 2.]])
    """

    spatial = 1


class ReplicationPad2d(_ReplicationPadNd):
    """The edge repeated at the sides of images.

    `padding` is one number for all sides or (left, right, top, bottom).
    Negative numbers crop.

    Shapes: input (N, C, H, W) or (C, H, W), result alike but larger.

    >>> import flambeau as fb
    >>> fb.nn.ReplicationPad2d((1, 1, 0, 2))(fb.ones(1, 1, 3, 3)).shape
    torch.Size([1, 1, 5, 5])
    """

    spatial = 2


class ReplicationPad3d(_ReplicationPadNd):
    """The edge repeated at the sides of volumes.

    `padding` is one number for all sides or (left, right, top, bottom, front, back).
    Negative numbers crop.

    Shapes: input (N, C, D, H, W) or (C, D, H, W), result alike but larger.

    >>> import flambeau as fb
    >>> fb.nn.ReplicationPad3d(1)(fb.ones(1, 2, 2, 2)).shape
    torch.Size([1, 4, 4, 4])
    """

    spatial = 3


class CircularPad1d(_CircularPadNd):
    """The opposite side at the sides of sequences.

    `padding` is one number for all sides or (left, right).
    Negative numbers crop.

    Shapes: input (N, C, L) or (C, L), result alike but larger.

    >>> import flambeau as fb
    >>> fb.nn.CircularPad1d((1, 2))(fb.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 1., 2., 3., 1., 2.]])
    """

    spatial = 1


class CircularPad2d(_CircularPadNd):
    """The opposite side at the sides of images.

    `padding` is one number for all sides or (left, right, top, bottom).
    Negative numbers crop.

    Shapes: input (N, C, H, W) or (C, H, W), result alike but larger.

    >>> import flambeau as fb
    >>> fb.nn.CircularPad2d((1, 1, 0, 2))(fb.ones(1, 1, 3, 3)).shape
    torch.Size([1, 1, 5, 5])
    """

    spatial = 2


class CircularPad3d(_CircularPadNd):
    """The opposite side at the sides of volumes.

    `padding` is one number for all sides or (left, right, top, bottom, front, back).
    Negative numbers crop.

    Shapes: input (N, C, D, H, W) or (C, D, H, W), result alike but larger.

    >>> import flambeau as fb
    >>> fb.nn.CircularPad3d(1)(fb.ones(1, 2, 2, 2)).shape
    torch.Size([1, 4, 4, 4])
    """

    spatial = 3
