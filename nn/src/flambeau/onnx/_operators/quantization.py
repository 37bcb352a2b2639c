"""Numbers of eight bits with a scale and a zero point."""

from __future__ import annotations

import flambeau as fb
from flambeau import Tensor
from flambeau.onnx._operators.convolution import conv
from flambeau.onnx._operators.elementwise import convert
from flambeau.onnx._operators.table import Context, dtype_of, operator


def _along(x: Tensor, values: Tensor | None, axis: int, block: int) -> Tensor | None:
    """Scales or zero points beside what they belong to: all, an axis, or blocks along one."""
    if values is None or values.dim() == 0:
        return values
    axis %= max(x.dim(), 1)
    if values.dim() == 1 and not block:
        if values.numel() == 1:
            return values.reshape(())
        return values.reshape([-1 if i == axis else 1 for i in range(x.dim())])
    if not block:
        block = -(-x.shape[axis] // values.shape[axis])
    return values.repeat_interleave(block, axis).narrow(axis, 0, x.shape[axis])


def _quantized(x: Tensor, scale: Tensor, zero: Tensor | None, dtype: fb.dtype) -> Tensor:
    ratio = x / scale.to(x.dtype)
    if dtype.is_floating_point:
        return convert(ratio if zero is None else ratio + zero.to(ratio.dtype), dtype)
    info = fb.iinfo(dtype)
    whole = fb.round(ratio) + (0 if zero is None else zero.to(ratio.dtype))
    return whole.clamp(info.min, info.max).to(dtype)


@operator("QuantizeLinear")
def _quantize_linear(
    c: Context,
    x: Tensor,
    scale: Tensor,
    zero: Tensor | None = None,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Tensor:
    dtype = zero.dtype if zero is not None else dtype_of(output_dtype) if output_dtype else fb.uint8
    x = x.float() if not x.dtype.is_floating_point else x
    along = _along(x, scale, axis, block_size)
    assert along is not None
    return _quantized(x, along, _along(x, zero, axis, block_size), dtype)


@operator("DequantizeLinear")
def _dequantize_linear(
    c: Context,
    x: Tensor,
    scale: Tensor,
    zero: Tensor | None = None,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Tensor:
    along = _along(x, scale, axis, block_size)
    assert along is not None
    value = x.float() if zero is None else x.float() - _along(x, zero.float(), axis, block_size)  # type: ignore[operator]
    result = value * along.float()
    return result.to(dtype_of(output_dtype) if output_dtype else scale.dtype)


@operator("DynamicQuantizeLinear")
def _dynamic_quantize_linear(c: Context, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    low, high = x.amin().clamp(max=0), x.amax().clamp(min=0)
    scale = (high - low) / 255
    zero = fb.round(-low / scale).clamp(0, 255) if bool(scale > 0) else fb.zeros_like(scale)
    return _quantized(x, scale, zero, fb.uint8), scale, zero.to(fb.uint8)


def _rows(zero: Tensor | None, of: Tensor, last: bool) -> int | Tensor:
    """Zero points of a matrix: one, or one for each row (for each column, if `last`)."""
    if zero is None:
        return 0
    zero = zero.double()
    if zero.dim() == 1 and zero.numel() > 1 and not last:
        return zero.unsqueeze(-1)
    return zero


@operator("MatMulInteger")
def _matmul_integer(
    c: Context,
    a: Tensor,
    b: Tensor,
    a_zero: Tensor | None = None,
    b_zero: Tensor | None = None,
) -> Tensor:
    # Products of bytes are exact in float64, and so are their sums.
    left = a.double() - _rows(a_zero, a, False)
    return (left @ (b.double() - _rows(b_zero, b, True))).to(fb.int32)


@operator("QLinearMatMul")
def _qlinear_matmul(
    c: Context,
    a: Tensor,
    a_scale: Tensor,
    a_zero: Tensor,
    b: Tensor,
    b_scale: Tensor,
    b_zero: Tensor,
    y_scale: Tensor,
    y_zero: Tensor,
) -> Tensor:
    left = (a.double() - _rows(a_zero, a, False)) * a_scale.double()
    right = (b.double() - _rows(b_zero, b, True)) * b_scale.double()
    return _quantized(left @ right, y_scale.double(), y_zero, y_zero.dtype)


@operator("QLinearConv")
def _qlinear_conv(
    c: Context,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    w: Tensor,
    w_scale: Tensor,
    w_zero: Tensor,
    y_scale: Tensor,
    y_zero: Tensor,
    bias: Tensor | None = None,
    **attributes: object,
) -> Tensor:
    def filters(a: Tensor) -> Tensor:
        return a.double().reshape([-1, *[1] * (w.dim() - 1)]) if a.numel() > 1 else a.double()

    exact = conv(c, x.double() - x_zero.double(), w.double() - filters(w_zero), **attributes)
    if bias is not None:
        exact = exact + bias.double().reshape([-1, *[1] * (x.dim() - 2)])
    channels = w_scale.double().reshape([-1, *[1] * (x.dim() - 2)])
    result = exact * (x_scale.double() * channels)
    return _quantized(result, y_scale.double(), y_zero, y_zero.dtype)
