"""Filling tensors with initial weights, in place and without recording gradients.

The random numbers are drawn in PyTorch's order, so equal seeds give equal weights.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import flambeau as fb
from flambeau import Generator, Tensor
from flambeau.nn import _fills
from flambeau.overrides import takes_as_annotated, warn

_LINEAR = (
    "linear",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
)


@takes_as_annotated
def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that keeps the variance through `nonlinearity`, named as in `nn.functional`.

    Linear maps and sigmoid: 1; tanh: 5/3; relu: √2; leaky_relu with slope `param` (0.01 by
    default): √(2 / (1 + param²)); selu: 3/4.

    Raises:
        ValueError: an unknown name, or a slope that is no number.

    >>> import flambeau as fb
    >>> fb.nn.init.calculate_gain("leaky_relu", 1.0)
    1.0
    """
    if nonlinearity in _LINEAR or nonlinearity == "sigmoid":
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


@takes_as_annotated
@fb.no_grad()
def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Draw every element from U(`a`, `b`).

    >>> import flambeau as fb
    >>> w = fb.nn.init.uniform_(fb.empty(3, 5), 1.0, 2.0)
    >>> bool(((w >= 1) & (w < 2)).all())
    True
    """
    return tensor.uniform_(a, b, generator=generator)


@takes_as_annotated
@fb.no_grad()
def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Draw every element from N(`mean`, `std`²).

    >>> import flambeau as fb
    >>> fb.nn.init.normal_(fb.empty(3, 5), 2.0, 0.0)[0]
    tensor([2., 2., 2., 2., 2.])
    """
    return tensor.normal_(mean, std, generator=generator)


@takes_as_annotated
@fb.no_grad()
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Draw every element from N(`mean`, `std`²) limited to [`a`, `b`].

    Raises:
        ValueError: `std` is not positive.

    >>> import flambeau as fb
    >>> float(fb.nn.init.trunc_normal_(fb.empty(100)).abs().max()) <= 2.0
    True
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
        )
    if not std > 0:
        raise ValueError(f"std must be positive, got {std}")
    if tensor.device.type == "meta":
        return tensor

    def below(x: float) -> float:
        return (1.0 + math.erf((x - mean) / std / math.sqrt(2.0))) / 2.0

    # Rejection, from the proposal that accepts more; every round redraws the whole tensor.
    if below(b) - below(a) > 0.3:
        _fills.by_rejection_from_normal(tensor, mean, std, a, b, generator)
    else:
        _fills.by_rejection_from_uniform(tensor, mean, std, a, b, generator)
    return tensor


@takes_as_annotated
@fb.no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Set every element to `val`.

    >>> import flambeau as fb
    >>> fb.nn.init.constant_(fb.empty(2), 0.5)
    tensor([0.5000, 0.5000])
    """
    return tensor.fill_(val)


@takes_as_annotated
def ones_(tensor: Tensor) -> Tensor:
    """Set every element to 1.

    >>> import flambeau as fb
    >>> fb.nn.init.ones_(fb.empty(2))
    tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


@takes_as_annotated
def zeros_(tensor: Tensor) -> Tensor:
    """Set every element to 0.

    >>> import flambeau as fb
    >>> fb.nn.init.zeros_(fb.empty(2))
    tensor([0., 0.])
    """
    return constant_(tensor, 0.0)


@takes_as_annotated
@fb.no_grad()
def eye_(tensor: Tensor) -> Tensor:
    """Make a matrix the identity, as far as its shape allows.

    Raises:
        ValueError: `tensor` does not have two dimensions.

    >>> import flambeau as fb
    >>> fb.nn.init.eye_(fb.empty(2, 3))
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    if tensor.dim() != 2:
        raise ValueError(
            f"Only tensors with 2 dimensions are supported, got shape {list(tensor.shape)}"
        )
    rows, columns = tensor.shape
    return tensor.copy_(fb.eye(rows, columns, dtype=tensor.dtype, device=tensor.device))


@takes_as_annotated
@fb.no_grad()
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Make a convolution's weight pass its input channels through, per group.

    Raises:
        ValueError: `tensor` does not have 3, 4 or 5 dimensions, or `groups` does not divide the
            first.

    >>> import flambeau as fb
    >>> fb.nn.init.dirac_(fb.empty(1, 1, 3))
    tensor([[[0., 1., 0.]]])
    """
    if tensor.dim() not in (3, 4, 5):
        raise ValueError(
            f"Only tensors with 3, 4, or 5 dimensions are supported, got shape {list(tensor.shape)}"
        )
    if groups <= 0 or tensor.shape[0] % groups:
        raise ValueError(
            f"dim 0 must be divisible by groups, got {tensor.shape[0]} channels, {groups} groups"
        )
    per_group = tensor.shape[0] // groups
    centre = tuple(size // 2 for size in tensor.shape[2:])
    tensor.zero_()
    for group in range(groups):
        for channel in range(min(per_group, tensor.shape[1])):
            tensor[(group * per_group + channel, channel, *centre)] = 1
    return tensor


@takes_as_annotated
def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many inputs an output has, and how many outputs an input has."""
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions, "
            f"got shape {list(tensor.shape)}"
        )
    window = math.prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    modes = ["fan_in", "fan_out"]
    if not isinstance(mode, str) or mode.lower() not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode.lower())]


@takes_as_annotated
def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Draw from U(-a, a) with a = `gain`·√(6 / (fan_in + fan_out)) (Glorot & Bengio, 2010).

    Raises:
        ValueError: `tensor` has fewer than two dimensions.

    >>> import flambeau as fb
    >>> float(fb.nn.init.xavier_uniform_(fb.empty(3, 3)).abs().max()) < 1.0
    True
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


@takes_as_annotated
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Draw from N(0, s²) with s = `gain`·√(2 / (fan_in + fan_out)) (Glorot & Bengio, 2010).

    Raises:
        ValueError: `tensor` has fewer than two dimensions.

    >>> import flambeau as fb
    >>> fb.nn.init.xavier_normal_(fb.empty(3, 5)).shape
    torch.Size([3, 5])
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


@takes_as_annotated
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Draw from U(-bound, bound) with bound = gain·√(3 / fan) (He et al., 2015).

    `mode` chooses the fan: ``"fan_in"`` keeps the variance of the activations, ``"fan_out"`` that
    of the gradients.  The gain is that of `nonlinearity` with the slope `a`.

    Raises:
        ValueError: an unknown mode or nonlinearity, or fewer than two dimensions.

    >>> import flambeau as fb
    >>> float(fb.nn.init.kaiming_uniform_(fb.empty(3, 6)).abs().max()) <= 1.0
    True
    """
    if 0 in tensor.shape:
        warn("Initializing zero-element tensors is a no-op")
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


@takes_as_annotated
def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Draw from N(0, s²) with s = gain / √fan, as `kaiming_uniform_` chooses them.

    Raises:
        ValueError: an unknown mode or nonlinearity, or fewer than two dimensions.

    >>> import flambeau as fb
    >>> fb.nn.init.kaiming_normal_(fb.empty(3, 5), mode="fan_out", nonlinearity="relu").shape
    torch.Size([3, 5])
    """
    if 0 in tensor.shape:
        warn("Initializing zero-element tensors is a no-op")
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    return normal_(tensor, 0.0, std, generator)


@takes_as_annotated
@fb.no_grad()
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Make the rows or, if they are more, the columns orthogonal, with norm `gain`.

    Dimensions after the first count as columns.  The matrix is Q of the QR decomposition of a
    normal one, with the signs that make it uniform (Saxe et al., 2013; Mezzadri, 2006).

    Raises:
        ValueError: `tensor` has fewer than two dimensions.

    >>> import flambeau as fb
    >>> w = fb.nn.init.orthogonal_(fb.empty(3, 3))
    >>> bool((w @ w.t() - fb.eye(3)).abs().max() < 1e-5)
    True
    """
    if tensor.dim() < 2:
        raise ValueError(
            f"Only tensors with 2 or more dimensions are supported, got shape {list(tensor.shape)}"
        )
    if tensor.numel() == 0 or tensor.device.type == "meta":
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    flat = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
    q = _fills.orthonormal_columns(flat.t() if rows < columns else flat)
    tensor.copy_((q.t() if rows < columns else q).reshape(tensor.shape))
    return tensor.mul_(gain)


@takes_as_annotated
@fb.no_grad()
def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None
) -> Tensor:
    """Draw from N(0, `std`²), then zero the share `sparsity` of each column (Martens, 2010).

    Raises:
        ValueError: `tensor` does not have two dimensions.

    >>> import flambeau as fb
    >>> int((fb.nn.init.sparse_(fb.empty(10, 2), 0.3) == 0).sum())
    6
    """
    if tensor.dim() != 2:
        raise ValueError(
            f"Only tensors with 2 dimensions are supported, got shape {list(tensor.shape)}"
        )
    if tensor.is_meta:
        return tensor
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    tensor.normal_(0, std, generator=generator)
    for column in range(columns):
        # From the default generator even where one is given, as PyTorch does.
        tensor[fb.randperm(rows)[:zeros].to(tensor.device), column] = 0
    return tensor


def _deprecated(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`function` under its older name, without the underscore."""
    new = function.__name__
    old = new.removesuffix("_")

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Tensor:
        warn(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.",
            FutureWarning,
        )
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = old
    call.__doc__ = f"The older name of `{new}`."
    return call


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
