"""Convolution layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.module import Module
from flambeau.nn.modules.utils import _reverse_repeat_tuple, ntuple
from flambeau.nn.parameter import Parameter

Size = int | Sequence[int]
Device = fb.device | str | int | None

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What convolutions of every dimension share: settings, parameters, repr.

    A subclass gives the number of spatial dimensions as `dimensions` and defines `_convolve`.
    """

    dimensions: int
    in_channels: int
    out_channels: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: str | tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool
    output_padding: tuple[int, ...]
    groups: int
    padding_mode: str
    weight: Parameter
    bias: Parameter  # or None: typed so that programs may initialise it unasked

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: str | tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Device = None,
        dtype: fb.dtype | None = None,
    ) -> None:
        super().__init__()
        _check(in_channels, out_channels, stride, padding, groups, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._padding_per_side()
        rows, columns = out_channels, in_channels
        if transposed:
            rows, columns = columns, rows
        shape = (rows, columns // groups, *kernel_size)
        self.weight = Parameter(fb.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(fb.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _padding_per_side(self) -> list[int]:
        """The padding as `functional.pad` takes it: pairs from the last dimension backwards."""
        if isinstance(self.padding, tuple):
            return list(_reverse_repeat_tuple(self.padding, 2))
        sides = [0, 0] * len(self.kernel_size)
        if self.padding == "same":
            for i, (d, k) in enumerate(zip(self.dilation, self.kernel_size, strict=True)):
                total = d * (k - 1)
                place = 2 * (len(self.kernel_size) - 1 - i)
                sides[place : place + 2] = total // 2, total - total // 2
        return sides

    def reset_parameters(self) -> None:
        """Draw new values from U(-k, k) with k = 1 / √fan_in."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        nothing = (0,) * len(self.kernel_size)
        if self.padding != nothing:
            quoted = repr(self.padding) if isinstance(self.padding, tuple) else self.padding
            text += f", padding={quoted}"
        if self.dilation != (1,) * len(self.kernel_size):
            text += f", dilation={self.dilation}"
        if self.output_padding != nothing:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


class _Convolution(_ConvNd):
    """A convolution that is not transposed: from settings per dimension to `functional`."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: str | Size = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Device = None,
        dtype: fb.dtype | None = None,
    ) -> None:
        count = self.dimensions
        super().__init__(
            in_channels,
            out_channels,
            ntuple(kernel_size, count),
            ntuple(stride, count),
            padding if isinstance(padding, str) else ntuple(padding, count),
            ntuple(dilation, count),
            False,
            (0,) * count,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = 0
        return self._convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def _convolve(self, *args: object) -> Tensor:
        raise NotImplementedError

    def forward(self, input: Tensor) -> Tensor:
        """The functional convolution with this weight, bias and settings."""
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Convolution):
    """A stack of learned filters over signals; `functional.conv1d` gives the formula.

    Shapes: input (N, in_channels, L) or (in_channels, L); result (N, out_channels, L') with
    L' = ⌊(L + 2·padding - dilation·(kernel_size - 1) - 1) / stride⌋ + 1.  `weight` is
    (out_channels, in_channels / groups, kernel_size); it and `bias` start from U(-k, k),
    k = 1 / √fan_in.

    Raises:
        ValueError: the channels, groups or padding do not fit each other.

    >>> import flambeau as fb
    >>> fb.nn.Conv1d(16, 33, 3, stride=2)(fb.randn(20, 16, 50)).shape
    torch.Size([20, 33, 24])
    """

    dimensions = 1

    def _convolve(self, *args: Any) -> Tensor:
        return F.conv1d(*args)


class Conv2d(_Convolution):
    """A stack of learned filters over images; `functional.conv2d` gives the formula.

    `padding` is a size, ``"same"`` or ``"valid"``; `padding_mode` is ``"zeros"``, ``"reflect"``,
    ``"replicate"`` or ``"circular"``.

    Shapes: input (N, in_channels, H, W) or (in_channels, H, W); result (N, out_channels, H', W')
    with H' = ⌊(H + 2·padding - dilation·(kernel_size - 1) - 1) / stride⌋ + 1.  `weight` is
    (out_channels, in_channels / groups, *kernel_size); it and `bias` start from U(-k, k),
    k = 1 / √fan_in.

    Raises:
        ValueError: the channels, groups or padding do not fit each other.

    >>> import flambeau as fb
    >>> fb.nn.Conv2d(16, 33, (3, 5), stride=(2, 1), padding=(4, 2))(fb.randn(20, 16, 50, 100)).shape
    torch.Size([20, 33, 28, 100])
    """

    dimensions = 2

    def _convolve(self, *args: Any) -> Tensor:
        return F.conv2d(*args)


class Conv3d(_Convolution):
    """A stack of learned filters over volumes; `functional.conv3d` gives the shapes' formula.

    Shapes: input (N, in_channels, D, H, W) or (in_channels, D, H, W).  `weight` is
    (out_channels, in_channels / groups, *kernel_size); it and `bias` start from U(-k, k),
    k = 1 / √fan_in.

    Raises:
        ValueError: the channels, groups or padding do not fit each other.

    >>> import flambeau as fb
    >>> fb.nn.Conv3d(4, 6, (3, 5, 2), stride=(2, 1, 1))(fb.randn(2, 4, 7, 9, 8)).shape
    torch.Size([2, 6, 3, 5, 7])
    """

    dimensions = 3

    def _convolve(self, *args: Any) -> Tensor:
        return F.conv3d(*args)


def _check(
    in_channels: int,
    out_channels: int,
    stride: tuple[int, ...],
    padding: str | tuple[int, ...],
    groups: int,
    padding_mode: str,
) -> None:
    if groups <= 0:
        raise ValueError(f"groups must be a positive integer, got {groups}")
    if in_channels % groups:
        raise ValueError(
            f"in_channels must be divisible by groups, got {in_channels} channels, {groups} groups"
        )
    if out_channels % groups:
        raise ValueError(
            "out_channels must be divisible by groups, "
            f"got {out_channels} channels, {groups} groups"
        )
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(
                f"Invalid padding string {padding!r}, should be one of 'valid', 'same'"
            )
        if padding == "same" and any(s != 1 for s in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if padding_mode not in _PADDING_MODES:
        modes = ", ".join(repr(mode) for mode in _PADDING_MODES)
        raise ValueError(
            f"padding_mode must be one of {modes}, but got padding_mode={padding_mode!r}"
        )
