"""Layers that learn the number of input features or channels from the first input."""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn._refusals import require_tensors
from flambeau.nn.module import Module
from flambeau.nn.modules.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from flambeau.nn.modules.convolution import Conv1d, Conv2d, Conv3d, Device, Size
from flambeau.nn.modules.instancenorm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from flambeau.nn.modules.lazy import LazyModuleMixin
from flambeau.nn.modules.linear import Linear
from flambeau.nn.modules.transposed_convolution import (
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from flambeau.nn.parameter import UninitializedBuffer, UninitializedParameter


class _Lazy(LazyModuleMixin, Module):
    """What the lazy layers share: they draw values only once there are shapes."""

    size_name: str  # the attribute that the first input determines

    def reset_parameters(self) -> None:
        """Draw new values, if the shapes are known."""
        if not self.has_uninitialized_params() and getattr(self, self.size_name) != 0:
            super().reset_parameters()  # pyright: ignore[reportAttributeAccessIssue]

    def _hold(self, bias: bool, device: Device, dtype: fb.dtype | None) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)


class LazyLinear(_Lazy, Linear):
    """`Linear` with `in_features` from the first input.

    >>> import flambeau as fb
    >>> layer = fb.nn.LazyLinear(3)
    >>> layer(fb.ones(5, 2)).shape
    torch.Size([5, 3])
    >>> layer
    Linear(in_features=2, out_features=3, bias=True)
    """

    cls_to_become = Linear
    size_name = "in_features"
    weight: Any
    bias: Any

    def __init__(
        self,
        out_features: int,
        bias: bool = True,
        device: Device = None,
        dtype: fb.dtype | None = None,
    ) -> None:
        super().__init__(0, 0, False)
        self._hold(bias, device, dtype)
        self.out_features = out_features

    def initialize_parameters(self, input: Tensor) -> None:
        """Take the number of features from `input`."""
        if self.in_features == 0:  # unknown also after loading
            self.in_features = input.shape[-1]
        if not self.has_uninitialized_params():
            return
        self.weight.materialize((self.out_features, self.in_features))
        if self.bias is not None:
            self.bias.materialize((self.out_features,))
        self.reset_parameters()


class _LazyConv(_Lazy):
    """What lazy convolutions share, transposed or not; the options are those of the layer."""

    size_name = "in_channels"
    dimensions: int
    out_channels: int
    groups: int
    kernel_size: tuple[int, ...]
    transposed: bool
    weight: Any
    bias: Any

    def _make(
        self,
        out_channels: int,
        bias: bool,
        device: Device,
        dtype: fb.dtype | None,
    ) -> None:
        if out_channels % self.groups:
            raise ValueError(
                "out_channels must be divisible by groups, "
                f"got {out_channels} channels, {self.groups} groups"
            )
        self._hold(bias, device, dtype)
        self.out_channels = out_channels

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Take the number of channels from `input`.

        Raises:
            RuntimeError: `input` has another number of dimensions.
            ValueError: the groups do not divide the channels.
        """
        n = self.dimensions
        require_tensors(type(self).__name__, input=input)
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {input.shape}"
            )
        self.in_channels = input.shape[-n - 1]
        if not self.has_uninitialized_params():
            return
        if self.in_channels % self.groups:
            raise ValueError(
                "in_channels must be divisible by groups, "
                f"got {self.in_channels} channels, {self.groups} groups"
            )
        rows, columns = self.out_channels, self.in_channels
        if self.transposed:
            rows, columns = columns, rows
        self.weight.materialize((rows, columns // self.groups, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class _LazyConvolution(_LazyConv):
    def __init__(
        self,
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
        settings = kernel_size, stride, padding, dilation, groups, False, padding_mode
        super().__init__(0, 0, *settings)
        self._make(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConv):
    def __init__(
        self,
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
        settings = kernel_size, stride, padding, output_padding, groups, False, dilation
        super().__init__(0, 0, *settings, padding_mode)
        self._make(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConvolution, Conv1d):
    """`Conv1d` with `in_channels` from the first input.

    >>> import flambeau as fb
    >>> layer = fb.nn.LazyConv1d(6, 3)
    >>> layer(fb.ones(2, 4, 9)).shape
    torch.Size([2, 6, 7])
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyConvolution, Conv2d):
    """`Conv2d` with `in_channels` from the first input.

    >>> import flambeau as fb
    >>> layer = fb.nn.LazyConv2d(6, 3)
    >>> layer
    LazyConv2d(0, 6, kernel_size=(3, 3), stride=(1, 1))
    >>> layer(fb.ones(2, 4, 5, 5)).shape
    torch.Size([2, 6, 3, 3])
    >>> layer
    Conv2d(4, 6, kernel_size=(3, 3), stride=(1, 1))
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyConvolution, Conv3d):
    """`Conv3d` with `in_channels` from the first input.

    >>> import flambeau as fb
    >>> fb.nn.LazyConv3d(6, 2)(fb.ones(2, 4, 3, 3, 3)).shape
    torch.Size([2, 6, 2, 2, 2])
    """

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """`ConvTranspose1d` with `in_channels` from the first input.

    >>> import flambeau as fb
    >>> fb.nn.LazyConvTranspose1d(6, 3)(fb.ones(2, 4, 7)).shape
    torch.Size([2, 6, 9])
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """`ConvTranspose2d` with `in_channels` from the first input.

    >>> import flambeau as fb
    >>> fb.nn.LazyConvTranspose2d(6, 3)(fb.ones(2, 4, 5, 5)).shape
    torch.Size([2, 6, 7, 7])
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """`ConvTranspose3d` with `in_channels` from the first input.

    >>> import flambeau as fb
    >>> fb.nn.LazyConvTranspose3d(6, 2)(fb.ones(2, 4, 3, 3, 3)).shape
    torch.Size([2, 6, 4, 4, 4])
    """

    cls_to_become = ConvTranspose3d


class _LazyNorm(_Lazy):
    """What lazy normalisations share."""

    size_name = "num_features"
    spatial: int = 0  # how many dimensions follow the channels; 0: the channels are dimension 1
    weight: Any
    bias: Any
    running_mean: Any
    running_var: Any

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device = None,
        dtype: fb.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self._hold(bias, device, dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = fb.tensor(0, dtype=fb.int64, device=device)

    def initialize_parameters(self, input: Tensor) -> None:
        """Take the number of channels from `input`."""
        require_tensors(type(self).__name__, input=input)
        if self.affine or self.track_running_stats:
            self.num_features = input.shape[-self.spatial - 1 if self.spatial else 1]
        if not self.has_uninitialized_params():
            return
        for tensor in (self.weight, self.bias, self.running_mean, self.running_var):
            if tensor is not None:
                tensor.materialize((self.num_features,))
        self.reset_parameters()


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """`BatchNorm1d` with `num_features` from the first input.

    >>> import flambeau as fb
    >>> layer = fb.nn.LazyBatchNorm1d()
    >>> layer(fb.ones(5, 3)).shape
    torch.Size([5, 3])
    >>> layer.num_features
    3
    """

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """`BatchNorm2d` with `num_features` from the first input.

    >>> import flambeau as fb
    >>> fb.nn.LazyBatchNorm2d()(fb.ones(5, 3, 2, 2)).shape
    torch.Size([5, 3, 2, 2])
    """

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """`BatchNorm3d` with `num_features` from the first input.

    >>> import flambeau as fb
    >>> fb.nn.LazyBatchNorm3d()(fb.ones(5, 3, 2, 2, 2)).shape
    torch.Size([5, 3, 2, 2, 2])
    """

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """`InstanceNorm1d` with `num_features` from the first input.

    Unlike there, `affine` and `track_running_stats` are true unless given.

    >>> import flambeau as fb
    >>> layer = fb.nn.LazyInstanceNorm1d()
    >>> layer(fb.ones(5, 3, 2)).shape
    torch.Size([5, 3, 2])
    >>> layer.num_features
    3
    """

    cls_to_become = InstanceNorm1d
    spatial = 1


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """`InstanceNorm2d` with `num_features` from the first input; as `LazyInstanceNorm1d`.

    >>> import flambeau as fb
    >>> fb.nn.LazyInstanceNorm2d()(fb.ones(5, 3, 2, 2)).shape
    torch.Size([5, 3, 2, 2])
    """

    cls_to_become = InstanceNorm2d
    spatial = 2


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """`InstanceNorm3d` with `num_features` from the first input; as `LazyInstanceNorm1d`.

    >>> import flambeau as fb
    >>> fb.nn.LazyInstanceNorm3d()(fb.ones(5, 3, 2, 2, 2)).shape
    torch.Size([5, 3, 2, 2, 2])
    """

    cls_to_become = InstanceNorm3d
    spatial = 3
