"""Normalisation by mean and variance: of channels over a batch, of an element's features.

Both are x̂ = (x - mean)·r, y = x̂·w + b with r = 1 / √(variance + eps).  They differ in the
dimensions over which statistics are taken (S) and along which one weight serves all elements (W),
so the formulas are written once.  With P(v) = v - mean_S(v) - x̂·mean_S(v·x̂):

    dL/dx = r·P(g·w),  dL/dw = Σ_W g·x̂,  dL/db = Σ_W g

Sources: Ioffe & Szegedy (2015), Ba, Kiros & Hinton (2016).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from flambeau._autograd.modes import no_grad
from flambeau._dispatch.arguments import (
    need_number,
    need_tensor,
    sizes,
)
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.layers import gradient_rules as _rules
from flambeau.ops.layers.activation import need_floating, wide, wide_dtype

if TYPE_CHECKING:
    from flambeau._types.native import Array
    from flambeau.ops.declaration.formulas import Formulas
    from flambeau.testing.reference.array import RefArray


EPS_IS_POSITIVE = True
"""Whether training wants the number that keeps a variance from zero to be more than that."""


class Axes(NamedTuple):
    """The dimensions that statistics and weights are constant along, and shapes that broadcast."""

    statistics: tuple[int, ...]
    weights: tuple[int, ...]
    statistic: tuple[int, ...]
    weight: tuple[int, ...]


def _batch_axes(shape: Sequence[int]) -> Axes:
    others = tuple(d for d in range(len(shape)) if d != 1)
    channel = (1, shape[1], *(1,) * (len(shape) - 2))
    return Axes(others, others, channel, channel)


def _layer_axes(shape: Sequence[int], normalized_shape: tuple[int, ...]) -> Axes:
    lead = len(shape) - len(normalized_shape)
    return Axes(
        tuple(range(lead, len(shape))),
        tuple(range(lead)),
        (*shape[:lead], *(1,) * len(normalized_shape)),
        (*(1,) * lead, *normalized_shape),
    )


def _train(
    axes: Axes, input: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    x = wide(input)
    mean = x.mean(axes.statistics, True)
    centred = x - mean
    invstd = ((centred * centred).mean(axes.statistics, True) + eps).rsqrt()
    result = centred * invstd
    if weight is not None:
        result = result * wide(weight).reshape(axes.weight)
    if bias is not None:
        result = result + wide(bias).reshape(axes.weight)
    return cast(result, input.dtype), cast(mean, input.dtype), cast(invstd, input.dtype)


def _backward(
    axes: Axes, grad: Tensor, input: Tensor, weight: Tensor | None, mean: Tensor, invstd: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    g, x, r = wide(grad), wide(input), wide(invstd).reshape(axes.statistic)
    xhat = (x - wide(mean).reshape(axes.statistic)) * r
    p = g if weight is None else g * wide(weight).reshape(axes.weight)
    shared = p.mean(axes.statistics, True) + xhat * (p * xhat).mean(axes.statistics, True)
    dtype = input.dtype if weight is None else weight.dtype
    over_weight, over_bias = (
        cast(t.sum(axes.weights) if axes.weights else t, dtype) for t in (g * xhat, g)
    )
    return cast(r * (p - shared), input.dtype), over_weight, over_bias


def _total(F: Formulas, a: Array, dims: tuple[int, ...]) -> Array:
    return F.sum(a, dims, True) if dims else a


def _plus(F: Any, *terms: object) -> Any:
    """The sum of the terms that are not None, or None."""
    total = None
    for term in terms:
        if term is not None:
            total = term if total is None else F.add(total, term)
    return total


def _train_gradient(
    F: Formulas, axes: Axes, g: Any, grads: Any, input: Array, mean: Array, invstd: Array
) -> tuple[Any, Any, Any]:
    """Add to the gradients from the output those that came through the statistics."""
    over_input, over_weight, over_bias = grads
    count = max(math.prod(input.shape[d] for d in axes.statistics), 1)
    if g[1] is not None:
        part = F.div(F.reshape(g[1], axes.statistic), F.scalar(count, g[1]))
        part = F.cast_like(F.expand(part, tuple(input.shape)), input)
        over_input = _plus(F, over_input, part)
    if g[2] is not None:  # d invstd / dx = -invstd³·(x - mean) / count
        r = F.reshape(invstd, axes.statistic)
        factor = F.mul(F.mul(F.reshape(g[2], axes.statistic), F.mul(r, r)), r)
        factor = F.mul(factor, F.scalar(-1 / count, factor))
        centred = F.sub(F.cast_like(input, mean), F.reshape(mean, axes.statistic))
        over_input = _plus(F, over_input, F.cast_like(F.mul(factor, centred), input))
    return over_input, over_weight, over_bias


def _double_backward(
    F: Any,
    axes: Axes,
    g: Any,
    grad: Any,
    input: Any,
    weight: RefArray | None,
    mean: Any,
    invstd: Any,
) -> tuple[Any, ...]:
    """The gradient of `_backward`; g holds A, B, C for the gradients of input, weight and bias.

    With q = A·r: over grad w·P(q) + B·x̂ + C; over weight Σ_W grad·P(q); over x̂
    B·grad - q·mean_S(p·x̂) - p·mean_S(q·x̂); over r, apart from x̂, Σ_S A·P(p).
    """
    a, b, c = (None if v is None else F.cast_like(v, invstd) for v in g[:3])
    v, x = F.cast_like(grad, invstd), F.cast_like(input, invstd)
    w = None if weight is None else F.reshape(F.cast_like(weight, invstd), axes.weight)
    r = F.reshape(invstd, axes.statistic)
    centred = F.sub(x, F.reshape(mean, axes.statistic))
    xhat = F.mul(centred, r)
    over_grad = over_input = over_weight = over_mean = over_xhat = over_r = None
    if a is not None:
        p, q = v if w is None else F.mul(v, w), F.mul(a, r)
        p_slope, q_slope = (F.mean(F.mul(y, xhat), axes.statistics, True) for y in (p, q))
        p_rest, q_rest = (
            F.sub(F.sub(y, F.mean(y, axes.statistics, True)), F.mul(xhat, slope))
            for y, slope in ((p, p_slope), (q, q_slope))
        )
        over_grad = q_rest if w is None else F.mul(q_rest, w)
        over_xhat = F.neg(F.add(F.mul(q, p_slope), F.mul(p, q_slope)))
        over_r = _total(F, F.mul(a, p_rest), axes.statistics)
        if weight is not None:
            total = _total(F, F.mul(v, q_rest), axes.weights)
            over_weight = F.cast_like(F.reshape(total, weight.shape), weight)
    if b is not None:
        b = F.reshape(b, axes.weight)
        over_grad = _plus(F, over_grad, F.mul(xhat, b))
        over_xhat = _plus(F, over_xhat, F.mul(v, b))
    if c is not None:
        over_grad = _plus(F, over_grad, F.expand(F.reshape(c, axes.weight), tuple(grad.shape)))
    if over_xhat is not None:
        shifted = F.mul(over_xhat, r)
        over_input = F.cast_like(shifted, input)
        over_mean = F.reshape(F.neg(_total(F, shifted, axes.statistics)), mean.shape)
        over_r = _plus(F, over_r, _total(F, F.mul(over_xhat, centred), axes.statistics))
    if over_r is not None:
        over_r = F.reshape(over_r, invstd.shape)
    return F.cast_like(over_grad, grad), over_input, over_weight, over_mean, over_r


@composite(title="NativeBatchNormBackward0", ordered_by=["input"])
def _batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, invstd: Tensor
) -> Tensor:
    """(x - mean)·invstd·weight + bias per channel, with given statistics."""
    channel = _batch_axes(input.shape).weight
    scale = wide(invstd) if weight is None else wide(invstd) * wide(weight)
    result = (wide(input) - wide(mean).reshape(channel)) * scale.reshape(channel)
    if bias is not None:
        result = result + wide(bias).reshape(channel)
    return cast(result, input.dtype)


def _scale(F: Formulas, weight: Array, invstd: Array) -> Array:
    return invstd if weight is None else F.mul(invstd, F.cast_like(weight, invstd))


def _centred_total(F: Formulas, g: Array, input: Array, mean: Array) -> Array:
    axes = _batch_axes(g.shape)
    centred = F.sub(F.cast_like(input, mean), F.reshape(mean, axes.weight))
    return F.sum(F.mul(F.cast_like(g, mean), centred), axes.weights, False)


def _grad_total(F: Formulas, g: Array, like: Array) -> Array:
    return F.sum(F.cast_like(g, like), _batch_axes(g.shape).weights, False)


_batch_norm.jointly("input", "weight")


@_batch_norm.gradient("input")
def _(F, g, weight, invstd):
    scale = F.reshape(_scale(F, weight, invstd), _batch_axes(g.shape).weight)
    return F.cast_like(F.mul(F.cast_like(g, invstd), scale), g)


@_batch_norm.gradient("weight")
def _(F, g, input, weight_dtype, mean, invstd):
    return F.cast(F.mul(_centred_total(F, g, input, mean), invstd), weight_dtype)


@_batch_norm.gradient("bias")
def _(F, g, bias_dtype, invstd):
    return F.cast(_grad_total(F, g, invstd), bias_dtype)


@_batch_norm.gradient("mean")
def _(F, g, weight, invstd):
    return F.neg(F.mul(_grad_total(F, g, invstd), _scale(F, weight, invstd)))


@_batch_norm.gradient("invstd")
def _(F, g, input, weight, mean):
    return _scale(F, weight, _centred_total(F, g, input, mean))


@composite(results=3, title="NativeBatchNormBackward0", ordered_by=["input"])
def _batch_norm_train(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """`batch_norm` with the batch's own mean and invstd, which are the other results (C)."""
    result, mean, invstd = _train(_batch_axes(input.shape), input, weight, bias, eps)
    return result, mean.reshape((input.shape[1],)), invstd.reshape((input.shape[1],))


@_batch_norm_train.gradient
def _(F, g, input, weight, result1, result2):
    grads = (None, None, None)
    if g[0] is not None:
        grads = F.batch_norm_backward(g[0], input, weight, result1, result2)
    if g[1] is g[2] is None:
        return grads
    return _train_gradient(F, _batch_axes(input.shape), g, grads, input, result1, result2)


@composite(results=3, title="NativeBatchNormBackwardBackward0", ordered_by=["input"])
def _batch_norm_backward(
    grad: Tensor, input: Tensor, weight: Tensor | None, mean: Tensor, invstd: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of `batch_norm_train` in input, weight and bias."""
    return _backward(_batch_axes(input.shape), grad, input, weight, mean, invstd)


_batch_norm_backward.demand(_rules.batch_norm_backward)


@_batch_norm_backward.gradient
def _(F, g, grad, input, weight, mean, invstd):
    return _double_backward(F, _batch_axes(input.shape), g, grad, input, weight, mean, invstd)


@composite(results=3, title="NativeLayerNormBackward0")
def _layer_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    normalized_shape: tuple[int, ...],
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """x̂·weight + bias over the last dimensions; mean and invstd keep those as 1."""
    return _train(_layer_axes(input.shape, normalized_shape), input, weight, bias, eps)


@_layer_norm.gradient
def _(F, g, input, weight, result1, result2, normalized_shape):
    grads = (None, None, None)
    if g[0] is not None:
        grads = F.layer_norm_backward(g[0], input, weight, result1, result2, normalized_shape)
    if g[1] is g[2] is None:
        return grads
    axes = _layer_axes(input.shape, normalized_shape)
    return _train_gradient(F, axes, g, grads, input, result1, result2)


@composite(results=3, title="NativeLayerNormBackwardBackward0")
def _layer_norm_backward(
    grad: Tensor,
    input: Tensor,
    weight: Tensor | None,
    mean: Tensor,
    invstd: Tensor,
    normalized_shape: tuple[int, ...],
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of `layer_norm` in input, weight and bias."""
    axes = _layer_axes(input.shape, normalized_shape)
    return _backward(axes, grad, input, weight, mean, invstd)


_layer_norm_backward.demand(_rules.layer_norm_backward)


@_layer_norm_backward.gradient
def _(F, g, grad, input, weight, mean, invstd, normalized_shape):
    axes = _layer_axes(input.shape, normalized_shape)
    return _double_backward(F, axes, g, grad, input, weight, mean, invstd)


@public(method=False)
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """(x - E[x]) / √(Var[x] + `eps`)·w + b per channel.

    In training E and Var are those of the batch (Var biased), and the running statistics, if
    given, become (1 - `momentum`)·running + `momentum`·batch (with the unbiased Var).  Otherwise
    the running statistics serve.  `cudnn_enabled` is accepted and left to the backend.

    Shapes: input (N, C, *), all others (C); result as input.

    Raises:
        RuntimeError: no running statistics outside training, or sizes or dtypes that do not fit.
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.batch_norm(fb.tensor([[1.0], [3.0]]), None, None, None, None, True, 0.1, 1e-5, False)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    x = need_floating(input, "batch_norm", "input")
    if x.dim() < 2:
        raise IndexError(f"batch_norm: expected an input (N, C, *), got shape {list(x.shape)}")
    if not training and (running_mean is None or running_var is None):
        missing = "running_mean" if running_mean is None else "running_var"
        raise RuntimeError(f"{missing} must be defined in evaluation mode")
    if (running_mean is None) is not (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    if need_number(eps, "batch_norm", "eps") <= 0 and training and EPS_IS_POSITIVE:
        raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    given = {
        "running_mean": running_mean,
        "running_var": running_var,
        "weight": weight,
        "bias": bias,
    }
    for name, t in given.items():
        if t is not None and need_tensor(t, "batch_norm", name).numel() != x.shape[1]:
            raise RuntimeError(f"{name} should contain {x.shape[1]} elements not {t.numel()}")
    _check_dtypes("batch_norm", x, given)
    if not training:
        assert running_mean is not None and running_var is not None
        invstd = cast((wide(running_var) + eps).rsqrt(), running_var.dtype)
        return _batch_norm.run(x, weight, bias, running_mean, invstd)
    if 0 not in x._a.shape:
        need_number(momentum, "batch_norm", "momentum")
    if running_mean is None or running_var is None:
        return _batch_norm_train.head(x, weight, bias, eps)
    result, mean, invstd = _batch_norm_train.run(x, weight, bias, eps)
    if x.numel():
        count = x.numel() // x.shape[1]
        _follow(running_mean, running_var, mean, invstd, count, momentum, eps)
    return result


# Not by a block, whose end an interrupt could keep from beginning.
@no_grad()
def _follow(
    running_mean: Tensor,
    running_var: Tensor,
    mean: Tensor,
    invstd: Tensor,
    count: int,
    momentum: float,
    eps: float,
) -> None:
    """Move the running statistics towards those of `count` numbers for each channel."""
    running_mean.mul_(1 - momentum).add_(mean, alpha=momentum)
    unbiased = count / (count - 1) if count > 1 else math.nan
    variance = (invstd**-2 - eps).clamp(0) * unbiased
    running_var.mul_(1 - momentum).add_(variance, alpha=momentum)


@public(method=False)
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    """(x - E[x]) / √(Var[x] + `eps`)·w + b with the statistics of the last dimensions.

    Shapes: input (*, normalized_shape), weight and bias (normalized_shape); result as input.

    Raises:
        RuntimeError: shapes or dtypes do not fit.
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.layer_norm(fb.tensor([[1.0, 3.0]]), [2])
    tensor([[-1.0000,  1.0000]])
    """
    x = need_tensor(input, "layer_norm", "input")
    shape = sizes((normalized_shape,), "normalized_shape")
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
            "element, but got normalized_shape = []"
        )
    others = weight is not None or bias is not None
    for name, t in (("weight", weight), ("bias", bias)) if others else ():
        if t is not None and need_tensor(t, "layer_norm", name)._a.shape != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(t.shape)} and normalized_shape = {list(shape)}"
            )
    if x._a.shape[-len(shape) :] != shape:
        wanted = ", ".join(["*", *map(str, shape)])
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [{wanted}], but got "
            f"input of size{list(x.shape)}"
        )
    need_floating(x, "layer_norm", "input")
    if others:
        _check_dtypes("layer_norm", x, {"weight": weight, "bias": bias})
    return _layer_norm.head(x, weight, bias, shape, eps)


def _check_dtypes(name: str, x: Tensor, others: dict[str, Tensor | None]) -> None:
    for argument, t in others.items():
        if t is None or t.dtype is x.dtype:
            continue
        if t.dtype is not wide_dtype(x.dtype):
            raise RuntimeError(
                f"{name}: mixed dtype: expected {argument} to have the dtype {x.dtype} of the "
                f"input, got {t.dtype}"
            )
