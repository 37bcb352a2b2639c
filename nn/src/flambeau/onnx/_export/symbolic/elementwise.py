"""Ops on each element: arithmetic, comparisons, activations."""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau.onnx._export.errors import UnsupportedOperatorError
from flambeau.onnx._export.graph import NUMBERS, Graph, Value
from flambeau.onnx._export.symbolic.indexing import nonzero_numpy
from flambeau.onnx._export.table import need_number, symbolic


def same(name: str, kind: str, since: int = 9, floats: bool = True) -> None:
    """An op that one operator stands for."""

    @symbolic(name, since=since)
    def write(g: Graph, self: Value) -> Value:
        if kind in ("Ceil", "Floor") and not g.dtype.is_floating_point:
            return self
        return g.op(kind, g.cast(self, g.dtype) if floats else self)


for _name, _kind in {
    "acos": "Acos",
    "acosh": "Acosh",
    "arccos": "Acos",
    "arcsin": "Asin",
    "arctan": "Atan",
    "asin": "Asin",
    "asinh": "Asinh",
    "atan": "Atan",
    "atanh": "Atanh",
    "ceil": "Ceil",
    "cos": "Cos",
    "cosh": "Cosh",
    "erf": "Erf",
    "exp": "Exp",
    "floor": "Floor",
    "log": "Log",
    "reciprocal": "Reciprocal",
    "sigmoid": "Sigmoid",
    "sin": "Sin",
    "sinh": "Sinh",
    "sqrt": "Sqrt",
    "tan": "Tan",
    "tanh": "Tanh",
}.items():
    same(_name, _kind)
for _name, _kind in {"neg": "Neg", "negative": "Neg", "abs": "Abs", "sign": "Sign"}.items():
    same(_name, _kind, floats=False)


def pair(
    g: Graph, one: object, other: object, dtype: fb.dtype | None = None
) -> tuple[Value, Value]:
    """Two arguments as values of the dtype that they are computed in."""
    dtype = dtype or g.dtype
    return g.value(one, dtype), g.value(other, dtype)


def common(one: object, other: object) -> fb.dtype:
    """The dtype in which two arguments are compared."""
    return fb.result_type(*(_stand_in(v) for v in (one, other)))


def _stand_in(value: object) -> object:
    if isinstance(value, Value):
        assert value.dtype is not None
        return fb.empty((1,) * min(1, len(value.shape or ())), dtype=value.dtype)
    return value


def _scaled(g: Graph, value: Value, alpha: object) -> Value:
    if not isinstance(alpha, Value) and alpha == 1:
        return value
    return g.op("Mul", value, g.value(alpha, value.dtype))


@symbolic("add")
def add(g: Graph, self: object, other: object, alpha: object = 1) -> Value:
    x, y = pair(g, self, other)
    if x.dtype is fb.bool:
        return g.op("Or", x, y)
    return g.op("Add", x, _scaled(g, y, alpha))


@symbolic("sub", "subtract")
def sub(g: Graph, self: object, other: object, alpha: object = 1) -> Value:
    x, y = pair(g, self, other)
    return g.op("Sub", x, _scaled(g, y, alpha))


@symbolic("rsub")
def rsub(g: Graph, self: object, other: object, alpha: object = 1) -> Value:
    return sub(g, other, self, alpha)


@symbolic("mul", "multiply")
def mul(g: Graph, self: object, other: object) -> Value:
    x, y = pair(g, self, other)
    return g.op("And" if x.dtype is fb.bool else "Mul", x, y)


@symbolic("div", "divide", "true_divide")
def div(g: Graph, self: object, other: object, rounding_mode: str | None = None) -> Value:
    if rounding_mode == "floor":
        return floor_divide(g, self, other)
    x, y = pair(g, self, other)
    made = g.op("Div", x, y)
    if rounding_mode == "trunc" and g.dtype.is_floating_point:
        return truncated(g, made)
    return made


def truncated(g: Graph, x: Value) -> Value:
    """Numbers without what stands behind the point."""
    return g.op("Mul", g.op("Sign", x), g.op("Floor", g.op("Abs", x)))


@symbolic("floor_divide", "floordiv")
def floor_divide(g: Graph, self: object, other: object) -> Value:
    x, y = pair(g, self, other)
    if g.dtype.is_floating_point and (g.opset < 10 or _exact(y)):
        # Of an infinity there is no remainder, and so no quotient.
        return g.op("Add", g.op("Floor", g.op("Div", x, y)), g.op("Sub", x, x))
    made = g.op("Div", g.op("Sub", x, modulo(g, x, y)), y)
    if not g.dtype.is_floating_point:
        return made
    if g.opset < 11:
        return g.op("Floor", g.op("Add", made, g.constant(0.5, g.dtype)))
    return g.op("Round", made)


def _exact(divisor: Value) -> bool:
    """Whether a quotient has all its digits: the divisor is a power of two."""
    known = divisor.tensor is not None and divisor.maker is not None
    return known and all(abs(math.frexp(v)[0]) == 0.5 for v in _numbers(divisor))


def _numbers(value: Value) -> list[float]:
    assert value.tensor is not None
    return value.tensor.double().reshape(-1).tolist()


def modulo(g: Graph, x: Value, y: Value) -> Value:
    """What is left by a division that rounds down: with the sign of the divisor."""
    if g.opset >= 10 and x.dtype is not None and not x.dtype.is_floating_point:
        return g.op("Mod", x, y)
    if x.dtype is not None and not x.dtype.is_floating_point:
        g.needs(10, "the remainder of integers")
    if g.opset < 10:
        return g.op("Sub", x, g.op("Mul", g.op("Floor", g.op("Div", x, y)), y))
    # A quotient is rounded, so that what is taken away from it may be one divisor too many.
    rest = g.op("Mod", x, y, fmod_i=1)
    zero = g.constant(0, x.dtype)
    below = g.op("And", g.op("Less", rest, zero), g.op("Greater", y, zero))
    above = g.op("And", g.op("Greater", rest, zero), g.op("Less", y, zero))
    return g.op("Where", g.op("Or", below, above), g.op("Add", rest, y), rest)


@symbolic("remainder")
def remainder(g: Graph, self: object, other: object) -> Value:
    return modulo(g, *pair(g, self, other))


@symbolic("fmod", since=10)
def fmod(g: Graph, self: object, other: object) -> Value:
    return g.op("Mod", *pair(g, self, other), fmod_i=1)


@symbolic("pow")
def pow(g: Graph, self: object, exponent: object) -> Value:
    base, power = pair(g, self, exponent)
    if g.opset < 12 and not g.dtype.is_floating_point:
        wide = g.op("Pow", g.cast(base, fb.float32), g.cast(power, fb.float32))
        return g.cast(wide, g.dtype)
    return g.op("Pow", base, power)


@symbolic("square")
def square(g: Graph, self: Value) -> Value:
    return g.op("Mul", self, self)


@symbolic("rsqrt")
def rsqrt(g: Graph, self: Value) -> Value:
    return g.op("Reciprocal", g.op("Sqrt", g.cast(self, g.dtype)))


@symbolic("exp2")
def exp2(g: Graph, self: Value) -> Value:
    return g.op("Pow", g.constant(2, g.dtype), g.cast(self, g.dtype))


@symbolic("expm1")
def expm1(g: Graph, self: Value) -> Value:
    return g.op("Sub", g.op("Exp", g.cast(self, g.dtype)), g.constant(1, g.dtype))


@symbolic("log1p")
def log1p(g: Graph, self: Value) -> Value:
    return g.op("Log", g.op("Add", g.cast(self, g.dtype), g.constant(1, g.dtype)))


@symbolic("logaddexp")
def logaddexp(g: Graph, self: Value, other: Value) -> Value:
    a, b = g.cast(self, g.dtype), g.cast(other, g.dtype)
    # Infinities of one sign have no difference; the first opsets compare no floats for equality.
    same = (
        g.op("Equal", a, b)
        if g.opset >= 11
        else g.op("Not", g.op("Or", g.op("Less", a, b), g.op("Greater", a, b)))
    )
    apart = g.op("Where", same, g.constant(0, g.dtype), g.op("Sub", a, b))
    return g.op("Add", extreme(g, "Max", a, b), g.op("Softplus", g.op("Neg", g.op("Abs", apart))))


def _logarithm(name: str, base: float) -> None:
    @symbolic(name)
    def write(g: Graph, self: Value) -> Value:
        made = g.op("Log", g.cast(self, g.dtype))
        return g.op("Div", made, g.constant(math.log(base), g.dtype))


_logarithm("log2", 2.0)
_logarithm("log10", 10.0)


@symbolic("erfc")
def erfc(g: Graph, self: Value) -> Value:
    return g.op("Sub", g.constant(1, g.dtype), g.op("Erf", g.cast(self, g.dtype)))


@symbolic("trunc", "fix")
def trunc(g: Graph, self: Value) -> Value:
    return truncated(g, self) if g.dtype.is_floating_point else self


@symbolic("frac")
def frac(g: Graph, self: Value) -> Value:
    return g.op("Sub", self, truncated(g, self))


@symbolic("round", since=11)
def round(g: Graph, self: Value, decimals: int = 0) -> Value:
    if not g.dtype.is_floating_point:
        return self
    if not decimals:
        return g.op("Round", self)
    scale = g.constant(10.0**decimals, g.dtype)
    return g.op("Div", g.op("Round", g.op("Mul", self, scale)), scale)


@symbolic("atan2", "arctan2")
def atan2(g: Graph, self: Value, other: Value) -> Value:
    y, x = pair(g, self, other)
    zero, one, pi = (g.constant(n, g.dtype) for n in (0, 1, math.pi))
    largest = g.constant(fb.finfo(g.dtype).max, g.dtype)
    # Two infinities lie on a diagonal.
    far = g.op("And", *(g.op("Greater", g.op("Abs", each), largest) for each in (x, y)))
    y, x = (g.op("Where", far, g.op("Sign", each), each) for each in (y, x))
    # The reciprocal tells which zero it is.
    below, left = (
        g.op("Or", g.op("Less", each, zero), g.op("Less", g.op("Div", one, each), zero))
        for each in (y, x)
    )
    both = g.op("And", g.op("Equal", x, zero), g.op("Equal", y, zero))
    angle = g.op("Where", both, y, g.op("Atan", g.op("Div", y, x)))
    turned = g.op("Where", below, g.op("Sub", angle, pi), g.op("Add", angle, pi))
    return g.op("Where", left, turned, angle)


def _comparison(names: tuple[str, ...], kind: str, negated: str = "") -> None:
    @symbolic(*names)
    def write(g: Graph, self: object, other: object) -> Value:
        dtype = common(self, other)
        if dtype is fb.bool and kind != "Equal":
            dtype = fb.int32
        if dtype.is_floating_point and kind == "Equal" and g.opset < 11:
            g.needs(11, "a test of floating numbers for equality")
        x, y = g.value(self, dtype), g.value(other, dtype)
        # GreaterOrEqual is new in 12; the negation of Less would say that NaN is greater.
        if kind.endswith("OrEqual") and g.opset < 12:
            strict = g.op(kind.removesuffix("OrEqual"), x, y)
            return g.op("Or", strict, g.op("Equal", x, y))
        made = g.op(kind, x, y)
        return g.op("Not", made) if negated else made


_comparison(("eq",), "Equal")
_comparison(("ne", "not_equal"), "Equal", "Not")
_comparison(("gt", "greater"), "Greater")
_comparison(("ge", "greater_equal"), "GreaterOrEqual")
_comparison(("lt", "less"), "Less")
_comparison(("le", "less_equal"), "LessOrEqual")


def _logical(names: tuple[str, ...], kind: str, bits: str = "") -> None:
    @symbolic(*names)
    def write(g: Graph, self: object, other: object) -> Value:
        if g.dtype is not fb.bool:
            g.needs(18, "arithmetic of bits")
            return g.op(bits, *pair(g, self, other))
        return g.op(kind, *pair(g, self, other, fb.bool))


_logical(("logical_and", "bitwise_and", "__and__", "__iand__"), "And", "BitwiseAnd")
_logical(("logical_or", "bitwise_or", "__or__", "__ior__"), "Or", "BitwiseOr")
_logical(("logical_xor", "bitwise_xor", "__xor__", "__ixor__"), "Xor", "BitwiseXor")


@symbolic("logical_not", "bitwise_not", "__not__")
def logical_not(g: Graph, self: Value) -> Value:
    if g.dtype is not fb.bool:
        g.needs(18, "arithmetic of bits")
        return g.op("BitwiseNot", self)
    return g.op("Not", g.cast(self, fb.bool))


def _power_of_two(g: Graph, places: Value, powers: list[int]) -> Value:
    """One of the powers, which are as many as there are places; the last one for all others."""
    last = g.constant(len(powers) - 1, fb.int64)
    at = g.cast(places, fb.int64)
    outside = g.op("Or", *(g.op("Less", a, b) for a, b in ((at, g.constant(0)), (last, at))))
    dtype = _wide(g.dtype)
    table = g.constant(fb.tensor(powers, dtype=dtype))
    made = g.op("Gather", table, g.op("Where", outside, last, at), axis_i=0)
    made.dtype = dtype
    return made


def _wide(dtype: fb.dtype) -> fb.dtype:
    """Where integers are shifted: runtimes have no products of those of 8 and 16 bits."""
    return fb.int32 if dtype.itemsize < 4 else dtype


@symbolic("bitwise_left_shift", "__lshift__", since=9)
def left_shift(g: Graph, self: object, other: object) -> Value:
    x, y = pair(g, self, other)
    bits = 8 * g.dtype.itemsize
    dtype = _wide(g.dtype)
    highest = 2 ** (bits - 1)
    powers = [
        *(2**n for n in range(bits - 1)),
        highest if highest <= fb.iinfo(dtype).max else -highest,
        0,
    ]
    return g.cast(g.op("Mul", g.cast(x, dtype), _power_of_two(g, y, powers)), g.dtype)


@symbolic("bitwise_right_shift", "__rshift__", since=10)
def right_shift(g: Graph, self: object, other: object) -> Value:
    """What is left is the quotient by a power of two, rounded down."""
    x, y = pair(g, self, other)
    dtype = _wide(g.dtype)
    x = g.cast(x, dtype)
    held = 2 ** (8 * g.dtype.itemsize - 1) <= fb.iinfo(dtype).max
    powers = [*(2**n for n in range(8 * g.dtype.itemsize - (not held))), 0]
    power = _power_of_two(g, y, powers)
    zero, one = g.constant(0, dtype), g.constant(1, dtype)
    gone = g.op("Equal", power, zero)
    power = g.op("Where", gone, one, power)
    made = g.op("Div", g.op("Sub", x, g.op("Mod", x, power)), power)
    rest = g.op("Where", g.op("Less", x, zero), g.op("Sub", zero, one), zero)
    return g.cast(g.op("Where", gone, rest, made), g.dtype)


@symbolic("isnan")
def isnan(g: Graph, self: Value) -> Value:
    return g.op("IsNaN", self)


@symbolic("isinf", since=10)
def isinf(g: Graph, self: Value) -> Value:
    return g.op("IsInf", self)


@symbolic("isfinite", since=10)
def isfinite(g: Graph, self: Value) -> Value:
    return g.op("Not", g.op("Or", g.op("IsInf", self), g.op("IsNaN", self)))


@symbolic("maximum", "fmax")
def maximum(g: Graph, self: object, other: object) -> Value:
    return extreme(g, "Max", self, other)


@symbolic("minimum", "fmin")
def minimum(g: Graph, self: object, other: object) -> Value:
    return extreme(g, "Min", self, other)


def extreme(g: Graph, kind: str, one: object, other: object) -> Value:
    """The larger or smaller of two."""
    x, y = pair(g, one, other)
    if g.opset < 12 and not g.dtype.is_floating_point:
        test = g.op("Greater" if kind == "Max" else "Less", x, y)
        return g.op("Where", test, x, y)
    return g.op(kind, x, y)


@symbolic("where")
def where(g: Graph, condition: Value, self: object = None, other: object = None) -> Any:
    if self is None:
        return nonzero_numpy(g, condition)
    x, y = pair(g, self, other)
    return g.op("Where", g.cast(condition, fb.bool), x, y)


@symbolic("masked_fill")
def masked_fill(g: Graph, self: Value, mask: Value, value: object) -> Value:
    filled = g.value(value, self.dtype)
    return g.op("Where", g.cast(mask, fb.bool), filled, self)


@symbolic("clamp", "clip")
def clamp(g: Graph, self: Value, min: object = None, max: object = None) -> Value:
    x = g.cast(self, g.dtype)
    tensors = [b for b in (min, max) if isinstance(b, Value) and b.shape]
    if tensors:
        x = x if min is None else extreme(g, "Max", x, min)
        return x if max is None else extreme(g, "Min", x, max)
    return g.clip(x, min, max)


@symbolic("clamp_min")
def clamp_min(g: Graph, self: Value, min: object) -> Value:
    return clamp(g, self, min)


@symbolic("clamp_max")
def clamp_max(g: Graph, self: Value, max: object) -> Value:
    return clamp(g, self, None, max)


@symbolic("lerp")
def lerp(g: Graph, self: Value, end: Value, weight: object) -> Value:
    apart = g.op("Sub", end, self)
    if isinstance(weight, NUMBERS) and not isinstance(weight, complex) and abs(weight) >= 0.5:
        return g.op("Sub", end, g.op("Mul", apart, g.constant(1 - weight, self.dtype)))
    return g.op("Add", self, g.op("Mul", g.value(weight, self.dtype), apart))


@symbolic("addcmul")
def addcmul(g: Graph, self: Value, tensor1: Value, tensor2: Value, value: object = 1) -> Value:
    return g.op("Add", self, _scaled(g, g.op("Mul", tensor1, tensor2), value))


@symbolic("addcdiv")
def addcdiv(g: Graph, self: Value, tensor1: Value, tensor2: Value, value: object = 1) -> Value:
    return g.op("Add", self, _scaled(g, g.op("Div", tensor1, tensor2), value))


@symbolic("nan_to_num", since=10)
def nan_to_num(
    g: Graph, self: Value, nan: object = None, posinf: object = None, neginf: object = None
) -> Value:
    assert self.dtype is not None
    most = fb.finfo(self.dtype).max
    made = g.op("Where", g.op("IsNaN", self), g.constant(nan or 0.0, self.dtype), self)
    for value, sign in (
        (most if posinf is None else posinf, 1),
        (-most if neginf is None else neginf, -1),
    ):
        found = g.op("IsInf", self, detect_positive_i=sign > 0, detect_negative_i=sign < 0)
        made = g.op("Where", found, g.constant(value, self.dtype), made)
    return made


@symbolic("relu")
def relu(g: Graph, self: Value) -> Value:
    if not g.dtype.is_floating_point and g.opset < 14:
        return g.clip(self, 0, None)
    return g.op("Relu", self)


@symbolic("relu6")
def relu6(g: Graph, self: Value) -> Value:
    return g.clip(self, 0, 6)


@symbolic("hardtanh")
def hardtanh(g: Graph, self: Value, min_val: object = -1, max_val: object = 1) -> Value:
    return g.clip(self, min_val, max_val)


@symbolic("leaky_relu")
def leaky_relu(g: Graph, self: Value, negative_slope: object = 0.01) -> Value:
    return g.op("LeakyRelu", self, alpha_f=float(need_number(negative_slope, "the slope")))


@symbolic("rrelu")
def rrelu(
    g: Graph, self: Value, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False
) -> Value:
    if training:
        raise UnsupportedOperatorError("rrelu draws random slopes in training")
    return g.op("LeakyRelu", self, alpha_f=(lower + upper) / 2)


@symbolic("prelu")
def prelu(g: Graph, self: Value, weight: Value) -> Value:
    spread = self.rank - 2
    if weight.shape is not None and len(weight.shape) == 1 and spread > 0 and weight.shape != (1,):
        weight = g.unsqueeze(weight, range(1, 1 + spread))
    return g.op("PRelu", self, weight)


@symbolic("elu")
def elu(
    g: Graph, self: Value, alpha: float = 1, scale: object = 1, input_scale: object = 1
) -> Value:
    if scale == 1 and input_scale == 1:
        return g.op("Elu", self, alpha_f=float(alpha))
    inner = g.op("Elu", g.op("Mul", self, g.constant(input_scale, self.dtype)), alpha_f=alpha)
    negative = g.op("Less", self, g.constant(0, self.dtype))
    made = g.op("Where", negative, inner, self)
    return g.op("Mul", made, g.constant(scale, self.dtype))


@symbolic("selu")
def selu(g: Graph, self: Value) -> Value:
    return g.op("Selu", self, alpha_f=1.6732632423543772, gamma_f=1.0507009873554805)


@symbolic("celu")
def celu(g: Graph, self: Value, alpha: float = 1.0) -> Value:
    if g.opset >= 12 and self.dtype is fb.float32:
        return g.op("Celu", self, alpha_f=float(alpha))
    scaled = g.op("Div", self, g.constant(alpha, self.dtype))
    below = g.op("Mul", g.constant(alpha, self.dtype), g.op("Elu", scaled, alpha_f=1.0))
    return g.op("Where", g.op("Less", self, g.constant(0, self.dtype)), below, self)


@symbolic("silu")
def silu(g: Graph, self: Value) -> Value:
    return g.op("Mul", self, g.op("Sigmoid", self))


@symbolic("mish")
def mish(g: Graph, self: Value) -> Value:
    if g.opset >= 18:
        return g.op("Mish", self)
    return g.op("Mul", self, g.op("Tanh", g.op("Softplus", self)))


@symbolic("hardsigmoid")
def hardsigmoid(g: Graph, self: Value) -> Value:
    return g.op("HardSigmoid", self, alpha_f=1 / 6, beta_f=0.5)


@symbolic("hardswish")
def hardswish(g: Graph, self: Value) -> Value:
    if g.opset >= 14:
        return g.op("HardSwish", self)
    return g.op("Mul", self, hardsigmoid(g, self))


@symbolic("gelu")
def gelu(g: Graph, self: Value, approximate: str = "none") -> Value:
    if g.opset >= 20:
        return g.op("Gelu", self, approximate_s=approximate)
    half, one = g.constant(0.5, self.dtype), g.constant(1, self.dtype)
    if approximate == "tanh":
        cube = g.op("Mul", g.op("Mul", self, self), self)
        inner = g.op("Add", self, g.op("Mul", g.constant(0.044715, self.dtype), cube))
        bent = g.op("Tanh", g.op("Mul", g.constant(math.sqrt(2 / math.pi), self.dtype), inner))
    else:
        bent = g.op("Erf", g.op("Div", self, g.constant(math.sqrt(2), self.dtype)))
    return g.op("Mul", half, g.op("Mul", self, g.op("Add", one, bent)))


@symbolic("softplus")
def softplus(g: Graph, self: Value, beta: object = 1, threshold: object = 20) -> Value:
    if beta == 1 and threshold == 20:
        return g.op("Softplus", self)
    scale = g.constant(beta, self.dtype)
    scaled = g.op("Mul", self, scale)
    soft = g.op("Div", g.op("Softplus", scaled), scale)
    return g.op("Where", g.op("Greater", scaled, g.constant(threshold, self.dtype)), self, soft)


@symbolic("log_sigmoid")
def log_sigmoid(g: Graph, self: Value) -> Value:
    return g.op("Neg", g.op("Softplus", g.op("Neg", self)))


@symbolic("softsign")
def softsign(g: Graph, self: Value) -> Value:
    return g.op("Softsign", self)


@symbolic("hardshrink")
def hardshrink(g: Graph, self: Value, lambd: object = 0.5) -> Value:
    far = g.op("Greater", g.op("Abs", self), g.constant(lambd, self.dtype))
    return g.op("Where", _or_nan(g, far, self), self, g.constant(0, self.dtype))


def _or_nan(g: Graph, test: Value, x: Value) -> Value:
    """Where a test holds, and where there is no number, which no comparison says."""
    floating = x.dtype is not None and x.dtype.is_floating_point
    return g.op("Or", test, g.op("IsNaN", x)) if floating else test


@symbolic("softshrink")
def softshrink(g: Graph, self: Value, lambd: float = 0.5) -> Value:
    edge, zero = g.constant(lambd, self.dtype), g.constant(0, self.dtype)
    below = _or_nan(g, g.op("Less", self, g.constant(-lambd, self.dtype)), self)
    made = g.op("Where", below, g.op("Add", self, edge), zero)
    return g.op("Where", g.op("Greater", self, edge), g.op("Sub", self, edge), made)


@symbolic("threshold")
def threshold(g: Graph, self: Value, threshold: object, value: object) -> Value:
    above = g.op("Greater", self, g.constant(threshold, self.dtype))
    return g.op("Where", _or_nan(g, above, self), self, g.constant(value, self.dtype))


@symbolic("glu")
def glu(g: Graph, self: Value, dim: int = -1) -> Value:
    dim %= self.rank
    half = self.static(dim) // 2
    one, other = g.split(self, [half, half], dim)
    return g.op("Mul", one, g.op("Sigmoid", other))


@symbolic("softmax", "special_softmax")
def softmax(g: Graph, self: Value, dim: int, dtype: object = None) -> Value:
    return along(g, "Softmax", g.cast(self, g.dtype), dim)


@symbolic("log_softmax", "special_log_softmax")
def log_softmax(g: Graph, self: Value, dim: int, dtype: object = None) -> Value:
    return along(g, "LogSoftmax", g.cast(self, g.dtype), dim)


def along(g: Graph, kind: str, x: Value, dim: int) -> Value:
    """A softmax along one dimension, which before opset 13 was one over all that follow."""
    rank = x.rank
    dim %= max(1, rank)
    if g.opset >= 13 or dim == rank - 1:
        return g.op(kind, x, axis_i=dim)
    made = g.op(kind, g.swap(x, dim, rank - 1), axis_i=rank - 1)
    made.shape = (None,) * rank
    return g.swap(made, dim, rank - 1)


@symbolic("softmin")
def softmin(g: Graph, self: Value, dim: int) -> Value:
    return along(g, "Softmax", g.op("Neg", self), dim)


def _dropout(g: Graph, input: Value, p: Any, train: bool) -> Value:
    if not train or p == 0:
        return input
    if g.opset >= 12:
        return g.op("Dropout", input, g.constant(float(p), fb.float32), g.constant(True))
    return g.op("Dropout", input, ratio_f=float(p))


@symbolic("dropout")
def dropout(g: Graph, input: Value, p: object, train: bool) -> Value:
    return _dropout(g, input, p, train)


@symbolic("feature_dropout", "alpha_dropout", "feature_alpha_dropout")
def feature_dropout(g: Graph, input: Value, p: object, train: bool) -> Value:
    if train and p:
        raise UnsupportedOperatorError(
            "this dropout has no operator; export with TrainingMode.EVAL"
        )
    return input
