"""Arithmetic, comparisons, activations and conversions, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flambeau as fb
import flambeau.nn.functional as F
from flambeau import Tensor
from flambeau.onnx._operators.table import (
    OPERATORS,
    Context,
    UnsupportedError,
    dtype_of,
    late,
    number,
    operator,
    plain,
)

plain(
    Acos=fb.acos,
    Acosh=fb.acosh,
    Asin=fb.asin,
    Asinh=fb.asinh,
    Atan=fb.atan,
    Atanh=fb.atanh,
    BitwiseAnd=fb.bitwise_and,
    BitwiseNot=fb.bitwise_not,
    BitwiseOr=fb.bitwise_or,
    BitwiseXor=fb.bitwise_xor,
    Cos=fb.cos,
    Cosh=fb.cosh,
    Erf=fb.erf,
    GreaterOrEqual=fb.ge,
    HardSwish=F.hardswish,
    Identity=lambda x: x,
    IsNaN=fb.isnan,
    LessOrEqual=fb.le,
    Log=fb.log,
    Mish=F.mish,
    Neg=fb.neg,
    Not=fb.logical_not,
    Reciprocal=fb.reciprocal,
    Round=fb.round,
    Sigmoid=fb.sigmoid,
    Sin=fb.sin,
    Sinh=fb.sinh,
    Softsign=F.softsign,
    Sqrt=fb.sqrt,
    Tan=fb.tan,
    Tanh=fb.tanh,
    Where=fb.where,
)
for _name, _function in {
    "Abs": fb.abs,
    "Ceil": fb.ceil,
    "Exp": fb.exp,
    "Floor": fb.floor,
    "Relu": fb.relu,
    "Sign": fb.sign,
}.items():
    # The first versions have an attribute that no longer means anything.
    OPERATORS["", _name] = (lambda function: lambda c, x, consumed_inputs=None: function(x))(
        late(_function)
    )


def _aligned(x: Tensor, y: Tensor, broadcast: int, axis: int | None) -> Tensor:
    """The second operand of the first versions, whose axes begin at `axis` of the first."""
    if not broadcast or axis is None:
        return y
    axis = axis + x.dim() if axis < 0 else axis
    return y.reshape([*y.shape, *[1] * (x.dim() - axis - y.dim())])


def _pair(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Any]:
    def run(
        c: Context,
        x: Tensor,
        y: Tensor,
        broadcast: int = 0,
        axis: int | None = None,
        consumed_inputs: object = None,
    ) -> Tensor:
        return function(x, _aligned(x, y, broadcast, axis))

    return run


def _divide(x: Tensor, y: Tensor) -> Tensor:
    if x.dtype.is_floating_point or x.dtype.is_complex:
        return x / y
    return _as_signed(lambda a, b: fb.div(a, b, rounding_mode="trunc"), x, y)


def _power(x: Tensor, y: Tensor) -> Tensor:
    if x.dtype.is_floating_point:
        return fb.pow(x, y).to(x.dtype)
    if y.dtype.is_floating_point:
        return fb.pow(x.double(), y.double()).to(x.dtype)
    return _as_signed(fb.pow, x, y)


_SIGNED = {fb.uint16: fb.int32, fb.uint32: fb.int64, fb.uint64: fb.int64}


def _as_signed(function: Callable[..., Tensor], *operands: Tensor) -> Tensor:
    """Unsigned numbers of 16 bits and more, which few kernels take, as signed ones.

    Sums and products of uint64 wrap around to the same bits; where an order decides, those above
    2⁶³ - 1 are refused.
    """
    kind = operands[0].dtype
    if kind not in _SIGNED:
        return function(*operands)
    return function(*(x.to(_SIGNED[kind]) for x in operands)).to(kind)


for _name, _function in {
    "Add": fb.add,
    "Sub": fb.sub,
    "Mul": fb.mul,
    "Div": _divide,
    "Pow": _power,
    "And": fb.logical_and,
    "Or": fb.logical_or,
    "Xor": fb.logical_xor,
}.items():
    _function = late(_function)
    OPERATORS["", _name] = _pair(
        _function
        if _name in ("Div", "Pow", "And", "Or", "Xor")
        else (lambda function: lambda x, y: _as_signed(function, x, y))(_function)
    )


def _comparison(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    def compare(x: Tensor, y: Tensor) -> Tensor:
        if x.dtype in _SIGNED:
            x, y = x.to(_SIGNED[x.dtype]), y.to(_SIGNED[y.dtype])
        return function(x, y)

    return compare


for _name, _function in {
    "Equal": fb.eq,
    "Greater": fb.gt,
    "Less": fb.lt,
    "GreaterOrEqual": fb.ge,
    "LessOrEqual": fb.le,
}.items():
    OPERATORS["", _name] = _pair(_comparison(late(_function)))


def _fold(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Any]:
    def run(c: Context, *inputs: Tensor, consumed_inputs: object = None) -> Tensor:
        result = inputs[0]
        for x in inputs[1:]:
            result = _as_signed(function, result, x)
        return result

    return run


OPERATORS["", "Max"] = _fold(late(fb.maximum))
OPERATORS["", "Min"] = _fold(late(fb.minimum))
OPERATORS["", "Sum"] = _fold(late(fb.add))


@operator("Mean")
def _mean(c: Context, *inputs: Tensor, consumed_inputs: object = None) -> Tensor:
    return _fold(late(fb.add))(c, *inputs) / len(inputs)


@operator("Mod")
def _mod(c: Context, x: Tensor, y: Tensor, fmod: int = 0) -> Tensor:
    return _as_signed(fb.fmod if fmod else fb.remainder, x, y)


@operator("BitShift")
def _bit_shift(c: Context, x: Tensor, y: Tensor, direction: str) -> Tensor:
    shift = fb.bitwise_left_shift if direction == "LEFT" else fb.bitwise_right_shift
    return _as_signed(shift, x, y)


@operator("BitCast")
def _bit_cast(c: Context, x: Tensor, to: int) -> Tensor:
    return x.view(dtype_of(to))


@operator("IsInf")
def _is_inf(c: Context, x: Tensor, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
    found = fb.isinf(x)
    if not detect_negative:
        found = found & (x > 0)
    return found if detect_positive else found & (x < 0)


@operator("Cast")
def _cast(
    c: Context, x: Tensor, to: int | str, saturate: int = 1, round_mode: str = "up"
) -> Tensor:
    return convert(x, dtype_of(to), bool(saturate))


@operator("CastLike")
def _cast_like(
    c: Context, x: Tensor, y: Tensor, saturate: int = 1, round_mode: str = "up"
) -> Tensor:
    return convert(x, y.dtype, bool(saturate))


_LARGEST = {
    fb.float8_e4m3fn: 448.0,
    fb.float8_e4m3fnuz: 240.0,
    fb.float8_e5m2: 57344.0,
    fb.float8_e5m2fnuz: 57344.0,
}


_MANTISSA = {  # of the largest number: 1.75 where one code is taken by NaN
    fb.float8_e4m3fn: 1.75,
    fb.float8_e4m3fnuz: 1.875,
    fb.float8_e5m2fnuz: 1.75,
}


def convert(x: Tensor, dtype: fb.dtype, saturate: bool = True) -> Tensor:
    """A tensor in another dtype; float8 that cannot hold a number has its largest instead."""
    if dtype in _LARGEST and x.dtype not in _LARGEST:
        x = x.float() if x.dtype is not fb.float64 else x
        largest = _LARGEST[dtype]
        if saturate:
            return fb.where(fb.isnan(x), x, x.clamp(-largest, largest)).to(dtype)
        if dtype is not fb.float8_e5m2:  # which alone has infinities
            # Beyond the middle to the next number of that many digits, which there is not.
            beyond = x.abs() > largest * (1 + fb.finfo(dtype).eps / (2 * _MANTISSA[dtype]))
            return x.masked_fill(beyond, math.nan).to(dtype)
    if dtype in _LARGEST and x.dtype in _LARGEST and x.dtype is not dtype:
        return convert(x.float(), dtype, saturate)
    return x.to(dtype)


@operator("Clip")
def _clip(
    c: Context,
    x: Tensor,
    least: Tensor | None = None,
    most: Tensor | None = None,
    min: float | None = None,
    max: float | None = None,
    consumed_inputs: object = None,
) -> Tensor:
    low, high = (least if min is None else min), (most if max is None else max)
    if low is not None:
        x = fb.maximum(x, low if isinstance(low, Tensor) else fb.full_like(x, low))
    if high is not None:
        x = fb.minimum(x, high if isinstance(high, Tensor) else fb.full_like(x, high))
    return x


@operator("LeakyRelu")
def _leaky_relu(
    c: Context, x: Tensor, alpha: float = 0.01, consumed_inputs: object = None
) -> Tensor:
    return F.leaky_relu(x, alpha)


@operator("Elu")
def _elu(c: Context, x: Tensor, alpha: float = 1.0, consumed_inputs: object = None) -> Tensor:
    return F.elu(x, alpha)


@operator("Selu")
def _selu(
    c: Context,
    x: Tensor,
    alpha: float = 1.67326319217681884765625,
    gamma: float = 1.05070102214813232421875,
    consumed_inputs: object = None,
) -> Tensor:
    if _alike(alpha, 1.6732632423543772) and _alike(gamma, 1.0507009873554805):
        return F.selu(x)
    return gamma * F.elu(x, alpha)


def _alike(attribute: float, number: float) -> bool:
    """Whether an attribute, which is a float32, stands for a number."""
    return abs(attribute - number) <= 6e-8 * abs(number)


@operator("Celu")
def _celu(c: Context, x: Tensor, alpha: float = 1.0) -> Tensor:
    return F.celu(x, alpha)


@operator("Gelu")
def _gelu(c: Context, x: Tensor, approximate: str = "none") -> Tensor:
    return F.gelu(x, approximate=approximate)


@operator("Swish")
def _swish(c: Context, x: Tensor, alpha: float = 1.0) -> Tensor:
    return x * fb.sigmoid(alpha * x)


@operator("HardSigmoid")
def _hard_sigmoid(
    c: Context, x: Tensor, alpha: float = 0.2, beta: float = 0.5, consumed_inputs: object = None
) -> Tensor:
    if _alike(alpha, 1 / 6) and beta == 0.5:
        return F.hardsigmoid(x)
    return (alpha * x + beta).clamp(0, 1)


@operator("Softplus")
def _softplus(c: Context, x: Tensor) -> Tensor:
    # From there on the result is the argument.
    return F.softplus(x, threshold=40 if x.dtype is fb.float64 else 20)


@operator("ThresholdedRelu")
def _thresholded_relu(c: Context, x: Tensor, alpha: float = 1.0) -> Tensor:
    return fb.where(x > alpha, x, fb.zeros_like(x))


@operator("PRelu")
def _prelu(c: Context, x: Tensor, slope: Tensor, consumed_inputs: object = None) -> Tensor:
    if c.opset < 7 and slope.dim() == 1 and x.dim() > 1:  # one slope a channel
        slope = slope.reshape([-1, *[1] * (x.dim() - 2)])
    return fb.where(x < 0, _as_signed(fb.mul, x, slope), x)


@operator("Shrink")
def _shrink(c: Context, x: Tensor, bias: float = 0.0, lambd: float = 0.5) -> Tensor:
    inner = fb.where(x > lambd, x - bias, fb.zeros_like(x))
    return fb.where(x < -lambd, x + bias, inner).to(x.dtype)


@operator("Dropout")
def _dropout(
    c: Context,
    x: Tensor,
    rate: Tensor | None = None,
    training: Tensor | None = None,
    ratio: float | None = None,
    seed: int | None = None,
    is_test: int = 0,
    consumed_inputs: object = None,
) -> Any:
    given = rate if ratio is None else ratio
    share = 0.5 if given is None else float(number(given))
    trains = training is not None and bool(training)
    if trains and share:
        generator = None if seed is None else fb.Generator(x.device).manual_seed(int(seed))
        keep = fb.rand(x.shape, generator=generator, device=x.device) >= share
        result = fb.where(keep, x / (1 - share), fb.zeros_like(x))
    else:
        keep, result = fb.ones(x.shape, dtype=fb.bool, device=x.device), x
    return (result, keep if c.opset >= 10 else keep.to(x.dtype)) if c.outputs > 1 else result


@operator("Bernoulli")
def _bernoulli(
    c: Context, x: Tensor, dtype: int | None = None, seed: float | None = None
) -> Tensor:
    generator = None if seed is None else fb.Generator(x.device).manual_seed(int(seed))
    drawn = fb.bernoulli(x, generator=generator)
    return drawn if dtype is None else drawn.to(dtype_of(dtype))


def _softmax_like(function: Callable[[Tensor, int], Tensor]) -> Callable[..., Any]:
    def run(c: Context, x: Tensor, axis: int | None = None) -> Tensor:
        if c.opset >= 13:
            return function(x, -1 if axis is None else axis)
        # Before, all dimensions from the axis on were one.
        axis = 1 if axis is None else axis
        axis = axis + x.dim() if axis < 0 else axis
        flat = x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
        return function(flat, 1).reshape(x.shape)

    return run


def _hardmax(x: Tensor, axis: int) -> Tensor:
    first = x.argmax(axis, keepdim=True)
    return fb.zeros_like(x).scatter(axis, first, 1.0)


OPERATORS["", "Softmax"] = _softmax_like(late(fb.softmax))
OPERATORS["", "LogSoftmax"] = _softmax_like(late(fb.log_softmax))
OPERATORS["", "Hardmax"] = _softmax_like(_hardmax)


@operator("CumSum")
def _cumsum(c: Context, x: Tensor, axis: Tensor, exclusive: int = 0, reverse: int = 0) -> Tensor:
    return _cumulated(fb.cumsum, x, int(axis), exclusive, reverse, 0)


@operator("CumProd")
def _cumprod(c: Context, x: Tensor, axis: Tensor, exclusive: int = 0, reverse: int = 0) -> Tensor:
    return _cumulated(fb.cumprod, x, int(axis), exclusive, reverse, 1)


def _cumulated(
    function: Callable[..., Tensor], x: Tensor, axis: int, exclusive: int, reverse: int, unit: int
) -> Tensor:
    if reverse:
        x = x.flip(axis)
    y = function(x, axis).to(x.dtype)
    if exclusive and y.shape[axis]:
        first = fb.full_like(y.narrow(axis, 0, 1), unit)
        y = fb.cat([first, y.narrow(axis, 0, y.shape[axis] - 1)], axis)
    return y.flip(axis) if reverse else y


@operator("Einsum")
def _einsum(c: Context, *inputs: Tensor, equation: str) -> Tensor:
    return fb.einsum(equation, *inputs)


@operator("MatMul")
def _matmul(c: Context, x: Tensor, y: Tensor) -> Tensor:
    return _as_signed(fb.matmul, x, y)


@operator("Gemm")
def _gemm(
    c: Context,
    a: Tensor,
    b: Tensor,
    bias: Tensor | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    broadcast: int = 0,
) -> Tensor:
    usual = alpha == beta == 1.0 and bias is not None and bias.dim() == 1
    usual = usual and a.dtype.is_floating_point
    if usual and transB and not transA:
        return F.linear(a, b, bias)
    a, b = a.t() if transA else a, b.t() if transB else b
    if usual and bias is not None:
        return fb.addmm(bias, a, b)
    product = a @ b
    if alpha != 1.0:
        product = (alpha * product).to(a.dtype)
    if bias is None or beta == 0.0:
        return product
    return product + (bias if beta == 1.0 else (beta * bias).to(a.dtype))


@operator("Det")
def _det(c: Context, x: Tensor) -> Tensor:
    return fb.linalg.det(x)


def refuse_strings(name: str) -> Callable[..., Any]:
    """An operator of strings, which tensors do not hold."""

    def run(c: Context, *inputs: object, **attributes: object) -> Any:
        raise UnsupportedError(f"{name}: tensors of strings")

    return run
