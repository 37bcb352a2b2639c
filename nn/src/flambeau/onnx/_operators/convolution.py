"""Convolutions, with ONNX's paddings."""

from __future__ import annotations

from collections.abc import Callable

import flambeau as fb
import flambeau.nn.functional as F
from flambeau import Tensor
from flambeau.onnx._operators.shapes import pad_dim
from flambeau.onnx._operators.table import Context, UnsupportedError, operator


def convolution(dims: int) -> Callable[..., Tensor]:
    """`conv1d`, `conv2d` or `conv3d`, as it is now: a trace sees no calls of what was taken before.

    >>> from flambeau.onnx._operators.convolution import convolution
    >>> convolution(2).__name__
    'conv2d'
    """
    return (F.conv1d, F.conv2d, F.conv3d)[dims - 1]


def transposed_convolution(dims: int) -> Callable[..., Tensor]:
    """The same of `conv_transpose1d` and its kin."""
    return (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[dims - 1]


def paddings(
    auto_pad: str,
    pads: list[int] | None,
    sizes: list[int],
    kernel: list[int],
    strides: list[int],
    dilations: list[int],
) -> tuple[list[int], list[int]]:
    """How much is added before and behind each dimension.

    For SAME_UPPER and SAME_LOWER so much that there are as many results as strides in the input;
    an odd element goes behind, or before.
    """
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        before, after = [], []
        for n, k, s, d in zip(sizes, kernel, strides, dilations, strict=True):
            total = max(0, (-(-n // s) - 1) * s + (k - 1) * d + 1 - n)
            small, large = total // 2, total - total // 2
            before.append(small if auto_pad == "SAME_UPPER" else large)
            after.append(large if auto_pad == "SAME_UPPER" else small)
        return before, after
    given = list(pads) if pads else [0] * (2 * len(sizes))
    return given[: len(sizes)], given[len(sizes) :]


def padded(x: Tensor, before: list[int], after: list[int], value: float = 0.0) -> Tensor:
    """A tensor with a constant around its last dimensions."""
    first = x.dim() - len(before)
    for i, (low, high) in enumerate(zip(before, after, strict=True)):
        x = pad_dim(x, first + i, low, high, "constant", value)
    return x


def spatial(x: Tensor) -> int:
    """How many dimensions follow batch and channels.

    Raises:
        UnsupportedError: more than three, or none.
    """
    count = x.dim() - 2
    if not 1 <= count <= 3:
        raise UnsupportedError(f"convolutions and pooling over {count} dimensions")
    return count


@operator("Conv")
def conv(
    c: Context,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    auto_pad: str = "NOTSET",
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    """The cross-correlation of a batch with filters."""
    n = spatial(x)
    s, d = list(strides or [1] * n), list(dilations or [1] * n)
    low, high = paddings(auto_pad, pads, list(x.shape[2:]), list(weight.shape[2:]), s, d)
    if low == high:
        return convolution(n)(x, weight, bias, tuple(s), tuple(low), tuple(d), group)
    return convolution(n)(padded(x, low, high), weight, bias, tuple(s), 0, tuple(d), group)


@operator("ConvTranspose")
def _conv_transpose(
    c: Context,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    auto_pad: str = "NOTSET",
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    output_padding: list[int] | None = None,
    output_shape: list[int] | None = None,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    n = spatial(x)
    s, d = list(strides or [1] * n), list(dilations or [1] * n)
    more = list(output_padding or [0] * n)
    edges = list(pads or [0] * 2 * n)
    if not output_shape and auto_pad in ("NOTSET", "VALID") and edges[:n] == edges[n:]:
        return transposed_convolution(n)(
            x, weight, bias, tuple(s), tuple(edges[:n]), tuple(more), group, tuple(d)
        )
    # All that the filters reach, without bias: what is cut off or added comes afterwards.
    y = transposed_convolution(n)(x, weight, None, tuple(s), 0, 0, group, tuple(d))
    for i in range(n):
        if output_shape or auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            wanted = output_shape[i - n] if output_shape else x.shape[2 + i] * s[i]
            total = y.shape[2 + i] + more[i] - wanted
            upper = auto_pad == "SAME_UPPER"
            low = total // 2 if upper or not output_shape else total - total // 2
            if auto_pad == "SAME_LOWER":
                low = total - total // 2
            high = total - low - more[i]
        else:
            low, high = edges[i], edges[n + i] - more[i]
        y = pad_dim(y, 2 + i, -low, -high)
    return y if bias is None else y + bias.reshape([-1, *[1] * n])


@operator("ConvInteger")
def _conv_integer(
    c: Context,
    x: Tensor,
    weight: Tensor,
    zero: Tensor | None = None,
    weight_zero: Tensor | None = None,
    **attributes: object,
) -> Tensor:
    wide_x = x.double() if zero is None else x.double() - zero.double()
    wide_w = weight.double()
    if weight_zero is not None:
        wide_w = wide_w - weight_zero.double().reshape([-1, *[1] * (weight.dim() - 1)])
    # Products of bytes are exact in float64, and so are their sums.
    return conv(c, wide_x, wide_w, **attributes).to(fb.int32)  # type: ignore[arg-type]


@operator("DeformConv")
def _deform_conv(
    c: Context,
    x: Tensor,
    weight: Tensor,
    offset: Tensor,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
    offset_group: int = 1,
    pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:
    if spatial(x) != 2:
        raise UnsupportedError("DeformConv over other than two dimensions")
    (kh, kw), (sh, sw) = weight.shape[2:], strides or (1, 1)
    dh, dw = dilations or (1, 1)
    top, left, _, _ = pads or (0, 0, 0, 0)
    batch, channels, height, width = x.shape
    rows, columns = offset.shape[2:]
    moves = offset.reshape(batch, offset_group, kh * kw, 2, rows, columns)
    weights = (
        fb.ones(batch, offset_group, kh * kw, rows, columns, dtype=x.dtype)
        if mask is None
        else mask.reshape(batch, offset_group, kh * kw, rows, columns)
    )
    base_y = fb.arange(rows).reshape(-1, 1) * sh - top
    base_x = fb.arange(columns) * sw - left
    parts = x.reshape(batch * offset_group, channels // offset_group, height, width)
    sampled = []
    for place in range(kh * kw):
        at_y = base_y + (place // kw) * dh + moves[:, :, place, 0]
        at_x = base_x + (place % kw) * dw + moves[:, :, place, 1]
        grid = fb.stack([2 * at_x / max(width - 1, 1) - 1, 2 * at_y / max(height - 1, 1) - 1], -1)
        if width == 1 or height == 1:
            raise UnsupportedError("DeformConv of an image one pixel wide")
        found = F.grid_sample(
            parts,
            grid.reshape(batch * offset_group, rows, columns, 2).to(x.dtype),
            "bilinear",
            "zeros",
            True,
        )
        found = found.reshape(batch, offset_group, -1, rows, columns)
        found = found * weights[:, :, place].unsqueeze(2)
        sampled.append(found.reshape(batch, channels, rows, columns))
    patches = fb.stack(sampled, 2)  # batch, channels, place, rows, columns
    patches = patches.reshape(batch, group, channels // group * kh * kw, rows * columns)
    filters = weight.reshape(group, weight.shape[0] // group, -1)
    y = (filters @ patches).reshape(batch, weight.shape[0], rows, columns)
    return y if bias is None else y + bias.reshape(-1, 1, 1)
