"""Normalisation of each element of a batch by itself: in groups, per channel, by its length.

All three rest on canonical ops that exist: rows of groups are what `layer_norm` normalises, the
channels of all elements side by side what `batch_norm` does.

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
from flambeau._dispatch.orders import ordered_like
from flambeau._tensor.tensor import Tensor
from flambeau.ops.declaration.public import public
from flambeau.ops.layers.activation import need_floating, wide
from flambeau.ops.layers.normalization import _check_dtypes, _layer_norm, batch_norm


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
    shape = tuple(x.shape)
    if x.dim() < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {x.dim()}"
        )
    if need_number(num_groups, "group_norm", "num_groups") <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if shape[1] % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            f"shape {list(shape)} and num_groups={num_groups}"
        )
    given = {"weight": weight, "bias": bias}
    for name, t in given.items():
        if t is not None and tuple(need_tensor(t, "group_norm", name).shape) != (shape[1],):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, "
                f"but got {name} of shape {list(t.shape)} and input of shape {list(shape)}"
            )
    need_floating(x, "group_norm", "input")
    _check_dtypes("group_norm", x, given)
    count = math.prod(shape[2:]) * (shape[1] // num_groups)
    rows = wide(x).reshape((shape[0] * num_groups, count))
    result = _layer_norm.run(rows, None, None, (count,), eps)[0].reshape(shape)
    channel = (1, shape[1], *(1,) * (x.dim() - 2))
    if weight is not None:
        result = result * wide(weight).reshape(channel)
    if bias is not None:
        result = result + wide(bias).reshape(channel)
    return ordered_like(x, cast(result, x.dtype))


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
        NotImplementedError: the dtype is not floating.

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
    need_floating(x, "rms_norm", "input")
    y = wide(x)
    least = flambeau.finfo(y.dtype).eps if eps is None else eps
    dims = tuple(range(x.dim() - len(shape), x.dim()))
    result = y * ((y * y).mean(dims, True) + least).rsqrt()
    if weight is not None:
        result = result * wide(weight)
    return cast(result, x.dtype)
