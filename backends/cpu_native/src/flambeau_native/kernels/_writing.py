"""Functions of elements that are written where their first argument is, in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau_native.kernels._common import FLOAT32, FLOAT64, Array, Kernel, compiled

_OF_ONE = ("frac", "logical_not")
_OF_TWO = "nextafter copysign hypot clamp_min clamp_max".split()
_OF_THREE = ("addcmul", "addcdiv")
_COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _beside(b: Array, a: Array) -> Array:
    """An operand as a row-major array of the shape of `a`, or a number."""
    if b.flags.c_contiguous and (b.shape == a.shape or not b.ndim):
        return b
    return np.ascontiguousarray(np.broadcast_to(b, a.shape)) if b.ndim else b.copy()


def _of_one(name: str) -> Kernel:
    runs = compiled(f"write_{name}")

    def kernel(a: Array, u: float = 0.0, v: float = 0.0, w: float = 0.0) -> None:
        if a.flags.c_contiguous:
            runs[a.dtype](a, a.size, u, v, w)
        else:
            whole = a.copy()
            runs[a.dtype](whole, a.size, u, v, w)
            a[...] = whole

    return kernel


def _of_two(name: str) -> Kernel:
    runs = compiled(f"write_{name}")

    def kernel(a: Array, b: Array, u: float = 0.0, v: float = 0.0) -> None:
        b = _beside(b, a)
        if a.flags.c_contiguous:
            runs[a.dtype](a, b, a.size, b.ndim == 0, u, v, 0.0)
        else:
            whole = a.copy()
            runs[a.dtype](whole, b, a.size, b.ndim == 0, u, v, 0.0)
            a[...] = whole

    return kernel


def _of_three(name: str) -> Kernel:
    runs = compiled(f"write_{name}")

    def kernel(a: Array, b: Array, c: Array, value: float) -> None:
        b, c = _beside(b, a), _beside(c, a)
        if a.flags.c_contiguous:
            runs[a.dtype](a, b, c, a.size, b.ndim == 0, c.ndim == 0, value, 0.0, 0.0)
        else:
            whole = a.copy()
            runs[a.dtype](whole, b, c, a.size, b.ndim == 0, c.ndim == 0, value, 0.0, 0.0)
            a[...] = whole

    return kernel


def _make_comparison(name: str) -> Kernel:
    run, compare = _of_two(name), _COMPARISONS[name]

    def kernel(a: Array, b: Array) -> None:
        if a.dtype in (FLOAT32, FLOAT64):
            run(a, b)
        else:  # an op has all dtypes
            compare(a, b, out=a, casting="unsafe")

    return kernel


def _make_threshold() -> Kernel:
    run = _of_one("threshold")

    def threshold_(a: Array, threshold: float, value: float) -> None:
        if a.dtype in (FLOAT32, FLOAT64):
            run(a, threshold, value)
        else:
            np.copyto(a, a.dtype.type(value), where=a <= threshold)

    return threshold_


def _make_lerp() -> Kernel:
    run = _of_two("lerp")

    def lerp_(a: Array, end: Array, weight: float) -> None:
        run(a, end, weight, abs(weight) < 0.5)

    return lerp_


def _make_nan_to_num() -> Kernel:
    run = _of_one("nan_to_num")
    limits = {d: float(np.finfo(d).max) for d in (FLOAT32, FLOAT64)}

    def nan_to_num_(
        a: Array, nan: float | None, posinf: float | None, neginf: float | None
    ) -> None:
        most = limits[a.dtype]
        first, last = most if posinf is None else posinf, -most if neginf is None else neginf
        run(a, nan or 0.0, first, last)

    return nan_to_num_


def writing_kernels() -> dict[str, Any]:
    """The kernels by name."""
    return {
        **{f"{name}_": _of_one(name) for name in _OF_ONE},
        **{f"{name}_": _of_two(name) for name in _OF_TWO},
        **{f"{name}_": _of_three(name) for name in _OF_THREE},
        **{f"{name}_": _make_comparison(name) for name in _COMPARISONS},
        "threshold_": _make_threshold(),
        "lerp_": _make_lerp(),
        "nan_to_num_": _make_nan_to_num(),
    }
