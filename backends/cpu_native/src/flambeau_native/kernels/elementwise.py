"""Pointwise functions and arithmetic of large arrays, casts, and copies.

Small arrays are left to the ufunc of NumPy where one does it all: it costs less than a call of
compiled code.
"""

from __future__ import annotations

from functools import lru_cache
from math import copysign, inf
from typing import TYPE_CHECKING, Any

import numpy as np

from flambeau_native import extension
from flambeau_native.extension import native
from flambeau_native.kernels._casts import convert_into
from flambeau_native.kernels._common import (
    BACK,
    BOOL,
    FLOAT32,
    FLOAT64,
    INT64,
    LAST,
    NUMPY,
    WORD,
    Array,
    Kernel,
    alike,
    collected,
    compiled,
    dense,
    in_place,
    made,
    memory_of,
    once,
    otherwise,
    unary,
    whole,
    whole_comparison,
    whole_in_place,
    zeros,
)
from flambeau_native.kernels._writing import writing_kernels
from flambeau_numpy import pointwise
from flambeau_numpy.casts import HALVES, copy_order, ordered_copy
from flambeau_numpy.extending import FOREIGN, FROM_NUMPY, THRESHOLD, TO_NUMPY, empty, empty_like
from flambeau_numpy.extending.parts import BINARY, ROUNDING, UNARY

if TYPE_CHECKING:
    from flambeau.plugin import dtype as DType

_contiguous, _clamp = otherwise("contiguous"), otherwise("clamp")
_assign, _fill, _full = otherwise("assign"), otherwise("fill_"), otherwise("full")
_FEW_HALVES = 1024  # 16-bit floats
_SMALLEST = 1024  # elements, below which NumPy's powers of two are as fast
_FEWEST_DIVISIONS = 32  # elements, below which NumPy is as fast
_LEAST_CAST = 512  # elements
# What is written as its bits: NumPy exports no buffers of these dtypes, and fills number by number.
_BITS = {dtype: WORD if dtype.itemsize == 2 else np.dtype(np.uint8) for dtype in FOREIGN}
_LEAST_PERIOD = 64  # elements of a repeated operand, below which NumPy's loops are as fast


def copied(a: Array) -> Array:
    """A copy of a large row-major array."""
    out = empty_like(a)
    native.copy(memory_of(out), memory_of(a), a.nbytes, 0)
    return out


def _convert(dst: Array, src: Array) -> None:
    if (bits := _BITS.get(dst.dtype)) is not None and src.dtype == dst.dtype:
        KERNELS["assign"](dst.view(bits), src.view(bits))
        return
    if src.dtype != dst.dtype and (src.size >= _LEAST_CAST or dst.itemsize == 2):
        if convert_into(dst, src):
            return
    _assign(dst, src)


def fill_(a: Array, value: object) -> None:
    if a.nbytes >= THRESHOLD and a.flags.c_contiguous and isinstance(value, (int, float, complex)):
        KERNELS["assign"](a, _full((), value, FROM_NUMPY[a.dtype]))
    else:
        _fill(a, value)


def full(shape: tuple[int, ...], value: complex, dtype: DType) -> Array:
    if value == 0 and (type(value) is int or _is_clear(value)):
        return zeros(shape, TO_NUMPY[dtype])
    kind, item = _item(value, dtype)
    out = made(shape, kind)
    KERNELS["assign"](out, item)
    return out


@lru_cache(maxsize=256, typed=True)  # the same few numbers over and over, of which 0.0 is none
def _item(value: complex, dtype: DType) -> tuple[np.dtype, Array]:
    return TO_NUMPY[dtype], _full((), value, dtype)


def unfilled(shape: tuple[int, ...], dtype: DType) -> Array:
    """An array of whatever its memory has; of bools, which have two values only, of False."""
    kind = TO_NUMPY[dtype]
    return zeros(shape, kind) if kind is BOOL else made(shape, kind)


def identity(rows: int, columns: int, dtype: DType) -> Array:
    """Zeros with ones on the diagonal."""
    kind = TO_NUMPY[dtype]
    out = zeros((rows, columns), kind)
    if (run := _ONES.get(kind)) is not None:
        run(out, rows, columns)
    else:
        flat = out.reshape(-1)  # an alias
        _fill(flat[:: columns + 1][: min(rows, columns)], 1)
    return out


def _is_clear(value: object) -> bool:
    """Whether all bits of a number are 0: not those of -0.0."""
    return value == 0 and (type(value) is not float or copysign(1.0, value) > 0)


def contiguous(a: Array) -> Any:
    if a.flags.c_contiguous:
        return copied(a) if a.nbytes >= THRESHOLD else _contiguous(a)
    return dense(a)


def clone(a: Array) -> Any:
    if a.flags.c_contiguous:
        return a.copy() if a.nbytes < THRESHOLD else copied(a)
    return a.copy("K") if copy_order(a) == "K" else ordered_copy(a, dense)


def _make_cast() -> Kernel:
    """Of single precision to double and back; the others are NumPy's."""
    general, double, single = otherwise("cast"), FROM_NUMPY[FLOAT64], FROM_NUMPY[FLOAT32]

    def of(function: Kernel, before: np.dtype, after: np.dtype) -> Kernel:
        dtype = FROM_NUMPY[after]
        return native.whole(  # type: ignore[no-any-return]
            lambda a: general(a, dtype), ((before, function),), THRESHOLD, empty, after
        )

    widened = of(native.cast_f32_f64, FLOAT32, FLOAT64)
    narrowed = of(native.cast_f64_f32, FLOAT64, FLOAT32)

    def cast(a: Array, dtype: DType) -> object:
        if dtype is double and a.dtype is FLOAT32:
            return widened(a)
        if dtype is single and a.dtype is FLOAT64:
            return narrowed(a)
        return general(a, dtype)

    return cast


def _large_unary(name: str, general: Kernel | None = None) -> Kernel:
    general, find = general or otherwise(name), compiled(name).get

    def large(a: Array) -> object:
        if not a.flags.c_contiguous:
            repeated = once(general, a)
            return general(a) if repeated is None else repeated
        if (run := find(a.dtype)) is None:
            return general(a)
        out = empty_like(a)
        run(out, a, a.size)
        return out

    return large


def _large_binary(name: str) -> Kernel:
    general, find = otherwise(name), compiled(name).get

    def large(a: Array, b: Array) -> Any:
        dtype, shape = a.dtype, a.shape
        run = find(dtype)
        if run is None or b.dtype != dtype:
            return general(a, b)
        if not (a.flags.c_contiguous and b.flags.c_contiguous):
            last = LAST.get(len(shape)) if len(b.shape) == len(shape) else None
            if last is None:
                return general(a, b)
            first, second = a.transpose(last), b.transpose(last)  # a number for each channel
            if not (first.flags.c_contiguous and second.flags.c_contiguous):
                return general(a, b)
            return large(first, second).transpose(BACK[len(shape)])
        if (repeated := b.shape) == shape:
            out = empty_like(a)
            run(out, a, b, a.size, 0, 0)
            return out
        if shape[-len(repeated) :] == repeated and (period := b.size) >= _LEAST_PERIOD:
            out = empty_like(a)
            run(out, a, b, a.size, 0, period)
            return out
        whole = a if a.size >= b.size else b
        first, second = _period(a, whole), _period(b, whole)
        if first < 0 or second < 0:
            return general(a, b)
        out = empty(whole.shape, a.dtype)
        run(out, a, b, out.size, first, second)
        return out

    return large


def _period(a: Array, whole: Array) -> int:
    """After how many elements of the result `a` begins anew: 0 if never, -1 if it is not so."""
    shape = a.shape
    if shape == whole.shape:
        return 0
    while shape and shape[0] == 1:
        shape = shape[1:]
    if len(a.shape) > len(whole.shape) or shape != whole.shape[len(whole.shape) - len(shape) :]:
        return -1
    return a.size if a.size == 1 or a.size >= _LEAST_PERIOD else -1


def masked_fill_(a: Array, mask: Array, value: Array) -> None:
    KERNELS["assign"](a, KERNELS["where"](mask, value, a))


def _make_rounding(name: str) -> Kernel:
    large, general = _large_unary(name), otherwise(name)

    def kernel(a: Array) -> Any:
        return general(a) if a.nbytes < THRESHOLD else large(a)

    return kernel


def _make_clamp() -> dict[str, Kernel]:
    bounded, general = unary("clamp"), _clamp
    bounded_, lowest, greatest = in_place("clamp", bounded), -inf, inf

    def clamp(a: Array, low: float | None, high: float | None) -> np.ndarray:
        # Limits that are NaN, or crossed, have rules of their own.
        first, last = lowest if low is None else low, greatest if high is None else high
        return bounded(a, first, last) if first <= last else general(a, low, high)

    def clamp_(a: Array, low: float | None, high: float | None) -> None:
        first, last = lowest if low is None else low, greatest if high is None else high
        if first <= last:
            bounded_(a, first, last)
        else:
            _assign(a, general(a, low, high))  # type: ignore[arg-type]

    return {"clamp": clamp, "clamp_": clamp_}


def _make_pow() -> dict[str, Kernel]:
    general, general_, in_one = otherwise("pow"), otherwise("pow_"), {2: "square", 3: "cube"}
    in_one |= {0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}
    runs = {exponent: compiled(name) for exponent, name in in_one.items()}
    power_of_two = _large_unary("exp2", lambda a: general(np.float32(2), a))

    def of(exponent: float) -> Kernel:
        name = in_one[exponent]
        numpys = lambda a: general(a, np.array(exponent, a.dtype))  # noqa: E731
        return whole(_large_unary(name, numpys), name, (FLOAT32, FLOAT64))

    square, reciprocal = of(2), of(-1)
    powers = {exponent: of(exponent) for exponent in in_one}
    powers |= {4: lambda a: square(square(a)), -2: lambda a: reciprocal(square(a))}

    def power(a: Array, b: Array) -> object:
        if not b.ndim:
            dtype = a.dtype
            if dtype is FLOAT32 or dtype is FLOAT64:
                if (alone := powers.get(b.item())) is not None:
                    return alone(a)
            elif a.size >= _FEW_HALVES and dtype in HALVES and b == 2:
                return square(a)
        elif not a.ndim and b.size >= _SMALLEST and b.dtype == FLOAT32 and a == 2:
            return power_of_two(b) if b.flags.c_contiguous else general(a, b)
        return general(a, b)

    def power_(a: Array, b: Array) -> None:
        if a.nbytes >= THRESHOLD and not b.ndim and a.dtype.kind == "f" and a.flags.c_contiguous:
            if a.itemsize > 2 and (run := runs.get(b.item())) is not None:
                run[a.dtype](a, a, a.size)
                return
        general_(a, b)

    two = {dtype: np.array(2, dtype) for dtype in (FLOAT32, FLOAT64)}

    def exp2_(a: Array) -> None:
        if a.size >= _SMALLEST and a.dtype == FLOAT32 and a.flags.c_contiguous:
            native.exp2_f32(a, a, a.size)
        else:
            _assign(a, power(two[a.dtype], a))  # type: ignore[arg-type]

    return {"pow": power, "pow_": power_, "exp2_": exp2_}


def _make_division(name: str) -> dict[str, Kernel]:
    general, general_ = otherwise(name), otherwise(f"{name}_")
    run: Any = getattr(native, f"{name}_f32")
    large = _large_binary(name)

    def kernel(a: Array, b: Array) -> Any:
        few = a.size < _FEWEST_DIVISIONS and b.size < _FEWEST_DIVISIONS
        return general(a, b) if few or a.dtype != FLOAT32 else large(a, b)

    def kernel_(a: Array, b: Array) -> None:
        period = -1
        if a.size >= _FEWEST_DIVISIONS and a.dtype == FLOAT32 and alike(a, b):
            period = _period(b, a)
        if period < 0 or (period > 1 and np.may_share_memory(a, b)):
            general_(a, b)
        else:
            run(a, a, b, a.size, 0, period)

    return {name: kernel, f"{name}_": kernel_}


def _make_multiply_add() -> dict[str, Kernel]:
    find, row_major, spread = compiled("multiply_add").get, np.ascontiguousarray, np.broadcast_to
    roles: Any = [["readonly"]] * 3 + [["writeonly", "allocate"]]

    def multiply_add(a: Array, b: Array, c: Array) -> object:
        run, shape, is_number = find(a.dtype), a.shape, not c.ndim
        if run is None:
            return a + b * c
        if b.shape == shape and (is_number or c.shape == shape) and alike(a, b, c):
            out = made(shape, a.dtype)
            run(out, a, b, c, out.size, is_number)
            return out
        # The result has the order in memory that NumPy's arithmetic gives it.
        out = np.nditer((a, b, c, None), ["zerosize_ok"], roles).operands[3]
        order = sorted(range(out.ndim), key=lambda d: -out.strides[d])
        given = [row_major(spread(x, out.shape).transpose(order)) for x in (a, b)]
        given.append(c if is_number else row_major(spread(c, out.shape).transpose(order)))
        run(out.transpose(order), *given, out.size, is_number)
        return out

    def multiply_add_(a: Array, b: Array, c: Array) -> None:
        run, shape = find(a.dtype), a.shape
        if run and b.shape == shape and (not c.ndim or c.shape == shape) and alike(a, b, c):
            run(a, a, b, c, a.size, not c.ndim)
        elif run and not a.flags.c_contiguous:
            rows = dense(a)
            b = dense(b if b.shape == shape else spread(b, shape))
            run(rows, rows, b, dense(spread(c, shape)) if c.ndim else c, a.size, not c.ndim)
            KERNELS["assign"](a, rows)
        else:
            _assign(a, multiply_add(a, b, c))  # type: ignore[arg-type]

    return {"multiply_add": multiply_add, "multiply_add_": multiply_add_}


# Functions whose loops read an element once: those of sin and cos look at it again afterwards.
_READ_ONCE = "neg abs exp log log1p tanh sqrt square reciprocal floor ceil trunc round"
_EXACT = (*"neg abs sqrt square reciprocal add sub mul div".split(), *ROUNDING)
_FUNCTIONS = ("neg", "abs", "exp", "log", "log1p", "sin", "cos", "tanh", "sqrt", "square")
# And from how many bytes on NumPy takes longer for an operand that repeats.
_ARITHMETIC = dict.fromkeys(("add", "sub", "mul", "div"), 8192) | dict.fromkeys(
    ("maximum", "minimum"), THRESHOLD
)

KERNELS: dict[str, Kernel] = {
    **{name: pointwise.unary(UNARY[name], _large_unary(name)) for name in _FUNCTIONS},
    **{
        name: pointwise.binary(BINARY[name], _large_binary(name), repeated)
        for name, repeated in _ARITHMETIC.items()
    },
    **{name: _make_rounding(name) for name in ROUNDING},
    **_make_clamp(),
    **_make_pow(),
    "clone": clone,
    "contiguous": contiguous,
    "erf": unary("erf"),
    "sign": unary("sign"),
    "rsqrt": unary("rsqrt"),
    "reciprocal": unary("reciprocal"),
}

if native is not None:
    KERNELS["contiguous"], KERNELS["clone"] = collected(contiguous, True), collected(clone, False)
    KERNELS |= _make_multiply_add()
    KERNELS |= writing_kernels()
    KERNELS |= {f"{name}_": in_place(name, KERNELS[name], THRESHOLD) for name in _READ_ONCE.split()}
    KERNELS |= {f"{name}_": in_place(name, KERNELS[name]) for name in ("erf", "sign", "rsqrt")}
    KERNELS |= {
        f"{name}_": pointwise.binary_in_place(BINARY[name], _large_binary(name))
        for name in _ARITHMETIC
        if f"{name}_" in NUMPY
    }
    for _division in ("fmod", "remainder", "floor_divide"):
        KERNELS |= _make_division(_division)
    _ONES = compiled("ones_on_diagonal") | {INT64: native.ones_on_diagonal_i64}
    full.identity, full.empty = identity, unfilled  # type: ignore[attr-defined]
    KERNELS |= {"fill_": fill_, "full": full}
    if extension.READS_ARRAYS:
        KERNELS["cast"] = _make_cast()
        KERNELS["where"] = native.choosing(otherwise("where"), BOOL, THRESHOLD, empty)
        KERNELS["masked_fill_"] = masked_fill_
    # The loops of NumPy give the same bits.
    for _name in "eq ne lt le gt ge".split():
        KERNELS[_name] = whole_comparison(KERNELS.get(_name, NUMPY[_name]), _name)
    for _name in _EXACT:
        KERNELS[_name] = whole(KERNELS[_name], _name, (FLOAT32, FLOAT64))
        if (_general := KERNELS.get(f"{_name}_", NUMPY.get(f"{_name}_"))) is not None:
            KERNELS[f"{_name}_"] = whole_in_place(_general, _name, (FLOAT32, FLOAT64))
    KERNELS["assign"] = native.assigning(
        _convert, native.copy, native.clear, native.fill, THRESHOLD
    )
