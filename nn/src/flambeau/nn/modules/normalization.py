"""Normalisation of each element of a batch by itself."""

from __future__ import annotations

from collections.abc import Sequence

import flambeau as fb
from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.functional._arguments import is_whole, whole_number
from flambeau.nn.functional.normalization import neighbours
from flambeau.nn.module import Module
from flambeau.nn.parameter import Parameter

Device = fb.device | str | int | None


class _Affine(Module):
    """A weight of ones and a bias of zeros, each of which may be missing."""

    weight: Parameter  # or None: typed so that programs may initialise it unasked
    bias: Parameter  # or None: typed so that programs may initialise it unasked

    def _make(
        self,
        shape: tuple[int, ...],
        present: dict[str, bool],
        device: Device,
        dtype: fb.dtype | None,
    ) -> None:
        for name, wanted in present.items():
            values = fb.empty(shape, device=device, dtype=dtype) if wanted else None
            self.register_parameter(name, None if values is None else Parameter(values))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set weight 1 and bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        bias = self._parameters.get("bias")
        if bias is not None:
            init.zeros_(bias)


class LayerNorm(_Affine):
    """Normalisation over the last dimensions; see `functional.layer_norm`.

    With `elementwise_affine` false there are no `weight` and `bias`, with `bias` false no `bias`.

    Shapes: input (*, normalized_shape), result as input.

    >>> import flambeau as fb
    >>> fb.nn.LayerNorm(2)(fb.tensor([[1.0, 3.0]])).detach()
    tensor([[-1.0000,  1.0000]])
    """

    normalized_shape: tuple[int, ...]
    eps: float
    elementwise_affine: bool

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Device = None,
        dtype: fb.dtype | None = None,
    ) -> None:
        super().__init__()
        one = is_whole(normalized_shape)
        self.normalized_shape = (normalized_shape,) if one else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        present = {"weight": elementwise_affine, "bias": elementwise_affine and bias}
        self._make(self.normalized_shape, present, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(_Affine):
    """Division by the root mean square of the last dimensions; see `functional.rms_norm`.

    Shapes: input (*, normalized_shape), result as input.

    >>> import flambeau as fb
    >>> fb.nn.RMSNorm(2)(fb.tensor([[1.0, 7.0]])).detach()
    tensor([[0.2000, 1.4000]])
    """

    normalized_shape: tuple[int, ...]
    eps: float | None
    elementwise_affine: bool

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Device = None,
        dtype: fb.dtype | None = None,
    ) -> None:
        super().__init__()
        one = is_whole(normalized_shape)
        self.normalized_shape = (normalized_shape,) if one else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._make(self.normalized_shape, {"weight": elementwise_affine}, device, dtype)

    def forward(self, x: Tensor) -> Tensor:
        """The normalised input."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(_Affine):
    """Normalisation of groups of channels; see `functional.group_norm`.

    Shapes: input (N, C, *), result as input.

    Raises:
        ValueError: `num_channels` is no multiple of `num_groups`.

    >>> import flambeau as fb
    >>> fb.nn.GroupNorm(2, 4)(fb.tensor([[1.0, 3.0, 0.0, 8.0]])).detach()
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """

    num_groups: int
    num_channels: int
    eps: float
    affine: bool

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Device = None,
        dtype: fb.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_groups <= 0:
            raise ValueError(f"num_groups must be positive, got {num_groups}")
        if num_channels % num_groups:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._make((num_channels,), {"weight": affine, "bias": affine and bias}, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LocalResponseNorm(Module):
    """Division by the squares of neighbouring channels; see `functional.local_response_norm`.

    Shapes: input (N, C, *), result as input.

    >>> import flambeau as fb
    >>> fb.nn.LocalResponseNorm(3, alpha=3.0, beta=1.0)(fb.ones(1, 3, 1)).flatten()
    tensor([0.3333, 0.2500, 0.3333])
    """

    size: int
    alpha: float
    beta: float
    k: float

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(Module):
    """The older form of `LocalResponseNorm` for images.

    It sums over the odd number of channels that is not above `size`, and divides by `size`.  The
    first channel stays in the sum of all channels behind it, as in PyTorch.

    Shapes: input (N, C, H, W), result as input.

    Raises:
        ValueError: the input has not four dimensions.

    >>> import flambeau as fb
    >>> fb.nn.CrossMapLRN2d(3, alpha=3.0, beta=1.0)(fb.ones(1, 2, 1, 1)).flatten()
    tensor([0.3333, 0.3333])
    """

    size: int
    alpha: float
    beta: float
    k: float

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        for number in (alpha, beta):
            float(number)  # what is none is refused
        self.size = whole_number(size, "CrossMapLRN2d", "size")
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        reach = (self.size - 1) // 2
        squares = neighbours(input, 2 * reach + 1)
        if input.shape[1] > reach + 1:
            # PyTorch's running sum never lets the first channel go; weights trained so expect it.
            first = input.narrow(1, 0, 1).square().expand(-1, input.shape[1] - reach - 1, -1, -1)
            squares = squares + F.pad(first, (0, 0, 0, 0, reach + 1, 0))
        return input * squares.mul(self.alpha / self.size).add(self.k).pow(-self.beta)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
