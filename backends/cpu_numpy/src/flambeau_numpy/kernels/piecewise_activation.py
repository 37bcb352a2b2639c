"""Activation functions that are made of pieces, and their gradients; 16-bit floats in float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau_numpy.casts import compared, wide
from flambeau_numpy.silence import quiet

Array = np.ndarray[Any, Any]


def _rounded_once(formula: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel of a formula of wide arrays and of numbers, in the dtype of the first array."""

    @quiet
    def kernel(*args: Any) -> np.ndarray:
        arrays = [wide(x) if isinstance(x, np.ndarray) else x for x in args]
        return np.asarray(formula(*arrays)).astype(args[0].dtype, copy=False)

    return kernel


def _bounded(x: Array, low: float, high: float) -> Array:
    return np.clip(x, x.dtype.type(low), x.dtype.type(high))


def _hardtanh_backward(g: Array, x: Array, low: float, high: float) -> Array:
    number = x.dtype.type
    return np.where((x <= number(low)) | (x >= number(high)), number(0), g)


def _hardsigmoid(x: Array) -> Array:
    return _bounded(x + 3, 0, 6) / 6


def _hardsigmoid_backward(g: Array, x: Array) -> Array:
    number = x.dtype.type
    return np.where((x > -3) & (x < 3), g * number(1 / 6), number(0))


def _hardswish(x: Array) -> Array:
    return x * _bounded(x + 3, 0, 6) / 6


def _hardswish_backward(g: Array, x: Array) -> Array:
    number = x.dtype.type
    return np.where(x <= -3, number(0), np.where(x >= 3, g, g * (x / 3 + number(0.5))))


def _inside(x: Array, size: float) -> Array:
    number = x.dtype.type
    return (x >= -number(size)) & (x <= number(size))


def _hardshrink(x: Array, size: float) -> Array:
    return np.where(_inside(x, size), x.dtype.type(0), x)


def _hardshrink_backward(g: Array, x: Array, size: float) -> Array:
    return np.where(_inside(x, size), g.dtype.type(0), g)


def _softshrink(x: Array, size: float) -> Array:
    by = x.dtype.type(size)
    return np.where(x > by, x - by, np.where(x < -by, x + by, x - x))


def _prelu(x: Array, weight: Array) -> Array:
    return np.where(x > 0, x, weight * x)


def _prelu_backward(g: Array, x: Array, weight: Array) -> Array:
    return np.where(x > 0, g, weight * g)


def _prelu_weight_grad(g: Array, x: Array, weight: Array) -> Array:
    return np.where(x > 0, g.dtype.type(0), g * x)


@quiet
def elu(a: Array, alpha: float, scale: float, input_scale: float) -> np.ndarray:
    """scale·a where positive, scale·alpha·(exp(input_scale·a) - 1) elsewhere."""
    x = wide(a)
    number = x.dtype.type
    low = np.expm1(np.minimum(x, number(0)) * number(input_scale)) * number(alpha * scale)
    return np.where(x > 0, x * number(scale), low).astype(a.dtype, copy=False)


@quiet
def elu_backward(
    grad: Array, a: Array, alpha: float, scale: float, input_scale: float
) -> np.ndarray:
    """`grad` times the slope of `elu` at `a`."""
    g, x = wide(grad), wide(a)
    number = x.dtype.type
    slope = np.exp(np.minimum(x, number(0)) * number(input_scale))
    slope *= number(alpha * scale * input_scale)
    return np.asarray(g * np.where(x > 0, number(scale), slope)).astype(grad.dtype, copy=False)


PIECEWISE = {
    "elu": elu,
    "elu_backward": elu_backward,
    "hardtanh": _rounded_once(_bounded),
    "hardtanh_backward": _rounded_once(_hardtanh_backward),
    "hardsigmoid": _rounded_once(_hardsigmoid),
    "hardsigmoid_backward": _rounded_once(_hardsigmoid_backward),
    "hardswish": _rounded_once(_hardswish),
    "hardswish_backward": _rounded_once(_hardswish_backward),
    "prelu": _rounded_once(_prelu),
    "prelu_backward": _rounded_once(_prelu_backward),
    "prelu_weight_grad": _rounded_once(_prelu_weight_grad),
    "hardshrink": compared(_rounded_once(_hardshrink)),
    "hardshrink_backward": compared(_rounded_once(_hardshrink_backward)),
    "softshrink": _rounded_once(_softshrink),
}
