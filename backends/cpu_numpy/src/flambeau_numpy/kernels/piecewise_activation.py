"""Activation functions made of straight pieces, and their gradients; 16-bit floats in float32."""

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


PIECEWISE = {
    "hardtanh": _rounded_once(_bounded),
    "hardtanh_backward": _rounded_once(_hardtanh_backward),
    "hardsigmoid": _rounded_once(_hardsigmoid),
    "hardsigmoid_backward": _rounded_once(_hardsigmoid_backward),
    "hardswish": _rounded_once(_hardswish),
    "hardswish_backward": _rounded_once(_hardswish_backward),
    "hardshrink": compared(_rounded_once(_hardshrink)),
    "hardshrink_backward": compared(_rounded_once(_hardshrink_backward)),
    "softshrink": _rounded_once(_softshrink),
}
