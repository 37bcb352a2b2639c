"""Activation functions: rectifiers, smooth functions, and probabilities along a dimension.

Sources: Hendrycks & Gimpel (2016) for gelu, Klambauer et al. (2017) for selu, Barron (2017) for
celu.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from flambeau._autograd.modes import recording
from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import (
    dim_of,
    need_number,
    need_tensor,
)
from flambeau._dispatch.dispatch import cast, drawable, where_to_draw
from flambeau._dispatch.halves import is_half
from flambeau._dispatch.promotion import fitting, python_number
from flambeau._random.generator import generator_for
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._types.dtype import dtype as DType
from flambeau._writes.inplace import put_into
from flambeau._writes.out import deliver
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import OPS, composite
from flambeau.ops.layers import gradient_rules as _rules
from flambeau.ops.pointwise.elementwise import _mul, _where, binary, replaced

if TYPE_CHECKING:
    from flambeau._random.generator import Generator


SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


def wide_dtype(dtype: DType) -> DType:
    """What formulas of several steps compute in: float32 for float16 and bfloat16."""
    return D.float32 if is_half(dtype) else dtype


def _take(input: Tensor, *numbers: complex) -> Tensor:
    """`input`, once the numbers of its formula are known to be ones that it can compute with.

    Raises:
        RuntimeError: the dtype of the formula cannot hold one.
    """
    for number in numbers:
        if type(number) is not float or not -1e38 < number < 1e38:
            fitting(python_number(number), wide_dtype(input.dtype))
    return input


def wide(x: Tensor) -> Tensor:
    """`x` in the dtype that formulas of several steps compute in."""
    return cast(x, wide_dtype(x.dtype))


@composite(
    refuses_bool="Boolean inputs not supported for relu",
    refuses_complex="relu is not supported for complex types",
)
def _relu(self: Tensor) -> Tensor:
    return binary("maximum", self, 0)  # NaN stays


@_relu.gradient
def _(F, g, result):
    return F.threshold_backward(g, result, 0)


@composite
def _threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    return replaced(input, input <= threshold, value)


@_threshold.gradient
def _(F, g, input, threshold):
    return F.threshold_backward(g, input, threshold)


@composite
def _threshold_backward(grad: Tensor, input: Tensor, threshold: float) -> Tensor:
    return replaced(grad, input <= threshold, 0)


@_threshold_backward.gradient("grad")
def _(F, g, input, threshold):
    return F.threshold_backward(g, input, threshold)


@_threshold_backward.gradient("input")
def _(F, g):
    return F.zeros(g.shape, g)  # piecewise constant in `input`


@composite
def _leaky_relu(input: Tensor, negative_slope: float) -> Tensor:
    x = wide(input)
    return cast(_where(x > 0, x, x * negative_slope), input.dtype)


@_leaky_relu.gradient
def _(F, g, input, negative_slope):
    return F.leaky_relu_backward(g, input, negative_slope)


@composite
def _leaky_relu_backward(grad: Tensor, input: Tensor, negative_slope: float) -> Tensor:
    g = wide(grad)
    return cast(_where(input > 0, g, g * negative_slope), grad.dtype)


@_leaky_relu_backward.gradient("grad")
def _(F, g, input, negative_slope):
    return F.leaky_relu_backward(g, input, negative_slope)


@_leaky_relu_backward.gradient("input")
def _(F, g):
    return F.zeros(g.shape, g)  # piecewise constant in `input`


@composite
def _elu(input: Tensor, alpha: float, scale: float, input_scale: float) -> Tensor:
    x = wide(input)
    positive = x > 0
    low = (replaced(x, positive, 0) * input_scale).expm1() * (alpha * scale)
    return cast(_where(positive, x * scale, low), input.dtype)


@_elu.gradient
def _(F, g, input, alpha, scale, input_scale):
    return F.elu_backward(g, input, alpha, scale, input_scale)


@composite
def _elu_backward(
    grad: Tensor, input: Tensor, alpha: float, scale: float, input_scale: float
) -> Tensor:
    g, x = wide(grad), wide(input)
    positive = x > 0
    # Zero instead of the positive elements: exp must not overflow where it is not chosen.
    slope = (replaced(x, positive, 0) * input_scale).exp() * (alpha * scale * input_scale)
    return cast(g * replaced(slope, positive, scale), grad.dtype)


@_elu_backward.gradient("grad")
def _(F, g, input, alpha, scale, input_scale):
    return F.elu_backward(g, input, alpha, scale, input_scale)


@_elu_backward.gradient("input")
def _(F, g, grad, input, alpha, scale, input_scale):
    zero = F.scalar(0, input)
    positive = F.gt(input, zero)
    below = F.mul(F.where(positive, zero, input), F.scalar(input_scale, input))
    bend = F.mul(F.exp(below), F.scalar(alpha * scale * input_scale * input_scale, input))
    return F.mul(F.mul(g, grad), F.where(positive, zero, bend))


@composite(promotes="float")
def _sigmoid(self: Tensor) -> Tensor:
    return cast((wide(self).neg().exp() + 1).reciprocal(), self.dtype)


@_sigmoid.gradient
def _(F, g, result):
    return F.sigmoid_backward(g, result)


@composite
def _sigmoid_backward(grad: Tensor, result: Tensor) -> Tensor:
    g, y = wide(grad), wide(result)
    return cast(g * (1 - y) * y, grad.dtype)


@_sigmoid_backward.gradient("grad")
def _(F, g, result):
    return F.sigmoid_backward(g, result)


@_sigmoid_backward.gradient("result")
def _(F, g, grad, result):
    slope = F.sub(F.scalar(1, result), F.mul(result, F.scalar(2, result)))
    return F.mul(F.mul(g, grad), slope)


@composite
def _tanh_backward(grad: Tensor, result: Tensor) -> Tensor:
    g, y = wide(grad), wide(result)
    return cast(g * (1 - y * y), grad.dtype)


@_tanh_backward.gradient("grad")
def _(F, g, result):
    return F.tanh_backward(g, result)


@_tanh_backward.gradient("result")
def _(F, g, grad, result):
    return F.mul(F.mul(g, grad), F.mul(result, F.scalar(-2, result)))


@composite
def _silu(input: Tensor) -> Tensor:
    x = wide(input)
    return cast(x * _sigmoid(x), input.dtype)


@_silu.gradient
def _(F, g, input):
    return F.silu_backward(g, input)


@composite
def _silu_backward(grad: Tensor, input: Tensor) -> Tensor:
    g, x = wide(grad), wide(input)
    s = _sigmoid(x)
    return cast(g * s * (x * (1 - s) + 1), grad.dtype)


@_silu_backward.gradient("grad")
def _(F, g, input):
    return F.silu_backward(g, input)


@_silu_backward.gradient("input")
def _(F, g, grad, input):
    # With s = sigmoid(x): s' = s·(1 - s), f'' = s'·(2 + x·(1 - 2·s))
    s, one, two = F.sigmoid(input), F.scalar(1, input), F.scalar(2, input)
    bend = F.add(two, F.mul(input, F.sub(one, F.mul(s, two))))
    return F.mul(F.mul(g, grad), F.mul(F.mul(s, F.sub(one, s)), bend))


@composite
def _log_sigmoid(input: Tensor) -> Tensor:
    x = wide(input)
    soft = x.abs().neg().exp().log1p()
    return cast(replaced(x, x > 0, 0) - soft, input.dtype)


@_log_sigmoid.gradient
def _(F, g, input):
    return F.log_sigmoid_backward(g, input)


@composite
def _log_sigmoid_backward(grad: Tensor, input: Tensor) -> Tensor:
    return cast(wide(grad) * _sigmoid(-wide(input)), grad.dtype)


@_log_sigmoid_backward.gradient("grad")
def _(F, g, input):
    return F.log_sigmoid_backward(g, input)


@_log_sigmoid_backward.gradient("input")
def _(F, g, grad, input):
    return F.neg(F.sigmoid_backward(F.mul(g, grad), F.sigmoid(F.neg(input))))


@composite
def _softplus(input: Tensor, beta: float, threshold: float) -> Tensor:
    x = wide(input)
    scaled = x * beta
    linear = scaled > threshold
    soft = replaced(scaled, linear, 0).exp().log1p() / beta
    return cast(_where(linear, x, soft), input.dtype)


@_softplus.gradient
def _(F, g, input, beta, threshold):
    return F.softplus_backward(g, input, beta, threshold)


@composite
def _softplus_backward(grad: Tensor, input: Tensor, beta: float, threshold: float) -> Tensor:
    g, scaled = wide(grad), wide(input) * beta
    return cast(_where(scaled > threshold, g, g * _sigmoid(scaled)), grad.dtype)


@_softplus_backward.gradient("grad")
def _(F, g, input, beta, threshold):
    return F.softplus_backward(g, input, beta, threshold)


@_softplus_backward.gradient("input")
def _(F, g, grad, input, beta, threshold):
    scaled = F.mul(input, F.scalar(beta, input))
    bend = F.sigmoid_backward(F.mul(F.mul(g, grad), F.scalar(beta, g)), F.sigmoid(scaled))
    return F.where(F.gt(scaled, F.scalar(threshold, input)), F.scalar(0.0, bend), bend)


_TANH_SCALE = math.sqrt(2 / math.pi)
_TANH_CUBIC = 0.044715


def _gelu_inner(x: Tensor) -> Tensor:
    return ((x * x * _TANH_CUBIC + 1) * x * _TANH_SCALE).tanh()


@composite
def _gelu(input: Tensor, approximate: str) -> Tensor:
    x = wide(input)
    tail = _gelu_inner(x) if approximate == "tanh" else (x * math.sqrt(0.5)).erf()
    return cast(x * 0.5 * (tail + 1), input.dtype)


@_gelu.gradient
def _(F, g, input, approximate):
    return F.gelu_backward(g, input, approximate)


@composite
def _gelu_backward(grad: Tensor, input: Tensor, approximate: str) -> Tensor:
    g, x = wide(grad), wide(input)
    if approximate == "tanh":
        t = _gelu_inner(x)
        inner = (x * x * (3 * _TANH_CUBIC) + 1) * _TANH_SCALE
        slope = (t + 1 + x * (1 - t * t) * inner) * 0.5
    else:
        density = (x * x * -0.5).exp() * (1 / math.sqrt(2 * math.pi))
        slope = ((x * math.sqrt(0.5)).erf() + 1) * 0.5 + x * density
    return cast(g * slope, grad.dtype)


@_gelu_backward.gradient("grad")
def _(F, g, input, approximate):
    return F.gelu_backward(g, input, approximate)


@_gelu_backward.gradient("input")
def _(F, g, grad, input, approximate):
    def times(a: object, number: float) -> object:
        return F.mul(a, F.scalar(number, a))

    def plus(a: object, number: float) -> object:
        return F.add(a, F.scalar(number, a))

    x, square = input, F.mul(input, input)
    if approximate == "tanh":
        # With t = tanh(u): f'' = (1 - t²)·(u' + x/2·(u'' - 2·t·u'²))
        t = F.tanh(times(F.mul(x, plus(times(square, _TANH_CUBIC), 1)), _TANH_SCALE))
        first = times(plus(times(square, 3 * _TANH_CUBIC), 1), _TANH_SCALE)
        second = times(x, 6 * _TANH_CUBIC * _TANH_SCALE)
        bend = F.sub(second, times(F.mul(t, F.mul(first, first)), 2))
        inner = F.add(first, times(F.mul(x, bend), 0.5))
        curvature = F.mul(F.sub(F.scalar(1, t), F.mul(t, t)), inner)
    else:
        # With the density φ: f'' = φ·(2 - x²)
        density = times(F.exp(times(square, -0.5)), 1 / math.sqrt(2 * math.pi))
        curvature = F.mul(density, F.sub(F.scalar(2, x), square))
    return F.mul(F.mul(g, grad), curvature)


def _along(a: Any, dim: int) -> tuple[int, ...]:
    return (dim,) if a.shape else ()


@composite
def _softmax(input: Tensor, dim: int) -> Tensor:
    if not input.numel():
        return input.clone()
    x, dims = wide(input), _along(input, dim)
    e = (x - x.amax(dims, True)).exp()
    return cast(e / e.sum(dims, True), input.dtype)


@_softmax.gradient
def _(F, g, result, dim):
    return F.softmax_backward(g, result, dim)


@composite(title="SoftmaxBackwardDataBackward0")
def _softmax_backward(grad: Tensor, result: Tensor, dim: int) -> Tensor:
    g, y = wide(grad), wide(result)
    return cast(y * (g - (g * y).sum(_along(y, dim), True)), grad.dtype)


_softmax_backward.demand(_rules.softmax_backward)


@_softmax_backward.gradient("grad")
def _(F, g, result, dim):
    return F.softmax_backward(g, result, dim)


@_softmax_backward.gradient("result")
def _(F, g, grad, result, dim):
    dims = _along(g, dim)
    centred = F.sub(grad, F.sum(F.mul(grad, result), dims, True))
    return F.sub(F.mul(g, centred), F.mul(grad, F.sum(F.mul(g, result), dims, True)))


@composite
def _log_softmax(input: Tensor, dim: int) -> Tensor:
    if not input.numel():
        return input.clone()
    x, dims = wide(input), _along(input, dim)
    shifted = x - x.amax(dims, True)
    return cast(shifted - shifted.exp().sum(dims, True).log(), input.dtype)


@_log_softmax.gradient
def _(F, g, result, dim):
    return F.log_softmax_backward(g, result, dim)


@composite(title="LogSoftmaxBackwardDataBackward0")
def _log_softmax_backward(grad: Tensor, result: Tensor, dim: int) -> Tensor:
    g, y = wide(grad), wide(result)
    return cast(g - y.exp() * g.sum(_along(y, dim), True), grad.dtype)


_log_softmax_backward.demand(_rules.softmax_backward)


@_log_softmax_backward.gradient("grad")
def _(F, g, result, dim):
    return F.sub(g, F.sum(F.mul(g, F.exp(result)), _along(g, dim), True))


@_log_softmax_backward.gradient("result")
def _(F, g, grad, result, dim):
    total = F.sum(grad, _along(g, dim), True)
    return F.neg(F.mul(F.mul(g, F.exp(result)), total))


def need_floating(x: Tensor, function: str, argument: str) -> Tensor:
    """`x` if it is a floating tensor.

    Raises:
        TypeError: it is no tensor.
        NotImplementedError: its dtype is another.
    """
    if type(x) is Tensor and x.dtype.is_floating_point:
        return x
    if not need_tensor(x, function, argument).dtype.is_floating_point:
        raise NotImplementedError(
            f"{function}(): not implemented for {x.dtype}; cast {argument!r} to a floating dtype"
        )
    return x


@public(inplace="both")
def relu(input: Tensor) -> Tensor:
    """max(x, 0) for each element; nan stays.

    Raises:
        RuntimeError: the tensor is bool.
        NotImplementedError: it is complex.

    >>> import flambeau as fb
    >>> fb.relu(fb.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    if need_tensor(input, "relu", "input").dtype is D.bool_:
        raise RuntimeError(_relu.refuses_bool)
    return input.relu()


@public(method=False, inplace="function")
def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """x where x > `threshold`, else `value`; nan stays.

    Raises:
        NotImplementedError: the tensor is bool or complex.
        RuntimeError: the dtype cannot hold the numbers.

    >>> import flambeau as fb
    >>> fb.threshold(fb.tensor([0.5, 2.0]), 1.0, -3.0)
    tensor([-3.,  2.])
    """
    x = need_tensor(input, "threshold", "input")
    if x.dtype.category in (0, 3):
        raise NotImplementedError(f'"threshold" not implemented for {x.dtype}')
    threshold = fitting(python_number(threshold), wide_dtype(x.dtype))
    return _threshold.run(x, threshold, fitting(python_number(value), x.dtype))


@public(method=False, inplace="function")
def leaky_relu(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x where x > 0, else `negative_slope`·x.

    Raises:
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.leaky_relu(fb.tensor([-1.0, 2.0]), 0.5)
    tensor([-0.5000,  2.0000])
    """
    x = _take(need_floating(input, "leaky_relu", "input"), negative_slope)
    return _leaky_relu.run(x, negative_slope)


@public(method=False, inplace="function")
def elu(input: Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    """scale·x where x > 0, else scale·alpha·(exp(input_scale·x) - 1).

    Raises:
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.elu(fb.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    x = _take(need_floating(input, "elu", "input"), alpha, scale, input_scale)
    return put_into(_elu, x, alpha, scale, input_scale)


@public(method=False, inplace="function")
def selu(input: Tensor) -> Tensor:
    """The `elu` whose two constants keep mean 0 and variance 1 through layers.

    Raises:
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.selu(fb.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return elu(input, SELU_ALPHA, SELU_SCALE)


@public(method=False, inplace="function")
@takes_as_annotated
def celu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """max(x, 0) + min(alpha·(exp(x / alpha) - 1), 0).

    Raises:
        RuntimeError: `alpha` is zero.
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.celu(fb.tensor([-1.0, 2.0]), 2.0)
    tensor([-0.7869,  2.0000])
    """
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return elu(input, alpha, 1.0, 1.0 / alpha)


@public(inplace="both")
def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 / (1 + exp(-x)).

    >>> import flambeau as fb
    >>> fb.sigmoid(fb.tensor([0.0]))
    tensor([0.5000])
    """
    return deliver(need_tensor(input, "sigmoid", "input").sigmoid(), out, input)


@public(method=False, inplace="function")
def silu(input: Tensor) -> Tensor:
    """x·sigmoid(x), also called swish.

    Raises:
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.silu(fb.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7311])
    """
    return _silu.run(need_floating(input, "silu", "input"))


@public(method=False)
def log_sigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)), computed as min(x, 0) - log(1 + exp(-abs(x))).

    Raises:
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.log_sigmoid(fb.tensor([0.0, -200.0]))
    tensor([  -0.6931, -200.0000])
    """
    return _log_sigmoid.run(need_floating(input, "log_sigmoid", "input"))


@public(method=False)
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta·x)) / beta, and x itself where beta·x > `threshold`.

    Raises:
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.softplus(fb.tensor([0.0, 30.0]))
    tensor([ 0.6931, 30.0000])
    """
    x = _take(need_floating(input, "softplus", "input"), beta, threshold)
    return _softplus.run(x, beta, threshold)


@public(method=False)
def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    """x·Φ(x) with the normal distribution function Φ; ``"tanh"`` approximates it.

    The approximation is x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))).

    Raises:
        RuntimeError: `approximate` is neither ``"none"`` nor ``"tanh"``.
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.gelu(fb.tensor([-1.0, 1.0]))
    tensor([-0.1587,  0.8413])
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError(
            f"approximate argument must be either none or tanh. Got: {approximate!r}"
        )
    return _gelu.run(need_floating(input, "gelu", "input"), approximate)


@public
def softmax(
    input: Tensor, dim: int, dtype: DType | None = None, *, out: Tensor | None = None
) -> Tensor:
    """exp(x) / Σ exp(x) along `dim`; `dtype` casts first.

    Raises:
        IndexError: `dim` is out of range.
        NotImplementedError: the dtype is not floating and none is asked for.

    >>> import flambeau as fb
    >>> fb.softmax(fb.tensor([0.0, 0.0]), 0)
    tensor([0.5000, 0.5000])
    """
    if type(input) is Tensor and out is None:
        return input.softmax(dim, dtype)
    return probabilities("softmax", input, dim, dtype, out)


@public
def log_softmax(
    input: Tensor, dim: int, dtype: DType | None = None, *, out: Tensor | None = None
) -> Tensor:
    """x - log Σ exp(x) along `dim`, without overflow; `dtype` casts first.

    Raises:
        IndexError: `dim` is out of range.
        NotImplementedError: the dtype is not floating and none is asked for.

    >>> import flambeau as fb
    >>> fb.log_softmax(fb.tensor([0.0, 0.0]), 0)
    tensor([-0.6931, -0.6931])
    """
    if type(input) is Tensor and out is None:
        return input.log_softmax(dim, dtype)
    return probabilities("log_softmax", input, dim, dtype, out)


def probabilities(
    name: str, input: Tensor, dim: int, dtype: DType | None, out: Tensor | None = None
) -> Tensor:
    """`softmax` or `log_softmax` of what the method does not take at once."""
    x = need_tensor(input, name, "input")
    if dtype is not None:
        x = cast(x, D.as_dtype(dtype))
    d = dim_of(dim, x.dim())
    result = OPS[name](need_floating(x, name, "input"), d)
    return deliver(result, out, input, exact=True, share="anything")


@public(method=False, inplace="function")
def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`input` with each element zeroed with probability `p` and the others divided by 1 - `p`.

    Without `train` it is `input` itself.  The default generator decides: one draw per element.

    Raises:
        RuntimeError: `p` is not in [0, 1].

    >>> import flambeau as fb
    >>> fb.dropout(fb.ones(2), 0.5, train=False)
    tensor([1., 1.])
    """
    x = need_tensor(input, "dropout", "input")
    if not 0 <= need_number(p, "dropout", "p") <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not train or p == 0 or x.numel() == 0:
        return x
    if p == 1:
        return x * 0.0
    if (home := where_to_draw(x._be)) is not x._be or hasattr(home, "level"):
        return x * drawable(x.detach().clone()).bernoulli_(1 - p).div_(1 - p)
    if "dropout" not in x._be.kernels or not x.dtype.is_floating_point:
        return x * x.detach().clone().bernoulli_(1 - p).div_(1 - p)
    result, noise = _dropout.run(x, float(p), generator_for(x._be.device, None))
    if x._rg and recording():
        _mul.record((x, noise), result)  # it is their product
    return result


@composite(differentiable=False, results=2)
def _dropout(self: Tensor, p: float, generator: Generator) -> tuple[Tensor, Tensor]:
    """`self` times a fresh noise, which is 0 with probability `p` and else 1/(1 - p); the noise.

    Draws follow the order of memory.
    """
    noise = self.detach().clone().bernoulli_(1 - p, generator=generator).div_(1 - p)
    return self * noise, noise
