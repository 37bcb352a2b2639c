"""Convolutions and what is written as one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flambeau.onnx._export.errors import UnsupportedOperatorError
from flambeau.onnx._export.graph import Graph, Value
from flambeau.onnx._export.table import need_number, symbolic

if TYPE_CHECKING:
    from collections.abc import Sequence


def tuple_of(value: object, count: int) -> list[int]:
    """One number for each spatial dimension."""
    values = list(value) if isinstance(value, list | tuple) else [value]
    values = values * count if len(values) == 1 else values
    return [int(v) for v in need_number(values, "a window")]


def convolve(
    g: Graph,
    x: Value,
    weight: Value,
    bias: Value | None,
    stride: object,
    padding: object,
    dilation: object,
    groups: int,
) -> Value:
    """A convolution; without a batch it has one of size one."""
    spatial = weight.rank - 2
    single = x.rank == spatial + 1
    x = g.unsqueeze(x, [0]) if single else x
    dilations = tuple_of(dilation, spatial)
    kernel = [weight.static(2 + d) for d in range(spatial)]
    if isinstance(padding, str):
        pads = [0] * (2 * spatial)
        if padding == "same":
            for d in range(spatial):
                total = dilations[d] * (kernel[d] - 1)
                pads[d], pads[spatial + d] = total // 2, total - total // 2
    else:
        pads = tuple_of(padding, spatial) * 2
    made = g.op(
        "Conv",
        x,
        weight,
        bias,
        dilations_i=dilations,
        group_i=groups,
        kernel_shape_i=kernel,
        pads_i=pads,
        strides_i=tuple_of(stride, spatial),
    )
    return g.squeeze(made, [0]) if single else made


def _plain(name: str) -> None:
    @symbolic(name)
    def write(
        g: Graph,
        input: Value,
        weight: Value,
        bias: Value | None = None,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
    ) -> Value:
        return convolve(g, input, weight, bias, stride, padding, dilation, groups)


def _transposed(name: str) -> None:
    @symbolic(name)
    def write(
        g: Graph,
        input: Value,
        weight: Value,
        bias: Value | None = None,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: object = 0,
        groups: int = 1,
        dilation: int | Sequence[int] = 1,
    ) -> Value:
        return transpose(g, input, weight, bias, stride, padding, output_padding, groups, dilation)


def transpose(
    g: Graph,
    x: Value,
    weight: Value,
    bias: Value | None,
    stride: object,
    padding: object,
    output_padding: object,
    groups: int,
    dilation: object,
) -> Value:
    """A transposed convolution."""
    spatial = weight.rank - 2
    single = x.rank == spatial + 1
    x = g.unsqueeze(x, [0]) if single else x
    more = tuple_of(output_padding, spatial)
    made = g.op(
        "ConvTranspose",
        x,
        weight,
        bias,
        dilations_i=tuple_of(dilation, spatial),
        group_i=groups,
        kernel_shape_i=[weight.static(2 + d) for d in range(spatial)],
        pads_i=tuple_of(padding, spatial) * 2,
        strides_i=tuple_of(stride, spatial),
        output_padding_i=more if any(more) else None,
    )
    return g.squeeze(made, [0]) if single else made


for _count in "123":
    _plain(f"conv{_count}d")
    _transposed(f"conv_transpose{_count}d")


@symbolic("convolution", "_convolution")
def convolution(
    g: Graph,
    input: Value,
    weight: Value,
    bias: Value,
    stride: int | Sequence[int],
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
    transposed: bool,
    output_padding: object,
    groups: int,
    **flags: object,
) -> Value:
    if transposed:
        return transpose(g, input, weight, bias, stride, padding, output_padding, groups, dilation)
    return convolve(g, input, weight, bias, stride, padding, dilation, groups)


@symbolic("im2col")
def im2col(
    g: Graph, self: Value, kernel_size: object, dilation: object, padding: object, stride: object
) -> Value:
    """Patches as columns: a convolution with a weight of ones and zeros."""
    import flambeau as fb

    if self.rank != 4:
        raise UnsupportedOperatorError("unfold without a batch")
    height, width = tuple_of(kernel_size, 2)
    channels, count = self.static(1), height * width
    weight = fb.eye(count, dtype=self.dtype).reshape(count, 1, height, width)
    every = g.constant(weight.repeat(channels, 1, 1, 1))
    made = convolve(g, self, every, None, stride, padding, dilation, channels)
    return g.reshape(made, [g.size(self, 0), channels * count, -1])
