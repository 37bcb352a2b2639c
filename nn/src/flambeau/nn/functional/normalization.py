"""Normalisation of activations by their mean and variance."""

from __future__ import annotations

import math
from collections.abc import Sequence

import flambeau as fb
from flambeau import Tensor
from flambeau.nn._refusals import require_tensors
from flambeau.nn.functional.padding import pad
from flambeau.overrides import takes_as_annotated

_HALF = (fb.float16, fb.bfloat16)
_ONE_VALUE = "Expected more than 1 value per channel when training, got input size {}"


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """(x - E[x]) / √(Var[x] + `eps`)·w + b per channel (Ioffe & Szegedy, 2015).

    In training E and Var are those of the batch (Var biased), and the running statistics, if given,
    become (1 - `momentum`)·running + `momentum`·batch (with the unbiased Var).  Otherwise E and Var
    are the running statistics.

    Shapes: input (N, C, *), all others (C); result as input.

    Raises:
        ValueError: training with one value per channel.
        RuntimeError: no running statistics outside training, or sizes that do not fit.

    >>> import flambeau as fb
    >>> fb.nn.functional.batch_norm(fb.tensor([[1.0], [3.0]]), None, None, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    if not isinstance(input, Tensor):
        require_tensors("batch_norm", input=input)
    if training and input.dim() > 1 and input.numel() == input.shape[1]:
        raise ValueError(_ONE_VALUE.format(input.shape))
    parameters = next((t for t in (weight, running_mean) if t is not None), input)
    wide = input.dtype in _HALF and parameters.dtype is fb.float32
    x = input.float() if wide else input
    # PyTorch's function has one more argument, which this library has no use for.
    output = fb.batch_norm(
        x, weight, bias, running_mean, running_var, training, momentum, eps, False
    )
    return output.to(input.dtype) if wide else output


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """(x - E[x]) / √(Var[x] + `eps`)·w + b over the last dimensions (Ba, Kiros & Hinton, 2016).

    Shapes: input (*, normalized_shape), weight and bias (normalized_shape); result as input.

    Raises:
        RuntimeError: the shapes do not fit.

    >>> import flambeau as fb
    >>> fb.nn.functional.layer_norm(fb.tensor([[1.0, 3.0]]), [2])
    tensor([[-1.0000,  1.0000]])
    """
    return fb.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """x / √(mean(x²) + `eps`)·w over the last dimensions (Zhang & Sennrich, 2019).

    Shapes: input (*, normalized_shape), weight (normalized_shape); result as input.

    Raises:
        RuntimeError: the shapes do not fit.

    >>> import flambeau as fb
    >>> fb.nn.functional.rms_norm(fb.tensor([[1.0, 7.0]]), [2])
    tensor([[0.2000, 1.4000]])
    """
    return fb.rms_norm(input, normalized_shape, weight, eps)


@takes_as_annotated
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """(x - E[x]) / √(Var[x] + `eps`)·w + b per group of neighbouring channels (Wu & He, 2018).

    Shapes: input (N, C, *), weight and bias (C); result as input.

    Raises:
        RuntimeError: the shapes do not fit, or C is no multiple of `num_groups`.
        ValueError: a group has one value.

    >>> import flambeau as fb
    >>> fb.nn.functional.group_norm(fb.tensor([[1.0, 3.0, 0.0, 8.0]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    if not isinstance(input, Tensor):
        require_tensors("group_norm", input=input)
    shape = input.shape
    if len(shape) < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor, got {len(shape)}")
    if num_groups > 0:
        per_group = shape[0] * shape[1] // num_groups
        if per_group == 1 and math.prod(shape[2:]) == 1:
            raise ValueError(_ONE_VALUE.format(list(shape)))
    return fb.group_norm(input, num_groups, weight, bias, eps)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """(x - E[x]) / √(Var[x] + `eps`)·w + b per channel of each element (Ulyanov et al., 2016).

    With `use_input_stats` E and Var are those of the channel and move the running statistics, if
    given; otherwise the running statistics serve.

    Shapes: input (N, C, *), all others (C); result as input.

    Raises:
        ValueError: statistics of one value per channel are asked for.
        RuntimeError: no running statistics although they are to be used.

    >>> import flambeau as fb
    >>> fb.nn.functional.instance_norm(fb.tensor([[[1.0, 3.0], [0.0, 8.0]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """
    require_tensors("instance_norm", input=input)
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {input.shape}"
        )
    return fb.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False
    )


@takes_as_annotated
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """x / (`k` + `alpha` / `size`·Σ x²)^`beta`, the sum over `size` channels around each.

    Of an even number one more lies before the channel than after it (Krizhevsky, Sutskever &
    Hinton, 2012).

    Shapes: input (N, C, *) with at least one dimension after C; result as input.

    Raises:
        ValueError: the input has fewer than three dimensions.

    >>> import flambeau as fb
    >>> x = fb.ones(1, 3, 1)
    >>> fb.nn.functional.local_response_norm(x, 3, alpha=3.0, beta=1.0).flatten()
    tensor([0.3333, 0.2500, 0.3333])
    """
    if input.dim() < 3:
        raise ValueError(
            "Expected 3D or higher dimensionality                          "
            f"input (got {input.dim()} dimensions)"
        )
    return input / neighbours(input, size).mul(float(alpha) / size).add(k).pow(beta)


def neighbours(input: Tensor, size: int) -> Tensor:
    """The sum of squares over `size` channels around each, with zeros beyond the ends."""
    channels = input.shape[1]
    margin = [0, 0] * (input.dim() - 2) + [size // 2, (size - 1) // 2]
    padded = pad(input * input, margin)
    total = padded.narrow(1, 0, channels)
    for start in range(1, size):
        total = total + padded.narrow(1, start, channels)
    return total


@takes_as_annotated
def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """x / max(‖x‖, `eps`) with the `p`-norm along `dim`.

    Raises:
        IndexError: `dim` is out of range.
        RuntimeError: the dtype is neither floating nor complex.

    >>> import flambeau as fb
    >>> fb.nn.functional.normalize(fb.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    length = input.norm(p, dim, True).clamp_min(eps).expand(input.shape)
    return fb.div(input, length) if out is None else fb.div(input, length, out=out)
