"""Normalisation of activations by their mean and variance."""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor

_HALF = (fb.float16, fb.bfloat16)


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
    if training and input.dim() > 1 and input.numel() == input.shape[1]:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {input.shape}"
        )
    parameters = next((t for t in (weight, running_mean) if t is not None), input)
    wide = input.dtype in _HALF and parameters.dtype is fb.float32
    x = input.float() if wide else input
    # PyTorch's function has one more argument, which this library has no use for.
    output = fb.batch_norm(
        x, weight, bias, running_mean, running_var, training, momentum, eps, False
    )
    return output.to(input.dtype) if wide else output
