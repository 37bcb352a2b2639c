"""Elementwise kernels: casts, arithmetic, comparison, logic, rounding and elementary functions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from flambeau_cupy.device.array_module import Array, Kernel
from flambeau_cupy.dtypes import BFLOAT16, HALVES, TO_NUMPY
from flambeau_cupy.fusion.chains import Deferred, Fusion
from flambeau_cupy.fusion.steps import STEPS, TYPES
from flambeau_cupy.layer import Layer

if TYPE_CHECKING:
    from collections.abc import Callable

    from flambeau.plugin import dtype as DType


UNARY = {
    "abs": "absolute",
    "exp": "exp",
    "expm1": "expm1",
    "log": "log",
    "log1p": "log1p",
    "log2": "log2",
    "log10": "log10",
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "sinh": "sinh",
    "cosh": "cosh",
    "tanh": "tanh",
    "sqrt": "sqrt",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "neg": "negative",
}
BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "true_divide",
    "atan2": "arctan2",
    "maximum": "maximum",
    "minimum": "minimum",
}
COMPARISON = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
BITS = {"bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor"}
ROUNDING = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "rint"}
DIVISION = {"remainder": "remainder", "fmod": "fmod", "floor_divide": "floor_divide"}


def cast(layer: Layer, a: Array, dtype: DType) -> Array:
    kind = TO_NUMPY[dtype]
    if a.dtype.kind == "c" and kind.kind not in "cb":
        a = a.real
    if a.dtype == BFLOAT16 and kind != BFLOAT16:
        a = a.astype(np.float32)  # exact; from there every module knows the way
    elif kind == BFLOAT16 and a.dtype.kind not in "fV":
        a = a.astype(np.float32)
    return a.astype(kind)


def clone(layer: Layer, a: Array) -> Array:
    return a.copy("K") if _dense(a) else a.copy("C")


def assign(layer: Layer, dst: Array, src: Array) -> None:
    if src.dtype != dst.dtype:
        from flambeau_cupy.dtypes import FROM_NUMPY

        src = cast(layer, src, FROM_NUMPY[dst.dtype])
    dst[...] = src


def float_binary(layer: Layer, name: str) -> Kernel:
    function = getattr(layer.xp, name)

    def kernel(a: Array, b: Array) -> Array:
        return layer.held(function(a, b)).astype(a.dtype, copy=False)

    return kernel


def comparison(layer: Layer, name: str) -> Kernel:
    function = getattr(layer.xp, name)
    return lambda a, b: layer.held(function(layer.wide(a), layer.wide(b)))


def rounding(layer: Layer, name: str) -> Kernel:
    function = layer.rounded(getattr(layer.xp, name))
    return lambda a: a.copy() if a.dtype.kind in "iub" else function(a)


def sign(layer: Layer, a: Array) -> Array:
    xp = layer.xp
    if a.dtype.kind == "b":
        return a.copy()
    found = layer.held(xp.sign(a))
    return found if a.dtype.kind in "iu" else xp.where(a != a, xp.zeros_like(found), found)


def reciprocal(layer: Layer, a: Array) -> Array:
    return layer.held(layer.xp.ones((), a.dtype) / a)


def rsqrt(layer: Layer, a: Array) -> Array:
    return reciprocal(layer, layer.held(layer.xp.sqrt(a)))


def power(layer: Layer, a: Array, b: Array) -> Array:
    xp = layer.xp
    kind = a.dtype.kind
    if kind == "b":
        return layer.held(a | ~b)
    if kind == "i":
        inverse = xp.where(a == 1, 1, xp.where(a == -1, 1 - 2 * (b & 1), 0)).astype(a.dtype)
        positive = xp.power(a, xp.maximum(b, xp.zeros((), b.dtype)))
        return xp.where(b < 0, inverse, positive).astype(a.dtype)
    return layer.held(xp.power(a, b))


def isfinite(layer: Layer, a: Array) -> Array:
    return layer.held(layer.xp.isfinite(layer.wide(a)))


def where(layer: Layer, condition: Array, a: Array, b: Array) -> Array:
    return layer.held(layer.xp.where(condition, a, b))


def bitwise_not(layer: Layer, a: Array) -> Array:
    return layer.held(layer.xp.invert(a))


ROUNDED: dict[str, Kernel] = {"pow": power, "reciprocal": reciprocal, "rsqrt": rsqrt, "sign": sign}
"""Functions of a layer and arrays that are not half precision."""


def in_place(kernel: Kernel) -> Kernel:
    def write(a: Array, *rest: object) -> None:
        a[...] = kernel(a, *rest)

    return write


def make(layer: Layer) -> dict[str, Kernel]:
    """The kernels of this family.

    Where kernels in CUDA C can be launched, they are generated (`flambeau_cupy.fusion`), and the
    array module serves complex numbers.
    """
    xp, fusion = layer.xp, layer.fusion
    copies, casts, writes = (partial(f, layer) for f in (clone, cast, assign))
    made: dict[str, Kernel] = {
        "cast": casts,
        "clone": copies,
        "contiguous": layer.copy,
        "assign": writes,
        "erf": layer.rounded(layer.special.erf),
        "bitwise_not": partial(bitwise_not, layer),
        "isfinite": partial(isfinite, layer),
        "where": partial(where, layer),
    }
    made |= {name: layer.rounded(partial(f, layer)) for name, f in ROUNDED.items()}
    made |= {name: layer.rounded(getattr(xp, found)) for name, found in UNARY.items()}
    made |= {name: layer.rounded(float_binary(layer, found)) for name, found in BINARY.items()}
    made |= {name: comparison(layer, found) for name, found in COMPARISON.items()}
    made |= {name: float_binary(layer, found) for name, found in BITS.items()}
    made |= {name: rounding(layer, found) for name, found in ROUNDING.items()}
    made |= {name: layer.rounded(getattr(xp, found)) for name, found in DIVISION.items()}
    names = [*UNARY, *BINARY, *BITS, *DIVISION, *ROUNDED]
    for name in DIVISION:
        made[name] = _checked(layer, made[name])
    if fusion is None:
        # Comparisons and halves go through one temporary; the others could write directly.
        made |= {f"{name}_": in_place(made[name]) for name in names}
        made |= {f"{n}_": direct(getattr(xp, f), made[n]) for n, f in DIRECT.items()}
    else:
        generated = {name: fusion.kernel(name, made[name]) for name in made if name in STEPS}
        writers = {f"{name}_": fusion.writer(name, made[name]) for name in names}
        for name in DIVISION:
            generated[name] = _checked(layer, fusion.kernel(name, made[name]))
            writers[f"{name}_"] = _checked(layer, fusion.writer(name, made[name]))
        made |= generated | writers
        made["clone"] = _clone(made["clone"], copies)
        made["cast"] = _cast(fusion, casts)
        made["assign"] = _assign(fusion, writes)
    return {name: layer.quiet(kernel) for name, kernel in made.items()}


def _checked(layer: Layer, kernel: Kernel) -> Kernel:
    """A division that refuses zero divisors of integers."""
    faults = layer.faults

    def run(a: Array, b: Array) -> Array:
        if b.dtype.kind in "iu":
            if faults is not None:
                b = faults.divisor(b)
            elif not bool((b != 0).all()):
                raise ZeroDivisionError("integer division or modulo by zero")
        return kernel(a, b)

    if late := getattr(kernel, "late", None):
        run.late = lambda a, b: NotImplemented if b.dtype.kind in "iu" else late(a, b)  # type: ignore[attr-defined]
    return run


def _clone(fused: Kernel, copy: Kernel) -> Kernel:
    """Copies of arrays keep the order of their memory."""

    def clone(a: Array) -> Array:
        return fused(a) if type(a) is Deferred else copy(a)

    clone.late = fused.late  # type: ignore[attr-defined]
    return clone


def _cast(fusion: Fusion, plain: Kernel) -> Kernel:
    def cast(a: Array, dtype: DType) -> Array:
        kind = TO_NUMPY[dtype]
        if a.dtype in TYPES and kind in TYPES:
            return fusion.apply("cast", a, dtype=kind)
        return plain(a, dtype)

    def late(a: Array, dtype: Any) -> object:
        kind = TO_NUMPY[dtype]
        if a.dtype in TYPES and kind in TYPES:
            return fusion.deferred("cast", fusion.held(a), dtype=kind)
        return NotImplemented

    cast.late = late  # type: ignore[attr-defined]
    return cast


def _assign(fusion: Fusion, plain: Kernel) -> Kernel:
    def assign(dst: Array, src: Array) -> None:
        if src.dtype in TYPES and dst.dtype in TYPES and src.dtype != dst.dtype:
            fusion.apply("clone", src, out=dst)
        else:
            plain(dst, src)

    return assign


DIRECT = {"add": "add", "sub": "subtract", "mul": "multiply"}


def direct(function: Callable[..., Any], general: Kernel) -> Kernel:
    """The in-place form of a function that takes ``out``."""

    def write(a: Array, b: Array) -> None:
        if a.dtype in HALVES or b.dtype != a.dtype:
            a[...] = general(a, b)
        else:
            function(a, b, out=a)

    return write


def _dense(a: Array) -> bool:
    """Whether the elements fill their memory without gaps or overlaps, in whatever order."""
    step = a.itemsize
    for stride, n in sorted(zip(a.strides, a.shape, strict=True)):
        if n == 1:
            continue
        if stride != step:
            return False
        step *= n
    return True
