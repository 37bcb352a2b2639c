"""Normalisations."""

from __future__ import annotations

from typing import Any

import flambeau as fb
import flambeau.nn.functional as F
from flambeau import Tensor
from flambeau.onnx._operators.table import Context, operator, wide


@operator("BatchNormalization")
def _batch_normalization(
    c: Context,
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    var: Tensor,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
    spatial: int = 1,
    is_test: int = 1,
    consumed_inputs: object = None,
) -> Any:
    if not training_mode:
        return F.batch_norm(x, mean, var, scale, bias, False, 0.0, epsilon)
    dims = tuple(i for i in range(x.dim()) if i != 1)
    now_mean, now_var = x.mean(dims), x.var(dims, unbiased=False)
    y = F.batch_norm(x, now_mean, now_var, scale, bias, False, 0.0, epsilon)
    new_mean = mean * momentum + now_mean * (1 - momentum)
    return y, new_mean, var * momentum + now_var * (1 - momentum)


@operator("InstanceNormalization")
def _instance_normalization(
    c: Context,
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    epsilon: float = 1e-5,
    consumed_inputs: object = None,
) -> Tensor:
    return F.instance_norm(x, weight=scale, bias=bias, eps=epsilon)


@operator("GroupNormalization")
def _group_normalization(
    c: Context,
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    num_groups: int,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Tensor:
    if scale.numel() != x.shape[1]:  # before version 21 one for each group
        each = x.shape[1] // num_groups
        scale, bias = scale.repeat_interleave(each), bias.repeat_interleave(each)
    return F.group_norm(x, num_groups, scale, bias, epsilon)


def _normalised(x: Tensor, axis: int) -> tuple[int, ...]:
    return tuple(range(axis % x.dim(), x.dim()))


@operator("LayerNormalization")
def _layer_normalization(
    c: Context,
    x: Tensor,
    scale: Tensor,
    bias: Tensor | None = None,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Any:
    dims = _normalised(x, axis)
    sizes = [x.shape[d] for d in dims]
    if (
        c.outputs == 1
        and list(scale.shape) == sizes
        and (bias is None or bias.shape == scale.shape)
    ):
        return F.layer_norm(x, sizes, scale, bias, epsilon)
    z = wide(x)
    mean = z.mean(dims, keepdim=True)
    inverse = 1 / ((z - mean) ** 2).mean(dims, keepdim=True).add(epsilon).sqrt()
    y = ((z - mean) * inverse).to(x.dtype) * scale
    return (y if bias is None else y + bias), mean, inverse


@operator("RMSNormalization")
def _rms_normalization(
    c: Context,
    x: Tensor,
    scale: Tensor,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Tensor:
    z = wide(x)
    square = (z * z).mean(_normalised(x, axis), keepdim=True)
    return ((z / (square + epsilon).sqrt()).to(x.dtype) * scale).to(x.dtype)


@operator("LpNormalization")
def _lp_normalization(c: Context, x: Tensor, axis: int = -1, p: int = 2) -> Tensor:
    norm = x.norm(p, axis, keepdim=True)
    return x / fb.where(norm == 0, fb.ones_like(norm), norm)


@operator("LRN")
def _lrn(
    c: Context,
    x: Tensor,
    size: int,
    alpha: float = 1e-4,
    beta: float = 0.75,
    bias: float = 1.0,
) -> Tensor:
    square = x * x
    before = (size - 1) // 2
    zeros = [fb.zeros_like(x[:, :1])] * (size - 1)
    around = fb.cat([*zeros[:before], square, *zeros[before:]], 1)
    total = around.unfold(1, size, 1).sum(-1)
    return x / (bias + alpha / size * total) ** beta


@operator("MeanVarianceNormalization")
def _mean_variance_normalization(
    c: Context, x: Tensor, axes: list[int] | tuple[int, ...] = (0, 2, 3)
) -> Tensor:
    dims = tuple(axes)
    centred = x - x.mean(dims, keepdim=True)
    return centred / ((centred * centred).mean(dims, keepdim=True).sqrt() + 1e-9)
