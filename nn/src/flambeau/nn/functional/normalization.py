"""Normalisation of activations by their mean and variance."""

from __future__ import annotations

from math import prod

import flambeau as fb
from flambeau import Tensor, ops
from flambeau.nn.functional._arguments import require_float


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
    shape = input.shape
    if len(shape) < 2:
        raise RuntimeError(f"batch_norm: expected an input (N, C, *), got shape {list(shape)}")
    channels = shape[1]
    given = {
        "running_mean": running_mean,
        "running_var": running_var,
        "weight": weight,
        "bias": bias,
    }
    for name, tensor in given.items():
        if tensor is not None and tensor.numel() != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {tensor.numel()}")
    dtype = _parameter_dtype(input, [t for t in given.values() if t is not None])
    if not training:
        if running_mean is None or running_var is None:
            missing = "running_mean" if running_mean is None else "running_var"
            raise RuntimeError(f"{missing} must be defined in evaluation mode")
        invstd = (running_var + eps).rsqrt()
        output = ops.batch_norm(input.to(dtype), weight, bias, running_mean, invstd)
        return output.to(input.dtype)

    count = shape[0] * prod(shape[2:])  # per channel
    if count == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {shape}"
        )
    output, mean, invstd = ops.batch_norm_train(input.to(dtype), weight, bias, eps)
    with fb.no_grad():
        if running_mean is not None:
            running_mean.mul_(1 - momentum).add_(mean, alpha=momentum)
        if running_var is not None:
            variance = (invstd.pow(-2) - eps).clamp(min=0) * (count / (count - 1))
            running_var.mul_(1 - momentum).add_(variance, alpha=momentum)
    return output.to(input.dtype)


def _parameter_dtype(input: Tensor, parameters: list[Tensor]) -> fb.dtype:
    """The dtype to compute in: that of all operands, or float32 if only a half input differs."""
    require_float(input, "batch_norm")
    dtypes = {parameter.dtype for parameter in parameters}
    if not dtypes or dtypes == {input.dtype}:
        return input.dtype
    if dtypes == {fb.float32} and input.dtype in (fb.float16, fb.bfloat16):
        return fb.float32
    raise RuntimeError(
        f"mixed dtype: batch_norm takes one dtype, or a half input with float32 statistics and "
        f"parameters, got input {input.dtype} with {sorted(map(str, dtypes))}"
    )
