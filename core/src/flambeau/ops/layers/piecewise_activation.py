"""Activation functions made of straight pieces, one of which has a learnt slope, and shrinkage."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from flambeau._dispatch.annotated import takes_as_annotated
from flambeau._dispatch.arguments import need_number, need_tensor
from flambeau._dispatch.dispatch import cast
from flambeau._dispatch.promotion import fitting
from flambeau._tensor.tensor import Tensor
from flambeau._types import dtype as D
from flambeau._writes.out import deliver
from flambeau.ops.declaration.public import public
from flambeau.ops.declaration.table import composite
from flambeau.ops.layers.activation import need_floating, wide
from flambeau.ops.pointwise.elementwise import _clamp, _where, replaced

if TYPE_CHECKING:
    from flambeau._types.native import Array
    from flambeau.ops.declaration.formulas import Formulas


@composite
def _hardtanh(input: Tensor, min_val: float, max_val: float) -> Tensor:
    return cast(_clamp(wide(input), min_val, max_val), input.dtype)


@_hardtanh.gradient
def _(F, g, input, min_val, max_val):
    return F.hardtanh_backward(g, input, min_val, max_val)


@composite
def _hardtanh_backward(grad: Tensor, input: Tensor, min_val: float, max_val: float) -> Tensor:
    x = wide(input)
    return replaced(grad, (x <= min_val) | (x >= max_val), 0)


@_hardtanh_backward.gradient("grad")
def _(F, g, input, min_val, max_val):
    return F.hardtanh_backward(g, input, min_val, max_val)


@_hardtanh_backward.gradient("input")
def _(F, g):
    return F.zeros(g.shape, g)  # piecewise constant in `input`


@composite
def _hardsigmoid(input: Tensor) -> Tensor:
    return cast(_clamp(wide(input) + 3, 0.0, 6.0) / 6, input.dtype)


@_hardsigmoid.gradient
def _(F, g, input):
    return F.hardsigmoid_backward(g, input)


@composite
def _hardsigmoid_backward(grad: Tensor, input: Tensor) -> Tensor:
    return cast(replaced(wide(grad) * (1 / 6), ~((input > -3) & (input < 3)), 0), grad.dtype)


@_hardsigmoid_backward.gradient("grad")
def _(F, g, input):
    return F.hardsigmoid_backward(g, input)


@_hardsigmoid_backward.gradient("input")
def _(F, g):
    return F.zeros(g.shape, g)  # piecewise constant in `input`


@composite
def _hardswish(input: Tensor) -> Tensor:
    x = wide(input)
    return cast(x * _clamp(x + 3, 0.0, 6.0) / 6, input.dtype)


@_hardswish.gradient
def _(F, g, input):
    return F.hardswish_backward(g, input)


@composite
def _hardswish_backward(grad: Tensor, input: Tensor) -> Tensor:
    g, x = wide(grad), wide(input)
    rising = _where(x >= 3, g, g * (x / 3 + 0.5))
    return cast(replaced(rising, x <= -3, 0), grad.dtype)


@_hardswish_backward.gradient("grad")
def _(F, g, input):
    return F.hardswish_backward(g, input)


@_hardswish_backward.gradient("input")
def _(F, g, grad, input):
    bend = F.mul(F.mul(g, grad), F.scalar(1 / 3, g))
    return F.hardtanh_backward(bend, input, -3.0, 3.0)


@composite
def _hardshrink(input: Tensor, lambd: float) -> Tensor:
    return replaced(input, (input >= -lambd) & (input <= lambd), 0)


@composite
def _softshrink(input: Tensor, lambd: float) -> Tensor:
    x = wide(input)
    nearer = _where(x > lambd, x - lambd, _where(x < -lambd, x + lambd, x - x))
    return cast(nearer, input.dtype)


@composite
def _hardshrink_backward(grad: Tensor, input: Tensor, lambd: float) -> Tensor:
    return replaced(grad, (input >= -lambd) & (input <= lambd), 0)


@_hardshrink.gradient
def _(F, g, input, lambd):
    return F.hardshrink_backward(g, input, lambd)


@_softshrink.gradient
def _(F, g, input, lambd):
    return F.hardshrink_backward(g, input, lambd)


@_hardshrink_backward.gradient("grad")
def _(F, g, input, lambd):
    return F.hardshrink_backward(g, input, lambd)


@_hardshrink_backward.gradient("input")
def _(F, g):
    return F.zeros(g.shape, g)  # piecewise constant in `input`


@composite(title="PreluKernelBackward0")
def _prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x where x > 0, else w·x; `weight` is broadcast."""
    return _where(input > 0, input, weight * input)


@_prelu.gradient("input")
def _(F, g, input, weight):
    return F.prelu_backward(g, input, weight)


@_prelu.gradient("weight")
def _(F, g, input, weight):
    return F.sum_to(F.prelu_weight_grad(g, input, weight), weight.shape)


@composite(title="PreluKernelBackwardBackward0")
def _prelu_backward(grad: Tensor, input: Tensor, weight: Tensor) -> Tensor:
    """The gradient of `prelu` in its input."""
    return _where(input > 0, grad, weight * grad)


@_prelu_backward.gradient("grad")
def _(F, g, input, weight):
    return F.prelu_backward(g, input, weight)


@_prelu_backward.gradient("input")
def _(F, g):
    return F.zeros(g.shape, g)  # piecewise constant in `input`


@_prelu_backward.gradient("weight")
def _(F, g, grad, input, weight):
    return F.sum_to(_where_negative(F, input, F.mul(g, grad)), weight.shape)


@composite(title="PreluKernelBackwardBackward0")
def _prelu_weight_grad(grad: Tensor, input: Tensor, weight: Tensor) -> Tensor:
    """The gradient of `prelu` in a weight for each element."""
    return replaced(grad * input, input > 0, 0)


@_prelu_weight_grad.gradient("grad")
def _(F, g, input):
    return _where_negative(F, input, F.mul(input, g))


@_prelu_weight_grad.gradient("input")
def _(F, g, grad, input):
    return _where_negative(F, input, F.mul(grad, g))


@_prelu_weight_grad.gradient("weight")
def _(F, g, weight_shape):
    return F.zeros(weight_shape, g)  # linear in what `weight` is multiplied with


@composite(title="RreluWithNoiseBackward0")
def _rrelu_with_noise(input: Tensor, noise: Tensor) -> Tensor:
    """`prelu` with a slope for each element, which has no gradient: it was drawn."""
    return _prelu(input, noise)


@_rrelu_with_noise.gradient("input")
def _(F, g, input, noise):
    return F.prelu_backward(g, input, noise)


def _where_negative(F: Formulas, input: Array, values: Array) -> Array:
    """`values` where `prelu` multiplies, else 0."""
    zero = F.scalar(0, values)
    return F.where(F.gt(input, F.scalar(0, input)), zero, values)


@public(method=False, inplace="function")
@takes_as_annotated
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """x moved into [`min_val`, `max_val`]; the gradient is zero at and beyond the limits.

    Raises:
        ValueError: `min_val` is greater than `max_val`.
        RuntimeError: `input` is bool, or its dtype cannot hold a limit.
        NotImplementedError: it is complex.

    >>> import flambeau as fb
    >>> fb.hardtanh(fb.tensor([-2.0, 0.5, 3.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    x = need_tensor(input, "hardtanh", "input")
    if not x.dtype.is_floating_point:
        if x.dtype is D.bool_:
            raise RuntimeError("Bool inputs not supported for hardtanh")
        if x.dtype.is_complex:
            raise NotImplementedError("hardtanh is not supported for complex types")
        min_val, max_val = fitting(min_val, x.dtype), fitting(max_val, x.dtype)
        return x.masked_fill(x <= min_val, min_val).masked_fill(x >= max_val, max_val)
    for bound in (min_val, max_val):
        if not -6e4 <= bound <= 6e4:  # of halves, too
            fitting(bound, x.dtype)
    return _hardtanh.run(x, float(min_val), float(max_val))


@public(method=False, inplace="function")
def hardsigmoid(input: Tensor) -> Tensor:
    """min(max(x + 3, 0), 6) / 6.

    Raises:
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.hardsigmoid(fb.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return _hardsigmoid.run(need_floating(input, "hardsigmoid", "input"))


@public(method=False, inplace="function")
def hardswish(input: Tensor) -> Tensor:
    """x·min(max(x + 3, 0), 6) / 6.

    Raises:
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.hardswish(fb.tensor([1.0, 4.0]))
    tensor([0.6667, 4.0000])
    """
    return _hardswish.run(need_floating(input, "hardswish", "input"))


@public
def hardshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """x where abs(x) > `lambd`, else 0.

    Raises:
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.hardshrink(fb.tensor([-1.0, 0.2]))
    tensor([-1.,  0.])
    """
    x = need_tensor(input, "hardshrink", "input")
    if not x.dtype.is_floating_point:
        raise NotImplementedError(f"hardshrink is not implemented for {x.dtype}: use a float dtype")
    limit = float(fitting(need_number(lambd, "hardshrink", "lambd"), x.dtype))
    return deliver(_hardshrink.run(x, limit), out, input, exact=True)


@public(method=False)
@takes_as_annotated
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by `lambd`, and 0 where abs(x) <= `lambd`.

    Raises:
        RuntimeError: `lambd` is negative or not finite, or the dtype cannot hold it.
        NotImplementedError: the dtype is not floating.

    >>> import flambeau as fb
    >>> fb.softshrink(fb.tensor([-2.0, 0.2]))
    tensor([-1.5000,  0.0000])
    """
    x = need_floating(input, "softshrink", "input")
    if not 0 <= fitting(lambd, x.dtype) < math.inf:
        raise RuntimeError(f"softshrink: lambda must be finite and not negative, but found {lambd}")
    return _softshrink.run(x, float(lambd))


@public
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x where x > 0, else w·x with one w, or one per channel (dimension 1).

    Raises:
        RuntimeError: `weight` has more than one dimension, or not one element per channel.

    >>> import flambeau as fb
    >>> fb.prelu(fb.tensor([-2.0, 2.0]), fb.tensor([0.25]))
    tensor([-0.5000,  2.0000])
    """
    x, w = need_floating(input, "prelu", "input"), need_tensor(weight, "prelu", "weight")
    if x.dtype is not w.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {x.dtype} and {w.dtype}; cast one of them"
        )
    if w.dim() > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {w.dim()}"
        )
    if w.numel() == 1:
        w = w.reshape(())
    else:
        channels = x.shape[1] if x.dim() > 1 else 1
        if w.numel() != channels:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{w.numel()} and channel size = {channels}."
            )
        w = w.reshape((channels, *(1,) * (x.dim() - 2)))
    return _prelu.run(x, w)
