"""Linear and bilinear layers, and the layer that does nothing."""

from __future__ import annotations

import math

import flambeau as fb
from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.module import Module
from flambeau.nn.parameter import Parameter

Device = fb.device | str | int | None


class Identity(Module):
    """Returns its input; takes and ignores any arguments.

    >>> import flambeau as fb
    >>> fb.nn.Identity(54, unused=True)(fb.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """`input` itself."""
        return input


class Linear(Module):
    """x·Wᵀ + b.

    Shapes: input (*, in_features), result (*, out_features).  `weight` is (out_features,
    in_features), `bias` (out_features) or None; both start from U(-k, k) with k = 1 / √in_features.

    >>> import flambeau as fb
    >>> layer = fb.nn.Linear(20, 30)
    >>> layer(fb.randn(128, 20)).shape
    torch.Size([128, 30])
    """

    in_features: int
    out_features: int
    weight: Parameter
    bias: Parameter  # or None: typed so that programs may initialise it unasked

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Device = None,
        dtype: fb.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(fb.empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(fb.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values for the weight and the bias."""
        # With a = √5 the bound of kaiming_uniform_ is 1 / √fan_in.
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """`functional.linear` with this weight and bias."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class NonDynamicallyQuantizableLinear(Linear):
    """A `Linear` with which attention ends, under the name that PyTorch's models show."""


class Bilinear(Module):
    """y_k = x1ᵀ·W_k·x2 + b_k.

    Shapes: inputs (*, in1_features) and (*, in2_features), result (*, out_features).  `weight` is
    (out_features, in1_features, in2_features), `bias` (out_features) or None; both start from
    U(-k, k) with k = 1 / √in1_features.

    >>> import flambeau as fb
    >>> layer = fb.nn.Bilinear(20, 30, 40)
    >>> layer(fb.randn(128, 20), fb.randn(128, 30)).shape
    torch.Size([128, 40])
    """

    in1_features: int
    in2_features: int
    out_features: int
    weight: Parameter
    bias: Parameter  # or None: typed so that programs may initialise it unasked

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Device = None,
        dtype: fb.dtype | None = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={in1_features})")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        shape = (out_features, in1_features, in2_features)
        self.weight = Parameter(fb.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(fb.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new values for the weight and the bias."""
        bound = 1 / math.sqrt(self.weight.shape[1])
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """`functional.bilinear` with this weight and bias."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
