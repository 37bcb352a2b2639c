"""Elementwise kernels: casts, arithmetic, comparison, logic, rounding and elementary functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from flambeau_numpy.allocator import THRESHOLD, empty
from flambeau_numpy.casts import copy_order, is_half, narrow, ordered_copy, recast, wide
from flambeau_numpy.dtypes import EIGHTHS, FLOAT8, TO_NUMPY, to_float8
from flambeau_numpy.kernels.creation import fill
from flambeau_numpy.pointwise import (
    BLOCK,
    binary,
    binary_in_place,
    blockwise,
    unary,
    unary_in_place,
)
from flambeau_numpy.silence import quiet

if TYPE_CHECKING:
    from flambeau.plugin import dtype as DType

Array = np.ndarray[Any, Any]

UNARY = {
    "neg": np.negative,
    "abs": np.absolute,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
    "log10": np.log10,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "sqrt": np.sqrt,
    "square": np.square,
    "reciprocal": np.reciprocal,
    "bitwise_not": np.invert,
}
BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "atan2": np.arctan2,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
}
COMPARISON = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
ROUNDING = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint}
DIVISION = {"fmod": np.fmod, "floor_divide": np.floor_divide}


def cast(a: Array, dtype: DType) -> Array:
    """`a` in another dtype; NaN, infinities and what does not fit convert as C does."""
    kind = TO_NUMPY[dtype]
    if a.dtype.kind == "c" and kind.kind not in "cb":
        a = a.real
    return to_float8(a, kind) if dtype in FLOAT8 else recast(a, kind)


def clone(a: Array) -> Array:
    """A copy with the order of dimensions in memory kept."""
    if a.nbytes < THRESHOLD or not a.flags.c_contiguous:
        return a.copy("K") if copy_order(a) == "K" else ordered_copy(a)
    return contiguous(a)


def contiguous(a: Array) -> Array:
    """A row-major copy."""
    if a.nbytes < THRESHOLD:
        return a.copy()
    out = empty(a.shape, a.dtype)
    np.copyto(out, a)
    return out


def assign(dst: Array, src: Array) -> None:
    """Write `src`, broadcast and cast, into `dst`."""
    if dst.dtype is not src.dtype:
        _assign_cast(dst, src)
    elif src.ndim or dst.dtype.kind == "V":
        np.copyto(dst, src)
    else:
        dst.fill(src)


@quiet
def _assign_cast(dst: Array, src: Array) -> None:
    if src.dtype.kind == "c" and dst.dtype.kind not in "cb":
        src = src.real
    if dst.dtype in EIGHTHS:
        src = to_float8(src, dst.dtype)
    elif is_half(src.dtype) or is_half(dst.dtype):
        src = recast(src, dst.dtype)
    np.copyto(dst, src, casting="unsafe")


def sign(a: Array) -> Any:
    """-1, 0 or 1; 0 for NaN; True and False are their own signs."""
    kind = a.dtype.kind
    if kind == "b":
        return a.copy(copy_order(a))
    found = np.sign(a)
    if kind in "iu":
        return found
    found = np.asarray(found)
    np.copyto(found, 0, where=np.isnan(a))
    return found


def _rounding(ufunc: np.ufunc) -> Callable[[Array], Any]:
    rounded = unary(ufunc)

    def kernel(a: Array) -> Any:
        return a.copy(copy_order(a)) if a.dtype.kind in "iub" else rounded(a)

    return kernel


@quiet
def rsqrt(a: Array) -> Any:
    """1 / sqrt(a)."""
    root = np.sqrt(wide(a))
    if type(root) is not np.ndarray:
        return np.reciprocal(root).astype(a.dtype)
    np.reciprocal(root, root)
    return narrow(root, a.dtype)


# erf(x) = tanh(x·R(x²)), R fitted for |x| <= 4 by weighted least squares (Lawson's iteration):
# relative error 1e-7, and 2e-7 as evaluated in float32.  NumPy's tanh is vectorised, SciPy's erf
# is not.
_ERF = tuple(
    np.float32(c)
    for c in (
        5.424050656964152e-09,
        2.7510579988193637e-08,
        -4.793955364035028e-06,
        8.459355941606894e-05,
        -6.148313453241188e-04,
        -1.9529548893749369e-04,
        1.0276986720516122e-01,
        1.1283792468556326,
    )
)
_FOUR = np.float32(4)


def erf_block(out: Array, x: Array, t: Array, r: Array) -> None:
    """Write erf(x) of float32 to `out` (which may be `x`), with two scratch arrays."""
    x = np.clip(x, -_FOUR, _FOUR, out)
    np.multiply(x, x, t)
    np.multiply(t, _ERF[0], r)
    r += _ERF[1]
    for c in _ERF[2:]:
        r *= t
        r += c
    r *= x
    np.tanh(r, out)


_erf32 = blockwise(erf_block, scratch=2)


@quiet
def erf(a: Array) -> Any:
    """The error function."""
    if a.dtype == np.float64:
        return special.erf(a)
    return _erf32(a) if a.size > 256 else narrow(special.erf(wide(a)), a.dtype)


def pow_into(a: Array, b: Array, out: Array | None = None) -> Any:
    """a ** b; integers to negative powers are 0 except for bases 1 and -1."""
    if b.ndim == 0 and a.dtype.kind in "fcV":
        # The exponents that PyTorch computes in other ways too; NumPy's power is slow.
        exponent, precise = b.item(), a.dtype.char in "fd"
        if exponent == 1:
            return np.positive(a, out)
        if exponent == 2:
            return np.multiply(a, a, out)
        if exponent == 3:
            # Of float16 in float32: rounded once, as PyTorch does.
            w = wide(a) if a.dtype.char == "e" else a
            cube = np.multiply(np.multiply(w, w), w, out if w is a else None)
            return cube if w is a else np.positive(narrow(cube, a.dtype), out)
        if exponent == 4 and precise:
            square = np.multiply(a, a)
            return np.multiply(square, square, out)
        if exponent == -2 and precise:
            return np.reciprocal(np.multiply(a, a), out)
        if exponent == 0.5 and a.dtype.char != "e":  # of float16, a power: (-inf) ** 0.5 is inf
            return np.sqrt(a, out)
        if exponent == -0.5 and a.dtype.char not in "eFD":  # so -0.0 gives -inf, and -inf NaN
            found = rsqrt(a)
            return found if out is None else np.positive(found, out)
        if exponent == -1:
            return np.reciprocal(a, out)
    if a.dtype.kind == "b":
        return np.greater_equal(a, b, out)
    if b.ndim == 0 and a.dtype.kind == "i" and (exponent := b.item()) >= 0:
        return np.multiply(a, a, out) if exponent == 2 else np.power(a, b, out)
    if a.dtype.kind != "i" or not np.any(b < 0):
        return np.power(a, b, out)
    # NumPy refuses negative exponents of integers, after writing some results.
    odd = np.bitwise_and(b, 1)
    inverse = np.where(a == 1, 1, np.where(a == -1, 1 - 2 * odd, 0)).astype(a.dtype)
    result = np.where(b < 0, inverse, np.power(a, np.maximum(b, 0)))
    if out is not None:
        out[...] = result
    return result


def _make_pow() -> Callable[[Array, Array], Any]:
    quietly, power = quiet(pow_into), binary(np.power)

    def kernel(a: Array, b: Array) -> Any:
        if b.ndim and a.dtype.kind in "fc":
            return power(a, b)
        return quietly(a, b)

    kernel.__name__ = kernel.__qualname__ = "pow"
    return kernel


@quiet
def pow_(a: Array, b: Array) -> None:
    """`a ** b` into `a`."""
    pow_into(a, b, a)


def _integral(make: Callable[[np.ufunc], Any], ufunc: np.ufunc) -> Callable[[Array, Array], Any]:
    kernel = make(ufunc)

    def checked(a: Array, b: Array) -> object:
        if b.dtype.kind in "iu" and np.count_nonzero(b) != b.size:
            raise ZeroDivisionError("integer division or modulo by zero")
        return kernel(a, b)

    checked.__name__ = checked.__qualname__ = ufunc.__name__
    return checked


_rest, _rest_in_place = _integral(binary, np.remainder), _integral(binary_in_place, np.remainder)


def remainder(a: Array, b: Array) -> Any:
    """The rest of a division with the divisor's sign; an exact zero keeps the dividend's.

    NumPy gives zeros the divisor's sign.
    """
    rest = _rest(a, b)
    if a.dtype.kind in "iub" or not (zero := rest == 0).any():
        return rest
    if not rest.shape:
        return np.copysign(rest, a)
    return np.copysign(rest, a, out=rest, where=zero)


def remainder_(a: Array, b: Array) -> None:
    """`remainder` into `a`."""
    if a.dtype.kind in "iub":
        _rest_in_place(a, b)
    else:
        np.copyto(a, remainder(a, b))


def where(condition: Array, a: Array, b: Array) -> Array:
    """`a` where `condition` holds, else `b`."""
    if condition.size < BLOCK or a.dtype.itemsize not in _WORDS:
        return np.where(condition, a, b)
    return _large_where(condition, a, b)


_WORDS = {4: np.dtype(np.int32), 8: np.dtype(np.int64)}


def _large_where(condition: Array, a: Array, b: Array) -> Array:
    # NumPy branches on every element, which random conditions make slow.  Bits do not branch:
    # b ^ ((a ^ b) & mask), the mask being 0 or -1.
    shape = condition.shape
    if not condition.flags.c_contiguous or any(
        x.ndim and (x.shape != shape or not x.flags.c_contiguous) for x in (a, b)
    ):
        return np.where(condition, a, b)
    word = _WORDS[a.dtype.itemsize]
    out = empty(shape, a.dtype)
    mask = np.empty(BLOCK, word)
    flat, test = out.reshape(-1).view(word), condition.reshape(-1).view(np.int8)
    first, second = (x.reshape(-1).view(word) for x in (a, b))
    for start in range(0, flat.size, BLOCK):
        piece = slice(start, start + BLOCK)
        target = flat[piece]
        bits = mask[: target.size]
        np.negative(test[piece], bits, dtype=word)
        x = first[piece] if a.ndim else first
        y = second[piece] if b.ndim else second
        np.bitwise_xor(x, y, target)
        target &= bits
        target ^= y
    return out


@quiet
def clamp(a: Array, low: Any, high: Any) -> Array:
    """min(max(a, low), high), where either limit may be absent."""
    if a.dtype.itemsize == 2:  # a Python number would widen bfloat16
        low, high = (None if limit is None else np.asarray(limit, a.dtype) for limit in (low, high))
    bounded = a if low is None else np.maximum(a, low)
    return bounded if high is None else np.minimum(bounded, high)


KERNELS: dict[str, Callable[..., Any]] = {
    "clamp": clamp,
    "cast": cast,
    "clone": clone,
    "contiguous": contiguous,
    "assign": assign,
    "fill_": fill,
    **{name: unary(ufunc) for name, ufunc in UNARY.items()},
    **{name + "_": unary_in_place(ufunc) for name, ufunc in UNARY.items()},
    **{name: binary(ufunc) for name, ufunc in BINARY.items()},
    **{name + "_": binary_in_place(ufunc) for name, ufunc in BINARY.items()},
    **{name: binary(ufunc) for name, ufunc in COMPARISON.items()},
    **{name: _rounding(ufunc) for name, ufunc in ROUNDING.items()},
    **{name: _integral(binary, ufunc) for name, ufunc in DIVISION.items()},
    **{name + "_": _integral(binary_in_place, ufunc) for name, ufunc in DIVISION.items()},
    "remainder": remainder,
    "remainder_": remainder_,
    "isfinite": np.isfinite,
    "sign": sign,
    "rsqrt": rsqrt,
    "erf": erf,
    "pow": _make_pow(),
    "pow_": pow_,
    "where": where,
}
