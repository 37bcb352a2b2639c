"""Convolutions, and their gradients as ops of their own.

Two ranks are canonical, images and volumes; a signal is an image of height 1.  One decomposition
serves both: it gathers the windows of the padded input with index tensors and multiplies matrices,
so it needs neither strides nor in-place writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._tensor.tensor import Tensor
from flambeau._types.hints import Ints
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.layers.activation import wide
from flambeau.ops.matrices.linalg import _matmul
from flambeau.ops.spatial import convolution_rules as _rules
from flambeau.ops.spatial.convolution_arguments import (
    check_bias,
    check_channels,
    check_ranks,
    check_room,
    check_settings,
    keep,
    known,
    lifted,
    named_padding,
    sizes,
)
from flambeau.ops.spatial.image_windows import Pair, Sizes, Triple, framed, places, spaced, windows


def _patches(
    x: Tensor,
    count: Sequence[int],
    kernel: Sequence[int],
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Tensor:
    """The windows of each group as columns: (N, groups, C / groups · taps, positions)."""
    n, channels = x.shape[:2]
    rank = len(kernel)
    taken = windows(framed(x, padding, padding), list(map(places, count, kernel, stride, dilation)))
    taken = taken.permute((0, 1, *range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank)))
    return taken.reshape((n, groups, channels // groups * prod(kernel), prod(count)))


def _count(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def _convolved(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Tensor:
    """The windows as columns times the filters as rows."""
    features, depth, *kernel = weight.shape
    count = list(map(_count, input.shape[2:], kernel, stride, padding, dilation))
    patches = _patches(input, count, kernel, stride, padding, dilation, groups)
    filters = weight.reshape((groups, features // groups, depth * prod(kernel)))
    result = _matmul(filters, patches).reshape((input.shape[0], features, *count))
    return result if bias is None else result + bias.reshape((features, *(1 for _ in kernel)))


def _turned(
    grad: Tensor,
    weight: Tensor,
    input_shape: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> tuple[Tensor, Tensor]:
    """The spaced gradient and the turned kernel whose convolution is the input's gradient."""
    features, depth, *kernel = weight.shape
    spread = spaced(grad, stride)
    before = [d * (k - 1) - p for k, p, d in zip(kernel, padding, dilation, strict=True)]
    after = [n + p - m for n, m, p in zip(input_shape[2:], spread.shape[2:], padding, strict=True)]
    # The features of a group become its input channels, and the other way round.
    turned = weight.reshape((groups, features // groups, depth, *kernel)).transpose(1, 2)
    turned = turned.reshape((groups * depth, features // groups, *kernel))
    return framed(spread, before, after), turned.flip(tuple(range(2, 2 + len(kernel))))


def _summed_over_positions(
    grad: Tensor,
    input: Tensor,
    weight_shape: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Tensor:
    """Products of the gradient with the windows, summed: the weight's gradient."""
    n, features, *count = grad.shape
    patches = _patches(input, count, weight_shape[2:], stride, padding, dilation, groups)
    rows = grad.reshape((n, groups, features // groups, prod(count)))
    total = _matmul(wide(rows), wide(patches).mT).sum(0)
    return cast(total, grad.dtype).reshape(weight_shape)


@composite(title="ConvolutionBackward0", ordered_by=["input", "weight"])
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
    return _convolved(input, weight, bias, stride, padding, dilation, groups)


_conv2d.jointly("input", "weight")


@_conv2d.gradient("input")
def _(F, g, input_shape, weight, stride, padding, dilation, groups):
    return F.conv2d_input_grad(g, weight, input_shape, stride, padding, dilation, groups)


@_conv2d.gradient("weight")
def _(F, g, input, weight_shape, stride, padding, dilation, groups):
    return F.conv2d_weight_grad(g, input, weight_shape, stride, padding, dilation, groups)


@_conv2d.gradient("bias")
def _(F, g):
    return F.sum(g, (0, 2, 3), False)


@composite(title="ConvolutionBackwardBackward0", ordered_by=["grad", "weight"])
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
    spread, turned = _turned(grad, weight, input_shape, stride, padding, dilation, groups)
    return _conv2d(spread, turned, None, (1, 1), (0, 0), dilation, groups)


_conv2d_input_grad.demand(_rules.input_grad)


_conv2d_input_grad.jointly("grad", "weight")


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
    return _summed_over_positions(grad, input, weight_shape, stride, padding, dilation, groups)


_conv2d_weight_grad.demand(_rules.weight_grad)


@_conv2d_weight_grad.gradient("grad")
def _(F, g, input, stride, padding, dilation, groups):
    return F.conv2d(input, g, None, stride, padding, dilation, groups)


@_conv2d_weight_grad.gradient("input")
def _(F, g, grad, input_shape, stride, padding, dilation, groups):
    return F.conv2d_input_grad(grad, g, input_shape, stride, padding, dilation, groups)


@composite(title="ConvolutionBackward0", ordered_by=["input", "weight"])
def _conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Triple,
    padding: Triple,
    dilation: Triple,
    groups: int,
) -> Tensor:
    """`conv2d` with one more dimension: y[n, o, h, i, j], windows of d·t, d·u, d·v."""
    return _convolved(input, weight, bias, stride, padding, dilation, groups)


_conv3d.jointly("input", "weight")


@_conv3d.gradient("input")
def _(F, g, input_shape, weight, stride, padding, dilation, groups):
    return F.conv3d_input_grad(g, weight, input_shape, stride, padding, dilation, groups)


@_conv3d.gradient("weight")
def _(F, g, input, weight_shape, stride, padding, dilation, groups):
    return F.conv3d_weight_grad(g, input, weight_shape, stride, padding, dilation, groups)


@_conv3d.gradient("bias")
def _(F, g):
    return F.sum(g, (0, 2, 3, 4), False)


@composite(title="ConvolutionBackwardBackward0", ordered_by=["grad", "weight"])
def _conv3d_input_grad(
    grad: Tensor,
    weight: Tensor,
    input_shape: tuple[int, ...],
    stride: Triple,
    padding: Triple,
    dilation: Triple,
    groups: int,
) -> Tensor:
    """The adjoint of `conv3d` in its input: the spaced gradient with the turned kernel."""
    spread, turned = _turned(grad, weight, input_shape, stride, padding, dilation, groups)
    return _conv3d(spread, turned, None, (1, 1, 1), (0, 0, 0), dilation, groups)


_conv3d_input_grad.demand(_rules.input_grad)


_conv3d_input_grad.jointly("grad", "weight")


@_conv3d_input_grad.gradient("grad")
def _(F, g, weight, stride, padding, dilation, groups):
    return F.conv3d(g, weight, None, stride, padding, dilation, groups)


@_conv3d_input_grad.gradient("weight")
def _(F, g, grad, weight_shape, stride, padding, dilation, groups):
    return F.conv3d_weight_grad(grad, g, weight_shape, stride, padding, dilation, groups)


@composite(title="ConvolutionBackwardBackward0")
def _conv3d_weight_grad(
    grad: Tensor,
    input: Tensor,
    weight_shape: tuple[int, ...],
    stride: Triple,
    padding: Triple,
    dilation: Triple,
    groups: int,
) -> Tensor:
    """The adjoint of `conv3d` in its weight: products of the gradient with the windows."""
    return _summed_over_positions(grad, input, weight_shape, stride, padding, dilation, groups)


_conv3d_weight_grad.demand(_rules.weight_grad)


@_conv3d_weight_grad.gradient("grad")
def _(F, g, input, stride, padding, dilation, groups):
    return F.conv3d(input, g, None, stride, padding, dilation, groups)


@_conv3d_weight_grad.gradient("input")
def _(F, g, grad, input_shape, stride, padding, dilation, groups):
    return F.conv3d_input_grad(grad, g, input_shape, stride, padding, dilation, groups)


@public(method=False)
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: str | Ints = 0,
    dilation: Ints = 1,
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


@public(method=False)
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: str | Ints = 0,
    dilation: Ints = 1,
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


@public(method=False)
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: str | Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """`conv2d` of volumes, with a third dimension of windows.

    Shapes: input (N, C, D, H, W) or (C, D, H, W), weight (O, C / groups, KD, KH, KW), bias (O);
    result (N, O, D', H', W') or (O, D', H', W') with D' = ⌊(D + 2p - d·(KD - 1) - 1) / s⌋ + 1.

    Raises:
        RuntimeError: shapes, dtypes or settings do not fit; says which.

    >>> import flambeau as fb
    >>> fb.conv3d(fb.ones(1, 1, 2, 2, 2), fb.ones(1, 1, 2, 2, 1))
    tensor([[[[[4., 4.]]]]])
    """
    return _convolution(3, input, weight, bias, stride, padding, dilation, groups)


@public(method=False)
@takes_as_annotated
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """`conv1d` of sequences laid out as time, batch, channels.

    Shapes: input (T, B, C), weight (K, C, O), bias (O); result (T + 2·pad - K + 1, B, O).

    Raises:
        RuntimeError: shapes do not fit; says which.

    >>> import flambeau as fb
    >>> fb.conv_tbc(fb.ones(3, 1, 2), fb.ones(2, 2, 1), fb.zeros(1)).flatten()
    tensor([4., 4.])
    """
    where = "conv_tbc"
    x, w = need_tensor(input, where, "input"), need_tensor(weight, where, "weight")
    b = need_tensor(bias, where, "bias")
    if x.dim() != 3:
        raise RuntimeError(
            f"Input must have 3 dims: time, batch, in_channel, but got size {list(x.shape)}"
        )
    if w.dim() != 3:
        raise RuntimeError(
            "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels, but got "
            f"size {list(w.shape)}"
        )
    if b.dim() != 1 or b.shape[0] != w.shape[2]:
        raise RuntimeError(
            f"Bias must have one dim of size {w.shape[2]} (output channels), but got "
            f"{list(b.shape)}"
        )
    if x.shape[2] != w.shape[1]:
        raise RuntimeError(
            f"Input dim 2 (input channels) of size {x.shape[2]} is not the weight's dim 1 of size "
            f"{w.shape[1]}"
        )
    time = x.permute((1, 2, 0))
    if pad < 0:
        time, pad = time.narrow(2, -pad, max(time.shape[2] + 2 * pad, 0)), 0
    return conv1d(time, w.permute((2, 1, 0)), b, 1, pad).permute((2, 0, 1)).contiguous()


def _convolution(
    count: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: object,
    padding: object,
    dilation: object,
    groups: int,
) -> Tensor:
    where = f"conv{count}d"
    x, w = need_tensor(input, where, "input"), need_tensor(weight, where, "weight")
    geometry = known(count, x, w, bias, stride, padding, dilation, groups)
    if geometry is None:
        check_ranks(where, x, w, count)
        geometry = _geometry(count, x, w, bias, stride, padding, dilation, groups)
        keep(geometry, count, x, w, bias, stride, padding, dilation, groups)
    step, spread, before, after = geometry
    given = x._a.shape
    unbatched = len(given) == count + 1
    if unbatched:
        x = x.unsqueeze(0)
    if count == 1:
        x, w = x.unsqueeze(2), w.unsqueeze(2)
        step, spread, before, after = lifted(step, spread, before, after)
    if before != after:  # at most one more zero behind than in front
        extra = [b - a for a, b in zip(before, after, strict=True)]
        x = framed(x, [0] * len(extra), extra)
    canonical = _conv3d if count == 3 else _conv2d
    result = canonical.run(x, w, bias, step, before, spread, groups)
    result = result.squeeze(2) if count == 1 else result
    return result.squeeze(0) if unbatched else result


def _geometry(
    count: int,
    x: Tensor,
    w: Tensor,
    bias: Tensor | None,
    stride: object,
    padding: object,
    dilation: object,
    groups: int,
) -> tuple[Sizes, Sizes, Sizes, Sizes]:
    """Strides, dilations, and the zeros before and after each dimension, all of them checked."""
    step, spread = sizes(stride, count, "stride"), sizes(dilation, count, "dilation")
    given, kernel = tuple(x._a.shape), tuple(w._a.shape)[2:]
    if isinstance(padding, str):
        before, after = named_padding(padding, kernel, step, spread)
    else:
        before = after = sizes(padding, count, "padding")
    check_settings(x, w, bias, step, before, spread, groups)
    check_channels(given, tuple(w._a.shape), groups, count)
    check_bias(w, bias, w._a.shape[0], "Given ")
    check_room(given[-count:], kernel, before, after, spread)
    return step, spread, before, after
