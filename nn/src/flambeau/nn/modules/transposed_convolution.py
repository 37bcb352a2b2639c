"""Layers of transposed convolution."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn._refusals import require_tensors
from flambeau.nn.modules.convolution import Device, Size, _ConvNd
from flambeau.nn.modules.utils import ntuple


class _ConvTransposeNd(_ConvNd):
    """A transposed convolution: from settings per dimension to `functional`."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        output_padding: Size = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Size = 1,
        padding_mode: str = "zeros",
        device: Device = None,
        dtype: fb.dtype | None = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(
                f'Only "zeros" padding mode is supported for {type(self).__name__}, '
                f"got {padding_mode!r}"
            )
        count = self.dimensions
        super().__init__(
            in_channels,
            out_channels,
            ntuple(kernel_size, count),
            ntuple(stride, count),
            ntuple(padding, count),
            ntuple(dilation, count),
            True,
            ntuple(output_padding, count),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _convolve(self, *args: object) -> Tensor:
        raise NotImplementedError

    def forward(self, input: Tensor, output_size: Iterable[int] | None = None) -> Tensor:
        """The functional with this weight, bias and settings.

        Several output sizes lead to the size of `input`; `output_size` chooses one of them, by its
        spatial or by all dimensions.

        Raises:
            ValueError: `output_size` has another length, or no output padding reaches it.
        """
        extra = self.output_padding
        if output_size is not None:
            extra = self._output_padding(input, tuple(output_size))
        settings = self.stride, self.padding, extra, self.groups, self.dilation
        return self._convolve(input, self.weight, self.bias, *settings)

    def _output_padding(self, input: Tensor, wanted: Sequence[int]) -> tuple[int, ...]:
        """What must be added to the smallest output for it to have the wanted size."""
        require_tensors(type(self).__name__, input=input)
        count = self.dimensions
        other = input.dim() - count  # how many dimensions are not spatial
        if len(wanted) == input.dim():
            wanted = wanted[other:]
        if len(wanted) != count:
            raise ValueError(
                f"{type(self).__name__}: for {input.dim()}D input, output_size must have {count} "
                f"or {input.dim()} elements (got {len(wanted)})"
            )
        sizes = tuple(input.shape[other:])
        assert not isinstance(self.padding, str)  # the constructor takes numbers only
        dims = zip(sizes, self.stride, self.padding, self.dilation, self.kernel_size, strict=True)
        least = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in dims]
        most = [n + s - 1 for n, s in zip(least, self.stride, strict=True)]
        try:
            unfit = any(not a <= n <= b for n, a, b in zip(wanted, least, most, strict=True))
        except TypeError:
            kinds = ", ".join(type(n).__name__ for n in wanted)
            raise TypeError(f"output_size must be numbers, not {kinds}") from None
        if unfit:
            raise ValueError(
                f"requested an output size of {list(wanted)}, but valid sizes range from {least} "
                f"to {most} (for an input of {list(sizes)})"
            )
        return tuple(n - a for n, a in zip(wanted, least, strict=True))


class ConvTranspose1d(_ConvTransposeNd):
    """The adjoint of `Conv1d` in its input, with learned filters.

    Shapes: input (N, in_channels, L) or without N.  `weight` is
    (in_channels, out_channels / groups, *kernel_size); it and `bias` start from U(-k, k),
    k = 1 / √fan_in.

    Raises:
        ValueError: the channels or groups do not fit each other, or `padding_mode` is not
            ``"zeros"``.

    >>> import flambeau as fb
    >>> fb.nn.ConvTranspose1d(4, 6, 3, stride=2)(fb.randn(2, 4, 7)).shape
    torch.Size([2, 6, 15])
    """

    dimensions = 1

    def _convolve(self, *args: Any) -> Tensor:
        return F.conv_transpose1d(*args)


class ConvTranspose2d(_ConvTransposeNd):
    """The adjoint of `Conv2d` in its input, with learned filters.

    Shapes: input (N, in_channels, H, W) or without N.  `weight` is
    (in_channels, out_channels / groups, *kernel_size); it and `bias` start from U(-k, k),
    k = 1 / √fan_in.

    Raises:
        ValueError: the channels or groups do not fit each other, or `padding_mode` is not
            ``"zeros"``.

    >>> import flambeau as fb
    >>> fb.nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1)(fb.randn(2, 4, 5, 5), [10, 9]).shape
    torch.Size([2, 6, 10, 9])
    """

    dimensions = 2

    def _convolve(self, *args: Any) -> Tensor:
        return F.conv_transpose2d(*args)


class ConvTranspose3d(_ConvTransposeNd):
    """The adjoint of `Conv3d` in its input, with learned filters.

    Shapes: input (N, in_channels, D, H, W) or without N.  `weight` is
    (in_channels, out_channels / groups, *kernel_size); it and `bias` start from U(-k, k),
    k = 1 / √fan_in.

    Raises:
        ValueError: the channels or groups do not fit each other, or `padding_mode` is not
            ``"zeros"``.

    >>> import flambeau as fb
    >>> fb.nn.ConvTranspose3d(4, 6, 2, stride=2)(fb.randn(1, 4, 3, 2, 2)).shape
    torch.Size([1, 6, 6, 4, 4])
    """

    dimensions = 3

    def _convolve(self, *args: Any) -> Tensor:
        return F.conv_transpose3d(*args)
