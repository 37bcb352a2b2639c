"""Convolutions, and their gradients as ops of their own.

The decompositions gather the windows of the padded input with index tensors and multiply matrices,
so they need neither strides nor in-place writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau._dispatch import cast
from flambeau._tensor import Tensor
from flambeau.ops._rules import need_tensor
from flambeau.ops._table import composite
from flambeau.ops._windows import Pair, framed, places, spaced, windows
from flambeau.ops.activation import wide
from flambeau.ops.linalg import _matmul

__all__ = ["conv1d", "conv2d", "conv_transpose2d"]


def _patches(
    x: Tensor,
    count: Sequence[int],
    kernel: Sequence[int],
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
) -> Tensor:
    """The windows of each group as columns: (N, groups, C / groups · KH · KW, H' · W')."""
    n, channels = x.shape[:2]
    rows, columns = map(places, count, kernel, stride, dilation)
    taken = windows(framed(x, padding, padding), rows, columns).permute((0, 1, 4, 5, 2, 3))
    depth = channels // groups * kernel[0] * kernel[1]
    return taken.reshape((n, groups, depth, count[0] * count[1]))


def _count(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


# -- canonical -------------------------------------------------------------------------------------


@composite(title="ConvolutionBackward0")
def _conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
) -> Tensor:
    """y[n, o, i, j] = b[o] + Σ_{c, u, v} w[o, c, u, v] · x[n, c, s·i + d·u - p, s·j + d·v - p]."""
    features, depth, *kernel = weight.shape
    count = list(map(_count, input.shape[2:], kernel, stride, padding, dilation))
    patches = _patches(input, count, kernel, stride, padding, dilation, groups)
    filters = weight.reshape((groups, features // groups, depth * kernel[0] * kernel[1]))
    result = _matmul(filters, patches).reshape((input.shape[0], features, *count))
    return result if bias is None else result + bias.reshape((features, 1, 1))


@_conv2d.gradient("input")
def _(F, g, input_shape, weight, stride, padding, dilation, groups):
    return F.conv2d_input_grad(g, weight, input_shape, stride, padding, dilation, groups)


@_conv2d.gradient("weight")
def _(F, g, input, weight_shape, stride, padding, dilation, groups):
    return F.conv2d_weight_grad(g, input, weight_shape, stride, padding, dilation, groups)


@_conv2d.gradient("bias")
def _(F, g):
    return F.sum(g, (0, 2, 3), False)


@composite(title="ConvolutionBackwardBackward0")
def _conv2d_input_grad(
    grad: Tensor,
    weight: Tensor,
    input_shape: tuple[int, ...],
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
) -> Tensor:
    """The adjoint of `conv2d` in its input: the spaced gradient with the turned kernel."""
    features, depth, *kernel = weight.shape
    spread = spaced(grad, stride)
    before = [d * (k - 1) - p for k, p, d in zip(kernel, padding, dilation, strict=True)]
    after = [n + p - m for n, m, p in zip(input_shape[2:], spread.shape[2:], padding, strict=True)]
    # The features of a group become its input channels, and the other way round.
    turned = weight.reshape((groups, features // groups, depth, *kernel)).transpose(1, 2)
    turned = turned.reshape((groups * depth, features // groups, *kernel)).flip((2, 3))
    return _conv2d(framed(spread, before, after), turned, None, (1, 1), (0, 0), dilation, groups)


@_conv2d_input_grad.gradient("grad")
def _(F, g, weight, stride, padding, dilation, groups):
    return F.conv2d(g, weight, None, stride, padding, dilation, groups)


@_conv2d_input_grad.gradient("weight")
def _(F, g, grad, weight_shape, stride, padding, dilation, groups):
    return F.conv2d_weight_grad(grad, g, weight_shape, stride, padding, dilation, groups)


@composite(title="ConvolutionBackwardBackward0")
def _conv2d_weight_grad(
    grad: Tensor,
    input: Tensor,
    weight_shape: tuple[int, ...],
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
) -> Tensor:
    """The adjoint of `conv2d` in its weight: products of the gradient with the windows."""
    n, features, *count = grad.shape
    patches = _patches(input, count, weight_shape[2:], stride, padding, dilation, groups)
    rows = grad.reshape((n, groups, features // groups, count[0] * count[1]))
    total = _matmul(wide(rows), wide(patches).mT).sum(0)
    return cast(total, grad.dtype).reshape(weight_shape)


@_conv2d_weight_grad.gradient("grad")
def _(F, g, input, stride, padding, dilation, groups):
    return F.conv2d(input, g, None, stride, padding, dilation, groups)


@_conv2d_weight_grad.gradient("input")
def _(F, g, grad, input_shape, stride, padding, dilation, groups):
    return F.conv2d_input_grad(grad, g, input_shape, stride, padding, dilation, groups)


# == public functions ==============================================================================


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """y[n, o, i, j] = b[o] + Σ_{c, u, v} w[o, c, u, v] · x[n, c, s·i + d·u - p, s·j + d·v - p].

    The channels fall into `groups` blocks that are convolved apart.  `padding` is a number of zeros
    per side, ``"valid"`` (none) or ``"same"`` (output of the input's size, stride 1 only).

    Shapes: input (N, C, H, W) or (C, H, W), weight (O, C / groups, KH, KW), bias (O);
    result (N, O, H', W') or (O, H', W') with H' = ⌊(H + 2p - d·(KH - 1) - 1) / s⌋ + 1.

    Raises:
        RuntimeError: shapes, dtypes or settings do not fit; says which.

    >>> import flambeau as fb
    >>> fb.conv2d(fb.ones(1, 1, 3, 3), fb.ones(1, 1, 2, 2))
    tensor([[[[4., 4.],
              [4., 4.]]]])
    """
    return _convolution(2, input, weight, bias, stride, padding, dilation, groups)


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """`conv2d` of signals: y[n, o, i] = b[o] + Σ_{c, u} w[o, c, u] · x[n, c, s·i + d·u - p].

    Shapes: input (N, C, L) or (C, L), weight (O, C / groups, K), bias (O); result (N, O, L') or
    (O, L') with L' = ⌊(L + 2p - d·(K - 1) - 1) / s⌋ + 1.

    Raises:
        RuntimeError: shapes, dtypes or settings do not fit; says which.

    >>> import flambeau as fb
    >>> fb.conv1d(fb.ones(1, 1, 4), fb.ones(1, 1, 2), stride=2)
    tensor([[[2., 2.]]])
    """
    return _convolution(1, input, weight, bias, stride, padding, dilation, groups)


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The adjoint of `conv2d` in its input: each element spreads the kernel over the output.

    Shapes: input (N, C, H, W) or (C, H, W), weight (C, O / groups, KH, KW), bias (O);
    H' = (H - 1)·s - 2p + d·(KH - 1) + output_padding + 1.

    Raises:
        RuntimeError: shapes, dtypes or settings do not fit; says which.

    >>> import flambeau as fb
    >>> fb.conv_transpose2d(fb.ones(1, 1, 1, 2), fb.ones(1, 1, 1, 2))
    tensor([[[[1., 2., 1.]]]])
    """
    where = "conv_transpose2d"
    x, w = need_tensor(input, where, "input"), need_tensor(weight, where, "weight")
    _check_ranks(where, x, w, 2)
    step, edge = _sizes(stride, 2, "stride"), _sizes(padding, 2, "padding")
    extra, spread = _sizes(output_padding, 2, "output_padding"), _sizes(dilation, 2, "dilation")
    _check_settings(x, w, bias, step, edge, spread, groups)
    if min(extra) < 0:
        raise RuntimeError(f"negative output_padding is not supported, got {list(extra)}")
    for e, s, d in zip(extra, step, spread, strict=True):
        if e >= s and e >= d:
            raise RuntimeError(
                "output padding must be smaller than either stride or dilation, but got "
                f"output_padding: {list(extra)}, stride: {list(step)}, dilation: {list(spread)}"
            )
    given = list(x.shape)
    if x.dim() == 3:
        x = x.unsqueeze(0)
    channels, features = w.shape[0], w.shape[1] * groups
    if x.shape[1] != channels:
        raise RuntimeError(
            f"Given transposed=1, weight of size {list(w.shape)}, expected input{given} to have "
            f"{channels} channels, but got {x.shape[1]} channels instead"
        )
    _check_bias(w, bias, features, "Given transposed=1, ")
    dims = zip(x.shape[2:], w.shape[2:], step, edge, spread, extra, strict=True)
    size = [(n - 1) * s - 2 * p + d * (k - 1) + e + 1 for n, k, s, p, d, e in dims]
    if min(size) < 1:
        raise RuntimeError(
            f"Given input size per channel: ({_times(x.shape[2:])}). Calculated output size per "
            f"channel: ({_times(size)}). Output size is too small"
        )
    shape = (x.shape[0], features, *size)
    result = _conv2d_input_grad(x, w, shape, step, edge, spread, groups)
    if bias is not None:
        result = result + bias.reshape((features, 1, 1))
    return result.squeeze(0) if len(given) == 3 else result


def _convolution(
    count: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    where = f"conv{count}d"
    x, w = need_tensor(input, where, "input"), need_tensor(weight, where, "weight")
    _check_ranks(where, x, w, count)
    step, spread = _sizes(stride, count, "stride"), _sizes(dilation, count, "dilation")
    given, filters = tuple(x._a.shape), tuple(w._a.shape)
    size, kernel = given[-count:], filters[2:]
    if isinstance(padding, str):
        before, after = _named_padding(padding, kernel, step, spread)
    else:
        before = after = _sizes(padding, count, "padding")
    _check_settings(x, w, bias, step, before, spread, groups)
    if filters[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, "
            f"but got weight of size {list(filters)} instead"
        )
    if filters[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, "
            f"but got weight of size {list(filters)} instead"
        )
    channels = given[-count - 1]
    if channels != filters[1] * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(filters)}, expected input{list(given)} "
            f"to have {filters[1] * groups} channels, but got {channels} channels instead"
        )
    _check_bias(w, bias, filters[0], "Given ")
    padded = [n + a + b for n, a, b in zip(size, before, after, strict=True)]
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, spread, strict=True)]
    if any(n < r for n, r in zip(padded, reach, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({_times(padded)}). Kernel size: "
            f"({_times(reach)}). Kernel size can't be greater than actual input size"
        )
    unbatched = len(given) == count + 1
    if unbatched:
        x = x.unsqueeze(0)
    if count == 1:  # a signal is an image of height 1
        x, w = x.unsqueeze(2), w.unsqueeze(2)
        step, spread, before, after = (1, *step), (1, *spread), (0, *before), (0, *after)
    if before != after:  # at most one more zero behind than in front
        x = framed(x, (0, 0), [b - a for a, b in zip(before, after, strict=True)])
    result = _conv2d(x, w, bias, step, before, spread, groups)
    result = result.squeeze(2) if count == 1 else result
    return result.squeeze(0) if unbatched else result


def _sizes(value: Any, count: int, name: str) -> tuple[int, ...]:
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if len(values) not in (1, count):
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {count} values to match "
            f"the convolution dimensions, but got {name}={list(values)}"
        )
    return values if len(values) == count else values * count


def _named_padding(
    padding: str, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if padding == "valid":
        return (0,) * len(kernel), (0,) * len(kernel)
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: {padding!r}; known are 'same' and 'valid'")
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    return tuple(t // 2 for t in totals), tuple(t - t // 2 for t in totals)


def _check_ranks(where: str, x: Tensor, w: Tensor, count: int) -> None:
    if x.dim() not in (count + 1, count + 2):
        raise RuntimeError(
            f"Expected {count + 1}D (unbatched) or {count + 2}D (batched) input to {where}, "
            f"but got input of size: {list(x.shape)}"
        )
    if w.dim() != count + 2:
        raise RuntimeError(
            f"{where}: expected a weight of {count + 2} dimensions, got size {list(w.shape)}"
        )


def _check_settings(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> None:
    for name, other in (("weight", w), ("bias", bias)):
        if other is not None and other.dtype is not x.dtype:
            raise RuntimeError(
                f"Input type ({x.dtype}) and {name} type ({other.dtype}) should be the same"
            )
    if min(padding) < 0:
        raise RuntimeError(f"negative padding is not supported, got {list(padding)}")
    if min(stride) <= 0:
        raise RuntimeError(f"non-positive stride is not supported, got {list(stride)}")
    if min(dilation) <= 0:
        raise RuntimeError(f"dilation should be greater than zero, but got {list(dilation)}")
    if groups <= 0:
        raise RuntimeError(f"non-positive groups is not supported, got {groups}")


def _check_bias(w: Tensor, bias: Tensor | None, features: int, given: str) -> None:
    if bias is not None and tuple(bias.shape) != (features,):
        raise RuntimeError(
            f"{given}weight of size {list(w.shape)}, expected bias to be 1-dimensional with "
            f"{features} elements, but got bias of size {list(bias.shape)} instead"
        )


def _times(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))
