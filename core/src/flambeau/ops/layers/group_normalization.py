"""Normalisation of each element of a batch by itself: in groups, per channel, by its length.

The formulas of groups are those of `normalization`, whose channels of all elements side by side are
what `instance_norm` normalises.

Sources: Wu & He (2018), Ulyanov, Vedaldi & Lempitsky (2016), Zhang & Sennrich (2019).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from flambeau._dispatch.annotated import takes_as_annotated
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
from flambeau.ops.layers.normalization import (
    Axes,
    _backward,
    _check_dtypes,
    _double_backward,
    _plus,
    _train,
    _train_gradient,
    batch_norm,
)


def _grouped(shape: Sequence[int], groups: int) -> tuple[tuple[int, ...], Axes]:
    """The shape (N, groups, channels of each, *) without more than one size, and its axes."""
    batch, channels = shape[:2]
    each = channels // groups
    axes = Axes((2, 3), (0, 3), (batch, groups, 1, 1), (1, groups, each, 1))
    return (batch, groups, each, math.prod(shape[2:])), axes


@composite(results=3, title="NativeGroupNormBackward0", ordered_by=["input"])
def _group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, groups: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """x̂·weight + bias; the mean and invstd of each group are the other results (N, groups)."""
    shape, axes = _grouped(input.shape, groups)
    result, mean, invstd = _train(axes, input.reshape(shape), weight, bias, eps)
    kept = shape[:2]
    return result.reshape(tuple(input.shape)), mean.reshape(kept), invstd.reshape(kept)


@_group_norm.gradient
def _(F, g, input, weight, result1, result2, groups):
    grads = (None, None, None)
    if g[0] is not None:
        grads = F.group_norm_backward(g[0], input, weight, result1, result2, groups)
    if g[1] is g[2] is None:
        return grads
    shape, axes = _grouped(input.shape, groups)
    rows = F.reshape(input, shape)
    over, _, _ = _train_gradient(F, axes, g, (None, None, None), rows, result1, result2)
    return (_plus(F, grads[0], F.reshape(over, tuple(input.shape))), *grads[1:])


@composite(results=3, title="NativeGroupNormBackwardBackward0", ordered_by=["input"])
def _group_norm_backward(
    grad: Tensor, input: Tensor, weight: Tensor | None, mean: Tensor, invstd: Tensor, groups: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of `group_norm` in input, weight and bias."""
    shape, axes = _grouped(input.shape, groups)
    over, over_weight, over_bias = _backward(
        axes, grad.reshape(shape), input.reshape(shape), weight, mean, invstd
    )
    kind = (input.shape[1],)
    return over.reshape(tuple(input.shape)), over_weight.reshape(kind), over_bias.reshape(kind)


_group_norm_backward.demand(_rules.group_norm_backward)


@_group_norm_backward.gradient
def _(F, g, grad, input, weight, mean, invstd, groups):
    shape, axes = _grouped(input.shape, groups)
    g = (None if g[0] is None else F.reshape(g[0], shape), *g[1:])
    rows = F.reshape(grad, shape), F.reshape(input, shape)
    over_grad, over_input, *rest = _double_backward(F, axes, g, *rows, weight, mean, invstd)
    if over_input is not None:
        over_input = F.reshape(over_input, tuple(input.shape))
    return (F.reshape(over_grad, tuple(grad.shape)), over_input, *rest)


@public(method=False)
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    """(x - E[x]) / √(Var[x] + `eps`)·w + b with the statistics of each of `num_groups` groups.

    A group is C / `num_groups` neighbouring channels of one element of the batch.

    Shapes: input (N, C, *), weight and bias (C); result as input.

    Raises:
        RuntimeError: shapes or dtypes do not fit, or C is no multiple of `num_groups`.
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.group_norm(fb.tensor([[1.0, 3.0, 0.0, 8.0]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    x = need_tensor(input, "group_norm", "input")
    shape = x._a.shape
    if len(shape) < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {len(shape)}"
        )
    if need_number(num_groups, "group_norm", "num_groups") <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if shape[1] % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            f"shape {list(shape)} and num_groups={num_groups}"
        )
    for name, t in (("weight", weight), ("bias", bias)):
        if t is not None and need_tensor(t, "group_norm", name)._a.shape != shape[1:2]:
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, "
                f"but got {name} of shape {list(t.shape)} and input of shape {list(shape)}"
            )
    need_floating(x, "group_norm", "input")
    if weight is not None or bias is not None:
        _check_dtypes("group_norm", x, {"weight": weight, "bias": bias})
    if x.dtype is not (kind := wide_dtype(x.dtype)):
        parameters = (None if t is None else cast(t, kind) for t in (weight, bias))
        return cast(_group_norm.head(cast(x, kind), *parameters, num_groups, eps), x.dtype)
    return _group_norm.head(x, weight, bias, num_groups, eps)


@public(method=False)
def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """(x - E[x]) / √(Var[x] + `eps`)·w + b per channel of each element of the batch.

    With `use_input_stats` E and Var are those of the channel, and the running statistics, if
    given, become (1 - `momentum`)·running + `momentum`·(mean over the batch).  Otherwise the
    running statistics serve.  `cudnn_enabled` is accepted and left to the backend.

    Shapes: input (N, C, *), all others (C); result as input.

    Raises:
        RuntimeError: no running statistics although they are to be used, or sizes that do not fit.

    >>> import flambeau as fb
    >>> x = fb.tensor([[[1.0, 3.0], [0.0, 8.0]]])
    >>> fb.instance_norm(x, None, None, None, None, True, 0.1, 1e-5, False)
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """
    x = need_tensor(input, "instance_norm", "input")
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    if x.dim() < 2:
        raise IndexError(f"instance_norm: expected an input (N, C, *), got shape {list(x.shape)}")
    batch, channels = x.shape[:2]

    def repeated(t: Tensor | None) -> Tensor | None:
        return None if t is None else need_tensor(t, "instance_norm", "running_mean").repeat(batch)

    mean, var = repeated(running_mean), repeated(running_var)
    result = batch_norm(
        x.reshape((1, batch * channels, *x.shape[2:])),
        *(repeated(weight), repeated(bias), mean, var),
        *(use_input_stats, momentum, eps, cudnn_enabled),
    )
    if use_input_stats and batch:
        for running, updated in ((running_mean, mean), (running_var, var)):
            if running is not None and updated is not None:
                running.detach().copy_(updated.detach().reshape((batch, channels)).mean(0))
    return result.reshape(tuple(x.shape))


@public(method=False)
@takes_as_annotated
def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """x / √(mean(x²) + `eps`)·w with the mean over the last dimensions.

    By default `eps` is the spacing of numbers near 1 in the dtype that it is computed in.

    Shapes: input (*, normalized_shape), weight (normalized_shape); result as input.

    Raises:
        RuntimeError: the shapes do not fit.
        NotImplementedError: the dtype is neither floating nor complex.

    >>> import flambeau as fb
    >>> fb.rms_norm(fb.tensor([[1.0, 7.0]]), [2])
    tensor([[0.2000, 1.4000]])
    """
    import flambeau

    x = need_tensor(input, "rms_norm", "input")
    shape = sizes((normalized_shape,), "normalized_shape")
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
            "element, but got normalized_shape = []"
        )
    if weight is not None and tuple(need_tensor(weight, "rms_norm", "weight").shape) != shape:
        raise RuntimeError(
            "Expected weight to be of same shape as normalized_shape, but got weight of shape "
            f"{list(weight.shape)} and normalized_shape = {list(shape)}"
        )
    if tuple(x.shape[-len(shape) :]) != shape:
        wanted = ", ".join(["*", *map(str, shape)])
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [{wanted}], but got "
            f"input of size{list(x.shape)}"
        )
    if not x.dtype.is_complex:
        need_floating(x, "rms_norm", "input")
    y = wide(x)
    least = flambeau.finfo(y.dtype).eps if eps is None else eps
    dims = tuple(range(x.dim() - len(shape), x.dim()))
    result = y * ((y * y).mean(dims, True) + least).rsqrt()
    if weight is not None:
        result = result * wide(weight)
    return cast(result, x.dtype)
