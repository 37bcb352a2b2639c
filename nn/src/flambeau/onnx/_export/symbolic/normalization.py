"""Normalisation."""

from __future__ import annotations

import flambeau as fb
from flambeau.onnx._export.graph import Graph, Value
from flambeau.onnx._export.table import symbolic


@symbolic("batch_norm")
def batch_norm(
    g: Graph,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Value:
    channels = input.static(1)
    weight = weight or g.constant(fb.ones(channels, dtype=input.dtype))
    bias = bias or g.constant(fb.zeros(channels, dtype=input.dtype))
    if training or running_mean is None or running_var is None:
        return _of_batch(g, input, weight, bias, eps)
    return g.op("BatchNormalization", input, weight, bias, running_mean, running_var, epsilon_f=eps)


def _of_batch(g: Graph, x: Value, weight: Value, bias: Value, eps: float) -> Value:
    """By the statistics of the batch itself, as in training."""
    axes = [d for d in range(x.rank) if d != 1]
    sizes = [1, -1] + [1] * (x.rank - 2)
    made = _standardised(g, x, axes, eps)
    scaled = g.op("Mul", made, g.reshape(weight, sizes))
    return g.op("Add", scaled, g.reshape(bias, sizes))


def _standardised(g: Graph, x: Value, axes: list[int], eps: float) -> Value:
    mean = g.reduce("ReduceMean", x, axes, True)
    centred = g.op("Sub", x, mean)
    variance = g.reduce("ReduceMean", g.op("Mul", centred, centred), axes, True)
    variance.dtype = x.dtype
    root = g.op("Sqrt", g.op("Add", variance, g.constant(eps, x.dtype)))
    return g.op("Div", centred, root)


@symbolic("layer_norm")
def layer_norm(
    g: Graph,
    input: Value,
    normalized_shape: list[int],
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
) -> Value:
    count = len(normalized_shape)
    if g.opset >= 17:
        scale = weight or g.constant(fb.ones(list(normalized_shape), dtype=input.dtype))
        return g.op("LayerNormalization", input, scale, bias, axis_i=-count, epsilon_f=eps)
    axes = list(range(input.rank - count, input.rank))
    made = _standardised(g, input, axes, eps)
    made = made if weight is None else g.op("Mul", made, weight)
    return made if bias is None else g.op("Add", made, bias)


@symbolic("rms_norm")
def rms_norm(
    g: Graph, input: Value, normalized_shape: list[int], weight: object = None, eps: object = None
) -> Value:
    assert input.dtype is not None
    eps = fb.finfo(input.dtype).eps if eps is None else eps
    axes = list(range(input.rank - len(normalized_shape), input.rank))
    mean = g.reduce("ReduceMean", g.op("Mul", input, input), axes, True)
    made = g.op("Div", input, g.op("Sqrt", g.op("Add", mean, g.constant(eps, input.dtype))))
    return made if weight is None else g.op("Mul", made, weight)


@symbolic("instance_norm")
def instance_norm(
    g: Graph,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
) -> Value:
    channels = input.static(1)
    weight = weight or g.constant(fb.ones(channels, dtype=input.dtype))
    bias = bias or g.constant(fb.zeros(channels, dtype=input.dtype))
    if not use_input_stats:
        return g.op(
            "BatchNormalization", input, weight, bias, running_mean, running_var, epsilon_f=eps
        )
    return g.op("InstanceNormalization", input, weight, bias, epsilon_f=eps)


@symbolic("group_norm")
def group_norm(
    g: Graph,
    input: Value,
    num_groups: int,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
) -> Value:
    channels = input.static(1)
    if g.opset >= 21:
        scale = weight or g.constant(fb.ones(channels, dtype=input.dtype))
        shift = bias or g.constant(fb.zeros(channels, dtype=input.dtype))
        return g.op(
            "GroupNormalization", input, scale, shift, num_groups_i=num_groups, epsilon_f=eps
        )
    ones = g.constant(fb.ones(num_groups, dtype=input.dtype))
    zeros = g.constant(fb.zeros(num_groups, dtype=input.dtype))
    grouped = g.reshape(input, [g.size(input, 0), num_groups, -1])
    made = g.op("InstanceNormalization", grouped, ones, zeros, epsilon_f=eps)
    made = g.reshape(made, g.shape_of(input))
    sizes = [-1] + [1] * (input.rank - 2)
    made = made if weight is None else g.op("Mul", made, g.reshape(weight, sizes))
    return made if bias is None else g.op("Add", made, g.reshape(bias, sizes))


@symbolic("normalize")
def normalize(g: Graph, input: Value, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Value:
    from flambeau.onnx._export.symbolic.reductions import norm

    size = g.clip(norm(g, input, p, [dim], True), eps, None)
    return g.op("Div", input, size)
