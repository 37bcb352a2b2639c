"""Transposed convolutions: the adjoints of convolutions in their input."""

from __future__ import annotations

from collections.abc import Sequence

from flambeau._dispatch.arguments import need_tensor
from flambeau._tensor.tensor import Tensor
from flambeau._types.hints import Ints
from flambeau.ops.declaration.public import public
from flambeau.ops.shapes.padding import constant_pad_nd
from flambeau.ops.spatial.convolution import (
    _conv2d_input_grad,
    _conv3d_input_grad,
    conv1d,
    conv2d,
    conv3d,
)
from flambeau.ops.spatial.convolution_arguments import (
    check_bias,
    check_ranks,
    check_settings,
    lifted,
    sizes,
    times,
)
from flambeau.ops.spatial.image_windows import Sizes


@public(method=False)
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The adjoint of `conv1d` in its input: each element spreads the kernel over the output.

    Shapes: input (N, C, L) or (C, L), weight (C, O / groups, K), bias (O);
    L' = (L - 1)·s - 2p + d·(K - 1) + output_padding + 1.

    Raises:
        RuntimeError: shapes, dtypes or settings do not fit; says which.

    >>> import flambeau as fb
    >>> fb.conv_transpose1d(fb.ones(1, 1, 2), fb.ones(1, 1, 2))
    tensor([[[1., 2., 1.]]])
    """
    how = stride, padding, output_padding, groups, dilation
    return _transposed(1, input, weight, bias, *how)


@public(method=False)
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
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
    how = stride, padding, output_padding, groups, dilation
    return _transposed(2, input, weight, bias, *how)


@public(method=False)
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The adjoint of `conv3d` in its input: each element spreads the kernel over the output.

    Shapes: input (N, C, D, H, W) or (C, D, H, W), weight (C, O / groups, KD, KH, KW), bias (O);
    D' = (D - 1)·s - 2p + d·(KD - 1) + output_padding + 1.

    Raises:
        RuntimeError: shapes, dtypes or settings do not fit; says which.

    >>> import flambeau as fb
    >>> fb.conv_transpose3d(fb.ones(1, 1, 1, 1, 2), fb.ones(1, 1, 1, 1, 2))
    tensor([[[[[1., 2., 1.]]]]])
    """
    how = stride, padding, output_padding, groups, dilation
    return _transposed(3, input, weight, bias, *how)


@public(method=False)
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
) -> Tensor:
    """The convolution or, if `transposed`, its adjoint, of as many dimensions as `weight` has.

    Raises:
        RuntimeError: shapes, dtypes or settings do not fit, or `weight` does not have one to three
            spatial dimensions.

    >>> import flambeau as fb
    >>> fb.convolution(fb.ones(1, 1, 3), fb.ones(1, 1, 2), None, [1], [0], [1], False, [0], 1)
    tensor([[[2., 2.]]])
    """
    count = need_tensor(weight, "convolution", "weight").dim() - 2
    if count not in (1, 2, 3):
        raise RuntimeError(
            f"convolution: expected a weight of 3, 4 or 5 dimensions, got {list(weight.shape)}"
        )
    if transposed:
        how = stride, padding, output_padding, groups, dilation
        return _transposed(count, input, weight, bias, *how)
    forward = (conv1d, conv2d, conv3d)[count - 1]
    return forward(input, weight, bias, stride, padding, dilation, groups)


def _transposed(
    count: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: object,
    padding: object,
    output_padding: object,
    groups: int,
    dilation: object,
) -> Tensor:
    where = f"conv_transpose{count}d"
    x, w = need_tensor(input, where, "input"), need_tensor(weight, where, "weight")
    check_ranks(where, x, w, count)
    step, edge = sizes(stride, count, "stride"), sizes(padding, count, "padding")
    extra = sizes(output_padding, count, "output_padding")
    spread = sizes(dilation, count, "dilation")
    check_settings(x, w, bias, step, edge, spread, groups)
    _check_output_padding(extra, step, spread)
    given = list(x.shape)
    unbatched = len(given) == count + 1
    if unbatched:
        x = x.unsqueeze(0)
    channels, features = w.shape[0], w.shape[1] * groups
    if channels % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, "
            f"but got weight of size {list(w.shape)} instead"
        )
    if x.shape[1] != channels:
        raise RuntimeError(
            f"Given transposed=1, weight of size {list(w.shape)}, expected input{given} to have "
            f"{channels} channels, but got {x.shape[1]} channels instead"
        )
    check_bias(w, bias, features, "Given transposed=1, ")
    if 0 in x.shape[2:]:
        raise RuntimeError(
            f"Only zero batch or zero channel inputs are supported, but got input shape: {given}"
        )
    dims = zip(x.shape[2:], w.shape[2:], step, edge, spread, extra, strict=True)
    size = tuple((n - 1) * s - 2 * p + d * (k - 1) + e + 1 for n, k, s, p, d, e in dims)
    if min(size) < 1:
        raise RuntimeError(
            f"Given input size per channel: ({times(x.shape[2:])}). Calculated output size per "
            f"channel: ({times(size)}). Output size is too small"
        )
    if any(e >= s for e, s in zip(extra, step, strict=True)):
        # A window of the convolution more fits into the output: its gradient is zero.
        tails = zip(reversed(extra), reversed(step), strict=True)
        x = constant_pad_nd(x, [n for e, s in tails for n in (0, e // s)])
    if count == 1:
        x, w, size = x.unsqueeze(2), w.unsqueeze(2), (1, *size)
        step, spread, edge = lifted(step, spread, edge)
    adjoint = _conv3d_input_grad if count == 3 else _conv2d_input_grad
    result = adjoint(x, w, (x.shape[0], features, *size), step, edge, spread, groups)
    if bias is not None:
        result = result + bias.reshape((features, *(1 for _ in size)))
    result = result.squeeze(2) if count == 1 else result
    return result.squeeze(0) if unbatched else result


def _check_output_padding(extra: Sizes, stride: Sequence[int], dilation: Sequence[int]) -> None:
    if min(extra) < 0:
        raise RuntimeError(f"negative output_padding is not supported, got {list(extra)}")
    for e, s, d in zip(extra, stride, dilation, strict=True):
        if e >= s and e >= d:
            raise RuntimeError(
                "output padding must be smaller than either stride or dilation, but got "
                f"output_padding: {list(extra)}, stride: {list(stride)}, dilation: {list(dilation)}"
            )
